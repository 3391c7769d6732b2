/* The page heap: find, split, join. See page_heap.h. */
#include "span/page_heap.h"

#include "base/assert.h"
#include "base/bitmap.h"
#include "base/count.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"

page_heap_t page_heaps[HEAP_COUNT];

static page_heap_t *heap_of(const span_t *span)
{
    return &page_heaps[window_owners[span->first_unit / CHUNK_UNITS]];
}

/* The heap grows by an eighth of itself, between one and 32 huge pages: a shell maps 2 MiB, and a
 * program of gigabytes makes a system call per 64 MiB. Whole huge pages, so that runs of them stay
 * aligned. */
#define LARGEST_GROWTH (64 * MIB >> UNIT_SHIFT)

static span_bins_t *bins_of(const span_t *span)
{
    page_heap_t *heap = heap_of(span);
    return span->dirty_count != 0 ? &heap->dirty : &heap->clean;
}

/* ---- free spans, and the order of age ----
 *
 * Dirty free spans, youngest first. A place in it is named by the node that a span is inserted
 * after. A span whose dirty units fill no whole page has none: purging could do nothing for it. */

static span_t *in_age(list_node_t *node)
{
    return LIST_ITEM(node, span_t, age_node);
}

static list_node_t *age_place_of(const span_t *span)
{
    bool has_place = span->dirty_count != 0 && !list_is_empty(&span->age_node);
    return has_place ? span->age_node.previous : NULL;
}

static list_node_t *age_place_for(page_heap_t *heap, uint64_t freed_ms)
{
    list_node_t *young = heap->by_age.next;
    list_node_t *old = heap->by_age.previous;
    if (list_is_empty(&heap->by_age))
        return &heap->by_age;
    /* From both ends: what comes here is nearly always the youngest or about to be purged. */
    while (in_age(young)->freed_ms > freed_ms) {
        if (in_age(old)->freed_ms >= freed_ms)
            return old;
        young = young->next;
        old = old->previous;
    }
    return young->previous;
}

/* Enters a span whose counts and stamp are set; `older` is where it belongs in the order of age. */
static void insert_free(span_t *span, list_node_t *older)
{
    span_set_state(span, SPAN_FREE);
    window_spans[span->first_unit] = span;
    window_spans[span->first_unit + span->unit_count - 1] = span;
    span_bins_insert(bins_of(span), span);
    list_init(&span->age_node);
    if (span->dirty_count != 0)
        list_insert_after(older, &span->age_node);
    count_add(&heap_of(span)->dirty_free_units, span->dirty_count);
}

static void remove_free(span_t *span)
{
    span_bins_remove(bins_of(span), span);
    list_remove(&span->age_node);
    count_subtract(&heap_of(span)->dirty_free_units, span->dirty_count);
}

/* The free span of the same heap that begins or ends at `unit`, or NULL. The owner is looked at
 * first: the entries of the other heap's units are under another lock. */
static span_t *free_span_at(size_t unit, const page_heap_t *heap)
{
    /* acquire: pairs with the release in page_map_grow; the owner of a counted chunk is known */
    if (unit >= __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE) ||
        window_owners[unit / CHUNK_UNITS] != heap->kind)
        return NULL;
    span_t *span = window_spans[unit];
    return span != NULL && span_state(span) == SPAN_FREE ? span : NULL;
}

/* Takes a free neighbour into `span`. Returns where the older of the two stood in the order of age:
 * the joined span is as old as its oldest part, or memory next to a busy place would never age. */
static list_node_t *absorb(span_t *span, span_t *neighbour, list_node_t *older)
{
    list_node_t *place = age_place_of(neighbour);
    if (place != NULL && (span->dirty_count == 0 || neighbour->freed_ms <= span->freed_ms)) {
        span->freed_ms = neighbour->freed_ms;
        older = place;
    } else if (older == &neighbour->age_node) {
        older = older->previous;
    }
    remove_free(neighbour);
    window_spans[neighbour->first_unit] = NULL;
    window_spans[neighbour->first_unit + neighbour->unit_count - 1] = NULL;
    span->first_unit = smaller_of(span->first_unit, neighbour->first_unit);
    span->unit_count += neighbour->unit_count;
    span->dirty_count += neighbour->dirty_count;
    meta_free(neighbour, SPAN_DESCRIPTOR_SIZE);
    return older;
}

/* Enters a span joined with its free neighbours; alone it would belong at `older`. */
static void insert_joined(span_t *span, list_node_t *older)
{
    const page_heap_t *heap = heap_of(span);
    span_t *before = span->first_unit == 0 ? NULL : free_span_at(span->first_unit - 1, heap);
    if (before != NULL)
        older = absorb(span, before, older);
    span_t *behind = free_span_at(span->first_unit + span->unit_count, heap);
    if (behind != NULL)
        older = absorb(span, behind, older);
    insert_free(span, older);
}

static size_t dirty_units(size_t first_unit, size_t unit_count)
{
    return bitmap_count(window_dirty, first_unit, unit_count);
}

/* Makes `part` describe `unit_count` units of `whole` from `first_unit` on. */
static void describe_part(span_t *part, const span_t *whole, size_t first_unit, size_t unit_count)
{
    part->first_unit = first_unit;
    part->unit_count = unit_count;
    part->freed_ms = whole->freed_ms;
    if (whole->dirty_count == 0)
        part->dirty_count = 0;
    else if (whole->dirty_count == whole->unit_count)
        part->dirty_count = unit_count;
    else
        part->dirty_count = dirty_units(first_unit, unit_count);
}

/* Cuts [skip, skip + unit_count) out of a free span; what is left over stays free. The taken part
 * keeps the descriptor. NULL: no memory to describe the rest; nothing has changed. */
static span_t *carve(span_t *span, size_t skip, size_t unit_count)
{
    size_t rest = span->unit_count - skip - unit_count;
    span_t *before = skip == 0 ? NULL : meta_alloc(SPAN_DESCRIPTOR_SIZE);
    span_t *behind = rest == 0 ? NULL : meta_alloc(SPAN_DESCRIPTOR_SIZE);
    if ((skip != 0 && before == NULL) || (rest != 0 && behind == NULL)) {
        if (before != NULL)
            meta_free(before, SPAN_DESCRIPTOR_SIZE);
        return NULL;
    }
    list_node_t *place = age_place_of(span);
    list_node_t *older = place != NULL ? place : &heap_of(span)->by_age;
    remove_free(span);
    span_t whole = *span;
    describe_part(span, &whole, whole.first_unit + skip, unit_count);
    window_spans[span->first_unit] = NULL;
    window_spans[span->first_unit + unit_count - 1] = NULL;
    if (before != NULL) {
        describe_part(before, &whole, whole.first_unit, skip);
        insert_free(before, older);
    }
    if (behind != NULL) {
        describe_part(behind, &whole, span->first_unit + unit_count, rest);
        insert_free(behind, older);
    }
    return span;
}

/* ---- growth ---- */

/* Huge pages are for small blocks, and only once their heap is large: a small one would double. */
static void advise(const page_heap_t *heap, const span_t *span)
{
    size_t threshold = (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT);
    bool wanted = heap->kind == HEAP_OF_SMALL && heap->mapped_units >= threshold;
    os_advise_huge_pages(span_start(span), span_size(span), wanted);
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
    list_init(&span->age_node);
    list_init(&span->bin_node);
    advise(heap, span);
    insert_joined(span, &heap->by_age);
    return true;
}

static bool grow_for(page_heap_t *heap, size_t unit_count)
{
    size_t wanted = smaller_of(heap->mapped_units / 8, LARGEST_GROWTH);
    wanted = align_up(larger_of(wanted, unit_count), CHUNK_UNITS);
    return grow_by(heap, wanted) || grow_by(heap, align_up(unit_count, CHUNK_UNITS));
}

/* ---- the public half ---- */

void page_heaps_create(void)
{
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++) {
        page_heap_t *heap = &page_heaps[kind];
        heap->lock = (lock_t)LOCK_INITIAL(LOCK_HEAP);
        heap->kind = (page_heap_kind_t)kind;
        list_init(&heap->by_age);
    }
}

static span_t *find_span(page_heap_t *heap, size_t unit_count)
{
    span_t *span = span_bins_find(&heap->dirty, unit_count);
    return span != NULL ? span : span_bins_find(&heap->clean, unit_count);
}

/* A span in use, its map entries set; class 0 is a large block. The caller holds the lock. */
static span_t *alloc_locked(page_heap_t *heap, size_t unit_count, size_t alignment, unsigned class)
{
    size_t search = unit_count + larger_of(alignment >> UNIT_SHIFT, 1) - 1;
    if (search < unit_count || search > window_unit_limit)
        return NULL;
    span_t *span = find_span(heap, search);
    if (span == NULL && grow_for(heap, search))
        span = find_span(heap, search);
    if (span == NULL)
        return NULL;
    uintptr_t start = (uintptr_t)span_start(span);
    size_t skip = (align_up(start, larger_of(alignment, UNIT_SIZE)) - start) >> UNIT_SHIFT;
    span = carve(span, skip, unit_count);
    if (span == NULL)
        return NULL;
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
    span_t *span = alloc_locked(heap, unit_count, UNIT_SIZE, class);
    lock_release(&heap->lock);
    return span;
}

span_t *page_heap_alloc(page_heap_kind_t kind, size_t unit_count, size_t alignment, bool *is_zero)
{
    page_heap_t *heap = &page_heaps[kind];
    lock_acquire(&heap->lock);
    span_t *span = alloc_locked(heap, unit_count, alignment, 0);
    *is_zero = span != NULL && span->dirty_count == 0;
    lock_release(&heap->lock);
    return span;
}

/* The caller holds the lock and owns the span. */
static void free_locked(span_t *span, uint64_t now_ms)
{
    page_heap_t *heap = heap_of(span);
    count_subtract(&heap->used_units, span->unit_count);
    count_subtract(&heap->used_spans, 1);
    if (span_state(span) == SPAN_SLAB)
        count_subtract(&heap->slab_units, span->unit_count);
    page_map_set(span->first_unit, span->unit_count, NULL, 0);
    bitmap_set(window_dirty, span->first_unit, span->unit_count);
    span->dirty_count = span->unit_count;
    span->freed_ms = now_ms;
    list_init(&span->age_node);
    list_init(&span->bin_node);
    insert_joined(span, age_place_for(heap, now_ms));
}

void page_heap_free(span_t *span, uint64_t now_ms)
{
    page_heap_t *heap = heap_of(span);
    lock_acquire(&heap->lock);
    MUST(span_state(span) != SPAN_FREE && span_state(span) != SPAN_PURGING);
    free_locked(span, now_ms);
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
        span_set_state(tail, SPAN_LARGE);
        count_add(&heap->used_spans, 1); /* until free_locked counts it off again */
        span->unit_count = unit_count;
        free_locked(tail, now_ms);
    }
    lock_release(&heap->lock);
}

bool page_heap_extend(span_t *span, size_t unit_count)
{
    page_heap_t *heap = heap_of(span);
    size_t more = unit_count - span->unit_count;
    lock_acquire(&heap->lock);
    span_t *behind = free_span_at(span->first_unit + span->unit_count, heap);
    span_t *taken = NULL;
    if (behind != NULL && behind->unit_count >= more)
        taken = carve(behind, 0, more);
    if (taken != NULL) {
        span->unit_count = unit_count;
        page_map_set(taken->first_unit, more, span, 0);
        count_add(&heap->used_units, more);
        meta_free(taken, SPAN_DESCRIPTOR_SIZE);
    }
    lock_release(&heap->lock);
    return taken != NULL;
}

/* Units that make whole pages. */
static size_t page_units(void)
{
    return larger_of(os_page_size() >> UNIT_SHIFT, 1);
}

/* The first run of dirty units of the span that fills whole pages; false: there is none. */
static bool find_dirty_pages(const span_t *span, size_t *first, size_t *unit_count)
{
    size_t end = span->first_unit + span->unit_count;
    size_t from = bitmap_find(window_dirty, span->first_unit, end, true);
    while (from < end) {
        size_t behind = bitmap_find(window_dirty, from, end, false);
        *first = align_up(from, page_units()); /* the window begins on a page */
        *unit_count = align_down(behind, page_units()) - *first;
        if (*first < align_down(behind, page_units()))
            return true;
        from = bitmap_find(window_dirty, behind, end, true);
    }
    return false;
}

/* Takes the clean units around a run of dirty ones in, as far as its chunks and the span go: where
 * the kernel filled a huge page for the run, they hold memory as well. */
static void widen_to_chunks(const span_t *span, size_t *first, size_t *unit_count)
{
    size_t end = *first + *unit_count;
    size_t low = larger_of(align_down(*first, CHUNK_UNITS), span->first_unit);
    size_t high = smaller_of(align_up(end, CHUNK_UNITS), span->first_unit + span->unit_count);
    high = bitmap_find(window_dirty, end, high, true); /* the next dirty run is not asked for */
    *first = align_up(low, page_units());
    *unit_count = align_down(high, page_units()) - *first;
}

span_t *page_heap_take_old(page_heap_kind_t kind, uint64_t before_ms, size_t most_units)
{
    page_heap_t *heap = &page_heaps[kind];
    span_t *taken = NULL;
    size_t first;
    size_t unit_count;
    lock_acquire(&heap->lock);
    while (taken == NULL && !list_is_empty(&heap->by_age)) {
        span_t *oldest = in_age(heap->by_age.previous);
        if (oldest->freed_ms > before_ms)
            break;
        if (!find_dirty_pages(oldest, &first, &unit_count)) {
            list_remove(&oldest->age_node); /* until it joins another */
            continue;
        }
        size_t most = align_up(smaller_of(most_units, unit_count), page_units());
        unit_count = smaller_of(most, unit_count);
        if (kind == HEAP_OF_SMALL)
            widen_to_chunks(oldest, &first, &unit_count);
        taken = carve(oldest, first - oldest->first_unit, unit_count);
        if (taken == NULL) /* no memory to describe the rest */
            break;
        span_set_state(taken, SPAN_PURGING);
    }
    lock_release(&heap->lock);
    return taken;
}

void page_heap_purged(span_t *span, bool purged, uint64_t now_ms)
{
    page_heap_t *heap = heap_of(span);
    lock_acquire(&heap->lock);
    if (purged) {
        count_add(&heap->purged_units, span->dirty_count);
        bitmap_clear(window_dirty, span->first_unit, span->unit_count);
        span->dirty_count = 0;
    } else {
        span->freed_ms = now_ms; /* try again after another delay */
    }
    insert_joined(span, age_place_for(heap, now_ms));
    lock_release(&heap->lock);
}

/* Cuts a free span down to its whole chunks; NULL: it has none, or there is no memory to describe
 * what is left. The caller holds the lock. */
static span_t *carve_chunks(span_t *span)
{
    size_t skip = align_up(span->first_unit, CHUNK_UNITS) - span->first_unit;
    if (span->unit_count < skip + CHUNK_UNITS)
        return NULL;
    return carve(span, skip, align_down(span->unit_count - skip, CHUNK_UNITS));
}

/* The first span of the bins that can be cut down to whole chunks. */
static span_t *take_chunks(span_bins_t *bins)
{
    for (unsigned bin = span_bin_of(CHUNK_UNITS); bin < BIN_COUNT; bin++) {
        list_node_t *head = &bins->heads[bin];
        for (list_node_t *node = list_first(head); node != head; node = node->next) {
            span_t *chunks = carve_chunks(span_in_bin(node));
            if (chunks != NULL)
                return chunks;
        }
    }
    return NULL;
}

size_t page_heap_release(page_heap_kind_t kind)
{
    page_heap_t *heap = &page_heaps[kind];
    size_t units = 0;
    lock_acquire(&heap->lock);
    for (;;) {
        span_t *span = take_chunks(&heap->dirty);
        if (span == NULL)
            span = take_chunks(&heap->clean);
        if (span == NULL)
            break;
        if (!page_map_unmap(span->first_unit, span->unit_count)) {
            /* The table of mappings is full: everything stays as it was. */
            insert_joined(span, age_place_for(heap, span->freed_ms));
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

/* ---- the law ---- */

static bool bins_are_valid(const page_heap_t *heap, span_bins_t *bins, size_t *units)
{
    bool dirty = bins == &heap->dirty;
    for (unsigned bin = 0; bin < BIN_COUNT; bin++) {
        list_node_t *head = &bins->heads[bin];
        if (list_is_empty(head) == bitmap_has(bins->occupied, bin))
            return false;
        for (list_node_t *node = list_first(head); node != head; node = node->next) {
            span_t *span = span_in_bin(node);
            *units += span->unit_count;
            if (span_state(span) != SPAN_FREE || span_bin_of(span->unit_count) != bin ||
                (span->dirty_count != 0) != dirty ||
                span->dirty_count != dirty_units(span->first_unit, span->unit_count) ||
                free_span_at(span->first_unit + span->unit_count, heap) != NULL)
                return false;
        }
    }
    return true;
}

bool page_heap_is_valid(page_heap_kind_t kind)
{
    page_heap_t *heap = &page_heaps[kind];
    lock_acquire(&heap->lock);
    size_t free_units = 0;
    bool valid = bins_are_valid(heap, &heap->dirty, &free_units) &&
                 bins_are_valid(heap, &heap->clean, &free_units) &&
                 free_units + heap->used_units == heap->mapped_units;
    lock_release(&heap->lock);
    return valid;
}
