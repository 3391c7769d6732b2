/* Tuning values that may change while the program runs. A strategy says by how many doublings each
 * of them differs from what the tuning table says; the default by none. Slow paths alone read them.
 * A policy sets them at initialisation. With the option learn, upkeep changes them while the
 * program runs, under its lock (learn/in_run.c). */
#ifndef HAKMEM_POLICY_STRATEGY_H
#define HAKMEM_POLICY_STRATEGY_H

#include "base/bits.h"
#include "base/types.h"
#include "policy/tuning.h"

typedef enum parameter {
    PARAMETER_BINS,   /* blocks that a bin may grow to: BIN_BYTES */
    PARAMETER_DEPOTS, /* magazines that a depot may hold: DEPOT_BYTES */
    PARAMETER_WAIT,   /* how long free memory waits, never longer than the purge delay */
    PARAMETER_COUNT
} parameter_t;

typedef struct strategy {
    int8_t doublings[PARAMETER_COUNT]; /* below 0: halvings */
} strategy_t;

extern HIDDEN const char *const strategy_names[PARAMETER_COUNT]; /* of the values, for people */
extern HIDDEN const strategy_t strategy_default;
extern HIDDEN strategy_t strategy_in_force;

static inline int strategy_least(parameter_t parameter)
{
    return parameter == PARAMETER_BINS     ? -LEARN_BINS_STEPS
           : parameter == PARAMETER_DEPOTS ? -LEARN_DEPOTS_STEPS
                                           : -LEARN_WAIT_SHORTER;
}

static inline int strategy_most(parameter_t parameter)
{
    return parameter == PARAMETER_BINS     ? LEARN_BINS_STEPS
           : parameter == PARAMETER_DEPOTS ? LEARN_DEPOTS_STEPS
                                           : LEARN_WAIT_LONGER;
}

static inline bool strategy_is_same(const strategy_t *left, const strategy_t *right)
{
    bool is_same = true;
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++)
        is_same &= left->doublings[parameter] == right->doublings[parameter];
    return is_same;
}

/* Nothing but the values changes: whoever reads one beside a change has the old or the new one. */
static inline void strategy_set(const strategy_t *strategy)
{
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++)
        __atomic_store_n(&strategy_in_force.doublings[parameter], strategy->doublings[parameter],
                         __ATOMIC_RELAXED);
}

/* A copy of the strategy in force. */
static inline strategy_t strategy_now(void)
{
    strategy_t now;
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++)
        now.doublings[parameter] =
            __atomic_load_n(&strategy_in_force.doublings[parameter], __ATOMIC_RELAXED);
    return now;
}

/* What the strategy in force makes of a value of the table, within `least` and `most`, where the
 * value itself lies. */
static inline size_t strategy_value(parameter_t parameter, size_t value, size_t least, size_t most)
{
    int doublings = __atomic_load_n(&strategy_in_force.doublings[parameter], __ATOMIC_RELAXED);
    if (LIKELY(doublings == 0))
        return value;
    size_t changed = doublings < 0 ? value >> -doublings : value << doublings;
    return smaller_of(larger_of(changed, least), most);
}

#endif
