/* The page heap: growth, allocation, giving back. See page_heap.h. */
#include "span/page_heap.h"

#include "base/assert.h"
#include "base/bitmap.h"
#include "base/bits.h"
#include "base/count.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"
#include "policy/tuning.h"

page_heap_t page_heaps[HEAP_COUNT];
uint64_t page_heap_fresh_units;

static page_heap_t *heap_of(const span_t *span)
{
    return &page_heaps[owner_of_unit(span->first_unit)];
}

/* ---- growth ---- */

/* Does the program write all of what it asks for? Small blocks fill memory. Large ones are judged
 * by the chunk that the heap grew by before: many a program touches a few pages of each. */
static bool is_dense(const page_heap_t *heap)
{
    size_t chunk = CHUNK_UNITS * UNIT_SIZE;
    if (heap->kind == HEAP_OF_SMALL)
        return true;
    return heap->newest_unit != SIZE_MAX &&
           os_resident_size(unit_address(heap->newest_unit), chunk) >= chunk / 8 * DENSE_EIGHTHS;
}

/* Huge pages are for dense memory, and only once the heap is large: a small one would double. */
static void advise(page_heap_t *heap, const span_t *span)
{
    size_t threshold = (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT);
    bool wanted = heap->mapped_units >= threshold && is_dense(heap);
    os_advise_huge_pages(span_start(span), span_size(span), wanted);
    heap->is_advised |= wanted;
    heap->newest_unit = span->first_unit;
}

/* Half of the window, which is as much as the machine has memory, is left to slabs: they have no
 * other place. Large blocks can have mappings of their own. */
static bool has_share_for(const page_heap_t *heap, size_t unit_count)
{
    size_t share = window_unit_limit / 2;
    return heap->kind == HEAP_OF_SMALL || heap->mapped_units + unit_count <= share;
}

static bool grow_by(page_heap_t *heap, size_t unit_count)
{
    span_t *span = meta_alloc(SPAN_DESCRIPTOR_SIZE);
    if (span == NULL)
        return false;
    size_t first = page_map_grow(unit_count, (uint8_t)heap->kind);
    if (first == SIZE_MAX) {
        meta_free(span, SPAN_DESCRIPTOR_SIZE);
        return false;
    }
    count_add(&heap->mapped_units, unit_count);
    span->first_unit = first;
    span->unit_count = unit_count;
    span->dirty_count = 0;
    advise(heap, span);
    free_spans_insert(&heap->free, span);
    return true;
}

/* By whole chunks, so that runs of huge pages stay aligned. */
static bool grow_for(page_heap_t *heap, size_t unit_count)
{
    size_t wanted = smaller_of(heap->mapped_units / GROWTH_DIVISOR, LARGEST_GROWTH >> UNIT_SHIFT);
    size_t least = align_up(unit_count, CHUNK_UNITS);
    wanted = align_up(larger_of(wanted, unit_count), CHUNK_UNITS);
    if (!has_share_for(heap, wanted))
        wanted = least;
    if (!has_share_for(heap, least))
        return false;
    if (grow_by(heap, wanted))
        return true;
    /* What was refused is not asked for again. */
    return least < wanted && page_map_could_do_with(least) && grow_by(heap, least);
}

/* ---- the public half ---- */

void page_heaps_create(void)
{
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++) {
        page_heap_t *heap = &page_heaps[kind];
        heap->lock = (lock_t)LOCK_INITIAL(LOCK_HEAP);
        heap->kind = (page_heap_kind_t)kind;
        heap->newest_unit = SIZE_MAX;
        free_spans_create(&heap->free, (uint8_t)kind);
    }
}

/* So many units of a free span to skip, of which the one behind is aligned. Its clean head is left
 * where the rest is long enough: memory that is there costs no page fault, and the purge goes
 * through a span from its start. */
static size_t units_to_skip(const span_t *span, size_t search, size_t alignment)
{
    bool is_warm = span->dirty_count != 0 && span->unit_count - span->clean_head >= search;
    size_t warm = is_warm ? span->clean_head : 0;
    uintptr_t start = (uintptr_t)unit_address(span->first_unit + warm);
    return warm + ((align_up(start, larger_of(alignment, UNIT_SIZE)) - start) >> UNIT_SHIFT);
}

/* A span in use, its map entries set; class 0 is a large block. The caller holds the lock. */
static span_t *alloc_locked(page_heap_t *heap, size_t unit_count, size_t alignment, unsigned class,
                            bool may_grow)
{
    size_t search = unit_count + larger_of(alignment >> UNIT_SHIFT, 1) - 1;
    if (search < unit_count || search > window_unit_limit)
        return NULL;
    span_t *span = free_spans_find(&heap->free, search);
    if (span == NULL && may_grow && grow_for(heap, search))
        span = free_spans_find(&heap->free, search);
    if (span == NULL)
        return NULL;
    size_t skip = units_to_skip(span, search, alignment);
    span = free_spans_carve(&heap->free, span, skip, unit_count);
    if (span == NULL)
        return NULL;
    if (span->dirty_count != unit_count)
        counter_add(&page_heap_fresh_units, unit_count - span->dirty_count);
    span_set_state(span, class != 0 ? SPAN_SLAB : SPAN_LARGE);
    page_map_set(span->first_unit, unit_count, span, class);
    count_add(&heap->used_units, unit_count);
    count_add(&heap->used_spans, 1);
    if (class != 0)
        count_add(&heap->slab_units, unit_count);
    return span;
}

span_t *page_heap_alloc_slab(page_heap_kind_t kind, size_t unit_count, unsigned class)
{
    page_heap_t *heap = &page_heaps[kind];
    lock_acquire(&heap->lock);
    span_t *span = alloc_locked(heap, unit_count, UNIT_SIZE, class, true);
    lock_release(&heap->lock);
    return span;
}

static span_t *alloc_large(page_heap_kind_t kind, size_t unit_count, size_t alignment,
                           bool may_grow, bool *is_zero)
{
    page_heap_t *heap = &page_heaps[kind];
    lock_acquire(&heap->lock);
    span_t *span = alloc_locked(heap, unit_count, alignment, 0, may_grow);
    *is_zero = span != NULL && span->dirty_count == 0;
    lock_release(&heap->lock);
    return span;
}

span_t *page_heap_alloc(page_heap_kind_t kind, size_t unit_count, size_t alignment, bool *is_zero)
{
    return alloc_large(kind, unit_count, alignment, true, is_zero);
}

span_t *page_heap_alloc_mapped(page_heap_kind_t kind, size_t unit_count, size_t alignment,
                               bool *is_zero)
{
    return alloc_large(kind, unit_count, alignment, false, is_zero);
}

/* Units of a span in use become a free span; a bit of `clean` stands for each of its first units
 * that holds no memory. The caller holds the lock and owns the span. */
static void free_units(page_heap_t *heap, span_t *span, uint32_t clean, uint64_t now_ms)
{
    count_subtract(&heap->used_units, span->unit_count);
    page_map_set(span->first_unit, span->unit_count, NULL, 0);
    bitmap_set(window_dirty, span->first_unit, span->unit_count);
    span->dirty_count = span->unit_count - count_bits(clean);
    for (; clean != 0; clean &= clean - 1)
        bitmap_clear(window_dirty, span->first_unit + lowest_bit(clean), 1);
    span->freed_ms = now_ms;
    free_spans_insert(&heap->free, span);
}

void page_heap_free(span_t *span, uint64_t now_ms)
{
    page_heap_t *heap = heap_of(span);
    lock_acquire(&heap->lock);
    span_state_t state = span_state(span);
    MUST(state == SPAN_LARGE || state == SPAN_CACHED);
    count_subtract(&heap->used_spans, 1);
    free_units(heap, span, 0, now_ms);
    lock_release(&heap->lock);
}

void page_heap_free_slab(span_t *span, uint32_t clean, uint64_t now_ms)
{
    page_heap_t *heap = heap_of(span);
    lock_acquire(&heap->lock);
    MUST(span_state(span) == SPAN_SLAB);
    count_subtract(&heap->used_spans, 1);
    count_subtract(&heap->slab_units, span->unit_count);
    free_units(heap, span, clean, now_ms);
    lock_release(&heap->lock);
}

void page_heap_shrink(span_t *span, size_t unit_count, uint64_t now_ms)
{
    page_heap_t *heap = heap_of(span);
    lock_acquire(&heap->lock);
    span_t *tail = meta_alloc(SPAN_DESCRIPTOR_SIZE);
    if (tail != NULL) { /* without memory for a descriptor the block simply keeps its length */
        tail->first_unit = span->first_unit + unit_count;
        tail->unit_count = span->unit_count - unit_count;
        span->unit_count = unit_count;
        free_units(heap, tail, 0, now_ms);
    }
    lock_release(&heap->lock);
}

bool page_heap_extend(span_t *span, size_t unit_count)
{
    page_heap_t *heap = heap_of(span);
    size_t more = unit_count - span->unit_count;
    lock_acquire(&heap->lock);
    span_t *behind = free_spans_at(&heap->free, span->first_unit + span->unit_count);
    span_t *taken = NULL;
    if (behind != NULL && behind->unit_count >= more)
        taken = free_spans_carve(&heap->free, behind, 0, more);
    if (taken != NULL) {
        span->unit_count = unit_count;
        page_map_set(taken->first_unit, more, span, 0);
        count_add(&heap->used_units, more);
        meta_free(taken, SPAN_DESCRIPTOR_SIZE);
    }
    lock_release(&heap->lock);
    return taken != NULL;
}

/* ---- pieces for the purge ---- */

size_t page_heap_low_water(page_heap_kind_t kind)
{
    page_heap_t *heap = &page_heaps[kind];
    lock_acquire(&heap->lock);
    size_t low_units = heap->free.low_units;
    heap->free.low_units = heap->free.dirty_units;
    lock_release(&heap->lock);
    return low_units;
}

/* Units that make whole pages. */
static size_t page_units(void)
{
    return larger_of(os_page_size() >> UNIT_SHIFT, 1);
}

/* The first run of dirty units in [from, end) that fills whole pages, and no more than `most_units`
 * of it (rounded up to pages): no further is looked. False: there is none. */
static bool find_run(free_spans_t *spans, size_t from, size_t end, size_t most_units,
                     dirty_run_t *run)
{
    most_units = align_up(smaller_of(most_units, PIECE_MOST >> UNIT_SHIFT), page_units());
    from = free_spans_find_unit(spans, from, end, true);
    while (from < end) {
        size_t first = align_up(from, page_units()); /* the window begins on a page */
        size_t most_end = smaller_of(end, first + most_units);
        size_t behind = free_spans_find_unit(spans, from, most_end, false);
        size_t last = align_down(behind, page_units());
        if (first < last) {
            *run = (dirty_run_t){.first_unit = first, .unit_count = last - first};
            return true;
        }
        from = free_spans_find_unit(spans, behind, end, true);
    }
    return false;
}

/* Takes the units around a run of dirty ones in, as far as its chunks and [low, high) go: where the
 * kernel filled a huge page for the run, the clean ones hold memory as well; the dirty ones before
 * it fill no page by themselves. */
static void widen_to_chunks(free_spans_t *spans, size_t low, size_t high, dirty_run_t *run)
{
    size_t end = run->first_unit + run->unit_count;
    low = larger_of(align_down(run->first_unit, CHUNK_UNITS), low);
    high = smaller_of(align_up(end, CHUNK_UNITS), high);
    high = free_spans_find_unit(spans, end, high, true); /* the next dirty run is not asked for */
    run->first_unit = align_up(low, page_units());
    run->unit_count = align_down(high, page_units()) - run->first_unit;
    run->dirty_count = free_spans_count_dirty(spans, run->first_unit, run->unit_count);
}

/* Adds a run behind the others, to the last of them where they touch. */
static void add_run(purge_piece_t *piece, const dirty_run_t *run)
{
    dirty_run_t *last = piece->run_count != 0 ? &piece->runs[piece->run_count - 1] : NULL;
    if (last != NULL && last->first_unit + last->unit_count == run->first_unit) {
        last->unit_count += run->unit_count;
        last->dirty_count += run->dirty_count;
    } else {
        piece->runs[piece->run_count++] = *run;
    }
}

/* Lists the first dirty runs of a span. Returns the unit behind the last, or 0: there is none. */
static size_t list_runs(page_heap_t *heap, span_t *span, size_t most_units, purge_piece_t *piece)
{
    size_t end = span->first_unit + span->unit_count;
    size_t from = span->first_unit + span->clean_head;
    dirty_run_t run;
    piece->run_count = 0;
    from = free_spans_find_unit(&heap->free, from, end, true);
    span->clean_head = from - span->first_unit; /* no need to look there again */
    if (!find_run(&heap->free, from, end, most_units, &run))
        return 0;
    size_t low = span->first_unit;
    size_t limit = align_down(run.first_unit + (PIECE_MOST >> UNIT_SHIFT), CHUNK_UNITS);
    limit = smaller_of(limit, end);
    do {
        run.unit_count = smaller_of(run.unit_count, limit - run.first_unit);
        run.dirty_count = run.unit_count;
        most_units -= smaller_of(most_units, run.unit_count);
        if (heap->is_advised)
            widen_to_chunks(&heap->free, low, end, &run);
        low = run.first_unit + run.unit_count;
        add_run(piece, &run);
    } while (piece->run_count < PIECE_RUNS && most_units > 0 &&
             find_run(&heap->free, low, limit, most_units, &run));
    return low;
}

bool page_heap_take_old(page_heap_kind_t kind, uint64_t before_ms, size_t most_units,
                        purge_piece_t *piece)
{
    page_heap_t *heap = &page_heaps[kind];
    piece->span = NULL;
    lock_acquire(&heap->lock);
    span_t *oldest;
    while (piece->span == NULL && (oldest = free_spans_oldest(&heap->free)) != NULL &&
           oldest->freed_ms <= before_ms) {
        size_t end = list_runs(heap, oldest, most_units, piece);
        if (end == 0) {
            free_spans_forget_age(oldest);
            continue;
        }
        size_t first = piece->runs[0].first_unit;
        size_t skip = first - oldest->first_unit;
        size_t low_units = heap->free.low_units;
        piece->span = free_spans_carve(&heap->free, oldest, skip, end - first);
        heap->free.low_units = low_units; /* the program did not need it */
        if (piece->span == NULL) /* no memory to describe the rest */
            break;
        span_set_state(piece->span, SPAN_PURGING);
    }
    lock_release(&heap->lock);
    return piece->span != NULL;
}

size_t page_heap_purged(purge_piece_t *piece, uint64_t now_ms)
{
    span_t *span = piece->span;
    page_heap_t *heap = heap_of(span);
    size_t purged = 0;
    lock_acquire(&heap->lock);
    for (unsigned index = 0; index < piece->run_count; index++) {
        const dirty_run_t *run = &piece->runs[index];
        if (!run->is_purged)
            continue;
        bitmap_clear(window_dirty, run->first_unit, run->unit_count);
        purged += run->dirty_count;
    }
    span->dirty_count -= purged;
    count_add(&heap->purged_units, purged);
    heap->free.low_units -= smaller_of(heap->free.low_units, purged);
    free_spans_insert(&heap->free, span);
    if (purged == 0)
        free_spans_set_age(&heap->free, span, now_ms);
    lock_release(&heap->lock);
    return purged;
}

void *page_heap_give_up(page_heap_kind_t kind, size_t unit_count)
{
    page_heap_t *heap = &page_heaps[kind];
    void *start = NULL;
    lock_acquire(&heap->lock);
    span_t *span = free_spans_find(&heap->free, unit_count);
    if (span != NULL) {
        start = unit_address(free_spans_cut_off(&heap->free, span, unit_count));
        count_subtract(&heap->mapped_units, unit_count);
    }
    lock_release(&heap->lock);
    return start;
}

/* Units of the span in whole chunks; `*skip` units stand before them. */
static size_t chunk_units(const span_t *span, size_t *skip)
{
    *skip = align_up(span->first_unit, CHUNK_UNITS) - span->first_unit;
    return span->unit_count < *skip ? 0 : align_down(span->unit_count - *skip, CHUNK_UNITS);
}

static size_t chunk_units_in(const span_bins_t *bins)
{
    size_t units = 0;
    size_t skip;
    for (unsigned bin = span_bin_of(CHUNK_UNITS); bin < BIN_COUNT; bin++) {
        const list_node_t *head = &bins->heads[bin];
        if (!bitmap_has(bins->occupied, bin))
            continue;
        for (list_node_t *node = head->next; node != head; node = node->next)
            units += chunk_units(span_in_bin(node), &skip);
    }
    return units;
}

size_t page_heap_releasable(page_heap_kind_t kind)
{
    page_heap_t *heap = &page_heaps[kind];
    lock_acquire(&heap->lock);
    size_t units = chunk_units_in(&heap->free.dirty) + chunk_units_in(&heap->free.clean);
    lock_release(&heap->lock);
    return units << UNIT_SHIFT;
}

/* ---- giving chunks back ---- */

/* Cuts a free span down to its whole chunks, or so many units of them; NULL: it has none, or there
 * is no memory to describe what is left. The caller holds the lock. */
static span_t *carve_chunks(page_heap_t *heap, span_t *span, size_t most_units)
{
    size_t skip;
    size_t unit_count = smaller_of(chunk_units(span, &skip), most_units);
    return unit_count == 0 ? NULL : free_spans_carve(&heap->free, span, skip, unit_count);
}

/* The first span of the bins that can be cut down to whole chunks. */
static span_t *take_chunks(page_heap_t *heap, span_bins_t *bins, size_t most_units)
{
    for (unsigned bin = span_bin_of(CHUNK_UNITS); bin < BIN_COUNT; bin++) {
        list_node_t *head = &bins->heads[bin];
        for (list_node_t *node = list_first(head); node != head; node = node->next) {
            span_t *chunks = carve_chunks(heap, span_in_bin(node), most_units);
            if (chunks != NULL)
                return chunks;
        }
    }
    return NULL;
}

size_t page_heap_release(page_heap_kind_t kind, size_t most_bytes)
{
    page_heap_t *heap = &page_heaps[kind];
    size_t most = align_down(most_bytes >> UNIT_SHIFT, CHUNK_UNITS);
    size_t units = 0;
    lock_acquire(&heap->lock);
    while (units < most) {
        span_t *span = take_chunks(heap, &heap->free.dirty, most - units);
        if (span == NULL)
            span = take_chunks(heap, &heap->free.clean, most - units);
        if (span == NULL)
            break;
        if (!page_map_unmap(span->first_unit, span->unit_count)) {
            /* The table of mappings is full: everything stays as it was. */
            free_spans_insert(&heap->free, span);
            break;
        }
        bitmap_clear(window_dirty, span->first_unit, span->unit_count);
        count_subtract(&heap->mapped_units, span->unit_count);
        units += span->unit_count;
        meta_free(span, SPAN_DESCRIPTOR_SIZE);
    }
    lock_release(&heap->lock);
    return units << UNIT_SHIFT;
}

void page_heaps_at_fork(fork_phase_t phase)
{
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        lock_at_fork(&page_heaps[kind].lock, phase);
}

bool page_heap_is_valid(page_heap_kind_t kind)
{
    page_heap_t *heap = &page_heaps[kind];
    lock_acquire(&heap->lock);
    size_t free_units = 0;
    bool valid = free_spans_are_valid(&heap->free, &free_units) &&
                 free_units + heap->used_units == heap->mapped_units;
    lock_release(&heap->lock);
    return valid;
}
