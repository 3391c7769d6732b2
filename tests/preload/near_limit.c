/* A process whose idle memory must go before what it needs next is there: near_limit SIZE. In a
   group of 512 MiB: 300 stay in use and 150 are freed, which it may keep for an hour. Then 170 more
   are filled with blocks of SIZE bytes, which what is free cannot serve as it is; 0: with one block
   that grows. */
#include "limited.h"

enum { USED = 300, FREED = 150, MORE = 170 };

static void *touched(size_t size)
{
    void *block = hidden(malloc(size));
    check(block != NULL);
    return memset(block, 0x5a, size);
}

static void grow_to(size_t most)
{
    char *block = NULL;
    for (size_t size = 0; size < most; size += 10 * MIB) {
        block = hidden(realloc(block, size + 10 * MIB));
        check(block != NULL);
        memset(block + size, 0x5a, 10 * MIB);
    }
}

int main(int argc, char **argv)
{
    static void *freed[FREED];
    check_eq(argc, 2);
    const size_t size = strtoull(argv[1], NULL, 10);
    for (unsigned index = 0; index < USED; index++) (void)touched(MIB);
    for (unsigned index = 0; index < FREED; index++) freed[index] = touched(MIB);
    for (unsigned index = 0; index < FREED; index++) free(freed[index]);
    if (size == 0) grow_to((size_t)MORE * MIB);
    for (size_t bytes = 0; size != 0 && bytes < (size_t)MORE * MIB; bytes += size)
        (void)touched(size);
    (void)printf("ok\n");
    return 0;
}
