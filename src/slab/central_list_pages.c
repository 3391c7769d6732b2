/* Pages of slabs that are in use in part go back to the kernel. See central_list.h. */
#include "base/bits.h"
#include "os/os.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "slab/central_list_parts.h"
#include "span/keep.h"

/* What may go while the lock is held once, and what has gone. */
typedef struct lot {
    size_t most_bytes;
    size_t purged;
    unsigned count; /* slabs */
    unsigned looks;
} lot_t;

/* Puts a slab that was looked at back: in front of all others, or behind them. */
static void put_back(central_list_t *list, slab_t *slab, bool in_front)
{
    fill_t fill = slab_has_resident(slab) ? FILL_RESIDENT : FILL_PURGED;
    list_remove(&slab->node);
    if (in_front)
        list_push_front(&list->slabs[fill], &slab->node);
    else
        list_push_back(&list->slabs[fill], &slab->node);
    slab->fill = (uint8_t)fill;
}

/* The emptiest first, which stand behind the others. Those that were looked at are in order
 * afterwards: so blocks are taken from the fullest slabs, and the emptiest become empty. They stay
 * behind those that were not. Where there are too many for one walk they come to the front, so that
 * each has its turn. */
static void purge_some_of(central_list_t *list, list_node_t *head, lot_t *lot)
{
    list_node_t looked[FULLNESS_STEPS];
    for (unsigned step = 0; step < FULLNESS_STEPS; step++)
        list_init(&looked[step]);
    while (!list_is_empty(head) && lot->purged < lot->most_bytes &&
           lot->count < SLABS_PURGED_AT_ONCE && lot->looks < SLABS_LOOKED_AT_ONCE) {
        slab_t *slab = LIST_ITEM(head->previous, slab_t, node);
        size_t more = slab_purge_pages(slab, lot->most_bytes - lot->purged);
        unsigned emptiness = slab->free_count * FULLNESS_STEPS / (slab->block_count + 1u);
        lot->purged += more;
        lot->count += more != 0;
        lot->looks++;
        central_list_leave(slab);
        list_push_front(&looked[emptiness], &slab->node);
    }
    bool in_front = lot->looks == SLABS_LOOKED_AT_ONCE;
    for (unsigned index = 0; index < FULLNESS_STEPS; index++) {
        list_node_t *from = &looked[in_front ? FULLNESS_STEPS - 1 - index : index];
        while (!list_is_empty(from))
            put_back(list, LIST_ITEM(in_front ? from->previous : from->next, slab_t, node),
                     in_front);
    }
}

/* Returns bytes. The caller holds the lock. */
static size_t purge_some(central_list_t *list, size_t most_bytes)
{
    lot_t lot = {.most_bytes = most_bytes};
    /* Where something went already, there is seldom more. */
    purge_some_of(list, &list->slabs[FILL_RESIDENT], &lot);
    purge_some_of(list, &list->slabs[FILL_PURGED], &lot);
    list->statistics.purged_bytes += lot.purged;
    list->statistics.ever_purged_bytes += lot.purged;
    return lot.purged;
}

/* How many bytes of the class nobody has wanted for as long as free memory waits. Begins a new
 * measurement of the low water. */
static size_t idle_bytes(central_list_t *list, uint64_t now_ms)
{
    unsigned class = central_list_class(list);
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    uint64_t wait_ms = smaller_of(delay_ms, keep_wait_ms());
    lock_acquire(&list->lock);
    size_t free_count = list->statistics.free_count;
    size_t low = smaller_of(list->least_free, free_count);
    budget_t *budget = central_list_budget(list);
    size_t count = budget_idle(budget, low, free_count, now_ms, delay_ms, wait_ms);
    size_t bytes = central_list_bytes(list, class, count);
    size_t resident = central_list_bytes(list, class, free_count);
    size_t taken = (list->statistics.block_count - free_count) * size_classes[class].size;
    /* relaxed: who asks only wants to know what is likely */
    __atomic_store_n(&list->is_sparse, resident >= SPARSE_CLASS_LEAST && resident > taken,
                     __ATOMIC_RELAXED);
    list->least_free = free_count;
    lock_release(&list->lock);
    return bytes;
}

bool central_list_is_sparse(unsigned class)
{
    return __atomic_load_n(&central_lists[processor_group()][class].is_sparse, __ATOMIC_RELAXED);
}

static size_t purge_pages(central_list_t *list, size_t most_bytes, bool is_patient)
{
    size_t sum = 0;
    size_t more = 1;
    while (more != 0 && sum < most_bytes) {
        lock_acquire(&list->lock);
        more = purge_some(list, most_bytes - sum);
        central_list_tell(list, central_list_class(list));
        lock_release(&list->lock);
        sum += more;
        if (!is_patient)
            break;
    }
    return sum;
}

/* Slabs in which nothing was found are not looked through again at once. */
static size_t purge_idle_pages(central_list_t *list, uint64_t now_ms, bool is_patient)
{
    uint64_t *walked_ms = &central_lists_idle[0][list - central_lists[0]].walked_ms;
    size_t bytes = idle_bytes(list, now_ms);
    uint64_t pause_ms = larger_of((size_t)options.purge_delay_ms, TRIM_PERIOD_MS) / 2;
    if (bytes < (is_patient ? PAGES_WORTH_PATIENCE : PAGES_WORTH_IT) ||
        (now_ms - *walked_ms < pause_ms && !pressure_is_near()))
        return 0;
    size_t purged = purge_pages(list, bytes, is_patient);
    if (is_patient || purged < bytes / 2)
        *walked_ms = now_ms;
    return purged;
}

size_t central_lists_purge_pages(uint64_t now_ms, bool is_patient)
{
    size_t bytes = 0;
    for (central_list_t *list = central_lists[0]; list < central_lists_end(); list++)
        bytes += purge_idle_pages(list, now_ms, is_patient);
    return bytes;
}

size_t central_lists_purge_all_pages(void)
{
    size_t bytes = 0;
    for (central_list_t *list = central_lists[0]; list < central_lists_end(); list++)
        if (central_list_statistics(central_list_class(list)).free_count != 0)
            bytes += purge_pages(list, SIZE_MAX, true);
    return bytes;
}

/* Bytes that nobody has wanted since the last call, where most blocks of the class are free. */
static size_t excess_of(central_list_t *list)
{
    lock_acquire(&list->lock);
    size_t fewest = smaller_of(list->fewest_free, list->statistics.free_count);
    size_t bytes = central_list_bytes(list, central_list_class(list), fewest);
    bool is_most = 2 * fewest > list->statistics.block_count;
    list->fewest_free = list->statistics.free_count;
    lock_release(&list->lock);
    return is_most && bytes >= PAGES_WORTH_IT ? bytes : 0;
}

size_t central_lists_make_up(size_t most_bytes)
{
    size_t bytes = 0;
    for (central_list_t *list = central_lists[0];
         list < central_lists_end() && bytes < most_bytes; list++)
        bytes += purge_pages(list, smaller_of(excess_of(list), most_bytes - bytes), true);
    return bytes;
}
