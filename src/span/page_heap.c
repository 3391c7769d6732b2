/* The page heap: find, split, join. See page_heap.h. */
#include "span/page_heap.h"

#include "base/assert.h"
#include "base/bitmap.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"

page_heap_t page_heap = {.lock = LOCK_INITIAL(LOCK_HEAP)};

/* The heap grows by an eighth of itself, between one and 32 huge pages: a shell maps 2 MiB, and a
 * program of gigabytes makes a system call per 64 MiB. Whole huge pages, so that runs of them stay
 * aligned. */
#define GROWTH_UNIT (2 * MIB >> UNIT_SHIFT)
#define LARGEST_GROWTH (64 * MIB >> UNIT_SHIFT)

/* How many spans of the one bin whose spans may be too short are looked at before the next bin. */
#define LOOKS_IN_BIN 8

/* ---- bins ---- */

static unsigned bin_of(size_t unit_count)
{
    if (unit_count <= EXACT_BINS)
        return (unsigned)unit_count - 1;
    unsigned power = highest_bit(unit_count);
    return EXACT_BINS + (power - 5) * 4 + (unsigned)((unit_count >> (power - 2)) & 3);
}

static span_t *in_bin(list_node_t *node)
{
    return LIST_ITEM(node, span_t, bin_node);
}

static span_bins_t *bins_of(const span_t *span)
{
    return span->dirty_count != 0 ? &page_heap.dirty : &page_heap.clean;
}

static void bins_init(span_bins_t *bins)
{
    for (unsigned bin = 0; bin < BIN_COUNT; bin++)
        list_init(&bins->heads[bin]);
}

static void bins_insert(span_bins_t *bins, span_t *span)
{
    unsigned bin = bin_of(span->unit_count);
    list_push_front(&bins->heads[bin], &span->bin_node);
    bitmap_set(bins->occupied, bin, 1);
}

static void bins_remove(span_bins_t *bins, span_t *span)
{
    unsigned bin = bin_of(span->unit_count);
    list_remove(&span->bin_node);
    if (list_is_empty(&bins->heads[bin]))
        bitmap_clear(bins->occupied, bin, 1);
}

static span_t *bins_find(span_bins_t *bins, size_t unit_count)
{
    unsigned bin = bin_of(unit_count);
    if (unit_count > EXACT_BINS) {
        list_node_t *head = &bins->heads[bin];
        list_node_t *node = head->next;
        for (unsigned look = 0; look < LOOKS_IN_BIN && node != head; look++, node = node->next)
            if (in_bin(node)->unit_count >= unit_count)
                return in_bin(node);
        bin++;
    }
    bin = (unsigned)bitmap_find(bins->occupied, bin, BIN_COUNT, true);
    return bin == BIN_COUNT ? NULL : in_bin(bins->heads[bin].next);
}

/* ---- free spans ---- */

/* Enters a span whose counts and stamp are set; `older` is where it belongs in the order of age. */
static void insert_free(span_t *span, list_node_t *older)
{
    span->state = SPAN_FREE;
    window_spans[span->first_unit] = span;
    window_spans[span->first_unit + span->unit_count - 1] = span;
    bins_insert(bins_of(span), span);
    list_init(&span->age_node);
    if (span->dirty_count != 0)
        list_insert_after(older, &span->age_node);
    page_heap.dirty_free_units += span->dirty_count;
}

static void remove_free(span_t *span)
{
    bins_remove(bins_of(span), span);
    list_remove(&span->age_node);
    page_heap.dirty_free_units -= span->dirty_count;
}

static span_t *free_span_at(size_t unit)
{
    if (unit >= window_unit_count)
        return NULL;
    span_t *span = window_spans[unit];
    return span != NULL && span->state == SPAN_FREE ? span : NULL;
}

/* Takes a free neighbour into `span`. Returns where the older of the two stood in the order of age:
 * the joined span is as old as its oldest part, or memory next to a busy place would never age. */
static list_node_t *absorb(span_t *span, span_t *neighbour, list_node_t *older)
{
    if (neighbour->dirty_count != 0 &&
        (span->dirty_count == 0 || neighbour->freed_ms <= span->freed_ms)) {
        span->freed_ms = neighbour->freed_ms;
        older = neighbour->age_node.previous;
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

static void insert_joined(span_t *span)
{
    list_node_t *older = &page_heap.by_age;
    span_t *before = span->first_unit == 0 ? NULL : free_span_at(span->first_unit - 1);
    if (before != NULL)
        older = absorb(span, before, older);
    span_t *behind = free_span_at(span->first_unit + span->unit_count);
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
    list_node_t *older = span->dirty_count == 0 ? &page_heap.by_age : span->age_node.previous;
    remove_free(span);
    span_t whole = *span;
    describe_part(span, &whole, whole.first_unit + skip, unit_count);
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

static bool grow_by(size_t unit_count)
{
    span_t *span = meta_alloc(SPAN_DESCRIPTOR_SIZE);
    if (span == NULL)
        return false;
    size_t first = page_map_grow(unit_count);
    if (first == SIZE_MAX) {
        meta_free(span, SPAN_DESCRIPTOR_SIZE);
        return false;
    }
    page_heap.mapped_units += unit_count;
    page_heap.grown++;
    size_t threshold = (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT);
    os_advise_huge_pages(unit_address(first), unit_count << UNIT_SHIFT,
                         page_heap.mapped_units >= threshold);
    span->first_unit = first;
    span->unit_count = unit_count;
    list_init(&span->age_node);
    list_init(&span->bin_node);
    insert_joined(span);
    return true;
}

static bool grow_for(size_t unit_count)
{
    size_t wanted = smaller_of(page_heap.mapped_units / 8, LARGEST_GROWTH);
    wanted = align_up(larger_of(wanted, unit_count), GROWTH_UNIT);
    return grow_by(wanted) || grow_by(align_up(unit_count, GROWTH_UNIT));
}

/* ---- the public half ---- */

void page_heap_create(void)
{
    bins_init(&page_heap.dirty);
    bins_init(&page_heap.clean);
    list_init(&page_heap.by_age);
}

static span_t *find_span(size_t unit_count)
{
    span_t *span = bins_find(&page_heap.dirty, unit_count);
    return span != NULL ? span : bins_find(&page_heap.clean, unit_count);
}

span_t *page_heap_alloc(size_t unit_count, size_t alignment, bool *is_zero)
{
    size_t aligned_units = larger_of(alignment >> UNIT_SHIFT, 1);
    size_t search = unit_count + aligned_units - 1;
    if (search < unit_count || search > window_unit_limit)
        return NULL;
    lock_acquire(&page_heap.lock);
    span_t *span = find_span(search);
    if (span == NULL && grow_for(search))
        span = find_span(search);
    if (span != NULL) {
        uintptr_t start = (uintptr_t)span_start(span);
        size_t skip = (align_up(start, larger_of(alignment, UNIT_SIZE)) - start) >> UNIT_SHIFT;
        span = carve(span, skip, unit_count);
    }
    if (span != NULL) {
        *is_zero = span->dirty_count == 0;
        span->state = SPAN_LARGE;
        page_map_set(span->first_unit, unit_count, span, 0);
        page_heap.used_units += unit_count;
    }
    lock_release(&page_heap.lock);
    return span;
}

/* The caller holds the lock and owns the span. */
static void free_locked(span_t *span, uint64_t now_ms)
{
    page_heap.used_units -= span->unit_count;
    page_map_set(span->first_unit, span->unit_count, NULL, 0);
    bitmap_set(window_dirty, span->first_unit, span->unit_count);
    span->dirty_count = span->unit_count;
    span->freed_ms = now_ms;
    list_init(&span->age_node);
    list_init(&span->bin_node);
    insert_joined(span);
}

void page_heap_free(span_t *span, uint64_t now_ms)
{
    lock_acquire(&page_heap.lock);
    MUST(span->state == SPAN_LARGE || span->state == SPAN_SLAB);
    free_locked(span, now_ms);
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
        free_locked(tail, now_ms);
    }
    lock_release(&page_heap.lock);
}

bool page_heap_extend(span_t *span, size_t unit_count)
{
    size_t more = unit_count - span->unit_count;
    lock_acquire(&page_heap.lock);
    span_t *behind = free_span_at(span->first_unit + span->unit_count);
    span_t *taken = NULL;
    if (behind != NULL && behind->unit_count >= more)
        taken = carve(behind, 0, more);
    if (taken != NULL) {
        span->unit_count = unit_count;
        page_map_set(taken->first_unit, more, span, 0);
        page_heap.used_units += more;
        meta_free(taken, SPAN_DESCRIPTOR_SIZE);
    }
    lock_release(&page_heap.lock);
    return taken != NULL;
}

span_t *page_heap_take_old(uint64_t before_ms)
{
    lock_acquire(&page_heap.lock);
    span_t *span = NULL;
    if (!list_is_empty(&page_heap.by_age))
        span = LIST_ITEM(page_heap.by_age.previous, span_t, age_node);
    if (span != NULL && span->freed_ms > before_ms)
        span = NULL;
    if (span != NULL) {
        remove_free(span);
        span->state = SPAN_PURGING;
    }
    lock_release(&page_heap.lock);
    return span;
}

void page_heap_purged(span_t *span, bool purged, uint64_t now_ms)
{
    lock_acquire(&page_heap.lock);
    if (purged) {
        page_heap.purged_units += span->dirty_count;
        bitmap_clear(window_dirty, span->first_unit, span->unit_count);
        span->dirty_count = 0;
    } else {
        span->freed_ms = now_ms; /* try again after another delay */
    }
    insert_joined(span);
    lock_release(&page_heap.lock);
}

void page_heap_at_fork(fork_phase_t phase)
{
    lock_at_fork(&page_heap.lock, phase);
}

/* ---- the law ---- */

static bool bins_are_valid(span_bins_t *bins, bool dirty, size_t *units)
{
    for (unsigned bin = 0; bin < BIN_COUNT; bin++) {
        list_node_t *head = &bins->heads[bin];
        if (list_is_empty(head) == bitmap_has(bins->occupied, bin))
            return false;
        for (list_node_t *node = head->next; node != head; node = node->next) {
            span_t *span = in_bin(node);
            *units += span->unit_count;
            if (span->state != SPAN_FREE || bin_of(span->unit_count) != bin ||
                (span->dirty_count != 0) != dirty ||
                span->dirty_count != dirty_units(span->first_unit, span->unit_count) ||
                free_span_at(span->first_unit + span->unit_count) != NULL)
                return false;
        }
    }
    return true;
}

bool page_heap_is_valid(void)
{
    lock_acquire(&page_heap.lock);
    size_t free_units = 0;
    bool valid = bins_are_valid(&page_heap.dirty, true, &free_units) &&
                 bins_are_valid(&page_heap.clean, false, &free_units) &&
                 free_units + page_heap.used_units == page_heap.mapped_units;
    lock_release(&page_heap.lock);
    return valid;
}
