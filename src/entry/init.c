/* Initialises options, page map, page heap, huge blocks, slabs and caches, in this order. The first
 * call that misses does so, often before any constructor has run, in the dynamic loader itself.
 * Therefore nothing here may allocate, look up a symbol or rely on an initialised C library. */
#include "entry/init.h"

#include "slab/detour.h"
#include "report/exit_report.h"
#include "check/guard.h"
#include "entry/operators.h"
#include "site/policy_load.h"
#include "report/profile.h"
#include "report/stats_file.h"
#include "cache/depot.h"
#include "upkeep/reclaim.h"
#include "cache/thread_cache.h"
#include "upkeep/upkeep.h"
#include "os/fatal.h"
#include "site/site_rules.h"
#include "observe/samples.h"
#include "os/background.h"
#include "os/lock.h"
#include "os/meta.h"
#include "os/os.h"
#include "os/threads.h"
#include "options/options.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "slab/size_class.h"
#include "check/zero_blocks.h"
#include "large/huge.h"
#include "keep/keep.h"
#include "heap/page_heap.h"
#include "heap/span_cache.h"

bool process_is_ready;

static struct {
    lock_t lock;             /* of the whole initialisation, and of the fields that follow */
    bool options_are_loaded; /* an attempt that failed for want of memory may have loaded them */
    bool forks_are_handled;  /* the handlers are registered, or one thread is about to */
    bool layers_are_locked;  /* for a fork: before initialisation there is nothing to lock */
    /* Of the thread that forks. With one thread there is nobody to lock out: that thread is in
     * fork, not in here. */
    bool locked_for_fork;
} init_state = {.lock = LOCK_INITIAL(LOCK_PROCESS)};

static void handle_forks(void);

static void load_settings(void)
{
    char *const *environment = os_environment();
    const policy_t *policy = policy_load(environment);
    options_load(environment, policy, complain);
    messages_prepare();
    policy_complain();
}

/* The caller holds the lock. */
static bool create_layers(void)
{
    if (!init_state.options_are_loaded)
        load_settings();
    operators_look();
    init_state.options_are_loaded = true;
    report_prepare();
    if (!page_map_create())
        return false;
    page_heap_create();
    huge_create();
    central_lists_create();
    private_heaps_create();
    if (options.check_frees)
        zero_blocks_create();
    depots_create();
    span_cache_create();
    thread_caches_create(upkeep_at_thread_exit);
    size_classes_create();
    profile_prepare();
    stats_file_prepare();
    /* Last: from here on the hit path is open, if nothing forbids it. */
    detour_set(DETOUR_RECORDS, options.check_frees);
    /* release: pairs with the acquire in ensure_init */
    __atomic_store_n(&process_is_ready, true, __ATOMIC_RELEASE);
    return true;
}

bool process_init(void)
{
    lock_acquire(&init_state.lock);
    bool is_first = !process_is_ready;
    bool is_done = !is_first || create_layers();
    lock_release(&init_state.lock);
    if (is_first && is_done)
        handle_forks();
    return is_done;
}

/* ---- fork: every lock, in the order of the ranks; before them the one of the streams ---- */

static void size_classes_at_fork(fork_phase_t phase)
{
    lock_at_fork(&size_classes_lock, phase);
}

/* By the rank of their locks. The callers take LOCK_PROCESS, the page heap takes LOCK_TOUCH; each
 * other rank needs a row. */
static void (*const layer_at_fork[LOCK_COUNT])(fork_phase_t) = {
    [LOCK_UPKEEP] = upkeep_at_fork,
    [LOCK_RECLAIM] = reclaim_at_fork,
    [LOCK_THREADS] = thread_caches_at_fork,
    [LOCK_DEPOT] = depots_at_fork,
    [LOCK_MADE_CLASSES] = size_classes_at_fork,
    [LOCK_CLASS] = central_lists_at_fork,
    [LOCK_GUARD] = guard_at_fork,
    [LOCK_PRIVATE] = private_heaps_at_fork,
    [LOCK_HUGE] = huge_at_fork,
    [LOCK_SPANS] = span_cache_at_fork,
    [LOCK_HEAP] = page_heap_at_fork,
    [LOCK_WINDOW] = page_map_at_fork,
    [LOCK_META] = meta_at_fork,
    [LOCK_ZERO] = zero_blocks_at_fork,
    [LOCK_KEEP] = keep_at_fork,
    [LOCK_SAMPLES] = samples_at_fork,
};

static void layers_at_fork(fork_phase_t phase)
{
    for (unsigned rank = 0; rank < LOCK_COUNT; rank++)
        if (layer_at_fork[rank] != NULL)
            layer_at_fork[rank](phase);
}

static void before_fork(void)
{
    init_state.locked_for_fork = !process_is_single_threaded();
    if (!init_state.locked_for_fork)
        return;
    os_lock_streams();
    lock_at_fork(&init_state.lock, FORK_PREPARE);
    init_state.layers_are_locked = process_is_ready;
    if (init_state.layers_are_locked)
        layers_at_fork(FORK_PREPARE);
}

static void after_fork(fork_phase_t phase)
{
    if (init_state.layers_are_locked)
        layers_at_fork(phase);
    lock_at_fork(&init_state.lock, phase);
}

static void after_fork_in_parent(void)
{
    if (!init_state.locked_for_fork)
        return;
    after_fork(FORK_PARENT);
    os_unlock_streams();
}

static void after_fork_in_child(void)
{
    os_background_allow();
    os_code_at_fork_in_child();
    stats_file_at_fork_in_child();
    if (init_state.locked_for_fork) {
        after_fork(FORK_CHILD);
        os_reset_streams();
    }
    profile_at_fork_in_child(); /* takes a lock */
}

/* The handlers must be the first that anybody registers: then ours runs last before a fork and
 * first after it, and others' handlers may allocate. The handlers are registered at initialisation,
 * therefore, and where nobody has allocated yet, by this constructor, which the linker flag -z
 * initfirst runs before those of all other libraries. A program that never allocates is not
 * initialised, unless somebody has set options or a policy: what is wrong with them is said, and
 * what they ask for is reported. */
static void handle_forks(void)
{
    lock_acquire(&init_state.lock);
    bool is_first = !init_state.forks_are_handled;
    init_state.forks_are_handled = true;
    lock_release(&init_state.lock);
    if (is_first) /* may allocate */
        os_handle_forks(before_fork, after_fork_in_parent, after_fork_in_child);
}

__attribute__((constructor)) static void at_load(void)
{
    handle_forks();
    operators_at_load();
    char *const *environment = os_environment();
    bool is_wanted = __atomic_load_n(&process_is_ready, __ATOMIC_RELAXED) ||
                     options_are_named(environment) || policy_is_shipped(environment);
    if (is_wanted && ensure_init() && policy_in_force() != NULL)
        detour_set(DETOUR_SITES, site_rules_create(policy_in_force()) != 0);
    os_background_allow();
}

/* Is anything looked at under locks when the process ends? */
static bool has_last_words(void)
{
    return options.junk || options.leak_report || options.free_route_trace ||
           option_texts.stats[0] != '\0' || option_texts.profile[0] != '\0';
}

static bool all_locks_come_free(void)
{
    lock_at_fork(&init_state.lock, EXIT_LOOK);
    layers_at_fork(EXIT_LOOK);
    return locks_have_come_free;
}

__attribute__((destructor)) static void at_unload(void)
{
    thread_cache_verify();
    if (!has_last_words())
        return;
    if (!all_locks_come_free()) {
        complain("nothing is written at exit: a signal handler has interrupted the allocator");
        return;
    }
    (void)guard_check_all();
    report_at_exit();
    profile_at_exit();
    stats_file_at_exit();
}
