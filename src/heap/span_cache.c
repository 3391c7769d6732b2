/* The span cache. See span_cache.h. */
#include "heap/span_cache.h"

#include "base/assert.h"
#include "base/bitmap.h"
#include "base/count.h"
#include "os/fatal.h"
#include "os/os.h"
#include "options/tuning.h"
#include "keep/keep.h"
#include "heap/page_heap.h"

/* A request may get a span that exceeds it by a quarter. Where the cache has nothing, spans are
 * split and joined, and each request touches pages at new places (docs/design.md). Short blocks
 * lose up to a quarter to units as it is, and get spans of just their length. A thread
 * gives to a shard of its own and takes from it first, so that threads which churn large blocks
 * meet at no lock; who finds nothing there looks into the others'. */

/* Units of a span up to which the length has to be right: 64 KiB. */
#define EXACT_UNITS ((64 * KIB) >> UNIT_SHIFT)

#define LENGTH_WORDS (SPAN_LENGTH_COUNT / 64)

typedef struct shard {
    lock_t lock;
    size_t cached_units;                 /* written under the lock, read without */
    size_t published_bytes;              /* likewise; its part of span_cache_total */
    size_t next_look;                    /* the length where the next comparison begins */
    uint64_t occupied[LENGTH_WORDS + 1]; /* lengths of which there are spans; none beyond */
} __attribute__((aligned(CACHE_LINE))) shard_t;

static struct {
    uint64_t thread_count; /* that have a number */
    shard_t shards[SHARD_COUNT];
    /* By length, last in, first out: the warmest first. Apart, so that none is touched before use.
     */
    list_node_t lists[SHARD_COUNT][SPAN_LENGTH_COUNT];
} span_cache_state SPARSE;
static _Thread_local unsigned thread_number; /* 0: it has none yet */
shared_total_t span_cache_total;

static shard_t *shard_own(void)
{
    if (UNLIKELY(thread_number == 0)) {
        /* Two threads that begin together may get the same; no harm in that. */
        counter_add(&span_cache_state.thread_count, 1);
        thread_number = (unsigned)counter_read(&span_cache_state.thread_count);
    }
    return &span_cache_state.shards[thread_number % SHARD_COUNT];
}

/* Index 0 holds the spans of one unit. */
static list_node_t *shard_list_at(const shard_t *shard, size_t index)
{
    return &span_cache_state.lists[shard - span_cache_state.shards][index];
}

/* ---- the caller of these holds the lock ---- */

static void shard_publish(shard_t *shard)
{
    shared_total_publish(&span_cache_total, &shard->published_bytes,
                         shard->cached_units << UNIT_SHIFT, SHARD_COUNT);
}

static void shard_insert(shard_t *shard, span_t *span)
{
    MUST(lock_is_held(&shard->lock));
    size_t index = span->unit_count - 1;
    list_push_front(shard_list_at(shard, index), &span->bin_node);
    shard->occupied[index / 64] |= (uint64_t)1 << index % 64;
    count_add(&shard->cached_units, span->unit_count);
    shard_publish(shard);
}

static void shard_remove(shard_t *shard, span_t *span)
{
    MUST(lock_is_held(&shard->lock));
    size_t index = span->unit_count - 1;
    list_remove(&span->bin_node);
    /* No branch: it would be foretold wrong half of the time. */
    uint64_t is_last = list_is_empty(shard_list_at(shard, index));
    shard->occupied[index / 64] &= ~(is_last << index % 64);
    count_subtract(&shard->cached_units, span->unit_count);
    shard_publish(shard);
}

/* Bits of 64 lengths from `index` on. (Two shifts: one by 64 has no meaning.) */
static uint64_t shard_lengths_from(const shard_t *shard, size_t index)
{
    const uint64_t *words = &shard->occupied[index / 64];
    return words[0] >> index % 64 | words[1] << 1 << (63 - index % 64);
}

static span_t *shard_oldest_at(const shard_t *shard, size_t index)
{
    return LIST_ITEM(shard_list_at(shard, index)->previous, span_t, bin_node);
}

/* The oldest of SPAN_LOOKS lengths; NULL: the shard is empty. */
static span_t *shard_find_oldest(shard_t *shard)
{
    span_t *oldest = NULL;
    for (unsigned look = 0; look < SPAN_LOOKS; look++) {
        size_t index = bitmap_find(shard->occupied, shard->next_look, SPAN_LENGTH_COUNT, true);
        if (index == SPAN_LENGTH_COUNT)
            index = bitmap_find(shard->occupied, 0, SPAN_LENGTH_COUNT, true);
        if (index == SPAN_LENGTH_COUNT)
            return NULL;
        shard->next_look = index + 1;
        span_t *span = shard_oldest_at(shard, index);
        if (oldest == NULL || span->freed_ms < oldest->freed_ms)
            oldest = span;
    }
    return oldest;
}

/* A span of an index from *from on that was freed before `before_ms`; *from says where. */
static span_t *shard_find_aged(const shard_t *shard, uint64_t before_ms, size_t *from)
{
    while ((*from = bitmap_find(shard->occupied, *from, SPAN_LENGTH_COUNT, true)) !=
           SPAN_LENGTH_COUNT) {
        span_t *span = shard_oldest_at(shard, *from);
        if (span->freed_ms <= before_ms)
            return span;
        *from += 1;
    }
    return NULL;
}

/* ---- taking ---- */

static span_t *shard_take(shard_t *shard, size_t unit_count, size_t alignment)
{
    /* A look without the lock: nothing is lost by missing a span that is just being left. */
    if (count_read(&shard->cached_units) < unit_count)
        return NULL;
    span_t *span = NULL;
    lock_acquire(&shard->lock);
    unsigned serving = unit_count <= EXACT_UNITS ? 1 : (unsigned)unit_count / 4 + 1;
    size_t first = unit_count - 1;
    size_t end = smaller_of(first + serving, SPAN_LENGTH_COUNT);
    uint64_t lengths = shard_lengths_from(shard, first) & low_bits(serving);
    size_t index = lengths != 0 ? first + lowest_bit(lengths)
                                : bitmap_find(shard->occupied, first + 64, end, true);
    if (index < end) {
        span = LIST_ITEM(shard_list_at(shard, index)->next, span_t, bin_node);
        if (UNLIKELY(!is_aligned(span_start(span), alignment))) {
            span = NULL;
        } else {
            shard_remove(shard, span);
            span_set_state(span, SPAN_LARGE);
        }
    }
    lock_release(&shard->lock);
    return span;
}

static NOINLINE span_t *shard_take_from_others(const shard_t *own, size_t unit_count,
                                               size_t alignment)
{
    span_t *span = NULL;
    for (unsigned index = 0; span == NULL && index < SHARD_COUNT; index++)
        if (&span_cache_state.shards[index] != own)
            span = shard_take(&span_cache_state.shards[index], unit_count, alignment);
    return span;
}

span_t *span_cache_take(size_t unit_count, size_t alignment)
{
    shard_t *own = shard_own();
    span_t *span = shard_take(own, unit_count, alignment);
    return LIKELY(span != NULL) ? span : shard_take_from_others(own, unit_count, alignment);
}

/* ---- handing on ---- */

/* Does the cache, all shards together, hold too much? Exact as to this shard. */
static bool shard_is_over_its_share(const shard_t *shard)
{
    size_t used_units = count_read(&page_heap.used_units) - count_read(&page_heap.slab_units);
    size_t own_bytes = count_read(&shard->cached_units) << UNIT_SHIFT;
    size_t unpublished_bytes = own_bytes - count_read(&shard->published_bytes);
    size_t cached_units = (shared_total_read(&span_cache_total) + unpublished_bytes) >> UNIT_SHIFT;
    used_units -= smaller_of(used_units, cached_units);
    return cached_units > keep_most_units(used_units);
}

/* Hands an old span on to the page heap, where its age begins anew: it goes in the order of
 * lengths, and the page heap wants what it gets to be the youngest. The span stays CACHED until it
 * is FREE there, so that a second free is found. Returns its units; 0: the shard is empty. */
static size_t shard_release_one(shard_t *shard, uint64_t now_ms)
{
    if (count_read(&shard->cached_units) == 0) /* a look is enough */
        return 0;
    lock_acquire(&shard->lock);
    span_t *span = shard_find_oldest(shard);
    if (span != NULL)
        shard_remove(shard, span);
    lock_release(&shard->lock);
    if (span == NULL)
        return 0;
    size_t unit_count = span->unit_count;
    page_heap_free(span, now_ms);
    return unit_count;
}

/* Own first: what other threads have there is warm for them. Returns the number of spans. */
size_t span_cache_evict(size_t unit_count, uint64_t now_ms)
{
    shard_t *own = shard_own();
    size_t given = 0;
    size_t spans = 0;
    size_t more;
    for (; given < unit_count && (more = shard_release_one(own, now_ms)) != 0; spans++)
        given += more;
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        for (; given < unit_count &&
               (more = shard_release_one(&span_cache_state.shards[index], now_ms)) != 0;
             spans++)
            given += more;
    return spans;
}

/* Below the law of the peak once: what a program touches of a span, its two ends say, is lost where
 * spans are joined. Beyond it until the request is served; but at most as many spans join as units
 * are wanted, and as many times as the cache held so many units when this began: spans that others
 * free meanwhile are theirs. */
void span_cache_evict_for(size_t unit_count)
{
    size_t left = span_cache_units();
    size_t joined = 0;
    bool again = left != 0;
    while (again && joined < unit_count && !page_heap_has_warm(unit_count)) {
        size_t more = span_cache_evict(unit_count, os_clock_ms());
        joined += more;
        left -= smaller_of(left, unit_count);
        size_t free_units = span_cache_units() + count_read(&page_heap.free.dirty_units);
        again = more != 0 && left != 0 && keep_is_beyond_peak(free_units);
    }
}

static void shard_release_aged(shard_t *shard, uint64_t before_ms, uint64_t now_ms)
{
    size_t from = 0;
    span_t *span = NULL;
    if (count_read(&shard->cached_units) == 0) /* a look is enough */
        return;
    do {
        lock_acquire(&shard->lock);
        span = shard_find_aged(shard, before_ms, &from);
        if (span != NULL)
            shard_remove(shard, span);
        lock_release(&shard->lock);
        if (span != NULL)
            page_heap_free(span, smaller_of(before_ms, now_ms));
    } while (span != NULL);
}

void span_cache_trim(uint64_t before_ms, uint64_t now_ms)
{
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        shard_release_aged(&span_cache_state.shards[index], before_ms, now_ms);
}

/* The thread's own shard gives way first. */
static COLD void shard_trim_excess(shard_t *own, uint64_t now_ms)
{
    while (shard_is_over_its_share(own) && shard_release_one(own, now_ms) != 0) {
    }
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        while (shard_is_over_its_share(own) &&
               shard_release_one(&span_cache_state.shards[index], now_ms) != 0) {
        }
}

/* ---- giving ---- */

/* Says that the span is cached now; false: it is so already, another thread has just freed it. */
static bool span_cache_claim(span_t *span)
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
    if (UNLIKELY(span->unit_count > SPAN_LENGTH_COUNT))
        return false;
    if (UNLIKELY(!span_cache_claim(span)))
        fatal_already_free("free", span_start(span), span_size(span));
    shard_t *shard = shard_own();
    size_t span_units = span->unit_count;
    lock_acquire(&shard->lock);
    span->freed_ms = now_ms;
    span->moves = 0;
    span->is_zeroed = false;
    shard_insert(shard, span);
    lock_release(&shard->lock);
    keep_note_freed(span_units);
    if (UNLIKELY(shard_is_over_its_share(shard)))
        shard_trim_excess(shard, now_ms);
    return true;
}

void span_cache_bypass(span_t *span, uint64_t now_ms)
{
    if (UNLIKELY(!span_cache_claim(span)))
        fatal_already_free("realloc", span_start(span), span_size(span));
    page_heap_free(span, now_ms);
}

void span_cache_bypass_purged(span_t *span, uint64_t now_ms)
{
    if (UNLIKELY(!span_cache_claim(span)))
        fatal_already_free("free", span_start(span), span_size(span));
    if (os_purge(span_start(span), span_size(span)))
        page_heap_free_clean(span, now_ms);
    else
        page_heap_free(span, now_ms);
}

/* ---- the rest ---- */

size_t span_cache_units(void)
{
    size_t sum = 0;
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        sum += count_read(&span_cache_state.shards[index].cached_units);
    return sum;
}

size_t span_cache_count(void)
{
    size_t sum = 0;
    for (unsigned index = 0; index < SHARD_COUNT; index++) {
        lock_acquire(&span_cache_state.shards[index].lock);
        for (size_t length = 0; length < SPAN_LENGTH_COUNT; length++) {
            list_node_t *head = shard_list_at(&span_cache_state.shards[index], length);
            for (list_node_t *node = list_first(head); node != head; node = node->next)
                sum++;
        }
        lock_release(&span_cache_state.shards[index].lock);
    }
    return sum;
}

static bool shard_is_valid(const shard_t *shard)
{
    size_t units = 0;
    for (size_t index = 0; index < SPAN_LENGTH_COUNT; index++) {
        list_node_t *head = shard_list_at(shard, index);
        if (list_is_empty(head) == bitmap_has(shard->occupied, index))
            return false;
        for (list_node_t *node = list_first(head); node != head; node = node->next) {
            const span_t *span = LIST_ITEM(node, span_t, bin_node);
            if (span_state(span) != SPAN_CACHED || span->unit_count != index + 1)
                return false;
            units += span->unit_count;
        }
    }
    return units == shard->cached_units && shard->occupied[LENGTH_WORDS] == 0 &&
           shared_total_is_near(shard->published_bytes, units << UNIT_SHIFT, SHARD_COUNT);
}

bool span_cache_is_valid(void)
{
    bool is_valid = true;
    for (unsigned index = 0; index < SHARD_COUNT; index++) {
        lock_acquire(&span_cache_state.shards[index].lock);
        is_valid &= shard_is_valid(&span_cache_state.shards[index]);
        lock_release(&span_cache_state.shards[index].lock);
    }
    return is_valid;
}

void span_cache_create(void)
{
    /* The rest is zero. */
    for (unsigned index = 0; config_checked && index < SHARD_COUNT; index++)
        span_cache_state.shards[index].lock.rank = LOCK_SPANS;
}

void span_cache_at_fork(fork_phase_t phase)
{
    for (unsigned index = 0; index < SHARD_COUNT; index++)
        lock_at_fork(&span_cache_state.shards[index].lock, phase);
}
