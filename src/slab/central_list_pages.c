/* Pages of slabs that are in use in part go back to the kernel. See central_list.h. */
#include "base/bits.h"
#include "base/count.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"
#include "slab/central_list_internal.h"
#include "keep/keep.h"

/* A run of pages of a slab on its way to the kernel. */
typedef struct leaving {
    slab_t *slab;
    uint32_t run;
    bool is_purged;
} leaving_t;

/* What may go each time the lock is taken. */
typedef struct lot {
    size_t most_bytes;
    unsigned least; /* pages of a run */
    size_t bytes;
    unsigned count;
    unsigned looks; /* at slabs */
    leaving_t leaving[RUNS_AT_ONCE];
} lot_t;

static void central_list_put_in(central_list_t *list, slab_t *slab, fill_t fill, bool in_front)
{
    if (in_front)
        list_push_front(&list->slabs[fill], &slab->node);
    else
        list_push_back(&list->slabs[fill], &slab->node);
    slab->fill = (uint8_t)fill;
}

/* Puts a slab that was looked at back: in front of all others, or behind them. */
static void central_list_put_back(central_list_t *list, slab_t *slab, bool in_front)
{
    list_remove(&slab->node);
    if (slab->span.leaving == 0) { /* nothing has changed */
        central_list_put_in(list, slab, (fill_t)slab->fill, in_front);
        return;
    }
    slab->fill = FILL_NONE;
    if (slab->free_count != 0) /* else all its free blocks are on their way */
        central_list_put_in(list, slab, slab_has_resident(slab) ? FILL_RESIDENT : FILL_PURGED,
                            in_front);
}

/* Takes runs of pages out of the slab, as many as the lot has room for. */
static void central_list_take_runs(slab_t *slab, lot_t *lot)
{
    uint32_t run;
    while (lot->count < RUNS_AT_ONCE && lot->bytes < lot->most_bytes &&
           (run = slab_take_pages(slab, lot->most_bytes - lot->bytes, lot->least)) != 0) {
        lot->leaving[lot->count++] = (leaving_t){.slab = slab, .run = run};
        lot->bytes += count_bits(run) * os_page_size();
    }
}

/* Begins at the end of the list, where the emptiest slabs stand. Afterwards the slabs of this walk
 * are in order, the fullest first: blocks are taken from the fullest, and the emptiest become
 * empty. The slabs of this walk stay behind the others. Where there are too many for one walk they
 * come to the front, so that each slab has its turn. */
static void central_list_take_pages_of(central_list_t *list, list_node_t *head, lot_t *lot)
{
    list_node_t looked[FULLNESS_STEPS];
    for (unsigned step = 0; step < FULLNESS_STEPS; step++)
        list_init(&looked[step]);
    while (!list_is_empty(head) && lot->bytes < lot->most_bytes && lot->count < RUNS_AT_ONCE &&
           lot->looks < SLABS_LOOKED_AT_ONCE) {
        slab_t *slab = LIST_ITEM(head->previous, slab_t, node);
        unsigned emptiness = slab->free_count * FULLNESS_STEPS / (slab->block_count + 1u);
        size_t free_before = slab->free_count;
        central_list_take_runs(slab, lot);
        list->statistics.free_count -= free_before - slab->free_count;
        lot->looks++;
        list_remove(&slab->node);
        list_push_front(&looked[emptiness], &slab->node);
    }
    bool in_front = lot->looks == SLABS_LOOKED_AT_ONCE;
    for (unsigned index = 0; index < FULLNESS_STEPS; index++) {
        list_node_t *from = &looked[in_front ? FULLNESS_STEPS - 1 - index : index];
        while (!list_is_empty(from))
            central_list_put_back(
                list, LIST_ITEM(in_front ? from->previous : from->next, slab_t, node), in_front);
    }
}

static void central_list_take_pages(central_list_t *list, lot_t *lot)
{
    lock_acquire(&list->lock);
    /* Where something went already, there is seldom more. */
    central_list_take_pages_of(list, &list->slabs[FILL_RESIDENT], lot);
    central_list_take_pages_of(list, &list->slabs[FILL_PURGED], lot);
    if (lot->count != 0)
        list->leaving_count++;
    lock_release(&list->lock);
}

/* Returns the bytes that went. */
static size_t central_list_return_pages(central_list_t *list, const lot_t *lot)
{
    size_t purged = 0;
    lock_acquire(&list->lock);
    list->leaving_count--;
    for (unsigned index = 0; index < lot->count; index++) {
        const leaving_t *leaving = &lot->leaving[index];
        slab_t *slab = leaving->slab;
        unsigned count = slab_return_pages(slab, leaving->run, leaving->is_purged);
        purged += leaving->is_purged ? count_bits(leaving->run) * os_page_size() : 0;
        list->statistics.free_count += count;
        central_list_returned(list, slab, slab_has_resident(slab));
    }
    list->statistics.purged_bytes += purged;
    list->statistics.ever_purged_bytes += purged;
    central_list_publish(list, central_list_class(list));
    lock_release(&list->lock);
    return purged;
}

static central_list_idle_t *central_list_idle_of(const central_list_t *list)
{
    return &central_lists_idle[list - central_lists];
}

static void central_list_set_tried(central_list_t *list, size_t bytes)
{
    __atomic_store_n(&central_list_idle_of(list)->tried_bytes, bytes, __ATOMIC_RELAXED);
}

/* Is it no use to look for pages of the class, as hardly any block has come or gone since? */
static bool central_list_is_tried(const central_list_t *list)
{
    size_t bytes = count_read(&list->published_bytes);
    size_t tried = count_read(&central_list_idle_of(list)->tried_bytes);
    return bytes < PAGES_LEAST || (tried != 0 && bytes - tried + tried / 16 <= tried / 8);
}

/* Gives back some `most_bytes` in runs of `least` pages or more. Returns bytes. The caller holds no
 * lock. */
static size_t central_list_purge_some(central_list_t *list, size_t most_bytes, unsigned least)
{
    size_t sum = 0;
    size_t more = 1;
    bool has_more = true;
    while (more != 0 && sum < most_bytes) {
        lot_t lot = {.most_bytes = most_bytes - sum, .least = least};
        central_list_take_pages(list, &lot);
        for (unsigned index = 0; index < lot.count; index++)
            lot.leaving[index].is_purged =
                slab_purge_pages(lot.leaving[index].slab, lot.leaving[index].run);
        more = lot.count == 0 ? 0 : central_list_return_pages(list, &lot);
        sum += more;
        has_more = lot.looks <= lot.count * LOOKS_FOR_RUN;
    }
    central_list_set_tried(list, has_more ? 0 : count_read(&list->published_bytes));
    return sum;
}

/* How many bytes of the class nobody has wanted for as long as free memory waits. Begins a new
 * measurement of the low water. */
static size_t central_list_idle_bytes(central_list_t *list, uint64_t now_ms)
{
    unsigned class = central_list_class(list);
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    lock_acquire(&list->lock);
    size_t free_count = list->statistics.free_count;
    size_t low = smaller_of(list->least_free, free_count);
    budget_t *budget = central_list_budget(list);
    size_t count = budget_idle(budget, low, free_count, now_ms, delay_ms, keep_wait_ms());
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
    return __atomic_load_n(&central_lists[class].is_sparse, __ATOMIC_RELAXED);
}

/* Slabs in which nothing was found are not looked through again at once. */
static void central_list_look_at(central_list_t *list, uint64_t now_ms)
{
    central_list_idle_t *idle = central_list_idle_of(list);
    size_t bytes = central_list_idle_bytes(list, now_ms);
    uint64_t pause_ms = larger_of((size_t)options.purge_delay_ms, TRIM_PERIOD_MS) / 2;
    bool is_worth_it =
        bytes >= PAGES_WORTH_IT && (now_ms - idle->walked_ms >= pause_ms || pressure_is_near());
    if (is_worth_it)
        idle->walked_ms = now_ms;
    if (now_ms - idle->tried_ms >= pause_ms) { /* other blocks may have come and gone */
        idle->tried_ms = now_ms;
        central_list_set_tried(list, 0);
    }
    if (is_worth_it || count_read(&idle->due_bytes) != 0)
        /* relaxed: a guess, here and below */
        __atomic_store_n(&idle->due_bytes, is_worth_it ? bytes : 0, __ATOMIC_RELAXED);
}

void central_lists_look(uint64_t now_ms)
{
    size_t due = 0;
    for (central_list_t *list = central_lists; list < central_lists + CLASS_COUNT; list++) {
        if (count_read(&list->statistics.block_count) != 0) /* else its pages stay untouched */
            central_list_look_at(list, now_ms);
        due += count_read(&central_list_idle_of(list)->due_bytes);
    }
    __atomic_store_n(&central_lists_totals.due_bytes, due, __ATOMIC_RELAXED);
}

size_t central_lists_purge_due(size_t most_bytes)
{
    size_t sum = 0;
    for (central_list_t *list = central_lists;
         list < central_lists + CLASS_COUNT && sum < most_bytes; list++) {
        size_t *due = &central_list_idle_of(list)->due_bytes;
        size_t wanted = smaller_of(count_read(due), most_bytes - sum);
        if (wanted == 0)
            continue;
        size_t purged = central_list_purge_some(list, wanted, 1);
        size_t left = count_read(due);
        left = purged < wanted ? 0 : left - smaller_of(left, purged);
        __atomic_store_n(due, left, __ATOMIC_RELAXED);
        sum += purged;
    }
    if (sum < most_bytes)
        __atomic_store_n(&central_lists_totals.due_bytes, 0, __ATOMIC_RELAXED);
    return sum;
}

/* One class after another has its turn. */
size_t central_lists_purge_pages(size_t most_bytes)
{
    static size_t next;
    size_t sum = 0;
    size_t first = count_read(&next);
    unsigned classes = size_classes_made();
    for (size_t step = 0; step < classes && sum < most_bytes; step++) {
        central_list_t *list = &central_lists[(first + step) % classes];
        if (central_list_is_tried(list))
            continue;
        sum += central_list_purge_some(list, most_bytes - sum, RUN_LEAST);
        __atomic_store_n(&next, first + step, __ATOMIC_RELAXED);
    }
    return sum;
}

size_t central_lists_purge_all_pages(void)
{
    size_t bytes = 0;
    for (central_list_t *list = central_lists; list < central_lists + CLASS_COUNT; list++) {
        unsigned class = central_list_class(list);
        /* Not more than there is now: a hook of the program may free blocks meanwhile. */
        size_t count = central_list_statistics(class).free_count;
        if (count != 0)
            bytes += central_list_purge_some(list, count * size_classes[class].size, 1);
    }
    return bytes;
}
