/* A program that holds 60 MiB at most, in blocks of another size each time, all of them touched; it
   frees them all before the next phase, or all but one in 100. */
#include "api/heap.h"
#include "check.h"

enum { ROUNDS = 3, KEPT = 20000 };

static const size_t phase_bytes = (size_t)60 << 20;

static void *kept[KEPT];
static size_t kept_count;

static void phase(size_t size, bool keeps_some)
{
    void **last = NULL;
    size_t count = 0;
    for (; count * size < phase_bytes; count++) {
        void **block = hidden(malloc(size));
        check(block != NULL);
        memset(block, 0x5a, size);
        *block = last;
        last = block;
    }
    for (; last != NULL; count--) {
        void **next = *last;
        if (keeps_some && size <= 3000 && count % 100 == 0 && kept_count < KEPT)
            kept[kept_count++] = last;
        else
            free(last);
        last = next;
    }
}

int main(void)
{
    static const size_t sizes[] = {100,    300000, 20000,   6000000, 1000,
                                   100000, 16,     3000000, 9000,    30000000};
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++)
            phase(sizes[index], round == 1);
    for (size_t index = 0; index < kept_count; index++) free(kept[index]);
    (void)printf("ok\n");
    return 0;
}
