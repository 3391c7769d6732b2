/* Signals that arrive in the midst of malloc and free. The handlers do not allocate: that was never
   promised. They may read the clock, and jump away where the program is outside the allocator. */
#include "stress/payload.h"
#include "stress/soak.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
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

/* ---- Handlers on stacks of their own, which lie in blocks, in several threads at once. */

enum { THREADS = 4, STACK_BYTES = 65536 };

typedef struct thread_state {
    sigjmp_buf landing;
    volatile sig_atomic_t may_jump;
    volatile sig_atomic_t signals;
    char *stack;
} thread_state_t;

static _Thread_local thread_state_t state;
static atomic_bool ended[THREADS]; /* From then on it gets no more signals. */

/* Uses a good part of its stack. It jumps only where the thread is outside the allocator. */
static void handle_on_own_stack(int number)
{
    volatile char deep[STACK_BYTES / 4];
    if (state.stack == NULL) return;
    for (size_t i = 0; i < sizeof deep; i += 512) deep[i] = (char)number;
    check((char *)deep > state.stack && (char *)deep < state.stack + STACK_BYTES);
    errno = 99;
    state.signals++;
    if (state.may_jump) {
        state.may_jump = 0;
        siglongjmp(state.landing, 1);
    }
}

static void set_stack(char *stack)
{
    const stack_t on = {.ss_sp = stack, .ss_size = STACK_BYTES};
    const stack_t off = {.ss_flags = SS_DISABLE};
    state.stack = NULL; /* In between, a handler does not know where it is. */
    check_eq(sigaltstack(stack != NULL ? &on : &off, NULL), 0);
    state.stack = stack;
}

/* A new stack for each round: the old one is freed, and others write into it. */
static void *be_interrupted(void *argument)
{
    static payload_t *blocks[THREADS][256];
    static uint64_t random[THREADS];
    static volatile size_t jumps[THREADS];
    const uintptr_t self = (uintptr_t)argument;
    random[self] = self;
    while (jumps[self] < soak_count(50, 3000)) {
        char *stack = (char *)hidden(malloc(STACK_BYTES));
        check(stack != NULL);
        set_stack(stack);
        const size_t before = (size_t)state.signals;
        while ((size_t)state.signals < before + 3) churn(&random[self], blocks[self], 200);
        if (sigsetjmp(state.landing, 1) == 0) {
            state.may_jump = 1;
            while (state.may_jump) continue;
        } else {
            jumps[self]++;
        }
        stack = state.stack;
        set_stack(NULL);
        free(stack);
    }
    for (size_t i = 0; i < 256; i++) payload_free(blocks[self][i]);
    ended[self] = true;
    return NULL;
}

test(handlers_on_stacks_from_the_heap_jump_away_in_four_threads)
{
    pthread_t threads[THREADS];
    bool all_ended = false;
    struct sigaction action = {.sa_flags = SA_ONSTACK | SA_RESTART};
    action.sa_handler = handle_on_own_stack;
    check_eq(sigaction(SIGUSR1, &action, NULL), 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        check_eq(pthread_create(&threads[i], NULL, be_interrupted, (void *)i), 0);
    }
    while (!all_ended) {
        all_ended = true;
        for (size_t i = 0; i < THREADS; i++) {
            if (ended[i]) continue;
            all_ended = false;
            check_eq(pthread_kill(threads[i], SIGUSR1), 0);
        }
        (void)usleep(300);
    }
    for (size_t i = 0; i < THREADS; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

check_main()
