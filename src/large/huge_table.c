/* The table of huge blocks. See huge_table.h. */
#include "large/huge_table.h"

#include "base/bits.h"
#include "base/count.h"
#include "os/meta.h"

huge_table_t huge_table = {.lock = LOCK_INITIAL(LOCK_HUGE)};

huge_t *huge_table_at(const void *ptr)
{
    return (huge_t *)(void *)address_tree_at(&huge_table.tree, ptr);
}

huge_t *huge_table_find(const void *ptr)
{
    huge_t *huge = huge_table_at(ptr);
    return huge != NULL && huge->range.start == ptr ? huge : NULL;
}

void huge_table_insert(huge_t *huge)
{
    address_tree_insert(&huge_table.tree, &huge->range);
    huge_table.statistics.mapped_bytes += huge->range.size;
}

void huge_table_remove(huge_t *huge)
{
    address_tree_remove(&huge_table.tree, &huge->range);
    huge_table.statistics.mapped_bytes -= huge->range.size;
}

void huge_table_count_live(const huge_t *huge, bool is_new)
{
    count_add(&huge_table.statistics.live_bytes, is_new ? huge->range.size : -huge->range.size);
    huge_table.statistics.live_count += is_new ? (size_t)1 : (size_t)-1;
}

void huge_table_set_mapping(huge_t *huge)
{
    huge->mapping = __atomic_add_fetch(&huge_table.mapping_count, 1, __ATOMIC_RELAXED);
}

bool huge_table_cut(huge_t *huge, size_t size)
{
    huge_t *rest = meta_alloc(sizeof *rest);
    if (rest == NULL)
        return false;
    huge_table_remove(huge);
    *rest = *huge;
    rest->range.start += size;
    rest->range.size -= size;
    huge->range.size = size;
    huge_table_insert(huge);
    huge_table_insert(rest);
    huge_kept_split(huge, rest);
    return true;
}

/* The kept block behind that was cut off the same mapping, or NULL. */
static huge_t *huge_table_rest_behind(const huge_t *huge)
{
    huge_t *next = huge_table_at(huge->range.start + huge->range.size);
    return next != NULL && next->mapping == huge->mapping && huge_is_kept(next) ? next : NULL;
}

size_t huge_table_absorb(huge_t *huge, size_t new_size)
{
    size_t fresh = 0;
    huge_t *next;
    while (huge->range.size < new_size && (next = huge_table_rest_behind(huge)) != NULL) {
        size_t taken = smaller_of(next->range.size, new_size - huge->range.size);
        fresh += taken - smaller_of(taken, next->kept);
        huge_table_count_live(huge, false);
        huge_table_remove(huge);
        huge_table_remove(next);
        huge_kept_cut_start(next, taken);
        huge->range.size += taken;
        huge_table_insert(huge);
        huge_table_count_live(huge, true);
        if (next->range.size != 0)
            huge_table_insert(next);
        else
            meta_free(next, sizeof *next);
    }
    return fresh;
}

size_t huge_cached_size(void)
{
    huge_statistics_t now = huge_statistics();
    return now.mapped_bytes - now.live_bytes;
}

size_t huge_live_units(void)
{
    return count_read(&huge_table.statistics.live_bytes) >> UNIT_SHIFT;
}

huge_statistics_t huge_statistics(void)
{
    lock_acquire(&huge_table.lock);
    huge_statistics_t copy = huge_table.statistics;
    copy.cached_bytes = huge_kept_totals.bytes;
    lock_release(&huge_table.lock);
    return copy;
}
