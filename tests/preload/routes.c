/* Calls of one kind each, for the tests of routes. The argument names what is done. */
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>

enum { CALLS = 100000, KIB = 1024, MIB = 1024 * KIB, BATCH = 4000, BATCHES = 50 };

static void *volatile slots[4096];

/* One block at a time. */
static void cycle(size_t size, unsigned count)
{
    for (unsigned index = 0; index < count; index++) {
        slots[0] = malloc(size);
        check(slots[0] != NULL);
        free(slots[0]);
    }
}

test(nothing) {}
test(hot_loop) { cycle(48, CALLS); }
test(blocks_of_32_kib) { cycle(32 * KIB, CALLS); }
test(blocks_of_32_mib) { cycle(32 * MIB, 1000); }

test(hot_calloc)
{
    for (unsigned index = 0; index < CALLS; index++) {
        slots[0] = calloc(3, 16);
        free(slots[0]);
    }
}

test(blocks_above_32_kib)
{
    cycle(32 * KIB + 1, 1000);
    cycle(4 * MIB - 1, 100);
}

test(free_of_null)
{
    for (unsigned index = 0; index < CALLS; index++) free(slots[0]);
}

/* Every slot changes again and again, with all sizes that have a class. */
test(small_of_all_sizes)
{
    uint64_t state = 1;
    for (unsigned index = 0; index < CALLS; index++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t slot = (state >> 33) % 4096;
        free(slots[slot]);
        slots[slot] = malloc(1 + (state >> 45) % (32 * KIB));
        check(slots[slot] != NULL);
    }
    for (size_t slot = 0; slot < 4096; slot++) free(slots[slot]);
}

test(aligned_small)
{
    for (unsigned index = 0; index < CALLS; index++) {
        slots[0] = aligned_alloc(64, 100);
        check(slots[0] != NULL);
        free(slots[0]);
    }
}

test(small_and_large)
{
    cycle(48, 1000);
    cycle(2000, 1000);
    cycle(100 * KIB, 1000);
    cycle(40 * MIB, 1000);
}

static sem_t filled, emptied;

static void *consume(void *argument)
{
    for (unsigned round = 0; round < BATCHES; round++) {
        check_eq(sem_wait(&filled), 0);
        for (unsigned index = 0; index < BATCH; index++) free(slots[index]);
        check_eq(sem_post(&emptied), 0);
    }
    return argument;
}

test(producer_and_consumer)
{
    pthread_t consumer;
    check_eq(sem_init(&filled, 0, 0), 0);
    check_eq(sem_init(&emptied, 0, 0), 0);
    check_eq(pthread_create(&consumer, NULL, consume, NULL), 0);
    for (unsigned round = 0; round < BATCHES; round++) {
        for (unsigned index = 0; index < BATCH; index++) slots[index] = malloc(64);
        check_eq(sem_post(&filled), 0);
        check_eq(sem_wait(&emptied), 0);
    }
    check_eq(pthread_join(consumer, NULL), 0);
}

check_main()
