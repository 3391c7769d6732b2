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

/* A thread gives to a shard of its own and takes from it first, so that threads which churn large
 * blocks meet at no lock; who finds nothing there looks into the others'. */
#define SHARD_COUNT 8

/* By so much may a shard's content differ from what the total says of it. */
#define UNTOLD_UNITS (MIB >> UNIT_SHIFT)

typedef struct shard {
    lock_t lock;
    list_node_t by_age;                       /* youngest first */
    size_t cached_units;                      /* written under the lock, read without */
    size_t cached_count;                      /* likewise */
    size_t told_units;                        /* likewise: of cached_units, what the total knows */
    list_node_t by_length[SPAN_LENGTH_COUNT]; /* last in, first out: the warmest first */
} __attribute__((aligned(CACHE_LINE))) shard_t;

static shard_t shards[SHARD_COUNT];
static _Thread_local shard_t *thread_shard;
static uint64_t thread_count;                                    /* that have a shard */
static uint64_t told_total __attribute__((aligned(CACHE_LINE))); /* units in all shards, nearly */

static shard_t *own_shard(void)
{
    if (UNLIKELY(thread_shard == NULL)) {
        /* Two threads that begin together may get the same; no harm in that. */
        thread_shard = &shards[counter_read(&thread_count) % SHARD_COUNT];
        counter_add(&thread_count, 1);
    }
    return thread_shard;
}

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
static void take_out(shard_t *shard, span_t *span)
{
    list_remove(&span->bin_node);
    list_remove(&span->age_node);
    count_subtract(&shard->cached_units, span->unit_count);
    count_subtract(&shard->cached_count, 1);
    span_set_state(span, SPAN_LARGE);
}

/* Brings the total up to date if it is far off. The caller holds the lock. */
static void tell_total(shard_t *shard)
{
    size_t untold = shard->cached_units - shard->told_units;
    if (untold + UNTOLD_UNITS <= 2 * UNTOLD_UNITS)
        return;
    counter_add(&told_total, untold); /* modulo 2^64: it may be less than nothing */
    count_add(&shard->told_units, untold);
}

/* The warmest span of the shortest length that serves. The caller holds the lock. */
static span_t *find(const shard_t *shard, size_t unit_count)
{
    size_t longest = unit_count + unit_count / 2 + 1;
    unsigned index = index_of_length(unit_count);
    for (unsigned above = 0; above <= LENGTHS_ABOVE; above++, index++) {
        if (index >= SPAN_LENGTH_COUNT)
            return NULL;
        if (list_is_empty(&shard->by_length[index]))
            continue;
        span_t *span = LIST_ITEM(shard->by_length[index].next, span_t, bin_node);
        return span->unit_count <= longest ? span : NULL;
    }
    return NULL;
}

static span_t *take_from(shard_t *shard, size_t unit_count)
{
    /* A look without the lock: nothing is lost by missing a span that is just being left. */
    if (count_read(&shard->cached_units) < unit_count)
        return NULL;
    lock_acquire(&shard->lock);
    span_t *span = find(shard, unit_count);
    if (span != NULL) {
        take_out(shard, span);
        tell_total(shard);
    }
    lock_release(&shard->lock);
    return span;
}

span_t *span_cache_take(size_t unit_count)
{
    shard_t *own = own_shard();
    span_t *span = take_from(own, unit_count);
    for (unsigned index = 0; span == NULL && index < SHARD_COUNT; index++)
        if (&shards[index] != own)
            span = take_from(&shards[index], unit_count);
    return span;
}

/* Does the cache, all shards together, hold too much? Exact as to this shard. */
static bool is_over_its_share(const shard_t *shard)
{
    const page_heap_t *heap = &page_heaps[HEAP_OF_LARGE];
    size_t used_units = count_read(&heap->used_units);
    size_t untold_units = count_read(&shard->cached_units) - count_read(&shard->told_units);
    size_t cached_units = counter_read(&told_total) + untold_units;
    return 2 * cached_units > used_units + ALWAYS_ALLOWED;
}

/* Takes the oldest span out if it was freed before `before_ms` or the cache holds too much. */
static span_t *take_oldest(shard_t *shard, uint64_t before_ms)
{
    span_t *oldest = NULL;
    lock_acquire(&shard->lock);
    if (!list_is_empty(&shard->by_age))
        oldest = LIST_ITEM(shard->by_age.previous, span_t, age_node);
    if (oldest != NULL && (oldest->freed_ms <= before_ms || is_over_its_share(shard))) {
        take_out(shard, oldest);
        tell_total(shard);
    } else {
        oldest = NULL;
    }
    lock_release(&shard->lock);
    return oldest;
}

/* Frees such spans until `most_units` or a little more have gone. Returns how many have. */
static size_t release(shard_t *shard, uint64_t before_ms, size_t most_units)
{
    size_t released = 0;
    while (released < most_units && count_read(&shard->cached_count) != 0) { /* a look is enough */
        span_t *span = take_oldest(shard, before_ms);
        if (span == NULL)
            break;
        released += span->unit_count;
        page_heap_free(span, span->freed_ms);
    }
    return released;
}

/* Own first: what other threads have there is warm for them. */
void span_cache_give_way(size_t unit_count)
{
    shard_t *own = own_shard();
    size_t given = release(own, UINT64_MAX, unit_count);
    for (unsigned index = 0; given < unit_count && index < SHARD_COUNT; index++)
        given += release(&shards[index], UINT64_MAX, unit_count - given);
}

void span_cache_trim(uint64_t before_ms)
{
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        release(&shards[index], before_ms, SIZE_MAX);
}

/* The thread's own shard gives way first. */
static void trim_excess(shard_t *own)
{
    release(own, 0, SIZE_MAX);
    if (is_over_its_share(own))
        span_cache_trim(0);
}

/* Says that the span is cached now; false: it is so already, another thread has just freed it. */
static bool claim(span_t *span)
{
    span_state_t before = span_state(span);
    if (process_is_single_threaded())
        span_set_state(span, SPAN_CACHED);
    else /* relaxed: the lock of the shard hands the span on */
        before = (span_state_t)__atomic_exchange_n(&span->state, SPAN_CACHED, __ATOMIC_RELAXED);
    return before == SPAN_LARGE;
}

bool span_cache_give(span_t *span, uint64_t now_ms)
{
    unsigned index = index_of_length(span->unit_count);
    if (span_length_for(span->unit_count) != span->unit_count || index >= SPAN_LENGTH_COUNT)
        return false;
    if (UNLIKELY(!claim(span)))
        fatal_already_free("free", span_start(span), span_size(span));
    shard_t *shard = own_shard();
    lock_acquire(&shard->lock);
    span->freed_ms = now_ms;
    list_push_front(&shard->by_length[index], &span->bin_node);
    list_push_front(&shard->by_age, &span->age_node);
    count_add(&shard->cached_units, span->unit_count);
    count_add(&shard->cached_count, 1);
    tell_total(shard);
    bool is_over = is_over_its_share(shard);
    lock_release(&shard->lock);
    if (is_over)
        trim_excess(shard);
    return true;
}

size_t span_cache_units(void)
{
    size_t sum = 0;
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        sum += count_read(&shards[index].cached_units);
    return sum;
}

size_t span_cache_count(void)
{
    size_t sum = 0;
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        sum += count_read(&shards[index].cached_count);
    return sum;
}

void span_cache_create(void)
{
    /* The rest is zero, and stays untouched for the shards that no thread uses. */
    for (unsigned index = 0; config_checked && index < SHARD_COUNT; index++)
        shards[index].lock.rank = LOCK_SPANS;
}

void span_cache_at_fork(fork_phase_t phase)
{
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        lock_at_fork(&shards[index].lock, phase);
}
