/* Central lists. See central_list.h.
 *
 * A slab stands in one of two lists of its class while it has free blocks. One that was full and
 * gets a block back goes to the front: nearly full slabs are filled again first, and the emptier
 * ones have time to empty. For the same reason upkeep sorts slabs by how full they are when it
 * looks for pages to give back. Slabs all of whose free blocks lie in pages that were given back
 * stand apart and are filled last: pages that hold memory serve before those that would be faulted
 * in. The last slab to become entirely free is kept aside for a while; it will be wanted again. */
#include "slab/central_list.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "base/count.h"
#include "os/fatal.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/processors.h"
#include "options/tuning.h"
#include "slab/central_list_internal.h"
#include "slab/slab.h"
#include "keep/keep.h"

/* Blocks that are sorted at a time: a magazine has no more. */
#define GIVEN_AT_ONCE 128

central_list_t central_lists[GROUPS_MOST][CLASS_COUNT] SPARSE;
central_list_idle_t central_lists_idle[GROUPS_MOST][CLASS_COUNT] SPARSE;
central_lists_totals_t central_lists_totals;

static void central_list_set_empty(central_list_t *list, slab_t *slab)
{
    MUST(lock_is_held(&list->lock));
    /* relaxed: read without the lock by central_lists_trim, which only looks */
    __atomic_store_n(&list->empty, slab, __ATOMIC_RELAXED);
}

/* The slab to be filled next; NULL: none has free blocks. */
static slab_t *central_list_first_slab(central_list_t *list)
{
    for (unsigned fill = FILL_COUNT; fill-- > 0;)
        if (!list_is_empty(&list->slabs[fill]))
            return LIST_ITEM(list->slabs[fill].next, slab_t, node);
    return NULL;
}

void central_lists_create(void)
{
    /* The rest is zero, and stays untouched in short processes for classes that they do not use. */
    for (unsigned group = 0; config_checked && group < GROUPS_MOST; group++)
        for (unsigned class = 0; class < CLASS_COUNT; class++)
            central_lists[group][class].lock.rank = LOCK_CLASS;
}

void central_list_publish(central_list_t *list, unsigned class)
{
    MUST(lock_is_held(&list->lock));
    size_t bytes = central_list_bytes(list, class, list->statistics.free_count);
    shared_total_publish(&central_lists_totals.free, &list->published_bytes, bytes, CLASS_COUNT);
}

static void central_list_note_fewest(central_list_t *list)
{
    list->least_free = smaller_of(list->least_free, list->statistics.free_count);
}

/* A slab with free blocks; NULL: there is none, nor memory for another if the list `may_grow`. */
static slab_t *central_list_provide_slab(central_list_t *list, unsigned class, bool may_grow)
{
    MUST(lock_is_held(&list->lock));
    slab_t *slab = central_list_first_slab(list);
    if (slab != NULL)
        return slab;
    slab = list->empty;
    central_list_set_empty(list, NULL);
    if (slab == NULL) {
        slab = may_grow ? slab_create(class) : NULL;
        if (slab == NULL)
            return NULL;
        slab->fill = FILL_NONE;
        /* relaxed: read without the lock by central_list_of_block */
        __atomic_store_n(&slab->group, (uint8_t)((list - central_lists[0]) / CLASS_COUNT),
                         __ATOMIC_RELAXED);
        list->statistics.slab_count++;
        list->statistics.unit_count += (uint32_t)slab->span.unit_count;
        count_add(&list->statistics.block_count, slab->block_count);
        list->statistics.free_count += slab->block_count;
    }
    central_list_place(list, slab, slab->purged == 0);
    return slab;
}

/* `may_grow`: also from a new slab. */
static unsigned central_list_take_blocks(central_list_t *list, unsigned class, void **top,
                                         unsigned count, bool may_grow)
{
    unsigned taken = 0;
    size_t all_came_back = 0;
    slab_t *slab;
    lock_acquire(&list->lock);
    while (taken < count && (slab = central_list_provide_slab(list, class, may_grow)) != NULL) {
        size_t purged_before = slab_purged_bytes(slab);
        taken += slab_take(slab, top - taken, count - taken);
        size_t came_back = purged_before - slab_purged_bytes(slab);
        list->statistics.purged_bytes -= came_back;
        all_came_back += came_back;
        if (slab->free_count == 0)
            central_list_leave(slab);
        else /* all that hold memory are taken if there were too few, and no page came back */
            central_list_place(list, slab, taken == count || came_back != 0);
    }
    list->statistics.free_count -= taken;
    central_list_note_fewest(list);
    central_list_publish(list, class);
    lock_release(&list->lock);
    if (UNLIKELY(all_came_back != 0))
        keep_note_slab_pages(all_came_back);
    return taken;
}

unsigned central_list_take(unsigned class, void **top, unsigned count)
{
    unsigned taken =
        central_list_take_blocks(&central_lists[processor_group()][class], class, top, count, true);
    /* Where there is no memory for a slab, what other groups of processors have serves. */
    for (unsigned group = 0; UNLIKELY(taken == 0) && group < processor_groups_now(); group++)
        taken = central_list_take_blocks(&central_lists[group][class], class, top, count, false);
    return taken;
}

static void central_list_destroy_slab(central_list_t *list, slab_t *slab, uint64_t now_ms)
{
    list->statistics.slab_count--;
    list->statistics.unit_count -= (uint32_t)slab->span.unit_count;
    count_subtract(&list->statistics.block_count, slab->block_count);
    list->statistics.free_count -= slab->block_count;
    central_list_note_fewest(list);
    list->statistics.purged_bytes -= slab_purged_bytes(slab);
    slab_destroy(slab, now_ms);
}

static void central_list_slab_emptied(central_list_t *list, slab_t *slab)
{
    central_list_leave(slab);
    if (list->empty == NULL) {
        central_list_set_empty(list, slab);
        list->empty_is_old = false;
    } else {
        central_list_destroy_slab(list, slab, os_clock_ms());
    }
}

void central_list_returned(central_list_t *list, slab_t *slab, bool has_resident)
{
    if (slab->free_count == slab->block_count)
        central_list_slab_emptied(list, slab);
    else
        central_list_place(list, slab, has_resident);
}

/* Puts back the blocks that lie in the slab of the first; see slab_give. */
static unsigned central_list_give_run(central_list_t *list, void *const *blocks, unsigned count,
                                      slab_verdict_t *result)
{
    MUST(lock_is_held(&list->lock));
    slab_t *slab = slab_of(blocks[0]);
    if (UNLIKELY(slab == NULL || list != &central_lists[slab->group][slab->class])) {
        *result = ALREADY_FREE; /* a block freed twice may outlive its slab in a magazine */
        return 0;
    }
    unsigned given = slab_give(slab, blocks, count, result);
    if (given == 0)
        return 0;
    list->statistics.free_count += given;
    central_list_returned(list, slab, true); /* they were in use: their pages are there */
    return given;
}

/* Ends the program. No lock is held: its SIGABRT handler may allocate. */
static COLD _Noreturn void central_list_refuse(slab_verdict_t result, unsigned class,
                                               const void *ptr)
{
    if (result == NOT_A_BLOCK)
        fatal_inside_block("free", ptr, size_classes[class].size);
    fatal_already_free("free", ptr, size_classes[class].size);
}

/* The list that the block belongs to, as far as can be seen without its lock: if the program holds
 * the block, its slab stays. */
static central_list_t *central_list_of_block(const void *block, unsigned class)
{
    if (LIKELY(processor_groups_now() == 1))
        return &central_lists[0][class];
    const slab_t *slab = slab_of(block);
    unsigned group = slab == NULL ? 0 : __atomic_load_n(&slab->group, __ATOMIC_RELAXED);
    return &central_lists[group % GROUPS_MOST][class];
}

/* Puts back those in front that belong to one list, at least one if `*result` stays IN_USE. Returns
 * how many. */
static unsigned central_list_give_to_one(unsigned class, void *const *blocks, unsigned count,
                                         bool are_idle, slab_verdict_t *result)
{
    central_list_t *list = central_list_of_block(blocks[0], class);
    unsigned given = 0;
    lock_acquire(&list->lock);
    while (given < count && *result == IN_USE &&
           (given == 0 || central_list_of_block(blocks[given], class) == list))
        given += central_list_give_run(list, blocks + given, count - given, result);
    if (are_idle) {
        list->least_free = smaller_of(list->least_free + given, list->statistics.free_count);
        budget_add(central_list_budget(list), given);
    }
    central_list_publish(list, class);
    lock_release(&list->lock);
    return given;
}

static void central_list_give_in_order(unsigned class, void *const *blocks, unsigned count,
                                       bool are_idle)
{
    slab_verdict_t result = IN_USE;
    unsigned given = 0;
    while (given < count && result == IN_USE)
        given += central_list_give_to_one(class, blocks + given, count - given, are_idle, &result);
    if (UNLIKELY(result != IN_USE))
        central_list_refuse(result, class, blocks[given]);
}

/* Blocks of several groups, sorted by them: each list is locked once, and not for each block. */
static NOINLINE void central_list_give_by_group(unsigned class, void *const *blocks, unsigned count,
                                                bool are_idle)
{
    void *sorted[GIVEN_AT_ONCE];
    uint8_t groups[GIVEN_AT_ONCE];
    unsigned ends[GROUPS_MOST + 1] = {0};
    for (unsigned index = 0; index < count; index++) {
        const central_list_t *list = central_list_of_block(blocks[index], class);
        groups[index] = (uint8_t)((list - central_lists[0]) / CLASS_COUNT);
        ends[groups[index] + 1]++;
    }
    for (unsigned group = 0; group < GROUPS_MOST; group++)
        ends[group + 1] += ends[group];
    for (unsigned index = 0; index < count; index++)
        sorted[ends[groups[index]]++] = blocks[index];
    central_list_give_in_order(class, sorted, count, are_idle);
}

void central_list_give_as(unsigned class, void *const *blocks, unsigned count, bool are_idle)
{
    if (LIKELY(processor_groups_now() == 1 || count == 1)) {
        central_list_give_in_order(class, blocks, count, are_idle);
        return;
    }
    for (unsigned given = 0; given < count; given += GIVEN_AT_ONCE)
        central_list_give_by_group(class, blocks + given,
                                   (unsigned)smaller_of(count - given, GIVEN_AT_ONCE), are_idle);
}

bool central_list_is_busy(unsigned class)
{
    return lock_looks_taken(&central_lists[processor_group()][class].lock);
}

void central_lists_trim(uint64_t now_ms, bool all)
{
    for (central_list_t *list = central_lists[0]; list < central_lists_end(); list++) {
        if (__atomic_load_n(&list->empty, __ATOMIC_RELAXED) == NULL) /* a look is enough */
            continue;
        lock_acquire(&list->lock);
        if (list->empty != NULL && (all || list->empty_is_old)) {
            central_list_destroy_slab(list, list->empty, now_ms);
            central_list_set_empty(list, NULL);
            central_list_publish(list, central_list_class(list));
        }
        list->empty_is_old = true;
        lock_release(&list->lock);
    }
}

static central_statistics_t central_list_statistics_of(central_list_t *list)
{
    lock_acquire(&list->lock);
    central_statistics_t copy = list->statistics;
    lock_release(&list->lock);
    return copy;
}

central_statistics_t central_list_statistics(unsigned class)
{
    central_statistics_t sum = central_list_statistics_of(&central_lists[0][class]);
    for (unsigned group = 1; group < processor_groups_now(); group++) {
        central_statistics_t other = central_list_statistics_of(&central_lists[group][class]);
        sum.slab_count += other.slab_count;
        sum.unit_count += other.unit_count;
        sum.block_count += other.block_count;
        sum.free_count += other.free_count;
        sum.purged_bytes += other.purged_bytes;
        sum.ever_purged_bytes += other.ever_purged_bytes;
    }
    return sum;
}

void central_lists_lock(unsigned class)
{
    for (unsigned group = 0; group < GROUPS_MOST; group++)
        lock_acquire(&central_lists[group][class].lock);
}

void central_lists_unlock(unsigned class)
{
    for (unsigned group = 0; group < GROUPS_MOST; group++)
        lock_release(&central_lists[group][class].lock);
}

static bool central_list_is_valid(central_list_t *list, unsigned class)
{
    size_t slab_count = 0;
    size_t free_count = 0;
    size_t purged_bytes = 0;
    for (unsigned fill = 0; fill < FILL_COUNT; fill++) {
        list_node_t *head = &list->slabs[fill];
        for (list_node_t *node = list_first(head); node != head; node = node->next) {
            const slab_t *slab = LIST_ITEM(node, slab_t, node);
            if (slab->class != class || slab->free_count == 0 || slab->fill != fill ||
                (fill == FILL_PURGED && slab_has_resident(slab)) || !slab_is_valid(slab))
                return false;
            slab_count++;
            free_count += slab->free_count;
            purged_bytes += slab_purged_bytes(slab);
        }
    }
    const slab_t *empty = list->empty;
    if (empty != NULL) {
        if (empty->class != class || empty->free_count != empty->block_count)
            return false;
        slab_count++;
        free_count += empty->free_count;
        purged_bytes += slab_purged_bytes(empty);
    }
    const central_statistics_t *counted = &list->statistics;
    /* A slab whose free blocks are all on their way is in no list, and may have purged pages. */
    bool is_counted = purged_bytes == counted->purged_bytes ||
                      (list->leaving_count != 0 && purged_bytes < counted->purged_bytes);
    return slab_count <= counted->slab_count && free_count == counted->free_count &&
           free_count <= counted->block_count && is_counted;
}

bool central_lists_are_valid(void)
{
    bool are_valid = true;
    for (central_list_t *list = central_lists[0]; list < central_lists_end(); list++) {
        lock_acquire(&list->lock);
        are_valid &= central_list_is_valid(list, central_list_class(list));
        lock_release(&list->lock);
    }
    return are_valid;
}

void central_lists_at_fork(fork_phase_t phase)
{
    static const central_list_t *locked_end;
    if (phase == FORK_PREPARE)
        locked_end = central_lists_end();
    const central_list_t *end = phase == EXIT_LOOK ? central_lists_end() : locked_end;
    for (central_list_t *list = central_lists[0]; list < end; list++)
        lock_at_fork(&list->lock, phase);
}
