/* Threads cancelled in the midst of their work: cleanup handlers free, and the heap goes on. */
#include "stress/payload.h"

#include <pthread.h>
#include <sched.h>

enum { CANCEL_COUNT = 600 / STRESS_SCALE };

static void free_payload(void *payload)
{
    payload_free((payload_t *)payload);
}

static void *work_until_cancelled(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    for (;;) {
        payload_t *kept = payload_new(random_size(&random, 16), random_step(&random));
        pthread_cleanup_push(free_payload, kept);
        payload_free(payload_new(random_size(&random, 12), random_step(&random)));
        pthread_testcancel();
        pthread_cleanup_pop(1);
    }
    return NULL;
}

test(cancelled_threads_free_in_their_cleanup_handlers)
{
    for (uintptr_t i = 0; i < CANCEL_COUNT; i++) {
        pthread_t thread;
        void *result = NULL;
        check_eq(pthread_create(&thread, NULL, work_until_cancelled, (void *)i), 0);
        for (uintptr_t k = 0; k < i % 7; k++) (void)sched_yield();
        check_eq(pthread_cancel(thread), 0);
        payload_free(payload_new(5000, i));
        check_eq(pthread_join(thread, &result), 0);
        check(result == PTHREAD_CANCELED);
    }
}

test(four_cancelled_at_once)
{
    for (uintptr_t i = 0; i < CANCEL_COUNT / 6; i++) {
        pthread_t threads[4];
        for (uintptr_t k = 0; k < 4; k++) {
            void *argument = (void *)(i * 4 + k);
            check_eq(pthread_create(&threads[k], NULL, work_until_cancelled, argument), 0);
        }
        for (size_t k = 0; k < 4; k++) check_eq(pthread_cancel(threads[k]), 0);
        for (size_t k = 0; k < 4; k++) check_eq(pthread_join(threads[k], NULL), 0);
    }
}

check_main()
