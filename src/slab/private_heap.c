/* Private heaps. See private_heap.h. */
#include "slab/private_heap.h"

#include <string.h>

#include "base/assert.h"
#include "base/bitmap.h"
#include "base/config.h"
#include "base/count.h"
#include "os/fatal.h"
#include "observe/samples.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/tuning.h"
#include "large/large.h"

struct private_heap {
    uint16_t number;               /* from 1 on; 0 is the heap of malloc */
    list_node_t open[CLASS_COUNT]; /* slabs with free blocks */
    list_node_t full;              /* slabs of all classes */
    list_node_t large;
    size_t slab_count;
    size_t slab_bytes;
    size_t used_count; /* blocks that the program has, but for large ones */
    size_t used_bytes;
};

_Static_assert(sizeof(private_heap_t) <= 2 * KIB, "two of them fit into a page");

/* By number. Entries change under the first lock, which a walk over all of them holds. */
static private_heap_t *heaps[PRIVATE_HEAPS_MOST + 1] SPARSE;

static struct {
    lock_t locks[1 + PRIVATE_HEAP_LOCKS]; /* of the table; of heaps, by their number */
    unsigned least_free_number;           /* none below is free */
    unsigned most_number;                 /* none above was ever in use */
} private_heap_state = {.least_free_number = 1};

/* Blocks of each class that the program has, in the heaps of each lock but the first. */
static size_t private_heaps_used_counts[PRIVATE_HEAP_LOCKS][CLASS_COUNT] SPARSE;

static lock_t *private_heap_lock_of(unsigned number)
{
    return &private_heap_state.locks[1 + number % PRIVATE_HEAP_LOCKS];
}

void private_heaps_create(void)
{
    for (unsigned index = 0; config_checked && index <= PRIVATE_HEAP_LOCKS; index++)
        private_heap_state.locks[index].rank = LOCK_PRIVATE;
}

private_heap_t *private_heap_create(void)
{
    private_heap_t *heap = meta_alloc(sizeof *heap);
    if (heap == NULL)
        return NULL;
    memset(heap, 0, sizeof *heap);
    lock_acquire(&private_heap_state.locks[0]);
    unsigned number = private_heap_state.least_free_number;
    while (number <= PRIVATE_HEAPS_MOST && heaps[number] != NULL)
        number++;
    private_heap_state.least_free_number = number;
    if (number <= PRIVATE_HEAPS_MOST) {
        heap->number = (uint16_t)number;
        if (number > private_heap_state.most_number)
            private_heap_state.most_number = number;
        /* relaxed: who looks it up has a block of it, or the lock */
        __atomic_store_n(&heaps[number], heap, __ATOMIC_RELAXED);
    }
    lock_release(&private_heap_state.locks[0]);
    if (heap->number != 0)
        return heap;
    meta_free(heap, sizeof *heap);
    return NULL;
}

bool private_heap_exists(const private_heap_t *heap)
{
    return __atomic_load_n(&heaps[heap->number], __ATOMIC_RELAXED) == heap;
}

private_heap_t *private_heap_of(const void *ptr)
{
    const span_t *span = span_of(ptr);
    if (span == NULL || span->heap == 0)
        return NULL;
    return __atomic_load_n(&heaps[span->heap], __ATOMIC_RELAXED);
}

/* ---- small blocks ---- */

static void private_heap_count_slab(private_heap_t *heap, const slab_t *slab, bool is_new)
{
    size_t bytes = span_size(&slab->span);
    heap->slab_count += is_new ? (size_t)1 : (size_t)-1;
    heap->slab_bytes += is_new ? bytes : -bytes;
}

/* `count` blocks of the slab became used, or free again where it is negative. */
static void private_heap_count_used(private_heap_t *heap, const slab_t *slab, ptrdiff_t count)
{
    heap->used_count += (size_t)count;
    heap->used_bytes += (size_t)count * size_classes[slab->class].size;
    count_add(&private_heaps_used_counts[heap->number % PRIVATE_HEAP_LOCKS][slab->class],
              (size_t)count);
}

/* A slab with free blocks; NULL: no memory. The caller holds the lock. */
static slab_t *private_heap_provide_slab(private_heap_t *heap, unsigned class)
{
    list_node_t *open = &heap->open[class];
    if (!list_is_empty(open))
        return LIST_ITEM(open->next, slab_t, node);
    slab_t *slab = slab_create_hidden(class);
    if (slab == NULL)
        return NULL;
    slab->span.heap = heap->number;
    list_push_front(open, &slab->node);
    private_heap_count_slab(heap, slab, true);
    return slab;
}

void *private_heap_take(private_heap_t *heap, unsigned class)
{
    void *block = NULL;
    lock_t *lock = private_heap_lock_of(heap->number);
    lock_acquire(lock);
    slab_t *slab = private_heap_provide_slab(heap, class);
    if (slab != NULL) {
        (void)slab_take(slab, &block + 1, 1);
        private_heap_count_used(heap, slab, 1);
        if (slab->free_count == 0) {
            list_remove(&slab->node);
            list_push_front(&heap->full, &slab->node);
        }
    }
    lock_release(lock);
    return block;
}

/* The slab goes back to the page heap. The caller holds the lock. */
static void private_heap_drop_slab(private_heap_t *heap, slab_t *slab, uint64_t now_ms)
{
    list_remove(&slab->node);
    private_heap_count_slab(heap, slab, false);
    slab_destroy(slab, now_ms);
}

/* The slab has no block in use. The last open one of its class stays while the heap has others: a
 * block that grows or comes and goes would make and give up a slab each time. */
static void private_heap_note_empty(private_heap_t *heap, slab_t *slab, uint64_t now_ms)
{
    list_node_t *open = &heap->open[slab->class];
    if (heap->used_count != 0) {
        if (open->next != open->previous)
            private_heap_drop_slab(heap, slab, now_ms);
        return;
    }
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        while (!list_is_empty(&heap->open[class]))
            private_heap_drop_slab(heap, LIST_ITEM(heap->open[class].next, slab_t, node), now_ms);
}

void private_heap_give(slab_t *slab, void *ptr)
{
    slab_verdict_t result;
    unsigned class = slab->class;
    unsigned number = slab->span.heap;
    lock_t *lock = private_heap_lock_of(number);
    lock_acquire(lock);
    private_heap_t *heap = heaps[number];
    if (UNLIKELY(heap == NULL || slab_of(ptr) != slab || slab->span.heap != number)) {
        lock_release(lock);
        fatal_already_free("free", ptr, size_classes[class].size); /* by another thread, just now */
    }
    bool was_full = slab->free_count == 0;
    if (slab_give(slab, &ptr, 1, &result) == 1) {
        private_heap_count_used(heap, slab, -1);
        if (was_full) {
            list_remove(&slab->node);
            list_push_front(&heap->open[class], &slab->node);
        }
        if (slab->free_count == slab->block_count)
            private_heap_note_empty(heap, slab, os_clock_ms());
    }
    lock_release(lock);
    if (UNLIKELY(result == NOT_A_BLOCK))
        fatal_inside_block("free", ptr, size_classes[class].size);
    if (UNLIKELY(result == ALREADY_FREE))
        fatal_already_free("free", ptr, size_classes[class].size);
}

/* ---- large blocks ---- */

void *private_heap_take_large(private_heap_t *heap, size_t size, size_t alignment, bool *is_zero)
{
    span_t *span = large_alloc_span(size, alignment, is_zero);
    if (span == NULL)
        return NULL;
    lock_t *lock = private_heap_lock_of(heap->number);
    lock_acquire(lock);
    span->heap = heap->number;
    list_push_front(&heap->large, &span->age_node);
    lock_release(lock);
    return span_start(span);
}

void private_heap_forget(span_t *span)
{
    unsigned number = span->heap;
    lock_t *lock = private_heap_lock_of(number);
    lock_acquire(lock);
    if (span->heap == number) { /* else another thread frees it too, and is found by its state */
        list_remove(&span->age_node);
        span->heap = 0;
    }
    lock_release(lock);
}

/* ---- the end of a heap ---- */

/* All blocks of the slab are free now, whoever had them. */
static void private_heap_empty_slab(private_heap_t *heap, slab_t *slab)
{
    private_heap_count_used(heap, slab, -(ptrdiff_t)(slab->block_count - slab->free_count));
    bitmap_set(slab->free_bits, 0, slab->block_count);
    slab->free_count = slab->block_count;
    slab->first_word = 0;
}

static void private_heap_drop_slabs(private_heap_t *heap, list_node_t *head, uint64_t now_ms)
{
    while (!list_is_empty(head)) {
        slab_t *slab = LIST_ITEM(head->next, slab_t, node);
        private_heap_empty_slab(heap, slab);
        private_heap_drop_slab(heap, slab, now_ms);
    }
}

bool private_heap_destroy(private_heap_t *heap, uint64_t now_ms)
{
    lock_acquire(&private_heap_state.locks[0]);
    if (UNLIKELY(!private_heap_exists(heap))) {
        lock_release(&private_heap_state.locks[0]);
        return false;
    }
    lock_t *lock = private_heap_lock_of(heap->number);
    lock_acquire(lock);
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        private_heap_drop_slabs(heap, &heap->open[class], now_ms);
    private_heap_drop_slabs(heap, &heap->full, now_ms);
    while (!list_is_empty(&heap->large)) {
        span_t *span = LIST_ITEM(heap->large.next, span_t, age_node);
        list_remove(&span->age_node);
        span->heap = 0;
        if (span->sample != SAMPLE_NONE)
            samples_remove(span_start(span), now_ms);
        span->sample = SAMPLE_NONE;
        large_free(span, now_ms);
    }
    MUST(heap->slab_bytes == 0 && heap->used_count == 0);
    __atomic_store_n(&heaps[heap->number], NULL, __ATOMIC_RELAXED);
    if (heap->number < private_heap_state.least_free_number)
        private_heap_state.least_free_number = heap->number;
    lock_release(lock);
    lock_release(&private_heap_state.locks[0]);
    meta_free(heap, sizeof *heap);
    return true;
}

/* ---- counts ---- */

static void private_heap_add_slabs(private_statistics_t *sum, const list_node_t *head)
{
    for (const list_node_t *node = head->next; node != NULL && node != head; node = node->next) {
        const slab_t *slab = LIST_ITEM(node, slab_t, node);
        sum->free_count += slab->free_count;
        sum->free_bytes += slab->free_count * size_classes[slab->class].size;
    }
}

static void private_heap_add(private_statistics_t *sum, const private_heap_t *heap)
{
    lock_t *lock = private_heap_lock_of(heap->number);
    lock_acquire(lock);
    sum->slab_count += heap->slab_count;
    sum->slab_bytes += heap->slab_bytes;
    sum->used_count += heap->used_count;
    sum->used_bytes += heap->used_bytes;
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        private_heap_add_slabs(sum, &heap->open[class]);
    lock_release(lock);
}

private_heap_size_t private_heap_size(const private_heap_t *heap)
{
    lock_t *lock = private_heap_lock_of(heap->number);
    lock_acquire(lock);
    private_heap_size_t size = {.used_count = heap->used_count,
                                .used_bytes = heap->used_bytes,
                                .mapped_bytes = heap->slab_bytes};
    for (const list_node_t *node = heap->large.next; node != NULL && node != &heap->large;
         node = node->next) {
        size_t bytes = span_size(LIST_ITEM(node, span_t, age_node));
        size.used_count++;
        size.used_bytes += bytes;
        size.mapped_bytes += bytes;
    }
    lock_release(lock);
    return size;
}

private_statistics_t private_heaps_statistics(void)
{
    private_statistics_t sum = {0};
    lock_acquire(&private_heap_state.locks[0]);
    for (unsigned number = 1; number <= private_heap_state.most_number; number++)
        if (heaps[number] != NULL)
            private_heap_add(&sum, heaps[number]);
    lock_release(&private_heap_state.locks[0]);
    return sum;
}

size_t private_heaps_used(unsigned class)
{
    size_t count = 0;
    for (unsigned index = 0; index < PRIVATE_HEAP_LOCKS; index++)
        count += count_read(&private_heaps_used_counts[index][class]);
    return count;
}

/* Are the slabs in the list of the class (0: of full ones) and the heap? Adds up what they have. */
static bool private_heap_slabs_are_valid(const private_heap_t *heap, unsigned class,
                                         const list_node_t *head, private_statistics_t *sum)
{
    for (const list_node_t *node = head->next; node != NULL && node != head; node = node->next) {
        const slab_t *slab = LIST_ITEM(node, slab_t, node);
        if ((slab->free_count == 0 ? 0 : slab->class) != class || slab->span.heap != heap->number ||
            !slab_is_valid(slab))
            return false;
        sum->slab_count++;
        sum->slab_bytes += span_size(&slab->span);
        sum->used_count += slab->block_count - (size_t)slab->free_count;
    }
    return true;
}

static bool private_heap_is_valid(const private_heap_t *heap)
{
    private_statistics_t sum = {0};
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        if (!private_heap_slabs_are_valid(heap, class, &heap->open[class], &sum))
            return false;
    return private_heap_slabs_are_valid(heap, 0, &heap->full, &sum) &&
           sum.slab_count == heap->slab_count && sum.slab_bytes == heap->slab_bytes &&
           sum.used_count == heap->used_count;
}

bool private_heaps_are_valid(void)
{
    bool are_valid = true;
    lock_acquire(&private_heap_state.locks[0]);
    for (unsigned number = 1; number <= private_heap_state.most_number; number++) {
        if (heaps[number] == NULL)
            continue;
        lock_acquire(private_heap_lock_of(number));
        are_valid &= heaps[number]->number == number && private_heap_is_valid(heaps[number]);
        lock_release(private_heap_lock_of(number));
    }
    lock_release(&private_heap_state.locks[0]);
    return are_valid;
}

void private_heaps_at_fork(fork_phase_t phase)
{
    for (unsigned index = 0; index <= PRIVATE_HEAP_LOCKS; index++)
        lock_at_fork(&private_heap_state.locks[index], phase);
}
