/* How long free memory is worth keeping: pure arithmetic, in which time and quantities are
 * arguments.
 *
 * To hold a page costs memory; to give it back costs a page fault when it is needed again. The
 * purge delay is the time after which both have cost the same. Who waits so long and then gives the
 * page back pays at most twice the least cost, whatever the program does (ski rental: Karlin,
 * Manasse, Rudolph and Sleator, 1988). Where pages are needed again only after more than the delay,
 * waiting gains nothing: they had better go at once.
 *
 * So some waits are tried on paper, on the curve of what the program uses. That curve does not
 * depend on what is held, so each wait can be judged without being used. A wait of n slots of time
 * holds the most that was used within the last n slots, and a slot costs it
 *
 *   what it holds beyond what is used + slots of a delay * what it takes back
 *
 * Costs fade. The cheapest wait is taken; a process begins with a third of the delay, and stays
 * with the wait it has as long as no other is clearly cheaper. A third, since what has been idle
 * for so long is mostly idle for much longer (docs/design.md). A program of which that is not true
 * pays for page faults in its first rounds. (All experts are judged after each step: Littlestone
 * and Warmuth, 1994.) */
#ifndef HAKMEM_SPAN_BREAK_EVEN_H
#define HAKMEM_SPAN_BREAK_EVEN_H

#include "base/bits.h"
#include "base/types.h"
#include "policy/tuning.h"
#include "span/budget.h"

/* Slots that each of them waits; the first is what a process begins with. */
#define WAIT_COUNT 4
static const uint8_t break_even_slots[WAIT_COUNT] = {FIRST_WAIT_SLOTS, BUDGET_SLOTS - 1,
                                                     MIDDLE_WAIT_SLOTS, SHORT_WAIT_SLOTS};

typedef struct break_even {
    uint64_t slot;              /* number of the current slot, as in budget.h */
    size_t used[BUDGET_SLOTS];  /* the most in each slot, by its number modulo BUDGET_SLOTS */
    size_t held[WAIT_COUNT];    /* at the end of the slot before */
    uint64_t costs[WAIT_COUNT]; /* units held through a slot; fading */
    unsigned taken;             /* the wait that is used */
} break_even_t;

/* What a wait holds at the end of the slot `slot`. */
static inline size_t break_even_held(const break_even_t *state, unsigned wait, uint64_t slot)
{
    size_t most = 0;
    for (unsigned back = 0; back <= break_even_slots[wait]; back++)
        most = larger_of(most, state->used[(slot - back) % BUDGET_SLOTS]);
    return most;
}

/* A slot is over. What a wait holds more than before costs page faults. A program that grows pays
 * for that whatever the wait, so the least of these is no cost of any. */
static inline void break_even_settle(break_even_t *state, uint64_t slot)
{
    size_t used = state->used[slot % BUDGET_SLOTS];
    size_t faults[WAIT_COUNT];
    size_t least = SIZE_MAX;
    for (unsigned wait = 0; wait < WAIT_COUNT; wait++) {
        size_t held = break_even_held(state, wait, slot);
        faults[wait] = held - smaller_of(state->held[wait], held);
        least = smaller_of(least, faults[wait]);
        state->held[wait] = held;
    }
    for (unsigned wait = 0; wait < WAIT_COUNT; wait++) {
        uint64_t *cost = &state->costs[wait];
        *cost -= *cost >> BREAK_EVEN_FADING;
        *cost += state->held[wait] - used + (uint64_t)(faults[wait] - least) * (BUDGET_SLOTS - 1);
    }
}

/* Takes in that the program used no more than `used_units` since the last call. Returns how long
 * free memory is to wait, in milliseconds: `delay_ms` or less. */
static inline uint64_t break_even_wait(break_even_t *state, size_t used_units, uint64_t now_ms,
                                       uint64_t delay_ms)
{
    uint64_t slot = now_ms / budget_slot_ms(delay_ms);
    uint64_t passed = slot - state->slot;
    size_t *current = &state->used[state->slot % BUDGET_SLOTS];
    *current = larger_of(*current, used_units);
    for (uint64_t step = 1; step <= passed && step <= BUDGET_SLOTS; step++) {
        break_even_settle(state, state->slot + step - 1);
        state->used[(state->slot + step) % BUDGET_SLOTS] = used_units;
    }
    state->slot = slot;
    unsigned best = 0;
    for (unsigned wait = 1; wait < WAIT_COUNT; wait++)
        if (state->costs[wait] < state->costs[best])
            best = wait;
    uint64_t cost = state->costs[state->taken];
    if (state->costs[best] < cost - cost / BREAK_EVEN_MARGIN)
        state->taken = best;
    return smaller_of(delay_ms, break_even_slots[state->taken] * budget_slot_ms(delay_ms));
}

#endif
