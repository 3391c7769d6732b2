/* Epochs, measured from what upkeep sees. See in_run.h. Everything here is under its lock. */
#include "learn/in_run.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "cache/upkeep.h"
#include "os/os.h"
#include "os/threads.h"
#include "policy/options.h"
#include "slab/size_class.h"
#include "span/page_heap.h"
#include "span/pressure.h"

void (*in_run_logger)(const trial_epoch_t *epoch, const trial_t *trial);

static trial_t trial;

/* Counts since the start, as they were when the epoch began. */
static struct counts {
    uint64_t misses;
    uint64_t slab_misses;
    uint64_t fresh_units;
    uint64_t purge_ns;
    uint64_t refusals;
} before;

static trial_epoch_t epoch; /* that runs */
static uint64_t used_before_kib; /* at the look before */
static uint64_t began_ms;
static uint64_t looked_ms;
static uint64_t counts_from_ms; /* what was before is still the doing of another strategy */

static struct counts counts_now(const upkeep_view_t *view)
{
    return (struct counts){
        .misses = view->misses,
        .slab_misses = view->slab_misses,
        .fresh_units = counter_read(&page_heap_fresh_units),
        .purge_ns = os_calls().purge.ns,
        .refusals = view->refusals,
    };
}

static void begin_epoch(const upkeep_view_t *view)
{
    before = counts_now(view);
    epoch = (trial_epoch_t){.ms = 0};
    began_ms = looked_ms = view->now_ms;
}

/* How long what a strategy changes needs to show: free memory waits for the purge delay. */
static uint64_t epoch_least_ms(void)
{
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    return larger_of(LEARN_EPOCH_MS, smaller_of(delay_ms, LEARN_SETTLE_MOST_MS));
}

static void add_look(const upkeep_view_t *view, bool is_short)
{
    struct counts now = counts_now(view);
    epoch.ms = view->now_ms - began_ms;
    epoch.misses = now.misses - before.misses;
    epoch.slab_misses = now.slab_misses - before.slab_misses;
    epoch.fresh_kib = (now.fresh_units - before.fresh_units) * (UNIT_SIZE / KIB);
    epoch.purge_ns = now.purge_ns - before.purge_ns;
    epoch.refusals = now.refusals - before.refusals + is_short;
    epoch.idle_kib = view->free_bytes / KIB;
    epoch.used_kib = view->used_bytes / KIB;
    epoch.peak_kib = larger_of(epoch.peak_kib, epoch.used_kib);
    epoch.taken_kib += epoch.used_kib - smaller_of(epoch.used_kib, used_before_kib);
    used_before_kib = epoch.used_kib;
    epoch.idle_kib_ms += epoch.idle_kib * (view->now_ms - looked_ms);
    looked_ms = view->now_ms;
}

static void end_epoch(const upkeep_view_t *view)
{
    unsigned ran = trial_running(&trial);
    trial_take(&trial, &epoch);
    if (config_checked)
        MUST(trial_is_valid(&trial));
    if (in_run_logger != NULL)
        in_run_logger(&epoch, &trial);
    if (trial_running(&trial) != ran) {
        strategy_set(trial_strategy(&trial));
        size_classes_follow_strategy();
        counts_from_ms = view->now_ms + epoch_least_ms();
    }
    begin_epoch(view);
}

/* Guards are looked at each time, so that a strategy that breaks one runs no longer than to here.
 * Where a limit is near, that is one of them, and the default runs until it is not. */
static void observe(const upkeep_view_t *view)
{
    if (view->now_ms <= looked_ms)
        return;
    bool is_short = pressure_is_near();
    add_look(view, is_short);
    bool is_settled = view->now_ms >= counts_from_ms;
    bool is_broken = trial_broken_guard(&trial, &epoch, false) != REASON_NONE;
    bool says_nothing = began_ms < counts_from_ms && is_settled;
    says_nothing |= epoch.ms >= LEARN_EPOCH_MOST_MS;
    bool is_over = epoch.ms >= epoch_least_ms() && epoch.misses >= LEARN_EPOCH_MISSES;
    if (is_broken || (is_over && is_settled && !says_nothing && !is_short))
        end_epoch(view);
    else if (says_nothing || is_short)
        begin_epoch(view);
}

void in_run_prepare(void)
{
    if (!options.learn)
        return;
    trial_begin(&trial, (uint64_t)options.price, &strategy_in_force);
    began_ms = looked_ms = os_clock_ms();
    upkeep_observer = observe;
}

static void show_trial(void *context)
{
    void (*const *show)(const trial_t *) = context;
    (*show)(&trial);
}

bool in_run_show(void (*show)(const trial_t *trial))
{
    return upkeep_observer != NULL && upkeep_visit(show_trial, &show);
}
