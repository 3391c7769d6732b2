/* Frees nearly all of its blocks while its limit leaves no address for anything else, and shows how
 * many KiB it holds before and after malloc_trim. */
#include "limited.h"

#include <malloc.h>

#include "stress/resident.h"

enum { BLOCKS = 40000, SIZE = 3000, STAYS = 40 };

int main(void)
{
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        check((blocks[i] = hidden(malloc(SIZE))) != NULL);
        memset(blocks[i], 1, SIZE);
    }
    set_limit(RLIMIT_AS, address_space_bytes() + 64 * 1024);
    const size_t full = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % STAYS != 0) free(blocks[i]);
    (void)malloc_trim(0);
    (void)printf("%zu %zu\n", full, resident_kib());
    return 0;
}
