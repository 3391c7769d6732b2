/* The clocks of the fake kernel: they stand still until the test moves them. */
#include "fake_os.h"
#include "os/os.h"

static uint64_t clock_ms = 1;
static uint64_t processor_ns;
static uint64_t process_ns;
static uint64_t look_ns;
static uint64_t fine_ns;
static uint64_t fine_look_ns;

void fake_os_set_clock(uint64_t now_ms)
{
    __atomic_store_n(&clock_ms, now_ms, __ATOMIC_RELAXED);
}

void fake_os_advance(uint64_t more_ms)
{
    __atomic_fetch_add(&clock_ms, more_ms, __ATOMIC_RELAXED);
}

void fake_os_spend(uint64_t ms)
{
    fake_os_advance(ms);
    __atomic_fetch_add(&process_ns, ms * 1000000, __ATOMIC_RELAXED);
}

void fake_os_set_touch_cost(uint64_t ns)
{
    __atomic_store_n(&look_ns, ns, __ATOMIC_RELAXED);
}

void fake_os_set_piece_cost(uint64_t ns)
{
    __atomic_store_n(&fine_look_ns, ns, __ATOMIC_RELAXED);
}

uint64_t os_clock_ms(void)
{
    return __atomic_load_n(&clock_ms, __ATOMIC_RELAXED);
}

uint64_t os_processor_ns(void)
{
    uint64_t more = __atomic_load_n(&look_ns, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&processor_ns, more, __ATOMIC_RELAXED);
}

/* As long as a test sets nothing else the process spends no time. */
uint64_t os_process_ns(void)
{
    return __atomic_load_n(&process_ns, __ATOMIC_RELAXED);
}

uint64_t os_clock_ns(void)
{
    uint64_t more = __atomic_load_n(&fine_look_ns, __ATOMIC_RELAXED);
    return os_clock_ms() * 1000000 + __atomic_add_fetch(&fine_ns, more, __ATOMIC_RELAXED);
}

uint64_t os_calendar_ns(void)
{
    return os_clock_ms() * 1000000;
}

void os_sleep(uint64_t ms)
{
    fake_os_advance(ms);
}
