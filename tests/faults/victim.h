/* The victim of injected faults: one life of a busy program that copes with NULL.

   Four threads take, resize, hand over and give back blocks of every kind, and end; four more come
   after them; memory is trimmed meanwhile. Every block knows its contents, calloc's are zero. When
   the faults are lifted, everything must be had again, and everything given must be back. */
#ifndef HAKMEM_TESTS_VICTIM_H
#define HAKMEM_TESTS_VICTIM_H

#include "hakmem.h"
#include "stress/payload.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

bool hakmem_get_statistics(hakmem_statistics_t *statistics) __attribute__((weak));
size_t hakmem_purge(void) __attribute__((weak));

enum { WORKERS = 4, SLOTS = 20, OPERATIONS = 110, MAILBOXES = 40, LIFE_SECONDS = 120,
       CROWD = 2000, CROWD_BYTES = 40000 };
#define VICTIM_MIB ((size_t)1 << 20)

static payload_t *_Atomic mailboxes[MAILBOXES];
static atomic_size_t refusals; /* NULL where a program does not expect it */

/* Half are small; one in 16 is huge. */
static size_t victim_size(uint64_t *random)
{
    const uint64_t what = random_step(random) % 16;
    if (what < 7) return random_size(random, 10);
    if (what < 11) return random_size(random, 15);
    if (what < 14) return random_size(random, 21);
    if (what < 15) return 2 * VICTIM_MIB + random_step(random) % (2 * VICTIM_MIB);
    return 4 * VICTIM_MIB + random_step(random) % (8 * VICTIM_MIB);
}

static bool was_refused(const void *block)
{
    if (block != NULL) return false;
    check_eq(errno, ENOMEM);
    refusals++;
    return true;
}

/* Looks at both ends and at a word of every sixteenth page: to read all of a long block is dear. */
static void check_zero(const unsigned char *block, size_t size)
{
    const size_t end = size < 8192 ? size : 8192;
    check(heap_is_zero(block, end) && heap_is_zero(block + size - end, end));
    for (size_t i = 0; i < size; i += 65536) check_eq(block[i], 0);
}

static payload_t *victim_take(uint64_t *random)
{
    const size_t size = victim_size(random);
    const uint64_t how = random_step(random) % 8;
    void *block = NULL;
    errno = 0;
    if (how == 0) {
        const size_t alignment = (size_t)16 << (random_step(random) % 20);
        block = hidden(memalign(alignment, size));
        check(heap_is_aligned(block, alignment));
    } else if (how < 3) {
        block = hidden(calloc(1, size));
        if (block != NULL) check_zero((const unsigned char *)block, size);
    } else {
        block = hidden(malloc(size));
    }
    return was_refused(block) ? NULL : payload_put(block, size, random_step(random));
}

/* The first bytes of a resized block are those it had. */
static payload_t *victim_resize(payload_t *old, uint64_t *random)
{
    const bool is_huge = old->size >= 4 * VICTIM_MIB;
    const bool stays_huge = is_huge && random_step(random) % 4 != 0;
    const payload_t had = *old;
    const size_t size =
        stays_huge ? 4 * VICTIM_MIB + random_step(random) % (8 * VICTIM_MIB) : victim_size(random);
    payload_verify(old);
    errno = 0;
    uint64_t *words = (uint64_t *)hidden(realloc(hidden(old), size));
    if (was_refused(words)) {
        payload_verify(old);
        return old;
    }
    check_eq(words[0], had.seed);
    check_eq(words[1], had.size);
    const size_t same = (size < had.size ? size : had.size) / 8;
    for (size_t i = 2; i < same && i < 512; i++) check_eq(words[i], payload_word(&had, i));
    return payload_put(words, size, random_step(random));
}

static void hand_over(payload_t **slot, uint64_t *random)
{
    payload_t *_Atomic *box = &mailboxes[random_step(random) % MAILBOXES];
    *slot = atomic_exchange(box, *slot);
}

/* Large blocks, hardly touched: the window grows, and with it the tables that describe it. */
static void make_the_window_grow(payload_t **slots, uint64_t *random)
{
    for (size_t i = 0; i < SLOTS; i++) {
        errno = 0;
        void *block = hidden(malloc(3 * VICTIM_MIB));
        if (!was_refused(block)) slots[i] = payload_put(block, 3 * VICTIM_MIB, random_step(random));
    }
}

static void *victim_work(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    payload_t *slots[SLOTS] = {NULL};
    if ((uintptr_t)argument % WORKERS < 2) make_the_window_grow(slots, &random);
    for (size_t i = 0; i < OPERATIONS; i++) {
        payload_t **slot = &slots[random_step(&random) % SLOTS];
        const uint64_t what = random_step(&random) % 8;
        if (*slot == NULL) {
            *slot = victim_take(&random);
        } else if (what < 3) {
            payload_free(*slot);
            *slot = NULL;
        } else if (what < 6) {
            *slot = victim_resize(*slot, &random);
        } else {
            hand_over(slot, &random);
        }
        if (i % 50 == 49 && (uintptr_t)argument % WORKERS == 3) (void)malloc_trim(0);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (i % 2 == 0) hand_over(&slots[i], &random);
        payload_free(slots[i]);
    }
    return NULL;
}

/* On a stack of ours: with its own the C library would keep what describes the thread for the next,
   and all that is in use at the end would be a guess. */
static bool victim_start(pthread_t *thread, uintptr_t number, void *(*body)(void *), void *argument)
{
    enum { STACK_SIZE = 1 << 18 };
    static char stacks[WORKERS][STACK_SIZE] __attribute__((aligned(65536))); /* Any page. */
    pthread_attr_t attributes;
    check_eq(pthread_attr_init(&attributes), 0);
    check_eq(pthread_attr_setstack(&attributes, stacks[number % WORKERS], STACK_SIZE), 0);
    const bool runs = pthread_create(thread, &attributes, body, argument) == 0;
    check_eq(pthread_attr_destroy(&attributes), 0);
    return runs;
}

/* A thread that cannot be had is done without. */
static void victim_generation(uintptr_t first)
{
    pthread_t threads[WORKERS];
    bool runs[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++) {
        void *argument = (void *)(first + i);
        runs[i] = victim_start(&threads[i], i, victim_work, argument);
        if (!runs[i]) (void)victim_work(argument);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        if (runs[i]) check_eq(pthread_join(threads[i], NULL), 0);
    }
}

/* Many blocks, so that what describes them fills mappings of its own; a few gaps between them. */
static void crowd_in(size_t **crowd)
{
    for (size_t i = 0; i < CROWD; i++) {
        errno = 0;
        crowd[i] = (size_t *)hidden(malloc(CROWD_BYTES));
        if (!was_refused(crowd[i])) *crowd[i] = i;
    }
}

static void crowd_out(size_t **crowd, size_t many_of_50)
{
    for (size_t i = 0; i < CROWD; i++) {
        if (i % 50 >= many_of_50 || crowd[i] == NULL) continue;
        check_eq(*crowd[i], i);
        free(hidden(crowd[i]));
        crowd[i] = NULL;
    }
}

/* All that a program does while its calls may fail. At the end it holds nothing. */
static void victim_suffer(void)
{
    static size_t *crowd[CROWD];
    crowd_in(crowd);
    crowd_out(crowd, 2);
    victim_generation(WORKERS);
    (void)malloc_trim(0);
    crowd_out(crowd, 50);
    victim_generation(2 * WORKERS);
    for (size_t i = 0; i < MAILBOXES; i++) payload_free(atomic_exchange(&mailboxes[i], NULL));
}

/* Every size can be had again, and as much as before. */
static void *victim_recover(void *unused)
{
    static const size_t sizes[] = {16,    100,    1000,   4000,           9000,           30000,
                                   40000, 300000, 900000, 3 * VICTIM_MIB, 5 * VICTIM_MIB, 33554432};
    enum { MOST = 6, SIZES = sizeof sizes / sizeof sizes[0] };
    payload_t *blocks[SIZES][MOST];
    for (size_t i = 0; i < SIZES; i++) {
        const size_t count = sizes[i] < VICTIM_MIB ? MOST : 2;
        for (size_t k = 0; k < count; k++) blocks[i][k] = payload_new(sizes[i], i * MOST + k);
        unsigned char *zero = (unsigned char *)hidden(calloc(1, sizes[i]));
        check(zero != NULL);
        check_zero(zero, sizes[i]);
        zero = (unsigned char *)hidden(realloc(hidden(zero), 2 * sizes[i]));
        check(zero != NULL);
        check_zero(zero, sizes[i]);
        free(zero);
    }
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = 0; k < (sizes[i] < VICTIM_MIB ? MOST : 2); k++) payload_free(blocks[i][k]);
    }
    return unused;
}

static void victim_recovers(void)
{
    pthread_t thread;
    (void)victim_recover(NULL);
    check(victim_start(&thread, 0, victim_recover, NULL));
    check_eq(pthread_join(thread, NULL), 0);
}

#endif
