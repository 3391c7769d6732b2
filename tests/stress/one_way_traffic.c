/* Threads that only allocate and threads that only free: nothing piles up on either side. */
#include "stress/payload.h"
#include "stress/resident.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>

enum { RING_COUNT = 4096, BLOCK_TOTAL = 1500000 / STRESS_SCALE, GROWTH_KIB = 16384,
       FREERS = 1500 / STRESS_SCALE };

static payload_t *ring[RING_COUNT];
static sem_t filled;
static sem_t empty;
static size_t block_bytes;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) continue;
}

static void *produce(void *unused)
{
    for (size_t i = 0; i < BLOCK_TOTAL; i++) {
        wait_for(&empty);
        ring[i % RING_COUNT] = payload_new(block_bytes + i % 64, i);
        check_eq(sem_post(&filled), 0);
    }
    return unused;
}

static void *consume(void *unused)
{
    size_t tenth_kib = 0;
    for (size_t i = 0; i < BLOCK_TOTAL; i++) {
        wait_for(&filled);
        payload_free(ring[i % RING_COUNT]);
        check_eq(sem_post(&empty), 0);
        if (i == BLOCK_TOTAL / 10) tenth_kib = resident_kib();
    }
    resident_must_not_exceed("of the pipe", resident_kib(), tenth_kib + GROWTH_KIB);
    return unused;
}

static void run_pipe(size_t bytes)
{
    block_bytes = bytes;
    check_eq(sem_init(&filled, 0, 0), 0);
    check_eq(sem_init(&empty, 0, RING_COUNT), 0);
    pthread_t producer;
    pthread_t consumer;
    check_eq(pthread_create(&consumer, NULL, consume, NULL), 0);
    check_eq(pthread_create(&producer, NULL, produce, NULL), 0);
    check_eq(pthread_join(producer, NULL), 0);
    check_eq(pthread_join(consumer, NULL), 0);
}

test(a_pipe_of_small_blocks_holds_no_more_than_it_carries)
{
    run_pipe(sizeof(payload_t));
}

test(a_pipe_of_mid_blocks_holds_no_more_than_it_carries)
{
    run_pipe(1500);
}

static void *free_a_batch(void *batch)
{
    payload_t **blocks = (payload_t **)batch;
    for (size_t i = 0; i < 64; i++) payload_free(blocks[i]);
    return NULL;
}

test(threads_that_only_free_give_back_what_they_cached)
{
    /* The kernel joins pages to huge ones when it finds time, and fills what was missing there. */
    check_eq(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    payload_t *batch[64];
    size_t before = 0;
    for (size_t round = 0; round < FREERS; round++) {
        if (round == FREERS / 5) before = resident_kib();
        for (size_t i = 0; i < 64; i++) batch[i] = payload_new(16 + (i % 8) * 128, round);
        pthread_t thread;
        check_eq(pthread_create(&thread, NULL, free_a_batch, batch), 0);
        check_eq(pthread_join(thread, NULL), 0);
    }
    resident_must_not_exceed("after threads that only free", resident_kib(), before + 512);
}

check_main()
