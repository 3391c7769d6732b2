/* Free spans. See free_spans.h. */
#include "heap/free_spans.h"

#include "base/bitmap.h"
#include "base/bits.h"
#include "base/config.h"
#include "base/count.h"
#include "os/meta.h"

static span_bins_t *free_spans_bins_of(free_spans_t *spans, const span_t *span)
{
    return span->dirty_count != 0 ? &spans->dirty : &spans->clean[unit_is_dense(span->first_unit)];
}

/* ---- the order of age ---- */

static span_t *span_in_age(list_node_t *node)
{
    return LIST_ITEM(node, span_t, age_node);
}

static bool span_has_age(const span_t *span)
{
    return !list_is_empty(&span->age_node);
}

/* The node after which a span freed at `freed_ms` belongs. */
static list_node_t *free_spans_age_place(free_spans_t *spans, uint64_t freed_ms)
{
    list_node_t *young = spans->by_age.next;
    list_node_t *old = spans->by_age.previous;
    if (list_is_empty(&spans->by_age))
        return &spans->by_age;
    /* From both ends: what comes here is nearly always the youngest or about to be purged. */
    while (span_in_age(young)->freed_ms > freed_ms) {
        if (span_in_age(old)->freed_ms >= freed_ms)
            return old;
        young = young->next;
        old = old->previous;
    }
    return young->previous;
}

span_t *free_spans_oldest(const free_spans_t *spans)
{
    return list_is_empty(&spans->by_age) ? NULL : span_in_age(spans->by_age.previous);
}

void free_spans_set_age(free_spans_t *spans, span_t *span, uint64_t freed_ms)
{
    list_remove(&span->age_node);
    span->freed_ms = freed_ms;
    list_insert_after(free_spans_age_place(spans, freed_ms), &span->age_node);
}

void free_spans_forget_age(span_t *span)
{
    list_remove(&span->age_node);
}

/* ---- finding ---- */

span_t *free_spans_find(free_spans_t *spans, size_t unit_count, bool is_dense)
{
    span_t *span = span_bins_find(&spans->dirty, unit_count);
    return span != NULL ? span : span_bins_find(&spans->clean[is_dense], unit_count);
}

span_t *free_spans_find_aligned(free_spans_t *spans, size_t unit_count, size_t alignment)
{
    if (LIKELY(alignment <= UNIT_SIZE))
        return NULL;
    span_t *span = free_spans_find(spans, unit_count, false);
    return span != NULL && is_aligned(span_start(span), alignment) ? span : NULL;
}

span_t *free_spans_beside(const span_t *of, size_t unit)
{
    /* acquire: pairs with the release in page_map_grow; the kind of a counted chunk is known */
    if (unit >= __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE) ||
        kind_of_unit(unit) != kind_of_unit(of->first_unit))
        return NULL;
    span_t *span = window_spans[unit];
    return span != NULL && span_state(span) == SPAN_FREE ? span : NULL;
}

/* ---- entering and joining ---- */

/* Enters a span everywhere but in the order of age. */
static void free_spans_enter(free_spans_t *spans, span_t *span)
{
    span_set_state(span, SPAN_FREE);
    window_spans[span->first_unit] = span;
    window_spans[span->first_unit + span->unit_count - 1] = span;
    span_bins_insert(free_spans_bins_of(spans, span), span);
    count_add(&spans->dirty_units, span->dirty_count);
}

static void free_spans_leave(free_spans_t *spans, span_t *span)
{
    span_bins_remove(free_spans_bins_of(spans, span), span);
    count_subtract(&spans->dirty_units, span->dirty_count);
    window_spans[span->first_unit] = NULL;
    window_spans[span->first_unit + span->unit_count - 1] = NULL;
}

/* Takes a free neighbour into `span`, and its age and place if it is the older one. */
static void free_spans_join(free_spans_t *spans, span_t *span, span_t *neighbour)
{
    free_spans_leave(spans, neighbour);
    if (span_has_age(neighbour) && (!span_has_age(span) || neighbour->freed_ms <= span->freed_ms)) {
        span->freed_ms = neighbour->freed_ms;
        list_remove(&span->age_node);
        list_insert_after(&neighbour->age_node, &span->age_node);
    }
    list_remove(&neighbour->age_node);
    const span_t *low = span->first_unit < neighbour->first_unit ? span : neighbour;
    const span_t *high = low == span ? neighbour : span;
    span->clean_head = low->clean_head + (low->dirty_count == 0 ? high->clean_head : 0);
    span->first_unit = smaller_of(span->first_unit, neighbour->first_unit);
    span->unit_count += neighbour->unit_count;
    span->dirty_count += neighbour->dirty_count;
    meta_free(neighbour, SPAN_DESCRIPTOR_SIZE);
}

void free_spans_insert(free_spans_t *spans, span_t *span)
{
    list_init(&span->age_node);
    span->clean_head = span->dirty_count == 0 ? span->unit_count : 0;
    if (span->dirty_count != 0)
        list_insert_after(free_spans_age_place(spans, span->freed_ms), &span->age_node);
    span_t *before = span->first_unit == 0 ? NULL : free_spans_beside(span, span->first_unit - 1);
    if (before != NULL)
        free_spans_join(spans, span, before);
    span_t *behind = free_spans_beside(span, span->first_unit + span->unit_count);
    if (behind != NULL)
        free_spans_join(spans, span, behind);
    free_spans_enter(spans, span);
}

/* ---- the bitmap of dirty units ---- */

static void free_spans_note_look(free_spans_t *spans, size_t first_unit, size_t end)
{
    if (config_checked)
        spans->looked_words += (end - 1) / 64 - first_unit / 64 + 1;
}

size_t free_spans_count_dirty(free_spans_t *spans, size_t first_unit, size_t unit_count)
{
    free_spans_note_look(spans, first_unit, first_unit + unit_count);
    return bitmap_count(window_tables.dirty, first_unit, unit_count);
}

size_t free_spans_find_unit(free_spans_t *spans, size_t from, size_t end, bool is_dirty)
{
    size_t found = bitmap_find(window_tables.dirty, from, end, is_dirty);
    if (from < end)
        free_spans_note_look(spans, from, smaller_of(found + 1, end));
    return found;
}

size_t free_spans_find_clean(free_spans_t *spans, const span_t *span, size_t unit_count)
{
    size_t from = span->first_unit;
    size_t end = from + span->unit_count;
    while (from < end) {
        from = free_spans_find_unit(spans, from, end, false);
        size_t behind = free_spans_find_unit(spans, from, smaller_of(from + unit_count, end), true);
        if (behind - from == unit_count)
            break;
        from = behind;
    }
    return smaller_of(from, end) - span->first_unit;
}

/* ---- cutting ---- */

static void free_spans_note_low_water(free_spans_t *spans)
{
    spans->low_units = smaller_of(spans->low_units, spans->dirty_units);
}

/* How many units of a part of `whole` are dirty, with a look at the bitmap only where it takes one.
 */
static size_t free_spans_dirty_part(free_spans_t *spans, const span_t *whole, size_t first_unit,
                                    size_t unit_count)
{
    if (whole->dirty_count == whole->unit_count)
        return unit_count;
    if (unit_count == 0 || first_unit + unit_count <= whole->first_unit + whole->clean_head)
        return 0;
    return free_spans_count_dirty(spans, first_unit, unit_count);
}

/* Enters what is left of `whole` at one of its ends, with its age: the place next to it. */
static void free_spans_enter_rest(free_spans_t *spans, span_t *rest, span_t *whole)
{
    size_t clean_end = whole->first_unit + whole->clean_head;
    size_t clean = clean_end - smaller_of(clean_end, rest->first_unit);
    rest->clean_head = smaller_of(clean, rest->unit_count);
    rest->freed_ms = whole->freed_ms;
    list_init(&rest->age_node);
    if (rest->dirty_count != 0 && span_has_age(whole))
        list_insert_after(&whole->age_node, &rest->age_node);
    free_spans_enter(spans, rest);
}

span_t *free_spans_carve(free_spans_t *spans, span_t *span, size_t skip, size_t unit_count)
{
    size_t rest = span->unit_count - skip - unit_count;
    span_t *before = skip == 0 ? NULL : meta_alloc(SPAN_DESCRIPTOR_SIZE);
    span_t *behind = rest == 0 ? NULL : meta_alloc(SPAN_DESCRIPTOR_SIZE);
    if ((skip != 0 && before == NULL) || (rest != 0 && behind == NULL)) {
        if (before != NULL)
            meta_free(before, SPAN_DESCRIPTOR_SIZE);
        return NULL;
    }
    free_spans_leave(spans, span);
    size_t first_unit = span->first_unit + skip;
    size_t dirty_before = free_spans_dirty_part(spans, span, span->first_unit, skip);
    size_t dirty_taken = free_spans_dirty_part(spans, span, first_unit, unit_count);
    if (before != NULL) {
        before->first_unit = span->first_unit;
        before->unit_count = skip;
        before->dirty_count = dirty_before;
        free_spans_enter_rest(spans, before, span);
    }
    if (behind != NULL) { /* not looked at: it is the longest where the span is long */
        behind->first_unit = first_unit + unit_count;
        behind->unit_count = rest;
        behind->dirty_count = span->dirty_count - dirty_before - dirty_taken;
        free_spans_enter_rest(spans, behind, span);
    }
    list_remove(&span->age_node);
    span->first_unit = first_unit;
    span->unit_count = unit_count;
    span->dirty_count = dirty_taken;
    free_spans_note_low_water(spans);
    return span;
}

size_t free_spans_cut_off(free_spans_t *spans, span_t *span, size_t unit_count)
{
    size_t rest = span->unit_count - unit_count;
    size_t first = span->first_unit + rest;
    size_t dirty_cut = free_spans_dirty_part(spans, span, first, unit_count);
    free_spans_leave(spans, span);
    span->unit_count = rest;
    span->dirty_count -= dirty_cut;
    span->clean_head = span->dirty_count == 0 ? rest : smaller_of(span->clean_head, rest);
    if (span->dirty_count == 0)
        list_remove(&span->age_node);
    if (rest != 0)
        free_spans_enter(spans, span);
    else
        meta_free(span, SPAN_DESCRIPTOR_SIZE);
    free_spans_note_low_water(spans);
    return first;
}

/* ---- the law ---- */

static bool span_head_is_clean(const span_t *span)
{
    size_t end = span->first_unit + span->clean_head;
    return span->clean_head <= span->unit_count &&
           bitmap_find(window_tables.dirty, span->first_unit, end, true) == end;
}

static bool free_spans_bins_are_valid(free_spans_t *spans, span_bins_t *bins, size_t *unit_count)
{
    for (unsigned bin = 0; bin < BIN_COUNT; bin++) {
        list_node_t *head = &bins->heads[bin];
        if (list_is_empty(head) == bitmap_has(bins->occupied, bin))
            return false;
        for (list_node_t *node = list_first(head); node != head; node = node->next) {
            span_t *span = span_in_bin(node);
            *unit_count += span->unit_count;
            size_t end = span->first_unit + span->unit_count;
            if (span_state(span) != SPAN_FREE || span_bin_of(span->unit_count) != bin ||
                bins != free_spans_bins_of(spans, span) ||
                (span_has_age(span) && span->dirty_count == 0) ||
                kind_of_unit(span->first_unit) != kind_of_unit(end - 1) ||
                span->dirty_count !=
                    free_spans_count_dirty(spans, span->first_unit, span->unit_count) ||
                !span_head_is_clean(span) || free_spans_beside(span, end) != NULL)
                return false;
        }
    }
    return true;
}

static bool free_spans_ages_are_valid(free_spans_t *spans)
{
    uint64_t younger = UINT64_MAX;
    for (list_node_t *node = list_first(&spans->by_age); node != &spans->by_age;
         node = node->next) {
        if (span_in_age(node)->freed_ms > younger)
            return false;
        younger = span_in_age(node)->freed_ms;
    }
    return true;
}

bool free_spans_are_valid(free_spans_t *spans, size_t *unit_count)
{
    return free_spans_bins_are_valid(spans, &spans->dirty, unit_count) &&
           free_spans_bins_are_valid(spans, &spans->clean[false], unit_count) &&
           free_spans_bins_are_valid(spans, &spans->clean[true], unit_count) &&
           free_spans_ages_are_valid(spans);
}
