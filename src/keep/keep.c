/* How long, and how much, free memory is kept. See keep.h. */
#include "keep/keep.h"

#include "base/bits.h"
#include "base/count.h"
#include "keep/refaults.h"
#include "os/os.h"

/* Units by which use may differ from what other threads read. */
#define NEAR_UNITS (ROUND_LEAST >> UNIT_SHIFT)

_Thread_local size_t keep_freed_units;

static struct {
    lock_t lock; /* protects `refaults` */
    refaults_t refaults;
    size_t kept_units;   /* as in `refaults`; written under the lock, read without it */
    size_t paying_units; /* those of them that are worth their memory, likewise */
    size_t gone_units;   /* units gone that may be wanted again, likewise */
    size_t least_used;   /* units in use at least since the last call of keep_learn that took the
                            lock; also written without the lock */
    size_t most_used;    /* and at most, likewise */
    size_t peak_units;   /* the most that ever were in use, likewise */
    size_t used_units;   /* in use by one of the last calls, nearly; any thread writes it */
    size_t fall_to;      /* use below which, or above the next, it has moved; as kept_units */
    size_t rise_to;
    uint64_t fresh_seen; /* fresh_units() at the last match; as kept_units */
    uint64_t clock_slot;   /* when the clock of the processor was read; of who holds the lock */
    uint64_t processor_ns; /* what it said, likewise */
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
    size_t wanted = count_read(&keep_state.paying_units);
    return wanted + wanted / KEEP_ROOM_SHARE; /* wanted memory lies in other places each time */
}

size_t keep_rest_units(size_t used_units)
{
    size_t peak = larger_of(count_read(&keep_state.peak_units), used_units);
    size_t rest = used_units + peak / KEEP_PEAK_SHARE + (KEEP_SMALL >> UNIT_SHIFT);
    return used_units / KEEP_SHARE + smaller_of(rest, KEEP_LEAST >> UNIT_SHIFT);
}

/* A share above the most that ever was in use. */
static size_t keep_peak_units(size_t used_units)
{
    size_t peak = larger_of(count_read(&keep_state.peak_units), used_units);
    return peak + peak / KEEP_PEAK_SHARE;
}

size_t keep_units_below_peak(size_t used_units)
{
    if (options.free_policy != FREE_ADAPTIVE)
        return SIZE_MAX >> UNIT_SHIFT;
    return keep_peak_units(used_units) + (KEEP_ALWAYS >> UNIT_SHIFT) - used_units;
}

bool keep_is_beyond_peak(size_t free_units)
{
    size_t used = count_read(&keep_state.used_units);
    return free_units + used > keep_peak_units(used) + (KEEP_LEAST >> UNIT_SHIFT);
}

size_t keep_allowed_units(size_t used_units)
{
    if (options.free_policy != FREE_ADAPTIVE)
        return keep_most_units(used_units);
    size_t allowed = keep_rest_units(used_units) + keep_wanted_units();
    return pressure_cap(smaller_of(allowed, keep_units_below_peak(used_units)));
}

uint64_t keep_wait_ms(void)
{
    return pressure_wait_ms(keep_delay_ms());
}

void keep_note_slab_pages(size_t size)
{
    counter_add(&keep_state.slab_bytes_wanted, size);
}

/* The caller holds the lock. */
static void keep_publish(void)
{
    size_t kept = keep_state.refaults.kept_units;
    /* relaxed: guesses, of which each is good alone */
    __atomic_store_n(&keep_state.kept_units, kept, __ATOMIC_RELAXED);
    __atomic_store_n(&keep_state.paying_units, keep_state.refaults.pays ? kept : 0,
                     __ATOMIC_RELAXED);
}

/* Matches the units taken afresh since the last call with units that went back before: they are no
 * demand for units that go now. The caller holds the lock. */
static void keep_match_demand(uint64_t fresh)
{
    size_t wanted = (size_t)(fresh - keep_state.fresh_seen);
    __atomic_store_n(&keep_state.fresh_seen, fresh, __ATOMIC_RELAXED);
    size_t left = refaults_note_wanted(&keep_state.refaults, wanted);
    /* relaxed: a guess */
    __atomic_store_n(&keep_state.gone_units, left, __ATOMIC_RELAXED);
    keep_publish();
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

/* The processor time of the process. The clock is a system call, so it is read once in a slot: the
 * rounds of one slot seem to take no time, and pay. The caller holds the lock. */
static uint64_t keep_processor_ns(void)
{
    if (keep_state.clock_slot != keep_state.refaults.slot) {
        keep_state.clock_slot = keep_state.refaults.slot;
        keep_state.processor_ns = os_process_ns();
    }
    return keep_state.processor_ns;
}

/* The next use that is worth a look. The caller holds the lock. */
static void keep_await_move(size_t used_units)
{
    size_t near = rounds_step(&keep_state.refaults.rounds, keep_state.refaults.kept_units) / 2;
    __atomic_store_n(&keep_state.fall_to, used_units - smaller_of(near, used_units),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&keep_state.rise_to, used_units + near, __ATOMIC_RELAXED);
}

/* `has_moved`: use did, or time did. */
static NOINLINE bool keep_learn_now(size_t used_units, bool has_moved, uint64_t now_ms)
{
    lock_acquire(&keep_state.lock);
    size_t least = count_read(&keep_state.least_used);
    size_t most = count_read(&keep_state.most_used);
    /* Between calls nothing changes: the noted use was that of the slot of the last call. */
    refaults_note_used(&keep_state.refaults, least, most);
    refaults_advance(&keep_state.refaults, used_units, now_ms, keep_delay_ms());
    keep_match_demand(keep_fresh_units());
    refaults_note_used(&keep_state.refaults, used_units, used_units);
    bool has_ended = has_moved && refaults_judge(&keep_state.refaults, least, most, used_units,
                                                 keep_processor_ns());
    if (has_moved)
        keep_await_move(used_units);
    keep_publish();
    __atomic_store_n(&keep_state.least_used, used_units, __ATOMIC_RELAXED);
    __atomic_store_n(&keep_state.most_used, used_units, __ATOMIC_RELAXED);
    lock_release(&keep_state.lock);
    return has_ended;
}

bool keep_learn(size_t used_units, uint64_t now_ms)
{
    /* Of two threads that store at once one is lost: the figures are guesses. */
    if (used_units < count_read(&keep_state.least_used))
        __atomic_store_n(&keep_state.least_used, used_units, __ATOMIC_RELAXED);
    if (used_units > count_read(&keep_state.most_used))
        __atomic_store_n(&keep_state.most_used, used_units, __ATOMIC_RELAXED);
    if (used_units - count_read(&keep_state.used_units) + NEAR_UNITS > 2 * NEAR_UNITS)
        __atomic_store_n(&keep_state.used_units, used_units, __ATOMIC_RELAXED);
    if (UNLIKELY(used_units > count_read(&keep_state.peak_units)))
        __atomic_store_n(&keep_state.peak_units, used_units, __ATOMIC_RELAXED);
    size_t kept = count_read(&keep_state.kept_units);
    size_t gone = count_read(&keep_state.gone_units);
    if (LIKELY((kept | gone) == 0))
        return false;
    uint64_t fresh_seen = __atomic_load_n(&keep_state.fresh_seen, __ATOMIC_RELAXED);
    bool may_match = gone != 0 && keep_fresh_units() != fresh_seen;
    uint64_t slot = now_ms / budget_slot_ms(keep_delay_ms());
    bool is_new = slot != __atomic_load_n(&keep_state.refaults.slot, __ATOMIC_RELAXED);
    bool has_moved = used_units < count_read(&keep_state.fall_to) ||
                     used_units > count_read(&keep_state.rise_to) || is_new;
    return (may_match || has_moved) && keep_learn_now(used_units, has_moved, now_ms);
}

void keep_at_fork(fork_phase_t phase)
{
    if (phase == FORK_CHILD) { /* what its parent needed again is no need of the child */
        keep_state.refaults = (refaults_t){.slot = keep_state.refaults.slot};
        keep_state.kept_units = keep_state.paying_units = keep_state.gone_units = 0;
    }
    lock_at_fork(&keep_state.lock, phase);
}
