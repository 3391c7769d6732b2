/* What the rounds of a program say of memory that it was seen to need again (refaults.h): pure
 * arithmetic, in which time and quantities are arguments.
 *
 * A round: use falls by a step at least, to a low, and comes back from there by a step at least.
 * At each use of memory there is one question: what would the page faults of the recent rounds that
 * came back from so low a use have cost?
 *
 *   in use   /\  /\  /\
 *           /  \/  \/  \
 *          /            \________     below the lows: no round came back from here
 *
 *   No round came back from so low: the phase of the rounds has ended.
 *   Less than PAY_PER_CENT of the processor time since the first of them: not worth its memory. Of
 *   less memory than PAY_WHOLE, proportionally less is asked.
 *
 * Processor time and not time: a program that waits between its rounds spends no less on faults.
 * (The first rule is that of Transparent Memory Offloading, ASPLOS 2022, turned around: memory is
 * reclaimed until what it costs reaches a share of the time.) */
#ifndef HAKMEM_KEEP_ROUNDS_H
#define HAKMEM_KEEP_ROUNDS_H

#include "base/bits.h"
#include "base/types.h"
#include "options/tuning.h"

typedef struct round {
    size_t low;            /* units in use from which it came back */
    size_t rise;           /* units by which use rose from there, until the next fall */
    uint64_t slot;         /* when it came back, as in budget.h */
    uint64_t processor_ns; /* processor time of the process then */
} round_t;

typedef struct rounds {
    size_t high;     /* the most units in use since use last rose */
    size_t low;      /* while use falls: the fewest since then */
    bool is_falling; /* by a step or more */
    unsigned count;  /* of rounds so far */
    size_t lowest;   /* of the lows of the rounds that are remembered; 0 rounds: without meaning */
    round_t last[ROUNDS_KNOWN];
} rounds_t;

/* What may be said at a use. */
typedef enum rounds_verdict {
    ROUNDS_PAY, /* or nothing is known that speaks against it */
    ROUNDS_ARE_CHEAP,
    ROUNDS_HAVE_ENDED
} rounds_verdict_t;

/* Use that moves by less is noise. `kept` units were wanted again and are kept. */
static inline size_t rounds_step(const rounds_t *rounds, size_t kept)
{
    size_t share = larger_of(rounds->high / ROUND_STEP_SHARE, kept / ROUND_KEPT_SHARE);
    return larger_of(ROUND_LEAST >> UNIT_SHIFT, share);
}

static inline unsigned rounds_known(const rounds_t *rounds)
{
    return (unsigned)smaller_of(rounds->count, ROUNDS_KNOWN);
}

/* The least use from which one of the rounds came back that are remembered; SIZE_MAX: none is. */
static inline size_t rounds_find_lowest(const rounds_t *rounds, uint64_t slot)
{
    size_t lowest = SIZE_MAX;
    for (unsigned index = 0; index < rounds_known(rounds); index++)
        if (rounds->last[index].slot + ROUND_END_SLOTS > slot)
            lowest = smaller_of(lowest, rounds->last[index].low);
    return lowest;
}

/* The same as it was found when a round was added, or rounds_advance was called. */
static inline size_t rounds_lowest(const rounds_t *rounds)
{
    return rounds->count == 0 ? SIZE_MAX : rounds->lowest;
}

/* Time goes on: forgets what is too old. */
static inline void rounds_advance(rounds_t *rounds, uint64_t slot)
{
    rounds->lowest = rounds_find_lowest(rounds, slot);
}

/* `used` units are in use. Returns whether use has begun to fall. */
static inline bool rounds_note_use(rounds_t *rounds, size_t used, size_t kept, uint64_t slot,
                                   uint64_t processor_ns)
{
    size_t step = rounds_step(rounds, kept);
    if (rounds->is_falling) {
        rounds->low = smaller_of(rounds->low, used);
        if (used < rounds->low + step)
            return false;
        rounds->last[rounds->count++ % ROUNDS_KNOWN] =
            (round_t){rounds->low, used - rounds->low, slot, processor_ns};
        rounds->lowest = rounds_find_lowest(rounds, slot);
        rounds->is_falling = false;
        rounds->high = used;
        return false;
    }
    rounds->high = larger_of(rounds->high, used);
    rounds->low = used;
    round_t *newest = &rounds->last[(rounds->count - 1) % ROUNDS_KNOWN];
    size_t rise = rounds->high - smaller_of(rounds->high, newest->low);
    if (rounds->count != 0)
        newest->rise = larger_of(newest->rise, rise);
    rounds->is_falling = used + step <= rounds->high;
    return rounds->is_falling;
}

/* Would the faults of recent rounds that came back from `used` units or little more, of `kept`
 * units at most each, have taken their share of the processor time since the first of them? */
static inline bool rounds_pay(const rounds_t *rounds, size_t used, size_t kept, uint64_t slot,
                              uint64_t processor_ns)
{
    size_t depth = larger_of(rounds->high, used) - used;
    size_t near = larger_of(ROUND_LEAST >> UNIT_SHIFT, depth / ROUND_NEAR_SHARE);
    size_t units = 0;
    uint64_t first_ns = processor_ns;
    for (unsigned index = 0; index < rounds_known(rounds); index++) {
        const round_t *round = &rounds->last[index];
        if (round->slot + ROUND_PAY_SLOTS <= slot || round->low > used + near)
            continue;
        units += smaller_of(round->rise, kept);
        first_ns = smaller_of(first_ns, round->processor_ns);
    }
    uint64_t fault_us = (uint64_t)units * REFAULT_GIB_MS * 1000 / (GIB >> UNIT_SHIFT);
    uint64_t share_us = (processor_ns - first_ns) / 1000 * PAY_PER_CENT / 100;
    size_t whole = PAY_WHOLE >> UNIT_SHIFT; /* less memory is worth it for less */
    return fault_us >= share_us * smaller_of(kept, whole) / whole;
}

/* Are `kept` units worth keeping while `used` are in use? Asked at a fall of use by as much; at
 * another use nothing speaks against them. */
static inline rounds_verdict_t rounds_judge(const rounds_t *rounds, size_t used, size_t kept,
                                            uint64_t slot, uint64_t processor_ns)
{
    size_t lowest = rounds_lowest(rounds);
    size_t depth = rounds->high - smaller_of(lowest, rounds->high);
    size_t margin = larger_of(ROUND_LEAST >> UNIT_SHIFT, larger_of(rounds->high / ROUND_STEP_SHARE,
                                                                   depth / ROUND_NEAR_SHARE));
    if (lowest != SIZE_MAX && used + margin < lowest)
        return ROUNDS_HAVE_ENDED;
    /* What goes and comes while use hardly falls are blocks of other lengths, and no rounds. And
     * little beside what is in use is not worth the question. */
    if (!rounds->is_falling || rounds->high - smaller_of(used, rounds->high) < kept / 2 ||
        kept < used / ROUND_KEPT_SHARE)
        return ROUNDS_PAY;
    return rounds_pay(rounds, used, kept, slot, processor_ns) ? ROUNDS_PAY : ROUNDS_ARE_CHEAP;
}

#endif
