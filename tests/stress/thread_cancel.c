/* Threads cancelled in the midst of their work: cleanup handlers free, and the heap goes on. */
#include "stress/payload.h"
#include "stress/soak.h"

#include <pthread.h>
#include <sched.h>

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
    const size_t count = soak_count(200, 20000);
    for (uintptr_t i = 0; i < count; i++) {
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
    const size_t count = soak_count(50, 10000);
    for (uintptr_t i = 0; i < count; i++) {
        pthread_t threads[4];
        for (uintptr_t k = 0; k < 4; k++) {
            void *argument = (void *)(i * 4 + k);
            check_eq(pthread_create(&threads[k], NULL, work_until_cancelled, argument), 0);
        }
        for (size_t k = 0; k < 4; k++) check_eq(pthread_cancel(threads[k]), 0);
        for (size_t k = 0; k < 4; k++) check_eq(pthread_join(threads[k], NULL), 0);
    }
}

/* stdio is full of cancellation points, and holds its locks and buffers at each. */
static void close_stream(void *file)
{
    (void)fclose((FILE *)file);
}

static void *write_until_cancelled(void *argument)
{
    for (;;) {
        FILE *file = fopen("/dev/null", "w");
        check(file != NULL);
        pthread_cleanup_push(close_stream, file);
        for (int i = 0; i < 50; i++) (void)fprintf(file, "%*p %.40Lf\n", 300, argument, 1.0L / i);
        (void)fflush(file);
        pthread_cleanup_pop(1);
    }
    return NULL;
}

test(threads_cancelled_while_they_write_leave_the_heap_whole)
{
    const size_t count = soak_count(50, 10000);
    for (uintptr_t i = 0; i < count; i++) {
        pthread_t thread;
        void *result = NULL;
        check_eq(pthread_create(&thread, NULL, write_until_cancelled, (void *)i), 0);
        for (uintptr_t k = 0; k < i % 11; k++) (void)sched_yield();
        payload_free(payload_new(300 * (i % 50) + 100, i));
        check_eq(pthread_cancel(thread), 0);
        check_eq(pthread_join(thread, &result), 0);
        check(result == PTHREAD_CANCELED);
    }
}

check_main()
