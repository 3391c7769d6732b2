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
#include "harden/fatal.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/processors.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "slab/slab.h"
#include "span/budget.h"
#include "span/keep.h"

/* Blocks that are sorted at a time: a magazine has no more. */
#define GIVEN_AT_ONCE 128

typedef enum fill {
    FILL_PURGED,   /* all free blocks lie in pages that were given back */
    FILL_RESIDENT, /* some do not, as far as is known */
    FILL_COUNT,
    FILL_NONE = FILL_COUNT, /* in no list */
} fill_t;

typedef struct central_list {
    lock_t lock;
    bool empty_is_old; /* the spare slab was already there at the last trim */
    slab_t *empty;     /* one entirely free slab, kept aside */
    list_node_t slabs[FILL_COUNT]; /* with free blocks */
    central_statistics_t statistics;
    size_t least_free;   /* blocks: the fewest since the last look at pages */
    size_t fewest_free;  /* the same since somebody last wanted to make up for fresh memory */
    size_t told_bytes; /* its part of central_lists_told_bytes */
    bool is_sparse;    /* more memory lies in its free blocks than in others; read without lock */
} __attribute__((aligned(CACHE_LINE))) central_list_t;

/* Of each group of processors. A slab belongs to the list that has made it. */
static central_list_t lists[GROUPS_MOST][CLASS_COUNT];

/* How many blocks have been idle. Apart, so that none is touched in a process that is over before
 * the first look at pages. */
static struct {
    budget_t budget;
    uint64_t walked_ms; /* when slabs were last looked through for pages that may go */
} idle[GROUPS_MOST][CLASS_COUNT];

uint64_t central_lists_told_bytes;

/* Behind the last of the lists in use. That of class 0 has nothing. */
static const central_list_t *lists_end(void)
{
    return lists[processor_groups_now() - 1] + CLASS_COUNT;
}

static budget_t *budget_of(const central_list_t *list)
{
    return &idle[0][list - lists[0]].budget;
}

static unsigned class_of(const central_list_t *list)
{
    return (unsigned)(list - lists[0]) % CLASS_COUNT;
}

static void set_empty(central_list_t *list, slab_t *slab)
{
    MUST(lock_is_held(&list->lock));
    /* relaxed: read without the lock by central_lists_trim, which only looks */
    __atomic_store_n(&list->empty, slab, __ATOMIC_RELAXED);
}

/* The slab to be filled next; NULL: none has free blocks. */
static slab_t *first_slab(central_list_t *list)
{
    for (unsigned fill = FILL_COUNT; fill-- > 0;)
        if (!list_is_empty(&list->slabs[fill]))
            return LIST_ITEM(list->slabs[fill].next, slab_t, node);
    return NULL;
}

/* Takes the slab out of its list. */
static void leave(slab_t *slab)
{
    list_remove(&slab->node);
    slab->fill = FILL_NONE;
}

/* Puts a slab with free blocks where it belongs. Has it any that cost no page fault? */
static void place(central_list_t *list, slab_t *slab, bool has_resident)
{
    fill_t fill = has_resident ? FILL_RESIDENT : FILL_PURGED;
    if (LIKELY(slab->fill == (uint8_t)fill))
        return;
    list_remove(&slab->node);
    list_push_front(&list->slabs[fill], &slab->node);
    slab->fill = (uint8_t)fill;
}

void central_lists_create(void)
{
    /* The rest is zero, and stays untouched in short processes for classes that they do not use. */
    for (unsigned group = 0; config_checked && group < GROUPS_MOST; group++)
        for (unsigned class = 0; class < CLASS_COUNT; class++)
            lists[group][class].lock.rank = LOCK_CLASS;
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

static void note_fewest(central_list_t *list)
{
    list->least_free = smaller_of(list->least_free, list->statistics.free_count);
    list->fewest_free = smaller_of(list->fewest_free, list->statistics.free_count);
}

/* A slab with free blocks; NULL: there is none, nor memory for another if the list `may_grow`. */
static slab_t *provide_slab(central_list_t *list, unsigned class, bool may_grow)
{
    MUST(lock_is_held(&list->lock));
    slab_t *slab = first_slab(list);
    if (slab != NULL)
        return slab;
    slab = list->empty;
    set_empty(list, NULL);
    if (slab == NULL) {
        slab = may_grow ? slab_create(class) : NULL;
        if (slab == NULL)
            return NULL;
        slab->fill = FILL_NONE;
        /* relaxed: read without the lock by list_of_block */
        __atomic_store_n(&slab->group, (uint8_t)((list - lists[0]) / CLASS_COUNT),
                         __ATOMIC_RELAXED);
        list->statistics.slab_count++;
        list->statistics.block_count += slab->block_count;
        list->statistics.free_count += slab->block_count;
    }
    place(list, slab, slab->purged == 0);
    return slab;
}

/* `may_grow`: also from a new slab. */
static unsigned take(central_list_t *list, unsigned class, void **top, unsigned count,
                     bool may_grow)
{
    unsigned taken = 0;
    slab_t *slab;
    lock_acquire(&list->lock);
    while (taken < count && (slab = provide_slab(list, class, may_grow)) != NULL) {
        size_t purged_before = slab_purged_bytes(slab);
        taken += slab_take(slab, top - taken, count - taken);
        size_t came_back = purged_before - slab_purged_bytes(slab);
        list->statistics.purged_bytes -= came_back;
        if (slab->free_count == 0)
            leave(slab);
        else /* all that hold memory are taken if there were too few, and no page came back */
            place(list, slab, taken == count || came_back != 0);
    }
    list->statistics.free_count -= taken;
    note_fewest(list);
    tell(list, class);
    lock_release(&list->lock);
    return taken;
}

unsigned central_list_take(unsigned class, void **top, unsigned count)
{
    unsigned taken = take(&lists[processor_group()][class], class, top, count, true);
    /* Where there is no memory for a slab, what other groups of processors have serves. */
    for (unsigned group = 0; UNLIKELY(taken == 0) && group < processor_groups_now(); group++)
        taken = take(&lists[group][class], class, top, count, false);
    return taken;
}

static void destroy_slab(central_list_t *list, slab_t *slab, uint64_t now_ms)
{
    list->statistics.slab_count--;
    list->statistics.block_count -= slab->block_count;
    list->statistics.free_count -= slab->block_count;
    note_fewest(list);
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
static unsigned give_run(central_list_t *list, void *const *blocks, unsigned count,
                         give_result_t *result)
{
    MUST(lock_is_held(&list->lock));
    slab_t *slab = slab_of(blocks[0]);
    if (UNLIKELY(slab == NULL || list != &lists[slab->group][slab->class])) {
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
        place(list, slab, true); /* they were in use: their pages are there */
    return given;
}

/* Ends the program. No lock is held: its SIGABRT handler may allocate. */
static COLD _Noreturn void refuse(give_result_t result, unsigned class, const void *ptr)
{
    if (result == NOT_A_BLOCK)
        fatal_inside_block("free", ptr, size_classes[class].size);
    fatal_already_free("free", ptr, size_classes[class].size);
}

/* The list that the block belongs to, as far as can be seen without its lock: if the program holds
 * the block, its slab stays. */
static central_list_t *list_of_block(const void *block, unsigned class)
{
    if (LIKELY(processor_groups_now() == 1))
        return &lists[0][class];
    const slab_t *slab = slab_of(block);
    unsigned group = slab == NULL ? 0 : __atomic_load_n(&slab->group, __ATOMIC_RELAXED);
    return &lists[group % GROUPS_MOST][class];
}

/* Puts back those in front that belong to one list, at least one if `*result` stays GIVEN. Returns
 * how many. */
static unsigned give_to_one(unsigned class, void *const *blocks, unsigned count, bool are_idle,
                            give_result_t *result)
{
    central_list_t *list = list_of_block(blocks[0], class);
    unsigned given = 0;
    lock_acquire(&list->lock);
    while (given < count && *result == GIVEN &&
           (given == 0 || list_of_block(blocks[given], class) == list))
        given += give_run(list, blocks + given, count - given, result);
    if (are_idle) {
        list->least_free = smaller_of(list->least_free + given, list->statistics.free_count);
        budget_add(budget_of(list), given);
    }
    tell(list, class);
    lock_release(&list->lock);
    return given;
}

static void give_in_order(unsigned class, void *const *blocks, unsigned count, bool are_idle)
{
    give_result_t result = GIVEN;
    unsigned given = 0;
    while (given < count && result == GIVEN)
        given += give_to_one(class, blocks + given, count - given, are_idle, &result);
    if (UNLIKELY(result != GIVEN))
        refuse(result, class, blocks[given]);
}

/* Blocks of several groups, sorted by them: each list is locked once, and not for each block. */
static NOINLINE void give_by_group(unsigned class, void *const *blocks, unsigned count,
                                   bool are_idle)
{
    void *sorted[GIVEN_AT_ONCE];
    uint8_t groups[GIVEN_AT_ONCE];
    unsigned ends[GROUPS_MOST + 1] = {0};
    for (unsigned index = 0; index < count; index++) {
        const central_list_t *list = list_of_block(blocks[index], class);
        groups[index] = (uint8_t)((list - lists[0]) / CLASS_COUNT);
        ends[groups[index] + 1]++;
    }
    for (unsigned group = 0; group < GROUPS_MOST; group++)
        ends[group + 1] += ends[group];
    for (unsigned index = 0; index < count; index++)
        sorted[ends[groups[index]]++] = blocks[index];
    give_in_order(class, sorted, count, are_idle);
}

void central_list_give_as(unsigned class, void *const *blocks, unsigned count, bool are_idle)
{
    if (LIKELY(processor_groups_now() == 1 || count == 1)) {
        give_in_order(class, blocks, count, are_idle);
        return;
    }
    for (unsigned given = 0; given < count; given += GIVEN_AT_ONCE)
        give_by_group(class, blocks + given, (unsigned)smaller_of(count - given, GIVEN_AT_ONCE),
                      are_idle);
}

bool central_list_is_busy(unsigned class)
{
    return lock_looks_taken(&lists[processor_group()][class].lock);
}

void central_lists_trim(uint64_t now_ms, bool all)
{
    for (central_list_t *list = lists[0]; list < lists_end(); list++) {
        if (__atomic_load_n(&list->empty, __ATOMIC_RELAXED) == NULL) /* a look is enough */
            continue;
        lock_acquire(&list->lock);
        if (list->empty != NULL && (all || list->empty_is_old)) {
            destroy_slab(list, list->empty, now_ms);
            set_empty(list, NULL);
            tell(list, class_of(list));
        }
        list->empty_is_old = true;
        lock_release(&list->lock);
    }
}

static central_statistics_t statistics_of(central_list_t *list)
{
    lock_acquire(&list->lock);
    central_statistics_t copy = list->statistics;
    lock_release(&list->lock);
    return copy;
}

/* ---- pages of slabs that are in use in part ---- */

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
        leave(slab);
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
    unsigned class = class_of(list);
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    uint64_t wait_ms = smaller_of(delay_ms, keep_wait_ms());
    lock_acquire(&list->lock);
    size_t free_count = list->statistics.free_count;
    size_t low = smaller_of(list->least_free, free_count);
    size_t count = budget_idle(budget_of(list), low, free_count, now_ms, delay_ms, wait_ms);
    size_t bytes = bytes_of(list, class, count);
    size_t resident = bytes_of(list, class, free_count);
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
    return __atomic_load_n(&lists[processor_group()][class].is_sparse, __ATOMIC_RELAXED);
}

static size_t purge_pages(central_list_t *list, size_t most_bytes, bool is_patient)
{
    size_t sum = 0;
    size_t more = 1;
    while (more != 0 && sum < most_bytes) {
        lock_acquire(&list->lock);
        more = purge_some(list, most_bytes - sum);
        tell(list, class_of(list));
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
    uint64_t *walked_ms = &idle[0][list - lists[0]].walked_ms;
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
    for (central_list_t *list = lists[0]; list < lists_end(); list++)
        bytes += purge_idle_pages(list, now_ms, is_patient);
    return bytes;
}

size_t central_lists_purge_all_pages(void)
{
    size_t bytes = 0;
    for (central_list_t *list = lists[0]; list < lists_end(); list++)
        if (statistics_of(list).free_count != 0)
            bytes += purge_pages(list, SIZE_MAX, true);
    return bytes;
}

/* Bytes that nobody has wanted since the last call, where most blocks of the class are free. */
static size_t excess_of(central_list_t *list)
{
    lock_acquire(&list->lock);
    size_t fewest = smaller_of(list->fewest_free, list->statistics.free_count);
    size_t bytes = bytes_of(list, class_of(list), fewest);
    bool is_most = 2 * fewest > list->statistics.block_count;
    list->fewest_free = list->statistics.free_count;
    lock_release(&list->lock);
    return is_most && bytes >= PAGES_WORTH_IT ? bytes : 0;
}

size_t central_lists_make_up(size_t most_bytes)
{
    size_t bytes = 0;
    for (central_list_t *list = lists[0]; list < lists_end() && bytes < most_bytes; list++)
        bytes += purge_pages(list, smaller_of(excess_of(list), most_bytes - bytes), true);
    return bytes;
}

central_statistics_t central_list_statistics(unsigned class)
{
    central_statistics_t sum = statistics_of(&lists[0][class]);
    for (unsigned group = 1; group < processor_groups_now(); group++) {
        central_statistics_t other = statistics_of(&lists[group][class]);
        sum.slab_count += other.slab_count;
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
        lock_acquire(&lists[group][class].lock);
}

void central_lists_unlock(unsigned class)
{
    for (unsigned group = 0; group < GROUPS_MOST; group++)
        lock_release(&lists[group][class].lock);
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
    const central_statistics_t *told = &list->statistics;
    return slab_count <= told->slab_count && free_count == told->free_count &&
           free_count <= told->block_count && purged_bytes == told->purged_bytes;
}

bool central_lists_are_valid(void)
{
    bool are_valid = true;
    for (central_list_t *list = lists[0]; list < lists_end(); list++) {
        lock_acquire(&list->lock);
        are_valid &= central_list_is_valid(list, class_of(list));
        lock_release(&list->lock);
    }
    return are_valid;
}

void central_lists_at_fork(fork_phase_t phase)
{
    static const central_list_t *end; /* of those that are locked */
    if (phase == FORK_PREPARE)
        end = lists_end();
    for (central_list_t *list = lists[0]; list < end; list++)
        lock_at_fork(&list->lock, phase);
}
