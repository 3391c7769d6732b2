/* realloc: stay, grow in place, remap, or move. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/guard.h"
#include "entry/libc_heap.h"
#include "report/profile.h"
#include "entry/slow.h"
#include "upkeep/reclaim.h"
#include "upkeep/upkeep.h"
#include "observe/sampler.h"
#include "observe/samples.h"
#include "os/os.h"
#include "options/options.h"
#include "slab/private_heap.h"
#include "slab/size_class.h"
#include "large/huge.h"
#include "large/large.h"
#include "keep/pressure.h"

/* A block stays where it is while the request fits and fills more than half of it: less would keep
 * more memory idle than a move costs. The smallest block has nowhere smaller to go. */
static bool should_stay(size_t block, size_t wanted)
{
    return wanted <= block && (wanted > block / 2 || block == BLOCK_ALIGNMENT);
}

/* May the block be a sampled one, whose free is seen? (may_be_like_others in slow.c) */
static bool may_be_sampled(const void *ptr)
{
    const span_t *span = span_of(ptr);
    return span == NULL || span->sample != SAMPLE_NONE ||
           (options.junk && frees_are_checked() && span->heap == 0);
}

/* Does a profile want to know when the block ends, wherever realloc moves it? A report of leaks has
 * a sample of each block. */
static bool is_followed(const void *ptr)
{
    return UNLIKELY(samples_exist()) && sampler_mean() != SAMPLER_LEAST_MEAN &&
           may_be_sampled(ptr) && samples_have(ptr);
}

/* The group of the block; 0: none. A sampled block is a span, which has a note of its class. */
static unsigned group_of(const void *ptr)
{
    unsigned class = window_has(ptr) ? class_of_unit(unit_of(ptr)) : 0;
    const span_t *span = class == 0 ? span_of(ptr) : NULL;
    if (UNLIKELY(span != NULL && span->sample != SAMPLE_LARGE))
        class = span->sample;
    return size_classes[class].group;
}

/* A block of the heap and the group that the one at `ptr` belongs to. */
static void *allocate_beside(const void *ptr, size_t size)
{
    private_heap_t *heap = private_heap_of(ptr);
    unsigned group = group_of(ptr);
    if (UNLIKELY(is_followed(ptr)))
        return allocate_followed(heap, group, size);
    if (UNLIKELY(heap != NULL))
        return allocate_private(heap, size, BLOCK_ALIGNMENT, false);
    return LIKELY(group == 0) ? malloc(size) : allocate_in_group(group, size, BLOCK_ALIGNMENT);
}

/* The block was copied, and is about to be freed. Where memory was short, `moved` may be a block
 * like others, whose free nobody sees. */
static void note_moved(const void *ptr, const void *moved)
{
    if (UNLIKELY(is_followed(ptr)) && may_be_sampled(moved))
        samples_follow(ptr, moved, os_clock_ms());
}

/* A block that only shrinks stays where it is if there is no memory to move it to. */
static NOINLINE void *realloc_move_down(void *ptr, size_t size)
{
    int saved_errno = errno;
    void *moved = allocate_beside(ptr, size);
    if (moved == NULL) {
        errno = saved_errno;
        return ptr;
    }
    memcpy(moved, ptr, size);
    note_moved(ptr, moved);
    free(ptr);
    return moved;
}

/* The span of a large block to which room may be given as it grows; NULL: it is none. Where records
 * tell sizes no block is longer than was asked for, nor where a limit is near. */
static span_t *growing_span(const void *ptr, size_t size)
{
    bool has_none = size <= MID_MAX || size >= HUGE_GROWN_MIN || frees_are_checked() ||
                    pressure_is_near() || private_heap_of(ptr) != NULL;
    return has_none ? NULL : span_of(ptr);
}

/* For the profile, if the block is a sample of it. */
static void note_new_size(const void *block, size_t size)
{
    if (UNLIKELY(samples_exist()))
        samples_resize(block, size);
}

/* The length from which on a block that grows gets a mapping of its own. */
static size_t huge_from(size_t old_size, size_t size)
{
    return size - old_size > size / GROWTH_STEP_SHARE ? HUGE_DOUBLED_MIN : HUGE_GROWN_MIN;
}

static void *realloc_move_up(void *ptr, size_t old_size, size_t size)
{
    span_t *span = growing_span(ptr, size);
    int saved_errno = errno;
    size_t wanted = size;
    if (span != NULL)
        size = large_size_with_room(span, size);
    void *moved = NULL;
    if (size >= huge_from(old_size, wanted) && private_heap_of(ptr) == NULL)
        moved = large_alloc_growing(size);
    if (moved != NULL) /* fresh memory, nearly always */
        upkeep(os_clock_ms());
    if (moved != NULL && sampler_is_due(size))
        profile_sample(moved, size, NULL);
    if (moved != NULL)
        guard_fill_fresh(moved, size);
    if (moved == NULL)
        moved = allocate_beside(ptr, size);
    if (moved == NULL && size != wanted) {
        errno = saved_errno;
        moved = allocate_beside(ptr, wanted);
    }
    if (moved == NULL)
        return NULL;
    if (span != NULL && span_of(moved) != NULL)
        large_note_moved(span, span_of(moved), wanted);
    if (UNLIKELY(size != wanted))
        note_new_size(moved, wanted);
    memcpy(moved, ptr, old_size);
    note_moved(ptr, moved);
    if (!free_outgrown(ptr))
        free(ptr);
    return moved;
}

static void *realloc_move(void *ptr, size_t old_size, size_t size)
{
    return size <= old_size ? realloc_move_down(ptr, size) : realloc_move_up(ptr, old_size, size);
}

/* A mapping of its own keeps it while it stays long; the pages move, not the bytes. Where the
 * kernel will not (the program changed the mapping in part, by mlock or mprotect), the bytes do. */
static void *realloc_huge(void *ptr, size_t old_size, size_t size)
{
    if (size > PTRDIFF_MAX)
        return out_of_memory();
    void *moved = size < HUGE_KEPT_MIN ? NULL : huge_resize(ptr, size);
    size_t more = size > old_size ? size - old_size : 0;
    if (moved == NULL && size >= HUGE_KEPT_MIN && reclaim_any(more))
        moved = huge_resize(ptr, size);
    if (moved != NULL && moved != ptr && samples_exist())
        samples_move(ptr, moved);
    if (moved != NULL)
        note_new_size(moved, size);
    if (moved != NULL && more != 0) /* what the block has grown by is fresh */
        upkeep(os_clock_ms());
    return moved != NULL ? moved : realloc_move(ptr, old_size, size);
}

/* The block serves the new size where it is; its record, if it has one, must say so. */
static void *realloc_stay(void *ptr, size_t size)
{
    note_new_size(ptr, size);
    unsigned class = class_of_unit(unit_of(ptr));
    if (class == 0)
        large_note_stayed(span_of(ptr), size, os_clock_ms());
    if (class != 0 && frees_are_checked())
        guard_set_record(ptr, class, size);
    return ptr;
}

static void *realloc_resize(void *ptr, size_t size)
{
    size_t old_size = block_size(ptr, "realloc");
    if (old_size == SIZE_MAX)
        return libc_heap_realloc(ptr, size);
    if (old_size == 0) /* a block of no bytes */
        return realloc_move(ptr, 0, size);
    span_t *span = span_of(ptr);
    if (span == NULL)
        return realloc_huge(ptr, old_size, size);
    if (should_stay(old_size, size))
        return realloc_stay(ptr, size);
    /* A small block that a profile has sampled is a span too, but no long one. */
    bool is_large = span_state(span) == SPAN_LARGE && old_size > MID_MAX;
    if (is_large && size > MID_MAX && large_resize(span, size, os_clock_ms())) {
        note_new_size(ptr, size);
        return ptr;
    }
    return realloc_move(ptr, old_size, size);
}

/* The block of a slab moves to a longer one. Such a block is no sample of a profile: samples are
 * spans where frees are not checked. */
static NOINLINE void *realloc_small_up(void *ptr, const slab_t *slab, size_t size)
{
    size_t old_size = size_classes[slab->class].size;
    if (size > MID_MAX || slab->span.heap != 0 || size_classes[slab->class].group != 0)
        return realloc_move_up(ptr, old_size, size);
    void *moved = malloc(size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, ptr, old_size);
    free(ptr);
    return moved;
}

static NOINLINE void *realloc_otherwise(void *ptr, size_t size)
{
    if (size == 0) { /* as glibc does; C23 leaves it open */
        free(ptr);
        return NULL;
    }
    return realloc_resize(ptr, size);
}

/* Nearly always the block is none yet, or one of a slab, which stays or grows. */
static inline __attribute__((always_inline)) void *realloc_any(void *ptr, size_t size)
{
    if (ptr == NULL)
        return malloc(size);
    const slab_t *slab = small_block_slab(ptr);
    if (UNLIKELY(slab == NULL))
        return realloc_otherwise(ptr, size);
    size_t slab_size = size_classes[slab->class].size;
    if (size > slab_size)
        return realloc_small_up(ptr, slab, size);
    return size != 0 && should_stay(slab_size, size) ? ptr : realloc_otherwise(ptr, size);
}

PUBLIC void *realloc(void *ptr, size_t size)
{
    return realloc_any(ptr, size);
}

PUBLIC void *reallocarray(void *ptr, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return out_of_memory();
    return realloc_any(ptr, total);
}
