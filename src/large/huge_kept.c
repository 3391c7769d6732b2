/* Lists of kept huge blocks. See huge_kept.h. */
#include "large/huge_kept.h"

#include "base/bits.h"
#include "base/count.h"
#include "options/tuning.h"
#include "large/huge.h"
#include "keep/pressure.h"

/* Kept blocks of similar length: eight bins to each doubling, from a page of 4 KiB on. */
#define SMALLEST_SHIFT 12
#define KEPT_BINS (8 * (64 - SMALLEST_SHIFT))

static struct {
    list_node_t warm, warm_for_longer, idle, bins[KEPT_BINS];
} huge_kept_state SPARSE;
size_t huge_kept_longer_bytes, huge_kept_bytes, huge_kept_idle_count;

static unsigned bin_of(size_t size)
{
    unsigned power = highest_bit(size);
    return (power - SMALLEST_SHIFT) * 8 + ((size >> (power - 3)) & 7);
}

static bool waits_longer(const huge_t *huge)
{
    return (huge->wishes & HUGE_WISH_KEEP) != 0;
}

void huge_kept_add_warm(huge_t *huge, bool is_youngest)
{
    list_node_t *head =
        waits_longer(huge) ? &huge_kept_state.warm_for_longer : &huge_kept_state.warm;
    if (is_youngest)
        list_push_front(head, &huge->age_node);
    else
        list_push_back(head, &huge->age_node);
    list_push_front(&huge_kept_state.bins[bin_of(huge->range.size)], &huge->bin_node);
    count_add(waits_longer(huge) ? &huge_kept_longer_bytes : &huge_kept_bytes, huge->kept);
}

void huge_kept_add_idle(huge_t *huge)
{
    list_push_front(&huge_kept_state.idle, &huge->age_node);
    list_push_back(&huge_kept_state.bins[bin_of(huge->range.size)], &huge->bin_node);
    huge->is_idle = true;
    count_add(&huge_kept_idle_count, 1);
}

void huge_kept_drop(huge_t *huge)
{
    list_remove(&huge->age_node);
    list_remove(&huge->bin_node);
    if (huge->is_idle)
        count_subtract(&huge_kept_idle_count, 1);
    else
        count_subtract(waits_longer(huge) ? &huge_kept_longer_bytes : &huge_kept_bytes, huge->kept);
    huge->is_idle = false;
}

/* What holds memory, else the smaller one. */
static bool is_better(const huge_t *huge, const huge_t *best)
{
    if (best == NULL || huge->is_idle != best->is_idle)
        return best == NULL || best->is_idle;
    return huge->range.size < best->range.size;
}

huge_t *huge_kept_best(size_t size, size_t alignment, size_t longest)
{
    huge_t *best = NULL;
    for (unsigned bin = bin_of(size); bin <= bin_of(longest); bin++) {
        if (best != NULL && bin > bin_of(size + size / 8)) /* the rest only wastes more */
            break;
        list_node_t *node = list_first(&huge_kept_state.bins[bin]);
        for (unsigned look = 0; look < HUGE_LOOKS && node != &huge_kept_state.bins[bin]; look++) {
            huge_t *huge = LIST_ITEM(node, huge_t, bin_node);
            node = node->next;
            if (huge->range.size >= size && huge->range.size <= longest &&
                is_aligned(huge->range.start, alignment) && is_better(huge, best))
                best = huge;
        }
    }
    return best;
}

/* The oldest of a list if it was freed early enough. */
static huge_t *oldest_of(list_node_t *head, uint64_t before_ms)
{
    huge_t *huge =
        list_is_empty(head) ? NULL : LIST_ITEM(head->previous, huge_t, age_node);
    return huge != NULL && huge->freed_ms <= before_ms ? huge : NULL;
}

huge_t *huge_kept_oldest(uint64_t before_ms)
{
    uint64_t longer_ms = before_ms == UINT64_MAX || pressure_is_near() ? 0 : SITE_KEPT_MS;
    huge_t *oldest = oldest_of(&huge_kept_state.warm, before_ms);
    huge_t *other = before_ms < longer_ms
                        ? NULL
                        : oldest_of(&huge_kept_state.warm_for_longer, before_ms - longer_ms);
    if (oldest == NULL || other == NULL)
        return oldest != NULL ? oldest : other;
    if (longer_ms == 0) /* any has to go: not first those that were asked to stay */
        return oldest;
    return other->freed_ms < oldest->freed_ms ? other : oldest;
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
    list_init(&huge_kept_state.warm_for_longer);
    list_init(&huge_kept_state.idle);
}
