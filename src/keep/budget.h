/* How much of the free memory that may stay (keep.h) has been idle: pure arithmetic, in which time
 * and quantities are arguments.
 *
 * Memory that a program needs again within the delay stays; memory that it did not need throughout
 * the delay is idle. The age of a page does not decide this, but the low water: the least amount
 * that was free at any moment of the last delay. Rounds that repeat within the delay keep all their
 * pages, however many; after a spike the low water rises to what nobody wants, and this goes.
 *
 *   free units   ▁▁▂▇▇▁▇▇▁▇▇▁▇▇▇▇▇▇▇▇▇▇▇▇
 *   low water    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇▇
 *                           |- delay -|
 *
 * (The idea is that of V8's and tcmalloc's release by low-water marks; a ring of slots is ours.) */
#ifndef HAKMEM_KEEP_BUDGET_H
#define HAKMEM_KEEP_BUDGET_H

#include "base/bits.h"
#include "base/types.h"
#include "options/tuning.h"

typedef struct budget {
    uint64_t slot;            /* number of the current slot: time in slots since the clock began */
    size_t low[BUDGET_SLOTS]; /* low water of each slot, by its number modulo BUDGET_SLOTS */
} budget_t;

static inline uint64_t budget_slot_ms(uint64_t delay_ms)
{
    return delay_ms / (BUDGET_SLOTS - 1) + 1;
}

/* Notes that at least `low_units` were free since the last call. Returns the units that may go: the
 * low water of the last `wait_ms`, which is at most the delay. A wait of 0 lets all `free_units`
 * go. */
static inline size_t budget_idle(budget_t *budget, size_t low_units, size_t free_units,
                                 uint64_t now_ms, uint64_t delay_ms, uint64_t wait_ms)
{
    uint64_t slot = now_ms / budget_slot_ms(delay_ms);
    if (budget->slot - slot <= BUDGET_SLOTS)
        slot = budget->slot; /* a caller that read the clock before another one did */
    uint64_t passed = slot - budget->slot;
    size_t *current = &budget->low[budget->slot % BUDGET_SLOTS];
    *current = smaller_of(*current, low_units);
    for (uint64_t step = 1; step <= passed && step <= BUDGET_SLOTS; step++)
        budget->low[(budget->slot + step) % BUDGET_SLOTS] = low_units;
    budget->slot = slot;
    size_t idle = free_units;
    /* The current slot, and whole ones before it that make up the wait. */
    uint64_t slots = wait_ms == 0 ? 0 : wait_ms / budget_slot_ms(delay_ms) + 2;
    for (uint64_t back = 0; back < slots && back < BUDGET_SLOTS; back++)
        idle = smaller_of(idle, budget->low[(slot - back) % BUDGET_SLOTS]);
    return idle;
}

/* Subtracts idle units that went back to the kernel. */
static inline void budget_take(budget_t *budget, size_t units)
{
    for (unsigned index = 0; index < BUDGET_SLOTS; index++)
        budget->low[index] -= smaller_of(budget->low[index], units);
}

/* Adds units that became free and that nobody had wanted for a delay before. */
static inline void budget_add(budget_t *budget, size_t units)
{
    for (unsigned index = 0; index < BUDGET_SLOTS; index++)
        budget->low[index] += units;
}

#endif
