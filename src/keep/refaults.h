/* How much free memory is worth keeping: pure arithmetic, in which time and quantities are
 * arguments.
 *
 * To hold a page costs memory; to give it back costs a page fault when it is wanted again. The
 * purge delay is the time after which both have cost the same. Memory that is wanted again within
 * the delay had better stayed, and memory that is wanted later, or never, had better gone at once.
 *
 * Therefore units that go back are noted for one delay, with the time since which they were idle.
 * Units that the program takes afresh meanwhile went back too early: as many are kept the next
 * time, as long as the number of units in use goes up and down within a delay, and as this is worth
 * its memory (rounds.h). Thus rounds lose their pages once, and a single phase of work leaves
 * nothing. Where the times between
 * two uses are random, the cost is at most twice the least (ski rental: Karlin, Manasse, Rudolph
 * and Sleator, 1988).
 *
 *   in use   ____####____####____####________________________
 *   free     ####____~~~~____^^^^____^^^^^^^^^^^^^^^~~~~~~~~~
 *            ~ given back at once, the first time too early; ^ kept, up to a delay */
#ifndef HAKMEM_KEEP_REFAULTS_H
#define HAKMEM_KEEP_REFAULTS_H

#include "base/bits.h"
#include "base/types.h"
#include "options/tuning.h"
#include "keep/budget.h"
#include "keep/rounds.h"

typedef struct refaults {
    uint64_t slot;       /* number of the current slot, as in budget.h; read without a lock */
    size_t kept_units;   /* so many free units are known to be wanted again */
    size_t wanted_units; /* units wanted again since use last began to fall */
    bool pays;           /* they are worth their memory: they stay beside what may always stay */
    bool paid_at_low;    /* likewise at the last low of use */
    rounds_t rounds;
    /* Of each slot, by its number modulo BUDGET_SLOTS: */
    size_t gone[BUDGET_SLOTS];  /* units given back, idle since then, and not wanted again */
    size_t most[BUDGET_SLOTS];  /* the most units in use */
    size_t least[BUDGET_SLOTS]; /* the fewest */
} refaults_t;

/* Forgets what is older than a delay. `used_units` were in use in the slots that have passed. */
static inline void refaults_advance(refaults_t *state, size_t used_units, uint64_t now_ms,
                                    uint64_t delay_ms)
{
    uint64_t slot = now_ms / budget_slot_ms(delay_ms);
    if (slot > state->slot)
        rounds_advance(&state->rounds, slot);
    for (unsigned step = 1; state->slot + step <= slot && step <= BUDGET_SLOTS; step++) {
        unsigned index = (unsigned)((state->slot + step) % BUDGET_SLOTS);
        state->gone[index] = 0;
        state->most[index] = state->least[index] = used_units;
    }
    __atomic_store_n(&state->slot, larger_of(state->slot, slot), __ATOMIC_RELAXED);
}

/* Notes that `units`, idle since `since_ms`, went back to the kernel. */
static inline void refaults_note_gone(refaults_t *state, size_t units, uint64_t since_ms,
                                      uint64_t delay_ms)
{
    uint64_t since = smaller_of(since_ms / budget_slot_ms(delay_ms), state->slot);
    if (since + BUDGET_SLOTS > state->slot)
        state->gone[since % BUDGET_SLOTS] += units;
}

/* The program has taken so many units afresh: some of those that went back, the oldest first. Where
 * nothing was kept each round wants all of it, so that only the most counts. Returns how many units
 * may still be wanted again. */
static inline size_t refaults_note_wanted(refaults_t *state, size_t units)
{
    size_t left = 0;
    size_t sum = 0;
    for (unsigned step = 1; step <= BUDGET_SLOTS; step++) {
        size_t *gone = &state->gone[(state->slot + step) % BUDGET_SLOTS];
        size_t wanted = smaller_of(*gone, units);
        *gone -= wanted;
        units -= wanted;
        left += *gone;
        sum += wanted;
    }
    state->wanted_units += sum;
    state->kept_units = state->paid_at_low ? state->kept_units + sum
                                           : larger_of(state->kept_units, state->wanted_units);
    return left;
}

/* Between `least` and `most` units were in use since the last call: more than KEEP_SWINGS times the
 * difference within a delay is not kept. A fall from which no round came back is no part of it. */
static inline void refaults_note_used(refaults_t *state, size_t least, size_t most)
{
    unsigned current = (unsigned)(state->slot % BUDGET_SLOTS);
    state->least[current] = smaller_of(state->least[current], least);
    state->most[current] = larger_of(state->most[current], most);
    for (unsigned index = 0; index < BUDGET_SLOTS; index++) {
        least = smaller_of(least, state->least[index]);
        most = larger_of(most, state->most[index]);
    }
    size_t lowest = rounds_lowest(&state->rounds);
    if (lowest != SIZE_MAX)
        least = larger_of(least, lowest);
    size_t swings = KEEP_SWINGS * (most - smaller_of(least, most));
    state->kept_units = smaller_of(state->kept_units, swings);
    state->wanted_units = smaller_of(state->wanted_units, swings);
}

static inline void refaults_note_use(refaults_t *state, size_t used, uint64_t processor_ns)
{
    if (rounds_note_use(&state->rounds, used, state->kept_units, state->slot, processor_ns))
        state->wanted_units = 0;
}

/* Use was `least` units and `most` units since the last call, and is `used` now. Returns whether
 * what was kept is no longer worth it: all that is more than may stay goes. */
static inline bool refaults_judge(refaults_t *state, size_t least, size_t most, size_t used,
                                  uint64_t processor_ns)
{
    bool has_fallen = most - smaller_of(used, most) > used - smaller_of(least, used);
    if (least <= most) { /* in the order in which they were */
        refaults_note_use(state, has_fallen ? most : least, processor_ns);
        refaults_note_use(state, has_fallen ? least : most, processor_ns);
    }
    refaults_note_use(state, used, processor_ns);
    bool had_paid = state->pays && state->kept_units != 0;
    rounds_verdict_t verdict =
        rounds_judge(&state->rounds, used, state->kept_units, state->slot, processor_ns);
    state->pays = verdict == ROUNDS_PAY;
    if (verdict == ROUNDS_HAVE_ENDED)
        state->kept_units = 0;
    if (state->rounds.is_falling && used == state->rounds.low)
        state->paid_at_low = state->pays;
    return had_paid && !state->pays;
}

#endif
