/* Blocks of 48 bytes from three places, for the tests of site rules. Prints which of them stand in
   the same heap: "C" for malloc's, else a letter for each heap. The places are the return addresses
   of the calls in the functions below. */
#include "check.h"
#include "hakmem.h"

#pragma weak hakmem_heap_of

#define NOINLINE __attribute__((noinline))

static void *volatile kept;

NOINLINE void *by_malloc(void)
{
    kept = malloc(48);
    return kept;
}

NOINLINE void *by_calloc(void)
{
    kept = calloc(6, 8);
    return kept;
}

NOINLINE void *by_another(void)
{
    kept = malloc(48);
    return kept;
}

NOINLINE void *of_another_size(void)
{
    kept = malloc(200);
    return kept;
}

static char letter(void *block)
{
    static hakmem_heap_t *seen[8];
    static unsigned count;
    hakmem_heap_t *heap = hakmem_heap_of(block);
    unsigned index = 0;
    if (heap == NULL) return 'C';
    while (index < count && seen[index] != heap) index++;
    seen[index] = heap;
    if (index == count) count++;
    return (char)('a' + index);
}

int main(void)
{
    static char *blocks[4000];
    for (unsigned turn = 0; turn < 1000; turn++) {
        blocks[4 * turn] = by_malloc();
        blocks[4 * turn + 1] = by_calloc();
        blocks[4 * turn + 2] = by_another();
        blocks[4 * turn + 3] = of_another_size();
    }
    for (unsigned index = 0; index < 48; index++) check(blocks[1][index] == 0);
    for (unsigned index = 0; index < 4; index++) (void)putchar(letter(blocks[index]));
    for (unsigned index = 4; index < 4000; index++)
        check(letter(blocks[index]) == letter(blocks[index % 4]));
    blocks[0] = realloc(blocks[0], 480); /* stays in its heap */
    (void)putchar(letter(blocks[0]));
    for (unsigned index = 0; index < 4000; index++) free(blocks[index]);
    (void)puts("");
    return 0;
}
