/* The page heap: growth, allocation, giving back. See page_heap.h. */
#include "heap/page_heap.h"

#include "base/assert.h"
#include "base/bitmap.h"
#include "base/bits.h"
#include "base/config.h"
#include "base/count.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"
#include "heap/huge_page_probe.h"
#include "keep/keep.h"
#include "keep/pressure.h"
#include "heap/sparse_chunks.h"

page_heap_t page_heap;

/* ---- growth ---- */

/* In mapped units: from here on it may have huge pages. They double a small one. */
static size_t page_heap_huge_threshold(void)
{
    return (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT);
}

/* Does the heap grow by dense chunks for requests of dense memory? Not while it is small, nor where
 * the user wants huge pages for everything. */
static bool page_heap_has_dense_chunks(void)
{
    return page_heap_huge_threshold() != 0 && page_heap.mapped_units >= page_heap_huge_threshold();
}

/* Did the program fill what the heap grew by before? Looked at is the first chunk of it, unless no
 * heap can become large enough for huge pages. */
static bool growth_was_filled(const growth_t *growth)
{
    size_t chunk = CHUNK_UNITS * UNIT_SIZE;
    return growth->first_unit != SIZE_MAX &&
           page_heap_huge_threshold() <= window_tables.unit_limit &&
           os_resident_size(unit_address(growth->first_unit), chunk) >= chunk / 8 * DENSE_EIGHTHS;
}

/* How many of the first units of new memory may have huge pages. */
static size_t growth_huge_units(const growth_t *growth)
{
    if (page_heap.mapped_units < page_heap_huge_threshold() || !growth->is_filled)
        return 0;
    return huge_page_trial_chunks(growth->unit_count / CHUNK_UNITS) * CHUNK_UNITS;
}

/* What the heap grew by for blocks of any length speaks for the short ones. */
static void page_heap_split_growth(void)
{
    page_heap.is_split = true;
    page_heap.newest[true] = page_heap.newest[false];
    page_heap.newest[false] = (growth_t){.first_unit = SIZE_MAX};
}

static void page_heap_advise(const span_t *span, bool is_dense)
{
    growth_t *newest = &page_heap.newest[is_dense];
    if (is_dense && !page_heap.is_split)
        page_heap_split_growth();
    newest->is_filled = page_heap_huge_threshold() == 0 || growth_was_filled(newest);
    newest->first_unit = span->first_unit;
    newest->unit_count = span->unit_count;
    newest->known_count = 0;
    char *start = span_start(span);
    size_t count = span->unit_count;
    size_t huge = newest->huge_count = growth_huge_units(newest);
    if (huge != 0)
        os_advise_huge_pages(start, huge * UNIT_SIZE, true);
    if (huge != count)
        os_advise_huge_pages(start + huge * UNIT_SIZE, (count - huge) * UNIT_SIZE, false);
    if (huge != 0)
        __atomic_store_n(&page_heap.is_advised, true, __ATOMIC_RELAXED); /* read without the lock */
    sparse_chunks_set(span->first_unit, huge, true);
    sparse_chunks_set(span->first_unit + huge, count - huge, false);
}

/* ---- what first touches cost ---- */

/* Is the first touch of a span in use worth measuring? If a clean chunk begins in it that the heap
 * grew by last, and the program fills what it asks for. Each chunk is measured once at most. The
 * very first one is spared: small programs need no more. Of dense memory that has small pages the
 * first ones are measured, filled or not: huge ones are to be compared with something. The caller
 * holds the lock. */
static first_touch_t page_heap_touch_of(const span_t *span)
{
    first_touch_t touch = {.start = NULL};
    growth_t *newest = &page_heap.newest[unit_is_dense(span->first_unit)];
    if (LIKELY(span->dirty_count == span->unit_count) ||
        (!newest->is_filled && span->first_unit != page_heap.newest[true].first_unit) ||
        page_heap.mapped_units == CHUNK_UNITS || !options.thp_adaptive)
        return touch;
    size_t first = newest->first_unit;
    size_t from = span->first_unit > first ? span->first_unit - first : 0;
    size_t into = align_up(from, CHUNK_UNITS);
    size_t end = smaller_of(span->first_unit + span->unit_count, first + newest->unit_count);
    size_t chunk_end = smaller_of(end, first + into + CHUNK_UNITS);
    if (first + into < end && into >= newest->known_count &&
        bitmap_find(window_tables.dirty, first + into, chunk_end, true) == chunk_end)
        touch =
            (first_touch_t){unit_address(first + into), sparse_chunks_may_be_huge(first + into)};
    if (first + into < end)
        newest->known_count = into + CHUNK_UNITS;
    return touch;
}

/* Measures it. Where huge pages prove too dear, what the heap grew by last shall have none behind
 * this one. */
static void page_heap_measure(first_touch_t touch)
{
    if (huge_page_trial_touch(touch) || !touch.is_huge)
        return;
    size_t unit = unit_of(touch.start) + CHUNK_UNITS;
    lock_acquire(&page_heap.lock);
    growth_t *newest = &page_heap.newest[unit_is_dense(unit - CHUNK_UNITS)];
    size_t end = newest->first_unit + newest->huge_count;
    if (unit > newest->first_unit && unit < end) {
        os_advise_huge_pages(unit_address(unit), (end - unit) * UNIT_SIZE, false);
        sparse_chunks_set(unit, end - unit, false);
        newest->huge_count = unit - newest->first_unit;
    }
    lock_release(&page_heap.lock);
}

/* Half of the window, which is as much as the machine has memory, is left to slabs: they have no
 * other place. Large blocks can have mappings of their own. */
static bool page_heap_has_share_for(span_state_t state, size_t unit_count)
{
    size_t large = page_heap.mapped_units - page_heap.slab_units;
    return state == SPAN_SLAB || large + unit_count <= window_tables.unit_limit / 2;
}

static bool page_heap_grow_by(size_t unit_count, bool is_dense)
{
    span_t *span = meta_alloc(SPAN_DESCRIPTOR_SIZE);
    if (span == NULL)
        return false;
    size_t first = page_map_grow(unit_count, is_dense);
    if (first == SIZE_MAX) {
        meta_free(span, SPAN_DESCRIPTOR_SIZE);
        return false;
    }
    count_add(&page_heap.mapped_units, unit_count);
    span->first_unit = first;
    span->unit_count = unit_count;
    span->dirty_count = 0;
    page_heap_advise(span, is_dense);
    free_spans_insert(&page_heap.free, span);
    PROBE(heap_grow, unit_count << UNIT_SHIFT);
    return true;
}

/* By whole chunks, so that runs of huge pages stay aligned. Where a limit leaves less, slabs get a
 * part of one, maybe less than they want; large blocks can have mappings of their own. */
static bool page_heap_try_to_grow(span_state_t state, size_t unit_count, bool is_dense)
{
    size_t wanted =
        smaller_of(page_heap.mapped_units / GROWTH_DIVISOR, LARGEST_GROWTH >> UNIT_SHIFT);
    size_t least = align_up(unit_count, CHUNK_UNITS);
    wanted = align_up(larger_of(wanted, unit_count), CHUNK_UNITS);
    if (!page_heap_has_share_for(state, wanted))
        wanted = least;
    if (!page_heap_has_share_for(state, least))
        return false;
    if (page_heap_grow_by(wanted, is_dense))
        return true;
    /* A second try must ask for less than the first. */
    if (least < wanted && page_map_could_do_with(least) && page_heap_grow_by(least, is_dense))
        return true;
    size_t shortest = larger_of(os_page_size() >> UNIT_SHIFT, 1);
    size_t part = state == SPAN_SLAB ? CHUNK_UNITS / 2 : 0;
    while (part >= shortest && !page_heap_grow_by(part, is_dense))
        part /= 2;
    return part >= shortest;
}

static bool page_heap_grow_for(span_state_t state, size_t unit_count, bool is_dense)
{
    page_heap.is_refused = !page_heap_try_to_grow(state, unit_count, is_dense);
    return !page_heap.is_refused;
}

/* ---- the public half ---- */

void page_heap_create(void)
{
    page_heap.lock = (lock_t)LOCK_INITIAL(LOCK_HEAP);
    page_heap.newest[false].first_unit = page_heap.newest[true].first_unit = SIZE_MAX;
    list_init(&page_heap.free.by_age);
}

/* What is asked for. A free span of `search` units has room for it at any alignment. */
typedef struct span_request {
    size_t unit_count;
    size_t search;
    size_t alignment;
    span_state_t state; /* LARGE or SLAB */
    bool is_for_zeros;  /* rather from clean units than from dirty ones */
    bool is_dense;      /* blocks no longer than a page */
    unsigned class;     /* in the page map */
} span_request_t;

/* How many units of a free span to skip; the one behind them is aligned. As much of its clean
 * head is left as the request leaves: memory that is there costs no page fault, and the purge goes
 * through a span from its start. For zeros it is the other way round. */
static size_t units_to_skip(const span_t *span, const span_request_t *request)
{
    if (span->unit_count < request->search) /* found by its alignment */
        return 0;
    size_t most = span->unit_count - request->search;
    size_t skip = span->dirty_count != 0 ? smaller_of(span->clean_head, most) : 0;
    if (request->is_for_zeros)
        skip = smaller_of(free_spans_find_clean(&page_heap.free, span, request->search), most);
    uintptr_t start = (uintptr_t)unit_address(span->first_unit + skip);
    return skip + ((align_up(start, request->alignment) - start) >> UNIT_SHIFT);
}

/* Clean memory of a dense chunk is for dense requests, unless large blocks are filled too: else
 * they would fill huge pages there. A dense request is better off in a dense chunk. The heap thus
 * grows before one kind takes what the other left clean, unless it was refused to grow or
 * addresses are counted. */
static span_t *page_heap_find_any(const span_request_t *request, bool may_grow)
{
    size_t search = request->search;
    bool is_dense = request->is_dense && page_heap_has_dense_chunks();
    bool grows_first = page_heap_has_dense_chunks() && !page_heap.is_refused &&
                       !pressure_counts_addresses() &&
                       (is_dense || !page_heap.newest[false].is_filled);
    span_t *span = free_spans_find(&page_heap.free, search, is_dense);
    if (span == NULL && !grows_first)
        span = free_spans_find(&page_heap.free, search, !is_dense);
    if (span == NULL && may_grow && page_heap_grow_for(request->state, search, is_dense))
        span = free_spans_find(&page_heap.free, search, is_dense);
    if (span == NULL && grows_first)
        span = free_spans_find(&page_heap.free, search, !is_dense);
    return span;
}

/* A free span with a clean run for the request. Of those that hold dirty units as well, one of each
 * length is looked at. */
static span_t *page_heap_find_clean(size_t search)
{
    free_spans_t *free = &page_heap.free;
    span_t *span = span_bins_find(&free->clean[false], search);
    for (size_t least = search; span == NULL && least <= window_tables.unit_limit; least *= 2) {
        span_t *mixed = span_bins_find(&free->dirty, least);
        if (mixed == NULL)
            break;
        if (free_spans_find_clean(free, mixed, search) != mixed->unit_count)
            span = mixed;
    }
    return span;
}

static span_t *page_heap_find_locked(const span_request_t *request, bool may_grow)
{
    span_t *span =
        request->is_for_zeros
            ? page_heap_find_clean(request->search)
            : free_spans_find_aligned(&page_heap.free, request->unit_count, request->alignment);
    return span != NULL ? span : page_heap_find_any(request, may_grow);
}

/* A span in use, its map entries set. The caller holds the lock. */
static span_t *page_heap_take_locked(const span_request_t *request, bool may_grow)
{
    span_t *span = page_heap_find_locked(request, may_grow);
    if (span == NULL)
        return NULL;
    size_t unit_count = request->unit_count;
    size_t skip = units_to_skip(span, request);
    bool is_filled = page_heap.newest[unit_is_dense(span->first_unit)].is_filled;
    if (page_heap.is_advised && span->unit_count >= CHUNK_UNITS && !request->is_for_zeros)
        sparse_chunks_reuse(span->first_unit, span->unit_count, span->first_unit + skip, unit_count,
                            is_filled && huge_page_trial_pays());
    span = free_spans_carve(&page_heap.free, span, skip, unit_count);
    if (span == NULL)
        return NULL;
    if (span->dirty_count != unit_count)
        pressure_note_fresh(unit_count - span->dirty_count);
    span->heap = 0;
    span->sample = SAMPLE_NONE;
    span->moves = 0;
    span->is_zeroed = false;
    span_set_state(span, request->state);
    page_map_set(span->first_unit, unit_count, span, request->class);
    count_add(&page_heap.used_units, unit_count);
    count_add(&page_heap.used_spans, 1);
    if (request->state == SPAN_SLAB)
        count_add(&page_heap.slab_units, unit_count);
    return span;
}

static span_t *page_heap_take(const span_request_t *request, bool may_grow)
{
    if (request->search < request->unit_count || request->search > window_tables.unit_limit)
        return NULL;
    lock_acquire(&page_heap.lock);
    span_t *span = page_heap_take_locked(request, may_grow);
    first_touch_t touch = {.start = NULL};
    if (span != NULL && !request->is_for_zeros)
        touch = page_heap_touch_of(span);
    lock_release(&page_heap.lock);
    if (UNLIKELY(touch.start != NULL))
        page_heap_measure(touch);
    if (UNLIKELY(request->is_for_zeros) && span != NULL)
        sparse_chunks_spare(span->first_unit, span->unit_count);
    return span;
}

span_t *page_heap_alloc_slab(size_t unit_count, size_t least_count, size_t alignment,
                             unsigned class, bool is_dense)
{
    span_request_t request = {.unit_count = unit_count,
                              .search = unit_count + (alignment >> UNIT_SHIFT) - 1,
                              .alignment = alignment,
                              .state = SPAN_SLAB,
                              .is_dense = is_dense,
                              .class = class};
    span_t *span = page_heap_take(&request, true);
    while (span == NULL && request.unit_count > least_count) {
        request.unit_count--;
        request.search--;
        span = page_heap_take(&request, false);
    }
    return span;
}

static span_t *page_heap_take_large(size_t unit_count, size_t alignment, bool is_for_zeros,
                                    bool may_grow, bool *is_zero)
{
    span_request_t request = {.unit_count = unit_count,
                              .search = unit_count + larger_of(alignment >> UNIT_SHIFT, 1) - 1,
                              .alignment = larger_of(alignment, UNIT_SIZE),
                              .state = SPAN_LARGE,
                              .is_for_zeros = is_for_zeros};
    span_t *span = page_heap_take(&request, may_grow);
    *is_zero = span != NULL && span->dirty_count == 0;
    return span;
}

span_t *page_heap_alloc(size_t unit_count, size_t alignment, bool *is_zero)
{
    return page_heap_take_large(unit_count, alignment, false, true, is_zero);
}

span_t *page_heap_alloc_zeroed(size_t unit_count, size_t alignment, bool *is_zero)
{
    return page_heap_take_large(unit_count, alignment, true, true, is_zero);
}

span_t *page_heap_alloc_mapped(size_t unit_count, size_t alignment, bool *is_zero)
{
    return page_heap_take_large(unit_count, alignment, false, false, is_zero);
}

/* The units of a span are no longer in use. The caller holds the lock and owns the span. */
static void page_heap_end_use(span_t *span)
{
    count_subtract(&page_heap.used_units, span->unit_count);
    keep_note_freed(span->unit_count);
    page_map_set(span->first_unit, span->unit_count, NULL, 0);
}

/* Units of a span in use become a free span; a bit of `clean` stands for each of its first units
 * that holds no memory. The caller holds the lock and owns the span. */
static void page_heap_free_units(span_t *span, uint32_t clean, uint64_t now_ms)
{
    page_heap_end_use(span);
    bitmap_set(window_tables.dirty, span->first_unit, span->unit_count);
    span->dirty_count = span->unit_count - count_bits(clean);
    for (; clean != 0; clean &= clean - 1)
        bitmap_clear(window_tables.dirty, span->first_unit + lowest_bit(clean), 1);
    span->freed_ms = now_ms;
    free_spans_insert(&page_heap.free, span);
}

void page_heap_free(span_t *span, uint64_t now_ms)
{
    lock_acquire(&page_heap.lock);
    span_state_t state = span_state(span);
    MUST(state == SPAN_LARGE || state == SPAN_CACHED);
    count_subtract(&page_heap.used_spans, 1);
    page_heap_free_units(span, 0, now_ms);
    lock_release(&page_heap.lock);
}

void page_heap_free_clean(span_t *span, uint64_t now_ms)
{
    lock_acquire(&page_heap.lock);
    MUST(span_state(span) == SPAN_CACHED);
    count_subtract(&page_heap.used_spans, 1);
    page_heap_end_use(span);
    bitmap_clear(window_tables.dirty, span->first_unit, span->unit_count);
    span->dirty_count = 0;
    span->freed_ms = now_ms;
    free_spans_insert(&page_heap.free, span);
    lock_release(&page_heap.lock);
}

bool page_heap_next_dirty(const span_t *span, size_t *from, size_t *behind)
{
    size_t end = span->first_unit + span->unit_count;
    lock_acquire(&page_heap.lock);
    *from = bitmap_find(window_tables.dirty, *from, end, true);
    *behind = bitmap_find(window_tables.dirty, *from, end, false);
    lock_release(&page_heap.lock);
    return *from < end;
}

void page_heap_free_slab(span_t *span, uint32_t clean, uint64_t now_ms)
{
    lock_acquire(&page_heap.lock);
    MUST(span_state(span) == SPAN_SLAB);
    count_subtract(&page_heap.used_spans, 1);
    count_subtract(&page_heap.slab_units, span->unit_count);
    page_heap_free_units(span, clean, now_ms);
    lock_release(&page_heap.lock);
}

void page_heap_shrink(span_t *span, size_t unit_count, uint64_t now_ms)
{
    lock_acquire(&page_heap.lock);
    span_t *tail = meta_alloc(SPAN_DESCRIPTOR_SIZE);
    if (tail != NULL) { /* without memory for a descriptor the block simply keeps its length */
        tail->first_unit = span->first_unit + unit_count;
        tail->unit_count = span->unit_count - unit_count;
        span->unit_count = unit_count;
        page_heap_free_units(tail, 0, now_ms);
    }
    lock_release(&page_heap.lock);
}

bool page_heap_extend(span_t *span, size_t unit_count)
{
    size_t more = unit_count - span->unit_count;
    lock_acquire(&page_heap.lock);
    span_t *behind = free_spans_beside(span, span->first_unit + span->unit_count);
    span_t *taken = NULL;
    if (behind != NULL && behind->unit_count >= more)
        taken = free_spans_carve(&page_heap.free, behind, 0, more);
    if (taken != NULL) {
        span->unit_count = unit_count;
        page_map_set(taken->first_unit, more, span, 0);
        count_add(&page_heap.used_units, more);
        meta_free(taken, SPAN_DESCRIPTOR_SIZE);
    }
    lock_release(&page_heap.lock);
    return taken != NULL;
}

/* ---- what is free ---- */

bool page_heap_has_warm(size_t unit_count)
{
    lock_acquire(&page_heap.lock);
    bool has_warm = span_bins_find(&page_heap.free.dirty, unit_count) != NULL;
    lock_release(&page_heap.lock);
    return has_warm;
}

void page_heap_at_fork(fork_phase_t phase)
{
    lock_at_fork(&page_heap.lock, phase);
    huge_page_trial_at_fork(phase);
}

bool page_heap_is_valid(void)
{
    lock_acquire(&page_heap.lock);
    size_t free_units = 0;
    bool valid = free_spans_are_valid(&page_heap.free, &free_units) &&
                 free_units + page_heap.used_units + page_heap.leaving_units ==
                     page_heap.mapped_units;
    lock_release(&page_heap.lock);
    return valid;
}
