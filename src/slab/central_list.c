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
#include "slab/central_list_internal.h"
#include "slab/slab.h"
#include "keep/keep.h"

central_list_t central_lists[CLASS_COUNT] SPARSE;
central_list_idle_t central_lists_idle[CLASS_COUNT] SPARSE;
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
    for (unsigned class = 0; config_checked && class < CLASS_COUNT; class++)
        central_lists[class].lock.rank = LOCK_CLASS;
}

void central_list_publish(central_list_t *list, unsigned class)
{
    MUST(lock_is_held(&list->lock));
    size_t bytes = central_list_bytes(list, class, list->statistics.free_count);
    /* In this order: for a moment use seems lower, which is forgotten, and not higher. */
    shared_total_publish(&central_lists_totals.purged, &list->published_purged,
                         list->statistics.purged_bytes, CLASS_COUNT);
    shared_total_publish(&central_lists_totals.free, &list->published_bytes, bytes, CLASS_COUNT);
}

static void central_list_note_fewest(central_list_t *list)
{
    list->least_free = smaller_of(list->least_free, list->statistics.free_count);
}

/* A slab with free blocks; NULL: there is none, nor memory for another. */
static slab_t *central_list_provide_slab(central_list_t *list, unsigned class)
{
    MUST(lock_is_held(&list->lock));
    slab_t *slab = central_list_first_slab(list);
    if (slab != NULL)
        return slab;
    slab = list->empty;
    central_list_set_empty(list, NULL);
    if (slab == NULL) {
        slab = slab_create(class);
        if (slab == NULL)
            return NULL;
        slab->fill = FILL_NONE;
        list->statistics.slab_count++;
        list->statistics.unit_count += (uint32_t)slab->span.unit_count;
        count_add(&list->statistics.block_count, slab->block_count);
        list->statistics.free_count += slab->block_count;
    }
    central_list_place(list, slab, slab->purged == 0);
    return slab;
}

unsigned central_list_take(unsigned class, void **top, unsigned count)
{
    central_list_t *list = &central_lists[class];
    unsigned taken = 0;
    size_t all_came_back = 0;
    slab_t *slab;
    lock_acquire(&list->lock);
    while (taken < count && (slab = central_list_provide_slab(list, class)) != NULL) {
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
    if (UNLIKELY(slab == NULL || list != &central_lists[slab->class])) {
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

void central_list_give_as(unsigned class, void *const *blocks, unsigned count, bool are_idle)
{
    central_list_t *list = &central_lists[class];
    slab_verdict_t result = IN_USE;
    unsigned given = 0;
    lock_acquire(&list->lock);
    while (given < count && result == IN_USE)
        given += central_list_give_run(list, blocks + given, count - given, &result);
    if (are_idle) {
        list->least_free = smaller_of(list->least_free + given, list->statistics.free_count);
        budget_add(central_list_budget(list), given);
    }
    central_list_publish(list, class);
    lock_release(&list->lock);
    if (UNLIKELY(result != IN_USE))
        central_list_refuse(result, class, blocks[given]);
}

bool central_list_is_busy(unsigned class)
{
    return lock_looks_taken(&central_lists[class].lock);
}

void central_lists_trim(uint64_t now_ms, bool all)
{
    for (central_list_t *list = central_lists; list < central_lists + CLASS_COUNT; list++) {
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

central_statistics_t central_list_statistics(unsigned class)
{
    central_list_t *list = &central_lists[class];
    lock_acquire(&list->lock);
    central_statistics_t copy = list->statistics;
    lock_release(&list->lock);
    return copy;
}

void central_list_lock(unsigned class)
{
    lock_acquire(&central_lists[class].lock);
}

void central_list_unlock(unsigned class)
{
    lock_release(&central_lists[class].lock);
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
    for (central_list_t *list = central_lists; list < central_lists + CLASS_COUNT; list++) {
        lock_acquire(&list->lock);
        are_valid &= central_list_is_valid(list, central_list_class(list));
        lock_release(&list->lock);
    }
    return are_valid;
}

void central_lists_at_fork(fork_phase_t phase)
{
    for (unsigned class = 0; class < CLASS_COUNT; class++)
        lock_at_fork(&central_lists[class].lock, phase);
}
