/* How long free memory is kept. See keep.h. */
#include "span/keep.h"

#include "base/bits.h"
#include "policy/strategy.h"
#include "span/break_even.h"

static break_even_t curve;
static uint64_t learnt_ms = UINT64_MAX; /* read by any */

uint64_t keep_wait_ms(void)
{
    uint64_t delay_ms = pressure_wait_ms((uint64_t)options.purge_delay_ms);
    uint64_t wait_ms = smaller_of(delay_ms, __atomic_load_n(&learnt_ms, __ATOMIC_RELAXED));
    return strategy_value(PARAMETER_WAIT, wait_ms, 0, delay_ms);
}

void keep_learn(size_t used_units, uint64_t now_ms)
{
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    uint64_t wait_ms = break_even_wait(&curve, used_units, now_ms, delay_ms);
    if (options.free_policy != FREE_ADAPTIVE)
        wait_ms = delay_ms;
    /* relaxed: keep_wait_ms only wants to know how long */
    __atomic_store_n(&learnt_ms, wait_ms, __ATOMIC_RELAXED);
}
