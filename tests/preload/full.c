/* What a limit of addresses holds: full SIZE [late]. Fills 300 MiB with blocks of SIZE bytes and
   prints how many there are. All but a twenty-fifth of the limit must be blocks, also where it is
   set when the library has begun (late). */
#include "limited.h"

static const size_t limit_bytes = (size_t)300 << 20;

int main(int argc, char **argv)
{
    check(argc == 2 || argc == 3);
    if (argc == 3) free(hidden(malloc(1)));
    set_limit(RLIMIT_AS, limit_bytes);
    const size_t size = strtoull(argv[1], NULL, 10);
    void *block = hidden(malloc(size));
    const size_t usable = malloc_usable_size(block);
    size_t count;
    (void)fill(size, SIZE_MAX, &count);
    (void)printf("%zu\n", count + 1);
    check((count + 1) * usable >= limit_bytes / 25 * 24);
    return 0;
}
