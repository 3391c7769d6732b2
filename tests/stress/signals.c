/* Signals that arrive in the midst of malloc and free. The handlers do not allocate: that was never
   promised. They may read the clock, and jump away where the program is outside the allocator. */
#include "stress/payload.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t signal_count;
static volatile sig_atomic_t may_jump;
static sigjmp_buf landing;

static void count_signal(int number)
{
    (void)number;
    errno = 99; /* A careless handler: the tests below do not look at errno. */
    signal_count++;
    if (may_jump) {
        may_jump = 0;
        siglongjmp(landing, 1);
    }
}

static void set_timer(long microseconds)
{
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = count_signal;
    check_eq(sigaction(SIGPROF, &action, NULL), 0);
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    check_eq(setitimer(ITIMER_PROF, &timer, NULL), 0);
}

static void churn(uint64_t *random, payload_t **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        payload_t **slot = &blocks[random_step(random) % 256];
        payload_free(*slot);
        *slot = payload_new(random_size(random, i % 512 == 0 ? 21 : 12), random_step(random));
    }
}

test(a_profiling_timer_disturbs_nothing)
{
    static payload_t *blocks[256];
    uint64_t random = check_seed(1);
    set_timer(1000);
    while (signal_count < 200) churn(&random, blocks, 1000);
    set_timer(0);
    for (size_t i = 0; i < 256; i++) payload_free(blocks[i]);
}

test(jumps_out_of_a_handler_between_calls_are_harmless)
{
    static payload_t *blocks[256];
    static uint64_t random = 5;
    static volatile int jumps;
    set_timer(1000);
    while (jumps < 50) {
        churn(&random, blocks, 50);
        if (sigsetjmp(landing, 1) == 0) {
            may_jump = 1;
            for (volatile int i = 0; i < 20000 && may_jump; i++) continue;
            may_jump = 0;
        } else {
            jumps++;
        }
    }
    set_timer(0);
    for (size_t i = 0; i < 256; i++) payload_free(blocks[i]);
}

check_main()
