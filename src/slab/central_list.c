/* Central lists. See central_list.h.
 *
 * A slab stands in one of two lists of its class while it has free blocks. One that was full and
 * gets a block back goes to the front: nearly full slabs are filled again first, and the emptier
 * ones have time to empty. Those of which pages were given back stand apart and are filled last:
 * pages that hold memory serve before those that would be faulted in. The last slab to become
 * entirely free is kept aside for a while; it will be wanted again. */
#include "slab/central_list.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "harden/fatal.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "slab/slab.h"

typedef enum fill {
    FILL_RESIDENT,
    FILL_PURGED, /* pages of it were given back */
    FILL_COUNT,
    FILL_NONE = FILL_COUNT, /* in no list */
} fill_t;

typedef struct central_list {
    lock_t lock;
    bool empty_is_old; /* the spare slab was already there at the last trim */
    slab_t *empty;     /* one entirely free slab, kept aside */
    list_node_t slabs[FILL_COUNT]; /* with free blocks */
    central_statistics_t statistics;
    size_t least_free; /* blocks: the fewest since the last look at pages */
    size_t told_bytes; /* its part of central_lists_told_bytes */
} __attribute__((aligned(CACHE_LINE))) central_list_t;

static central_list_t lists[CLASS_COUNT];
uint64_t central_lists_told_bytes;

static void set_empty(central_list_t *list, slab_t *slab)
{
    MUST(lock_is_held(&list->lock));
    /* relaxed: read without the lock by central_lists_trim, which only looks */
    __atomic_store_n(&list->empty, slab, __ATOMIC_RELAXED);
}

/* The slab to be filled next; NULL: none has free blocks. */
static slab_t *first_slab(central_list_t *list)
{
    for (unsigned fill = 0; fill < FILL_COUNT; fill++)
        if (!list_is_empty(&list->slabs[fill]))
            return LIST_ITEM(list->slabs[fill].next, slab_t, node);
    return NULL;
}

static fill_t fill_of(const slab_t *slab)
{
    return slab->purged != 0 ? FILL_PURGED : FILL_RESIDENT;
}

/* Takes the slab out of its list. */
static void leave(slab_t *slab)
{
    list_remove(&slab->node);
    slab->fill = FILL_NONE;
}

/* Puts a slab with free blocks where it belongs. */
static void place(central_list_t *list, slab_t *slab)
{
    fill_t fill = fill_of(slab);
    if (LIKELY(slab->fill == (uint8_t)fill))
        return;
    list_remove(&slab->node);
    list_push_front(&list->slabs[fill], &slab->node);
    slab->fill = (uint8_t)fill;
}

void central_lists_create(void)
{
    /* The rest is zero, and stays untouched for the classes that a program does not use. */
    for (unsigned class = 0; config_checked && class < CLASS_COUNT; class++)
        lists[class].lock.rank = LOCK_CLASS;
}

/* Bytes of free blocks that may still hold memory, counted from so many free ones. */
static size_t bytes_of(const central_list_t *list, unsigned class, size_t free_count)
{
    size_t bytes = free_count * size_classes[class].size;
    return bytes - smaller_of(bytes, list->statistics.purged_bytes);
}

static void tell(central_list_t *list, unsigned class)
{
    MUST(lock_is_held(&list->lock));
    size_t bytes = bytes_of(list, class, list->statistics.free_count);
    size_t change = bytes - list->told_bytes;
    if (change + CENTRAL_UNTOLD <= 2 * CENTRAL_UNTOLD) /* either way */
        return;
    counter_add(&central_lists_told_bytes, change);
    list->told_bytes = bytes;
}

/* A slab with free blocks; NULL: there is no memory for another. */
static slab_t *provide_slab(central_list_t *list, unsigned class)
{
    MUST(lock_is_held(&list->lock));
    slab_t *slab = first_slab(list);
    if (slab != NULL)
        return slab;
    slab = list->empty;
    set_empty(list, NULL);
    if (slab == NULL) {
        slab = slab_create(class);
        if (slab == NULL)
            return NULL;
        slab->fill = FILL_NONE;
        list->statistics.slab_count++;
        list->statistics.block_count += slab->block_count;
        list->statistics.free_count += slab->block_count;
    }
    place(list, slab);
    return slab;
}

unsigned central_list_take(unsigned class, void **top, unsigned count)
{
    central_list_t *list = &lists[class];
    unsigned taken = 0;
    slab_t *slab;
    lock_acquire(&list->lock);
    while (taken < count && (slab = provide_slab(list, class)) != NULL) {
        size_t purged_before = slab_purged_bytes(slab);
        taken += slab_take(slab, top - taken, count - taken);
        list->statistics.purged_bytes -= purged_before - slab_purged_bytes(slab);
        if (slab->free_count == 0)
            leave(slab);
        else
            place(list, slab);
    }
    list->statistics.free_count -= taken;
    list->least_free = smaller_of(list->least_free, list->statistics.free_count);
    tell(list, class);
    lock_release(&list->lock);
    return taken;
}

static void destroy_slab(central_list_t *list, slab_t *slab, uint64_t now_ms)
{
    list->statistics.slab_count--;
    list->statistics.block_count -= slab->block_count;
    list->statistics.free_count -= slab->block_count;
    list->statistics.purged_bytes -= slab_purged_bytes(slab);
    slab_destroy(slab, now_ms);
}

static void slab_emptied(central_list_t *list, slab_t *slab)
{
    leave(slab);
    if (list->empty == NULL) {
        set_empty(list, slab);
        list->empty_is_old = false;
    } else {
        destroy_slab(list, slab, os_clock_ms());
    }
}

/* Puts back the blocks that lie in the slab of the first; see slab_give. */
static unsigned give_run(central_list_t *list, unsigned class, void *const *blocks, unsigned count,
                         give_result_t *result)
{
    MUST(lock_is_held(&list->lock));
    slab_t *slab = slab_of(blocks[0]);
    if (UNLIKELY(slab == NULL || slab->class != class)) {
        *result = ALREADY_FREE; /* a block freed twice may outlive its slab in a magazine */
        return 0;
    }
    unsigned given = slab_give(slab, blocks, count, result);
    if (given == 0)
        return 0;
    list->statistics.free_count += given;
    /* Where it may not serve another class, an empty one stays where it is. */
    if (slab->free_count == slab->block_count && options.ss_empty_reuse)
        slab_emptied(list, slab);
    else
        place(list, slab);
    return given;
}

/* Ends the program. No lock is held: its SIGABRT handler may allocate. */
static COLD _Noreturn void refuse(give_result_t result, unsigned class, const void *ptr)
{
    if (result == NOT_A_BLOCK)
        fatal_inside_block("free", ptr, size_classes[class].size);
    fatal_already_free("free", ptr, size_classes[class].size);
}

static void give(unsigned class, void *const *blocks, unsigned count, bool are_idle)
{
    central_list_t *list = &lists[class];
    give_result_t result = GIVEN;
    unsigned given = 0;
    lock_acquire(&list->lock);
    while (given < count && result == GIVEN)
        given += give_run(list, class, blocks + given, count - given, &result);
    if (are_idle)
        list->least_free = smaller_of(list->least_free + given, list->statistics.free_count);
    tell(list, class);
    lock_release(&list->lock);
    if (UNLIKELY(result != GIVEN))
        refuse(result, class, blocks[given]);
}

void central_list_give(unsigned class, void *const *blocks, unsigned count)
{
    give(class, blocks, count, false);
}

void central_list_give_idle(unsigned class, void *const *blocks, unsigned count)
{
    give(class, blocks, count, true);
}

void central_lists_trim(uint64_t now_ms, bool all)
{
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        central_list_t *list = &lists[class];
        if (__atomic_load_n(&list->empty, __ATOMIC_RELAXED) == NULL) /* a look is enough */
            continue;
        lock_acquire(&list->lock);
        if (list->empty != NULL && (all || list->empty_is_old)) {
            destroy_slab(list, list->empty, now_ms);
            set_empty(list, NULL);
            tell(list, class);
        }
        list->empty_is_old = true;
        lock_release(&list->lock);
    }
}

/* ---- pages of slabs that are in use in part ---- */

/* What may go while the lock is held once, and what has gone. */
typedef struct lot {
    size_t most_bytes;
    size_t purged;
    unsigned count; /* slabs */
    unsigned looks;
} lot_t;

static void purge_some_of(central_list_t *list, list_node_t *head, lot_t *lot)
{
    list_node_t *node = list_is_empty(head) ? head : head->previous;
    while (node != head && lot->purged < lot->most_bytes && lot->count < SLABS_PURGED_AT_ONCE &&
           lot->looks < SLABS_LOOKED_AT_ONCE) {
        slab_t *slab = LIST_ITEM(node, slab_t, node);
        node = node->previous;
        size_t more = slab_purge_pages(slab, lot->most_bytes - lot->purged);
        lot->purged += more;
        lot->count += more != 0;
        lot->looks++;
        place(list, slab);
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

/* How many bytes of the class may go; 0: less than `least_bytes`. Begins a new measurement of the
 * low water. */
static size_t worth_purging(central_list_t *list, unsigned class, size_t least_bytes,
                            bool only_sparse)
{
    lock_acquire(&list->lock);
    size_t idle = bytes_of(list, class, list->least_free); /* nobody wanted it since */
    bool is_sparse = 2 * list->least_free > list->statistics.block_count;
    list->least_free = list->statistics.free_count;
    lock_release(&list->lock);
    return idle < least_bytes || (only_sparse && !is_sparse) ? 0 : idle;
}

static size_t purge_pages(unsigned class, size_t most_bytes, bool is_patient)
{
    central_list_t *list = &lists[class];
    size_t sum = 0;
    size_t more = 1;
    while (more != 0 && sum < most_bytes) {
        lock_acquire(&list->lock);
        more = purge_some(list, most_bytes - sum);
        tell(list, class);
        lock_release(&list->lock);
        sum += more;
        if (!is_patient)
            break;
    }
    return sum;
}

size_t central_lists_purge_pages(bool is_patient)
{
    size_t least = is_patient ? PAGES_WORTH_PATIENCE : PAGES_WORTH_IT;
    size_t bytes = 0;
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        bytes += purge_pages(class, worth_purging(&lists[class], class, least, false), is_patient);
    return bytes;
}

size_t central_lists_purge_all_pages(void)
{
    size_t bytes = 0;
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        if (central_list_statistics(class).free_count != 0)
            bytes += purge_pages(class, SIZE_MAX, true);
    return bytes;
}

size_t central_lists_make_up(size_t most_bytes)
{
    size_t bytes = 0;
    for (unsigned class = 1; class < CLASS_COUNT && bytes < most_bytes; class++) {
        size_t idle = worth_purging(&lists[class], class, PAGES_WORTH_IT, true);
        bytes += purge_pages(class, smaller_of(idle, most_bytes - bytes), true);
    }
    return bytes;
}

central_statistics_t central_list_statistics(unsigned class)
{
    central_list_t *list = &lists[class];
    lock_acquire(&list->lock);
    central_statistics_t copy = list->statistics;
    lock_release(&list->lock);
    return copy;
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
                fill_of(slab) != fill || !slab_is_valid(slab))
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
    const central_statistics_t *told = &list->statistics;
    return slab_count <= told->slab_count && free_count == told->free_count &&
           free_count <= told->block_count && purged_bytes == told->purged_bytes;
}

bool central_lists_are_valid(void)
{
    bool are_valid = true;
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        lock_acquire(&lists[class].lock);
        are_valid &= central_list_is_valid(&lists[class], class);
        lock_release(&lists[class].lock);
    }
    return are_valid;
}

void central_lists_at_fork(fork_phase_t phase)
{
    for (unsigned class = 0; class < CLASS_COUNT; class++)
        lock_at_fork(&lists[class].lock, phase);
}
