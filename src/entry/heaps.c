/* Heaps of the program's own, and groups: that part of include/hakmem.h. */
#include <errno.h>

#include "entry/init.h"
#include "entry/slow.h"
#include "base/bits.h"
#include "upkeep/upkeep.h"
#include "hakmem.h"
#include "os/fatal.h"
#include "os/os.h"
#include "check/gate.h"
#include "slab/private_heap.h"

/* The program knows a private heap by another name. */
static hakmem_heap_t *heap_outside(private_heap_t *heap)
{
    return (hakmem_heap_t *)(void *)heap;
}

/* Ends the program where it is no heap of now. */
static private_heap_t *heap_inside(const hakmem_heap_t *heap)
{
    private_heap_t *found = (private_heap_t *)(uintptr_t)heap;
    if (UNLIKELY(!private_heap_exists(found)))
        fatal_no_heap(heap);
    return found;
}

PUBLIC hakmem_heap_t *hakmem_heap_new(void)
{
    private_heap_t *heap = ensure_init() ? private_heap_create() : NULL;
    return heap != NULL ? heap_outside(heap) : out_of_memory();
}

/* NULL instead of a heap is malloc's heap, which may be uninitialised, or the C library's. */

PUBLIC void *hakmem_heap_malloc(hakmem_heap_t *heap, size_t size)
{
    if (heap == NULL)
        return malloc_slow(size, __builtin_return_address(0));
    return allocate_private(heap_inside(heap), size, BLOCK_ALIGNMENT, false);
}

PUBLIC void *hakmem_heap_calloc(hakmem_heap_t *heap, size_t count, size_t size)
{
    size_t total;
    if (heap == NULL)
        return calloc_slow(count, size, __builtin_return_address(0));
    if (__builtin_mul_overflow(count, size, &total))
        return out_of_memory();
    return allocate_private(heap_inside(heap), total, BLOCK_ALIGNMENT, true);
}

PUBLIC void *hakmem_heap_aligned_alloc(hakmem_heap_t *heap, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return heap == NULL ? allocate_aligned(alignment, size)
                        : allocate_private(heap_inside(heap), size, alignment, false);
}

PUBLIC hakmem_heap_t *hakmem_heap_of(const void *ptr)
{
    gate_t gate = {.verdict = VERDICT_FOREIGN};
    if (ensure_init())
        gate = gate_look(ptr);
    if (gate.verdict != VERDICT_SMALL && gate.verdict != VERDICT_LARGE)
        return NULL;
    return heap_outside(private_heap_of(ptr));
}

PUBLIC bool hakmem_heap_get_statistics(const hakmem_heap_t *heap,
                                       hakmem_heap_statistics_t *statistics)
{
    if (heap == NULL || statistics == NULL)
        return false;
    private_heap_size_t size = private_heap_size(heap_inside(heap));
    *statistics = (hakmem_heap_statistics_t){.used = size.used_bytes,
                                             .used_count = size.used_count,
                                             .mapped = size.mapped_bytes};
    return true;
}

PUBLIC void hakmem_heap_destroy(hakmem_heap_t *heap)
{
    if (heap == NULL)
        return;
    uint64_t now_ms = os_clock_ms();
    if (!private_heap_destroy(heap_inside(heap), now_ms))
        fatal_no_heap(heap); /* another thread has just done it */
    upkeep(now_ms); /* the program may rest now */
}

/* ---- groups ---- */

_Static_assert(HAKMEM_GROUPS == SITE_GROUPS, "a program may name the groups that a policy may");

PUBLIC void *hakmem_malloc_group(unsigned group, size_t size)
{
    return allocate_in_group(group, size, BLOCK_ALIGNMENT);
}

PUBLIC void *hakmem_aligned_alloc_group(unsigned group, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return allocate_in_group(group, size, alignment);
}
