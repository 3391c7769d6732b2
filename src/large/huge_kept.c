/* Lists of kept huge blocks. See huge_kept.h. */
#include "large/huge_kept.h"

#include "base/bits.h"
#include "base/count.h"
#include "options/tuning.h"

/* Kept blocks of similar length: eight bins to each doubling, from a page of 4 KiB on. */
#define SMALLEST_SHIFT 12
#define KEPT_BINS (8 * (64 - SMALLEST_SHIFT))

static struct {
    list_node_t warm, idle, bins[KEPT_BINS];
} huge_kept_state SPARSE;
huge_kept_totals_t huge_kept_totals;

static unsigned huge_kept_bin_of(size_t size)
{
    unsigned power = highest_bit(size);
    return (power - SMALLEST_SHIFT) * 8 + ((size >> (power - 3)) & 7);
}

/* Warm ones before idle ones. */
static void huge_kept_enter_bin(huge_t *huge)
{
    list_node_t *bin = &huge_kept_state.bins[huge_kept_bin_of(huge->range.size)];
    if (huge->list == HUGE_IDLE)
        list_push_back(bin, &huge->bin_node);
    else
        list_push_front(bin, &huge->bin_node);
}

void huge_kept_add_warm(huge_t *huge, bool is_youngest)
{
    if (is_youngest)
        list_push_front(&huge_kept_state.warm, &huge->age_node);
    else
        list_push_back(&huge_kept_state.warm, &huge->age_node);
    huge_kept_enter_bin(huge);
    huge->list = HUGE_WARM;
    count_add(&huge_kept_totals.bytes, huge->kept);
}

void huge_kept_add_idle(huge_t *huge)
{
    list_push_front(&huge_kept_state.idle, &huge->age_node);
    huge->list = HUGE_IDLE;
    huge_kept_enter_bin(huge);
    count_add(&huge_kept_totals.idle_count, 1);
}

void huge_kept_drop(huge_t *huge)
{
    list_remove(&huge->age_node);
    list_remove(&huge->bin_node);
    if (huge->list == HUGE_IDLE)
        count_subtract(&huge_kept_totals.idle_count, 1);
    else
        count_subtract(&huge_kept_totals.bytes, huge->kept);
    huge->list = HUGE_UNLISTED;
}

void huge_kept_split(huge_t *huge, huge_t *rest)
{
    rest->kept = huge->kept - huge->range.size;
    huge->kept = huge->range.size;
    list_remove(&huge->bin_node);
    huge_kept_enter_bin(huge);
    huge_kept_enter_bin(rest);
    list_insert_after(&huge->age_node, &rest->age_node);
}

void huge_kept_cut_start(huge_t *huge, size_t size)
{
    size_t held = smaller_of(huge->kept, size);
    if (huge->list == HUGE_WARM)
        count_subtract(&huge_kept_totals.bytes, held);
    huge->range.start += size;
    huge->range.size -= size;
    huge->kept -= held;
    bool is_drained = huge->list == HUGE_WARM && huge->kept == 0;
    if (is_drained || huge->range.size == 0)
        huge_kept_drop(huge);
    if (is_drained && huge->range.size != 0)
        huge_kept_add_idle(huge);
    if (huge_is_kept(huge) && !is_drained) {
        list_remove(&huge->bin_node);
        huge_kept_enter_bin(huge);
    }
}

/* What holds memory, else the smaller one. */
static bool huge_kept_is_better(const huge_t *huge, const huge_t *best)
{
    if (best == NULL || huge->list != best->list)
        return best == NULL || best->list == HUGE_IDLE;
    return huge->range.size < best->range.size;
}

huge_t *huge_kept_best(size_t size, size_t alignment, size_t longest)
{
    huge_t *best = NULL;
    for (unsigned bin = huge_kept_bin_of(size); bin <= huge_kept_bin_of(longest); bin++) {
        if (best != NULL && bin > huge_kept_bin_of(size + size / 8)) /* the rest only wastes more */
            break;
        list_node_t *node = list_first(&huge_kept_state.bins[bin]);
        for (unsigned look = 0; look < HUGE_LOOKS && node != &huge_kept_state.bins[bin]; look++) {
            huge_t *huge = LIST_ITEM(node, huge_t, bin_node);
            node = node->next;
            if (huge->range.size >= size && huge->range.size <= longest &&
                is_aligned(huge->range.start, alignment) && huge_kept_is_better(huge, best))
                best = huge;
        }
    }
    return best;
}

huge_t *huge_kept_longest(size_t size)
{
    for (unsigned bin = KEPT_BINS; bin-- > huge_kept_bin_of(size);) {
        list_node_t *node = list_first(&huge_kept_state.bins[bin]);
        for (unsigned look = 0; look < HUGE_LOOKS && node != &huge_kept_state.bins[bin]; look++) {
            huge_t *huge = LIST_ITEM(node, huge_t, bin_node);
            node = node->next;
            if (huge->list == HUGE_WARM && huge->kept >= size)
                return huge;
        }
    }
    return NULL;
}

huge_t *huge_kept_oldest(uint64_t before_ms)
{
    const list_node_t *head = &huge_kept_state.warm;
    huge_t *huge = list_is_empty(head) ? NULL : LIST_ITEM(head->previous, huge_t, age_node);
    return huge != NULL && huge->freed_ms <= before_ms ? huge : NULL;
}

huge_t *huge_kept_oldest_idle(void)
{
    return list_is_empty(&huge_kept_state.idle)
               ? NULL
               : LIST_ITEM(huge_kept_state.idle.previous, huge_t, age_node);
}

void huge_kept_create(void)
{
    list_init(&huge_kept_state.warm);
    list_init(&huge_kept_state.idle);
}
