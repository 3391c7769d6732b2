/* The page heap's half of giving back: pieces of free spans, out of the lists and back again, for
 * the purge; and whole chunks, which are unmapped. See page_heap.h. */
#include "base/bitmap.h"
#include "base/bits.h"
#include "base/count.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/tuning.h"
#include "heap/page_heap.h"
#include "heap/sparse_chunks.h"

size_t page_heap_low_water(void)
{
    lock_acquire(&page_heap.lock);
    size_t low_units = page_heap.free.low_units;
    page_heap.free.low_units = page_heap.free.dirty_units;
    lock_release(&page_heap.lock);
    return low_units;
}

/* Units that make whole pages. */
static size_t page_heap_page_units(void)
{
    return larger_of(os_page_size() >> UNIT_SHIFT, 1);
}

/* The first run of dirty units in [from, end) that fills whole pages, and no more than `most_units`
 * of it (rounded up to pages): no further is looked. False: there is none. */
static bool page_heap_find_run(free_spans_t *spans, size_t from, size_t end, size_t most_units,
                               dirty_run_t *run)
{
    most_units = align_up(smaller_of(most_units, PIECE_MOST >> UNIT_SHIFT), page_heap_page_units());
    from = free_spans_find_unit(spans, from, end, true);
    while (from < end) {
        size_t first = align_up(from, page_heap_page_units()); /* the window begins on a page */
        size_t most_end = smaller_of(end, first + most_units);
        size_t behind = free_spans_find_unit(spans, from, most_end, false);
        size_t last = align_down(behind, page_heap_page_units());
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
static void page_heap_widen_to_chunks(free_spans_t *spans, size_t low, size_t high,
                                      dirty_run_t *run)
{
    size_t end = run->first_unit + run->unit_count;
    low = larger_of(align_down(run->first_unit, CHUNK_UNITS), low);
    high = smaller_of(align_up(end, CHUNK_UNITS), high);
    high = free_spans_find_unit(spans, end, high, true); /* the next dirty run is not asked for */
    run->first_unit = align_up(low, page_heap_page_units());
    run->unit_count = align_down(high, page_heap_page_units()) - run->first_unit;
    run->dirty_count = free_spans_count_dirty(spans, run->first_unit, run->unit_count);
}

/* Adds a run behind the others, to the last of them where they touch. */
static void purge_piece_add_run(purge_piece_t *piece, const dirty_run_t *run)
{
    dirty_run_t *last = piece->run_count != 0 ? &piece->runs[piece->run_count - 1] : NULL;
    if (last != NULL && last->first_unit + last->unit_count == run->first_unit) {
        last->unit_count += run->unit_count;
        last->dirty_count += run->dirty_count;
    } else {
        piece->runs[piece->run_count++] = *run;
    }
}

/* A part of a huge page goes at the cost of a whole one, and what is left of it has small pages
 * from then on. The last chunk therefore goes as far as it is free. */
static size_t page_heap_units_to_chunk_end(size_t from, size_t most_units)
{
    most_units = smaller_of(most_units, PIECE_MOST >> UNIT_SHIFT);
    return align_up(from + most_units, CHUNK_UNITS) - from;
}

/* Lists the first dirty runs of a span. Returns the unit behind the last, or 0: there is none. */
static size_t page_heap_list_runs(span_t *span, size_t most_units, purge_piece_t *piece)
{
    size_t end = span->first_unit + span->unit_count;
    size_t from = span->first_unit + span->clean_head;
    dirty_run_t run;
    piece->run_count = 0;
    from = free_spans_find_unit(&page_heap.free, from, end, true);
    span->clean_head = from - span->first_unit; /* no need to look there again */
    if (from < end && page_heap.is_advised && sparse_chunks_may_be_huge(from))
        most_units = page_heap_units_to_chunk_end(from, most_units);
    if (!page_heap_find_run(&page_heap.free, from, end, most_units, &run))
        return 0;
    size_t low = span->first_unit;
    size_t limit = align_down(run.first_unit + (PIECE_MOST >> UNIT_SHIFT), CHUNK_UNITS);
    limit = smaller_of(limit, end);
    do {
        run.unit_count = smaller_of(run.unit_count, limit - run.first_unit);
        run.dirty_count = run.unit_count;
        most_units -= smaller_of(most_units, run.unit_count);
        if (page_heap.is_advised)
            page_heap_widen_to_chunks(&page_heap.free, low, end, &run);
        low = run.first_unit + run.unit_count;
        purge_piece_add_run(piece, &run);
    } while (piece->run_count < RUNS_AT_ONCE && most_units > 0 &&
             page_heap_find_run(&page_heap.free, low, limit, most_units, &run));
    return low;
}

/* The span, which is in no list, is on its way to the kernel. The caller holds the lock. */
static void purge_piece_begin(span_t *span)
{
    span_set_state(span, SPAN_PURGING);
    page_heap.leaving_units += span->unit_count;
}

bool page_heap_take_old(uint64_t before_ms, size_t most_units, purge_piece_t *piece)
{
    piece->span = NULL;
    lock_acquire(&page_heap.lock);
    span_t *oldest;
    while (piece->span == NULL && (oldest = free_spans_oldest(&page_heap.free)) != NULL &&
           oldest->freed_ms <= before_ms) {
        size_t end = page_heap_list_runs(oldest, most_units, piece);
        if (end == 0) {
            free_spans_forget_age(oldest);
            continue;
        }
        size_t first = piece->runs[0].first_unit;
        size_t skip = first - oldest->first_unit;
        size_t low_units = page_heap.free.low_units;
        piece->span = free_spans_carve(&page_heap.free, oldest, skip, end - first);
        page_heap.free.low_units = low_units; /* the program did not need it */
        if (piece->span == NULL)              /* no memory to describe the rest */
            break;
        purge_piece_begin(piece->span);
    }
    lock_release(&page_heap.lock);
    return piece->span != NULL;
}

size_t page_heap_purged(purge_piece_t *piece, uint64_t now_ms)
{
    span_t *span = piece->span;
    size_t purged = 0;
    lock_acquire(&page_heap.lock);
    for (unsigned index = 0; index < piece->run_count; index++) {
        const dirty_run_t *run = &piece->runs[index];
        if (run->dirty_count == 0)
            continue;
        bitmap_clear(window_tables.dirty, run->first_unit, run->unit_count);
        purged += run->dirty_count;
    }
    span->dirty_count -= purged;
    page_heap.leaving_units -= span->unit_count;
    count_add(&page_heap.purged_units, purged);
    page_heap.free.low_units -= smaller_of(page_heap.free.low_units, purged);
    free_spans_insert(&page_heap.free, span);
    if (purged == 0)
        free_spans_set_age(&page_heap.free, span, now_ms);
    lock_release(&page_heap.lock);
    return purged;
}

/* ---- whole chunks ---- */

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

size_t page_heap_releasable(void)
{
    lock_acquire(&page_heap.lock);
    size_t units = chunk_units_in(&page_heap.free.dirty) +
                   chunk_units_in(&page_heap.free.clean[false]) +
                   chunk_units_in(&page_heap.free.clean[true]);
    lock_release(&page_heap.lock);
    return units << UNIT_SHIFT;
}

/* Cuts a free span down to its whole chunks, or so many units of them; NULL: it has none, or there
 * is no memory to describe what is left. The caller holds the lock. */
static span_t *page_heap_carve_chunks(span_t *span, size_t most_units)
{
    size_t skip;
    size_t unit_count = smaller_of(chunk_units(span, &skip), most_units);
    return unit_count == 0 ? NULL : free_spans_carve(&page_heap.free, span, skip, unit_count);
}

/* The first span of the bins that can be cut down to whole chunks. */
static span_t *chunks_of(span_bins_t *bins, size_t most_units)
{
    for (unsigned bin = span_bin_of(CHUNK_UNITS); bin < BIN_COUNT; bin++) {
        list_node_t *head = &bins->heads[bin];
        for (list_node_t *node = list_first(head); node != head; node = node->next) {
            span_t *chunks = page_heap_carve_chunks(span_in_bin(node), most_units);
            if (chunks != NULL)
                return chunks;
        }
    }
    return NULL;
}

/* Takes whole chunks out of the heap, those that hold memory first; NULL: there are none. The
 * chunks count as clean from here on: another thread may have them mapped anew the moment that they
 * are unmapped. */
static span_t *page_heap_take_chunks(size_t most_units)
{
    free_spans_t *spans = &page_heap.free;
    lock_acquire(&page_heap.lock);
    span_t *span = chunks_of(&spans->dirty, most_units);
    if (span == NULL)
        span = chunks_of(&spans->clean[false], most_units);
    if (span == NULL)
        span = chunks_of(&spans->clean[true], most_units);
    if (span != NULL) {
        bitmap_clear(window_tables.dirty, span->first_unit, span->unit_count);
        count_subtract(&page_heap.mapped_units, span->unit_count);
        page_heap_forget_newest(span->first_unit, span->unit_count);
        span_set_state(span, SPAN_PURGING);
    }
    lock_release(&page_heap.lock);
    return span;
}

/* The table of mappings is full: they stay. */
static void page_heap_put_chunks_back(span_t *span, bool is_purged)
{
    lock_acquire(&page_heap.lock);
    count_add(&page_heap.mapped_units, span->unit_count);
    if (is_purged)
        span->dirty_count = 0;
    else if (span->dirty_count != 0)
        span->dirty_count = span->unit_count;
    if (span->dirty_count != 0)
        bitmap_set(window_tables.dirty, span->first_unit, span->unit_count);
    free_spans_insert(&page_heap.free, span);
    lock_release(&page_heap.lock);
}

size_t page_heap_release(size_t most_bytes)
{
    /* Not more than there is now: a hook of the program may free blocks meanwhile. */
    size_t all = page_heap_releasable();
    size_t most = align_down(smaller_of(most_bytes, all) >> UNIT_SHIFT, CHUNK_UNITS);
    size_t units = 0;
    span_t *span;
    while (units < most && (span = page_heap_take_chunks(most - units)) != NULL) {
        size_t unit_count = span->unit_count;
        bool is_purged = span->dirty_count == 0 || os_purge(span_start(span), span_size(span));
        if (!page_map_unmap(span->first_unit, unit_count)) {
            page_heap_put_chunks_back(span, is_purged);
            break;
        }
        meta_free(span, SPAN_DESCRIPTOR_SIZE);
        units += unit_count;
    }
    return units << UNIT_SHIFT;
}

void *page_heap_give_up(size_t unit_count)
{
    void *start = NULL;
    lock_acquire(&page_heap.lock);
    span_t *span = free_spans_find(&page_heap.free, unit_count, false);
    if (span == NULL)
        span = free_spans_find(&page_heap.free, unit_count, true);
    if (span != NULL) {
        size_t first_unit = free_spans_cut_off(&page_heap.free, span, unit_count);
        page_heap_forget_newest(first_unit, unit_count);
        start = unit_address(first_unit);
        count_subtract(&page_heap.mapped_units, unit_count);
    }
    lock_release(&page_heap.lock);
    return start;
}
