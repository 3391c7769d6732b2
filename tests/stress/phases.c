/* A day in thirty phases: sizes and threads change, everything drains, the memory comes back. */
#include "stress/payload.h"
#include "stress/resident.h"

#include <pthread.h>

enum { PHASES = 30, WARM_UP = 10, SLOTS = 2000, STEPS = 20000 / STRESS_SCALE, THREADS_MAX = 4 };
static uint64_t seed;

static void *live_a_phase(void *argument)
{
    const size_t phase = (uintptr_t)argument;
    uint64_t random = seed + phase * 131;
    const unsigned top = (unsigned)(6 + phase % 11); /* 64 bytes in one phase, 64 KiB in another. */
    payload_t **slots = hidden(calloc(SLOTS, sizeof *slots));
    check(slots != NULL);
    for (size_t i = 0; i < STEPS; i++) {
        payload_t **slot = &slots[random_step(&random) % (top > 12 ? SLOTS / 8 : SLOTS)];
        payload_free(*slot);
        *slot = payload_new(random_size(&random, top), random_step(&random));
    }
    for (size_t i = 0; i < SLOTS; i++) payload_free(slots[i]);
    free(slots);
    return NULL;
}

test(what_a_phase_used_the_next_can_have_and_the_drain_gives_back)
{
    seed = check_seed(1);
    size_t reference_kib = 0;
    for (uintptr_t phase = 0; phase < PHASES; phase++) {
        pthread_t threads[THREADS_MAX];
        const size_t thread_count = 1 + phase % THREADS_MAX;
        for (uintptr_t i = 0; i < thread_count; i++) {
            void *argument = (void *)(phase + i * 3);
            check_eq(pthread_create(&threads[i], NULL, live_a_phase, argument), 0);
        }
        for (size_t i = 0; i < thread_count; i++) check_eq(pthread_join(threads[i], NULL), 0);
        (void)malloc_trim(0);
        if (phase == WARM_UP) reference_kib = resident_kib();
    }
    const size_t limit_kib = reference_kib + reference_kib / 50 + 1024;
    resident_must_not_exceed("after the last drain", resident_kib(), limit_kib);
}

check_main()
