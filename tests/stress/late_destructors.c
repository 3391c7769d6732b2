/* Thread-specific data whose destructors allocate and free in all four rounds, when the allocator's
   own thread data may be gone. Nothing may crash, and nothing may be left behind per thread. */
#include "stress/payload.h"
#include "stress/resident.h"

#include <pthread.h>
#include <sys/mman.h>

#include "preload/weak.h"

enum { KEY_COUNT = 8, THREAD_COUNT = 2500, WARM_UP = 500, ROUNDS = 4, GROWTH_KIB = 2048 };
enum { STACK_SIZE = 1 << 20 };

typedef struct carried {
    size_t key;
    size_t round;
    payload_t *payload;
} carried_t;

static pthread_key_t keys[KEY_COUNT];
static size_t last_round_count;

static void carry(size_t key, size_t round)
{
    carried_t *carried = hidden(malloc(sizeof *carried));
    check(carried != NULL);
    *carried = (carried_t){key, round, payload_new(64 << round, key + round)};
    check_eq(pthread_setspecific(keys[key], carried), 0);
}

static void destroy(void *value)
{
    carried_t *carried = (carried_t *)value;
    const size_t key = carried->key;
    const size_t round = carried->round;
    payload_free(carried->payload);
    free(hidden(carried));
    payload_free(payload_new(100000, round)); /* A large one, too. */
    if (round == ROUNDS) {
        last_round_count++;
        return;
    }
    carry(key, round + 1);
}

static void *live_briefly(void *unused)
{
    for (size_t key = 0; key < KEY_COUNT; key++) carry(key, 1);
    return unused;
}

static pthread_key_t lone_key;

static void allocate_for_the_first_time(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < 100; i++) payload_free(payload_new(16 + i * 64, i));
}

/* All the allocating of this thread happens in a destructor. */
static void *only_set_a_value(void *unused)
{
    check_eq(pthread_setspecific(lone_key, &lone_key), 0);
    return unused;
}

static void run(void *(*body)(void *), size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        check_eq(pthread_create(&thread, NULL, body, NULL), 0);
        check_eq(pthread_join(thread, NULL), 0);
    }
}

test(destructors_allocate_and_free_in_four_rounds)
{
    for (size_t i = 0; i < KEY_COUNT; i++) check_eq(pthread_key_create(&keys[i], destroy), 0);
    run(live_briefly, WARM_UP);
    const size_t before = resident_kib();
    run(live_briefly, THREAD_COUNT);
    check_eq(last_round_count, (size_t)KEY_COUNT * (WARM_UP + THREAD_COUNT));
    resident_must_not_exceed("after late destructors", resident_kib(), before + GROWTH_KIB);
}

test(a_thread_may_allocate_for_the_first_time_in_a_destructor)
{
    check_eq(pthread_key_create(&lone_key, allocate_for_the_first_time), 0);
    run(only_set_a_value, WARM_UP);
    const size_t before = resident_kib();
    run(only_set_a_value, THREAD_COUNT);
    resident_must_not_exceed("after first-time destructors", resident_kib(), before + GROWTH_KIB);
}

static pthread_key_t last_key;
static size_t unseen_count;

/* In the last round: that this thread ends is told to nobody any more. */
static void allocate_at_the_very_end(void *value)
{
    const uintptr_t round = (uintptr_t)value;
    if (round < ROUNDS) {
        check_eq(pthread_setspecific(last_key, (void *)(round + 1)), 0);
        return;
    }
    allocate_for_the_first_time(NULL);
    unseen_count++;
}

static void *begin_the_rounds(void *unused)
{
    check_eq(pthread_setspecific(last_key, (void *)1), 0);
    return unused;
}

/* The thread-local memory of such a thread may be gone when statistics are asked for. */
test(a_thread_that_began_to_allocate_at_its_very_end_may_be_counted)
{
    check_eq(pthread_key_create(&last_key, allocate_at_the_very_end), 0);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
    check(stack != MAP_FAILED);
    pthread_attr_t attributes;
    check_eq(pthread_attr_init(&attributes), 0);
    check_eq(pthread_attr_setstack(&attributes, stack, STACK_SIZE), 0);
    pthread_t thread;
    check_eq(pthread_create(&thread, &attributes, begin_the_rounds, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
    check_eq(unseen_count, 1);
    check_eq(munmap(stack, STACK_SIZE), 0);
    hakmem_statistics_t statistics;
    check(hakmem_get_statistics == NULL || hakmem_get_statistics(&statistics));
}

static pthread_key_t late_key;

static void allocate_in_the_last_round(void *value)
{
    const uintptr_t round = (uintptr_t)value;
    if (round < ROUNDS)
        check_eq(pthread_setspecific(late_key, (void *)(round + 1)), 0);
    else
        free(hidden(malloc(100)));
}

static void *set_a_value(void *unused)
{
    check_eq(pthread_setspecific(late_key, (void *)1), 0);
    return unused;
}

enum { WAITING_BLOCKS = 4000 };
static pthread_barrier_t has_filled;

/* Fills its cache, and waits while others may take that out of it. */
static void *fill_and_wait(void *unused)
{
    static char *blocks[WAITING_BLOCKS];
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < WAITING_BLOCKS; i++) {
            const size_t size = 400 + 100 * (i % 8);
            check((blocks[i] = hidden(malloc(size))) != NULL);
            memset(blocks[i], (int)i, size);
        }
        for (size_t i = 0; i < WAITING_BLOCKS; i++) {
            check_eq(blocks[i][0], (char)i);
            check_eq(blocks[i][399], (char)i);
            free(blocks[i]);
        }
        if (round == 0) {
            pthread_barrier_wait(&has_filled);
            (void)usleep(2500000);
        }
    }
    return unused;
}

/* The cache of the first is left behind, and its memory becomes that of the second. */
test(a_thread_in_the_place_of_one_that_allocated_late)
{
    enum { MANY = 4000, SIZE = 60000 };
    static char *blocks[MANY];
    pthread_t thread;
    check_eq(pthread_key_create(&late_key, allocate_in_the_last_round), 0);
    check_eq(pthread_create(&thread, NULL, set_a_value, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
    check_eq(pthread_barrier_init(&has_filled, NULL, 2), 0);
    check_eq(pthread_create(&thread, NULL, fill_and_wait, NULL), 0);
    pthread_barrier_wait(&has_filled);
    for (size_t i = 0; i < MANY; i++) {
        check((blocks[i] = hidden(malloc(SIZE))) != NULL);
        memset(blocks[i], 1, SIZE);
    }
    for (size_t i = 0; i < MANY; i++) free(blocks[i]);
    check_eq(pthread_join(thread, NULL), 0);
}

check_main()
