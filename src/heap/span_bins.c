/* Bins of free spans by length. See span_bins.h. */
#include "heap/span_bins.h"

#include "base/bitmap.h"
#include "options/tuning.h"

unsigned span_bin_of(size_t unit_count)
{
    if (unit_count <= EXACT_BINS)
        return (unsigned)unit_count - 1;
    unsigned power = highest_bit(unit_count);
    return EXACT_BINS + (power - 6) * 4 + (unsigned)((unit_count >> (power - 2)) & 3);
}

void span_bins_insert(span_bins_t *bins, span_t *span)
{
    unsigned bin = span_bin_of(span->unit_count);
    list_push_front(&bins->heads[bin], &span->bin_node);
    bitmap_set(bins->occupied, bin, 1);
}

void span_bins_remove(span_bins_t *bins, span_t *span)
{
    unsigned bin = span_bin_of(span->unit_count);
    list_remove(&span->bin_node);
    if (list_is_empty(&bins->heads[bin]))
        bitmap_clear(bins->occupied, bin, 1);
}

span_t *span_bins_find(span_bins_t *bins, size_t unit_count)
{
    unsigned bin = span_bin_of(unit_count);
    if (unit_count > EXACT_BINS) {
        list_node_t *head = &bins->heads[bin];
        list_node_t *node = list_first(head);
        for (unsigned look = 0; look < SPAN_LOOKS && node != head; look++, node = node->next)
            if (span_in_bin(node)->unit_count >= unit_count)
                return span_in_bin(node);
        bin++;
    }
    bin = (unsigned)bitmap_find(bins->occupied, bin, BIN_COUNT, true);
    return bin == BIN_COUNT ? NULL : span_in_bin(bins->heads[bin].next);
}
