/* Thousands of short-lived threads: what they leave behind does not add up. */
#include "stress/payload.h"
#include "stress/resident.h"
#include "stress/soak.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WARM_UP = 1000, BLOCKS = 64, GROWTH_KIB = 512, SPAWNERS = 4, MAILBOXES = 64 };

static payload_t *inherited[BLOCKS];

/* Frees what the thread before it allocated and leaves as much to the next. */
static void *live_briefly(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    for (size_t i = 0; i < BLOCKS; i++) {
        payload_free(inherited[i]);
        inherited[i] = payload_new(sizeof(payload_t) + 48 * (i % 20), random_step(&random));
        payload_free(payload_new(random_size(&random, 13), random_step(&random)));
    }
    return NULL;
}

static void *do_nothing(void *unused)
{
    return unused;
}

static void run_one_after_another(void *(*body)(void *), size_t count, size_t first)
{
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        check_eq(pthread_create(&thread, NULL, body, (void *)(uintptr_t)(first + i)), 0);
        check_eq(pthread_join(thread, NULL), 0);
    }
}

test(short_lived_threads_leave_nothing_behind)
{
    run_one_after_another(live_briefly, WARM_UP, 0);
    const size_t before = resident_kib();
    run_one_after_another(live_briefly, soak_count(5000, 300000), WARM_UP);
    resident_must_not_exceed("after many threads", resident_kib(), before + GROWTH_KIB);
    for (size_t i = 0; i < BLOCKS; i++) {
        payload_free(inherited[i]);
        inherited[i] = NULL;
    }
}

test(threads_that_never_allocate_cost_nothing)
{
    run_one_after_another(do_nothing, 200, 0);
    const size_t before = resident_kib();
    run_one_after_another(do_nothing, 2000, 0);
    resident_must_not_exceed("after 2000 idle threads", resident_kib(), before + GROWTH_KIB);
}

static payload_t *_Atomic mailboxes[MAILBOXES];

/* Takes what threads beside or before it left, and leaves as much. */
static void *pass_on(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    for (size_t i = 0; i < 8; i++) {
        const uint64_t box = random_step(&random) % MAILBOXES;
        payload_t *mine = payload_new(random_size(&random, 13), random_step(&random));
        payload_free(atomic_exchange(&mailboxes[box], mine));
    }
    return NULL;
}

static atomic_size_t running;

static void *pass_on_detached(void *argument)
{
    (void)pass_on(argument);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* Every eighth thread is detached: nobody waits for the end of its end. */
static void *spawn(void *argument)
{
    const size_t count = soak_count(8000, 140000) / SPAWNERS;
    for (uintptr_t i = 0; i < count; i++) {
        pthread_t thread;
        void *seed = (void *)((uintptr_t)argument * count + i);
        if (i % 8 != 0) {
            check_eq(pthread_create(&thread, NULL, pass_on, seed), 0);
            check_eq(pthread_join(thread, NULL), 0);
        } else {
            while (atomic_fetch_add(&running, 1) > 20) {
                atomic_fetch_sub(&running, 1);
                (void)usleep(100);
            }
            check_eq(pthread_create(&thread, NULL, pass_on_detached, seed), 0);
            check_eq(pthread_detach(thread), 0);
        }
    }
    return NULL;
}

static void spawn_side_by_side(void)
{
    pthread_t spawners[SPAWNERS];
    for (uintptr_t i = 0; i < SPAWNERS; i++) {
        check_eq(pthread_create(&spawners[i], NULL, spawn, (void *)i), 0);
    }
    for (size_t i = 0; i < SPAWNERS; i++) check_eq(pthread_join(spawners[i], NULL), 0);
    while (atomic_load(&running) > 0) (void)usleep(100);
}

/* What stays for ever is what twenty threads at once needed to describe their blocks. */
test(short_lived_threads_side_by_side_pass_everything_on)
{
    const size_t before = resident_kib();
    for (size_t i = 0; i < 5; i++) spawn_side_by_side();
    for (size_t i = 0; i < MAILBOXES; i++) payload_free(atomic_exchange(&mailboxes[i], NULL));
    (void)malloc_trim(0);
    resident_must_not_exceed("when all have gone", resident_kib(), before + 4 * GROWTH_KIB);
}

static pthread_barrier_t gate;

static void *live_together(void *argument)
{
    payload_t *kept = payload_new(sizeof(payload_t) + 100, (uintptr_t)argument);
    (void)pthread_barrier_wait(&gate);
    (void)pthread_barrier_wait(&gate);
    payload_free(kept);
    return NULL;
}

test(two_hundred_threads_live_at_once_again_and_again)
{
    enum { COUNT = 200, ROUNDS = 12 };
    static pthread_t threads[COUNT];
    pthread_attr_t small_stack;
    check_eq(pthread_attr_init(&small_stack), 0);
    check_eq(pthread_attr_setstacksize(&small_stack, 65536), 0);
    check_eq(pthread_barrier_init(&gate, NULL, COUNT + 1), 0);
    size_t peak_after_two_kib = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < COUNT; i++) {
            check_eq(pthread_create(&threads[i], &small_stack, live_together, (void *)i), 0);
        }
        (void)pthread_barrier_wait(&gate);
        const size_t peak = resident_kib();
        if (round == 2) peak_after_two_kib = peak;
        if (round > 2) resident_must_not_exceed("at 200 threads", peak, peak_after_two_kib + 2048);
        (void)pthread_barrier_wait(&gate);
        for (size_t i = 0; i < COUNT; i++) check_eq(pthread_join(threads[i], NULL), 0);
    }
    check_eq(pthread_barrier_destroy(&gate), 0);
    check_eq(pthread_attr_destroy(&small_stack), 0);
}

check_main()
