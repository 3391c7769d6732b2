/* Threads × sizes × hand-offs: handoff [threads] [rounds] [seed].
   Every block may be freed or grown by any thread; all of them verify what they find. */
#include "stress/payload.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SHELF_COUNT = 1024, OWN_COUNT = 256, THREADS_MAX = 64 };

static _Atomic(payload_t *) shelf[SHELF_COUNT];
static size_t round_count = 400000 / STRESS_SCALE;
static uint64_t seed;

static payload_t *resized(payload_t *payload, uint64_t *random)
{
    payload_verify(payload);
    const size_t size = random_size(random, 17);
    return payload_put(hidden(realloc(payload, size)), size, random_step(random));
}

static void *work(void *argument)
{
    uint64_t random = seed + (uintptr_t)argument * 7919;
    payload_t *own[OWN_COUNT] = {NULL};
    for (size_t i = 0; i < round_count; i++) {
        payload_t **slot = &own[random_step(&random) % OWN_COUNT];
        const uint64_t dice = random_step(&random) % 16;
        if (dice < 8) {
            _Atomic(payload_t *) *place = &shelf[random_step(&random) % SHELF_COUNT];
            /* acq_rel: the contents travel with the pointer, both ways. */
            *slot = atomic_exchange_explicit(place, *slot, memory_order_acq_rel);
        } else if (*slot == NULL) {
            const unsigned top = dice == 15 && i % 64 == 0 ? 21 : 14;
            *slot = payload_new(random_size(&random, top), random_step(&random));
        } else if (dice < 10) {
            *slot = resized(*slot, &random);
        } else {
            payload_free(*slot);
            *slot = NULL;
        }
    }
    for (size_t i = 0; i < OWN_COUNT; i++) payload_free(own[i]);
    return NULL;
}

static void run(size_t thread_count)
{
    pthread_t threads[THREADS_MAX];
    check(thread_count <= THREADS_MAX);
    for (size_t i = 0; i < thread_count; i++) {
        check_eq(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
    }
    for (size_t i = 0; i < thread_count; i++) check_eq(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < SHELF_COUNT; i++) {
        payload_free(atomic_exchange_explicit(&shelf[i], NULL, memory_order_acquire));
    }
}

int main(int argc, char **argv)
{
    const size_t thread_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    if (argc > 2) round_count = strtoull(argv[2], NULL, 10);
    seed = argc > 3 ? strtoull(argv[3], NULL, 10) : check_seed(1);
    (void)printf("threads %zu rounds %zu seed %ju\n", thread_count, round_count, (uintmax_t)seed);
    if (thread_count > 0) {
        run(thread_count);
    } else {
        run(2);
        run(8);
        round_count /= 8;
        run(THREADS_MAX);
    }
    (void)puts("ok");
    return 0;
}
