/* The span cache. See span_cache.h. */
#include "span/span_cache.h"

#include "base/bits.h"
#include "base/count.h"
#include "harden/fatal.h"
#include "span/page_heap.h"

/* What the cache may hold: as much as the program has in large blocks, and 4 MiB. A span may serve
 * a request of up to four lengths, half as much again, below its own. Both settled by the sweep in
 * docs/design.md: with less, spans are split and joined, and each request touches pages at new
 * places; with lengths kept strictly apart a third more memory is held. */
#define ALWAYS_ALLOWED (4 * MIB >> UNIT_SHIFT)
#define LENGTHS_ABOVE 4

static lock_t lock = LOCK_INITIAL(LOCK_SPANS);
static list_node_t by_length[SPAN_LENGTH_COUNT]; /* last in, first out: the warmest first */
static list_node_t by_age;                       /* youngest first */
static size_t cached_units;
static size_t cached_count;

static unsigned step_power(size_t unit_count)
{
    return unit_count <= 32 ? 0 : highest_bit(unit_count - 1) - 3;
}

size_t span_length_for(size_t unit_count)
{
    return align_up(unit_count, (size_t)1 << step_power(unit_count));
}

static unsigned index_of_length(size_t unit_count)
{
    unsigned power = step_power(unit_count);
    if (power == 0)
        return (unsigned)unit_count - 1;
    return 32 + (power - 2) * 8 + (unsigned)(((unit_count - 1) >> power) & 7);
}

/* The caller holds the lock. */
static void take_out(span_t *span)
{
    list_remove(&span->bin_node);
    list_remove(&span->age_node);
    count_subtract(&cached_units, span->unit_count);
    count_subtract(&cached_count, 1);
    span->state = SPAN_LARGE;
}

/* The warmest span of the shortest length that serves. The caller holds the lock. */
static span_t *find(size_t unit_count)
{
    size_t longest = unit_count + unit_count / 2 + 1;
    unsigned index = index_of_length(unit_count);
    for (unsigned above = 0; above <= LENGTHS_ABOVE; above++, index++) {
        if (index >= SPAN_LENGTH_COUNT)
            return NULL;
        if (list_is_empty(&by_length[index]))
            continue;
        span_t *span = LIST_ITEM(by_length[index].next, span_t, bin_node);
        return span->unit_count <= longest ? span : NULL;
    }
    return NULL;
}

span_t *span_cache_take(size_t unit_count)
{
    /* A look without the lock: nothing is lost by missing a span that is just being left. */
    if (span_cache_units() < unit_count)
        return NULL;
    lock_acquire(&lock);
    span_t *span = find(unit_count);
    if (span != NULL)
        take_out(span);
    lock_release(&lock);
    return span;
}

/* The caller holds the lock. */
static bool is_over_its_share(void)
{
    const page_heap_t *heap = &page_heaps[HEAP_OF_LARGE];
    size_t used_units = count_read(&heap->used_units);
    return cached_units > (used_units - cached_units) + ALWAYS_ALLOWED;
}

/* Takes the oldest span out if it was freed before `before_ms` or the cache holds too much. */
static span_t *take_oldest(uint64_t before_ms)
{
    span_t *oldest = NULL;
    lock_acquire(&lock);
    if (!list_is_empty(&by_age))
        oldest = LIST_ITEM(by_age.previous, span_t, age_node);
    if (oldest != NULL && (oldest->freed_ms <= before_ms || is_over_its_share()))
        take_out(oldest);
    else
        oldest = NULL;
    lock_release(&lock);
    return oldest;
}

bool span_cache_give(span_t *span, uint64_t now_ms)
{
    unsigned index = index_of_length(span->unit_count);
    if (span_length_for(span->unit_count) != span->unit_count || index >= SPAN_LENGTH_COUNT)
        return false;
    lock_acquire(&lock);
    if (UNLIKELY(span->state != SPAN_LARGE)) { /* another thread has just freed it */
        lock_release(&lock);
        fatal_already_free("free", span_start(span), span_size(span));
    }
    span->state = SPAN_CACHED;
    span->freed_ms = now_ms;
    list_push_front(&by_length[index], &span->bin_node);
    list_push_front(&by_age, &span->age_node);
    count_add(&cached_units, span->unit_count);
    count_add(&cached_count, 1);
    bool is_over = is_over_its_share();
    lock_release(&lock);
    if (is_over)
        span_cache_trim(0);
    return true;
}

void span_cache_trim(uint64_t before_ms)
{
    span_t *span;
    while ((span = take_oldest(before_ms)) != NULL)
        page_heap_free(span, span->freed_ms);
}

size_t span_cache_units(void)
{
    return count_read(&cached_units);
}

size_t span_cache_count(void)
{
    return count_read(&cached_count);
}

void span_cache_at_fork(fork_phase_t phase)
{
    lock_at_fork(&lock, phase);
}
