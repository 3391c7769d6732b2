/* With HAKMEM_LD_SAFE the C library serves everything: no block is ours, and all still works. */
#include "api/heap.h"
#include "check.h"
#include "weak.h"

static void check_block(void *block)
{
    check(hidden(block) != NULL && !hakmem_owns(block));
    free(block);
}

int main(void)
{
    if (!heap_is_hakmem()) check_skip("needs HAKMEM");
    for (size_t size = 1; size < 10000000; size *= 3) {
        char *block = hidden(malloc(size));
        check(block != NULL && !hakmem_owns(block) && malloc_usable_size(block) >= size);
        heap_fill(block, size, 1);
        block = hidden(realloc(block, size * 2));
        check(block != NULL && heap_holds(block, size, 1));
        free(block);
        block = hidden(memalign(1024, size));
        check(block != NULL && heap_is_aligned(block, 1024));
        free(block);
        block = hidden(calloc(1, size));
        check(block != NULL && heap_is_zero(block, size));
        free(block);
        check_block(hakmem_heap_malloc(NULL, size));
        check_block(hakmem_heap_calloc(NULL, 1, size));
        check_block(hakmem_heap_aligned_alloc(NULL, 64, size));
    }
    return 0;
}
