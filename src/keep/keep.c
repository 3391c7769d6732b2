/* How long, and how much, free memory is kept. See keep.h. */
#include "keep/keep.h"

#include "base/bits.h"
#include "base/count.h"
#include "keep/refaults.h"

_Thread_local size_t keep_freed_units;

static struct {
    lock_t lock; /* protects `refaults` */
    refaults_t refaults;
    size_t kept_units;   /* as in `refaults`; written under the lock, read without it */
    size_t gone_units;   /* units gone that may be wanted again, likewise */
    size_t least_used;   /* units in use at least since the last call of keep_learn that took the
                            lock; also written without the lock */
    size_t most_used;    /* and at most, likewise */
    uint64_t fresh_seen; /* fresh_units() at the last match; as kept_units */
    uint64_t slab_bytes_wanted; /* bytes of slabs that were taken again; counter_add, any thread */
} keep_state = {.lock = LOCK_INITIAL(LOCK_KEEP), .least_used = SIZE_MAX};

static uint64_t keep_delay_ms(void)
{
    return (uint64_t)options.purge_delay_ms;
}

/* Units taken afresh since the start. */
static uint64_t keep_fresh_units(void)
{
    uint64_t slab_units = counter_read(&keep_state.slab_bytes_wanted) >> UNIT_SHIFT;
    return counter_read(&pressure_figures.fresh_units) + slab_units;
}

size_t keep_wanted_units(void)
{
    size_t wanted = count_read(&keep_state.kept_units);
    return wanted + wanted / KEEP_ROOM_SHARE; /* wanted memory lies in other places each time */
}

size_t keep_allowed_units(size_t used_units)
{
    if (options.free_policy != FREE_ADAPTIVE)
        return keep_most_units(used_units);
    size_t wanted = keep_wanted_units();
    return pressure_cap(used_units / KEEP_SHARE + (KEEP_LEAST >> UNIT_SHIFT) + wanted);
}

uint64_t keep_wait_ms(void)
{
    return pressure_wait_ms(keep_delay_ms());
}

void keep_note_slab_pages(size_t size)
{
    counter_add(&keep_state.slab_bytes_wanted, size);
}

/* Matches the units taken afresh since the last call with units that went back before: they are no
 * demand for units that go now. The caller holds the lock. */
static void keep_match_demand(uint64_t fresh)
{
    size_t wanted = (size_t)(fresh - keep_state.fresh_seen);
    __atomic_store_n(&keep_state.fresh_seen, fresh, __ATOMIC_RELAXED);
    size_t left = refaults_note_wanted(&keep_state.refaults, wanted);
    /* relaxed: guesses, of which each is good alone */
    __atomic_store_n(&keep_state.gone_units, left, __ATOMIC_RELAXED);
    __atomic_store_n(&keep_state.kept_units, keep_state.refaults.kept_units, __ATOMIC_RELAXED);
}

void keep_note_gone(size_t unit_count, uint64_t since_ms, uint64_t now_ms)
{
    if (options.free_policy != FREE_ADAPTIVE || unit_count == 0)
        return;
    lock_acquire(&keep_state.lock);
    size_t used = smaller_of(count_read(&keep_state.least_used), count_read(&keep_state.most_used));
    refaults_advance(&keep_state.refaults, used, now_ms, keep_delay_ms());
    keep_match_demand(keep_fresh_units());
    refaults_note_gone(&keep_state.refaults, unit_count, since_ms, keep_delay_ms());
    count_add(&keep_state.gone_units, unit_count);
    lock_release(&keep_state.lock);
}

static void keep_learn_now(size_t used_units, uint64_t now_ms)
{
    lock_acquire(&keep_state.lock);
    /* Between calls nothing changes: the noted use was that of the slot of the last call. */
    refaults_note_used(&keep_state.refaults, count_read(&keep_state.least_used),
                       count_read(&keep_state.most_used));
    refaults_advance(&keep_state.refaults, used_units, now_ms, keep_delay_ms());
    keep_match_demand(keep_fresh_units());
    refaults_note_used(&keep_state.refaults, used_units, used_units);
    __atomic_store_n(&keep_state.kept_units, keep_state.refaults.kept_units, __ATOMIC_RELAXED);
    __atomic_store_n(&keep_state.least_used, used_units, __ATOMIC_RELAXED);
    __atomic_store_n(&keep_state.most_used, used_units, __ATOMIC_RELAXED);
    lock_release(&keep_state.lock);
}

void keep_learn(size_t used_units, uint64_t now_ms)
{
    /* Of two threads that store at once one is lost: the figures are guesses. */
    if (used_units < count_read(&keep_state.least_used))
        __atomic_store_n(&keep_state.least_used, used_units, __ATOMIC_RELAXED);
    if (used_units > count_read(&keep_state.most_used))
        __atomic_store_n(&keep_state.most_used, used_units, __ATOMIC_RELAXED);
    bool may_match =
        count_read(&keep_state.gone_units) != 0 &&
        keep_fresh_units() != __atomic_load_n(&keep_state.fresh_seen, __ATOMIC_RELAXED);
    uint64_t slot = now_ms / budget_slot_ms(keep_delay_ms());
    bool is_kept = count_read(&keep_state.kept_units) != 0 &&
                   slot != __atomic_load_n(&keep_state.refaults.slot, __ATOMIC_RELAXED);
    if (UNLIKELY(may_match || is_kept))
        keep_learn_now(used_units, now_ms);
}

void keep_at_fork(fork_phase_t phase)
{
    if (phase == FORK_CHILD) { /* what its parent needed again is no need of the child */
        keep_state.refaults = (refaults_t){.slot = keep_state.refaults.slot};
        keep_state.kept_units = keep_state.gone_units = 0;
    }
    lock_at_fork(&keep_state.lock, phase);
}
