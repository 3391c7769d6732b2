/* cache/thread_cache.h: what becomes of a cache when its thread ends, and threads together. */
#include "upkeep/reclaim.h"
#include "cache/thread_cache.h"

#include <pthread.h>
#include <sys/mman.h>

#include "unit/cached.h"

enum { CLASS = 4 };

static size_t in_bin(const thread_cache_t *cache, unsigned class)
{
    return bin_count(&cache->bins[class]);
}

static void *use_many(void *argument)
{
    static _Thread_local void *mine[600];
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class += 7) {
        for (unsigned index = 0; index < 600; index++)
            mine[index] = cached_alloc(class);
        for (unsigned index = 0; index < 600; index++)
            cached_free(class, mine[index]);
    }
    return argument;
}

lawful_test(what_a_thread_that_ended_had_can_all_be_given_back)
{
    run_threads(4, use_many);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
        check_conserved(class, 0);
    thread_caches_trim_orphans(UINT64_MAX);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        check_eq(thread_caches_block_count(class), 0);
        check_conserved(class, 0);
    }
    depots_trim(true);
    central_lists_trim(1, true);
    check_eq(page_heap.used_units, 0);
}

lawful_test(what_threads_that_ended_had_goes_when_asked_for)
{
    run_threads(2, use_many);
    check(thread_caches_block_count(1) > 0);
    reclaim_all();
    check_eq(page_heap.used_units, 0);
    check_eq(thread_caches_block_count(1), 0);
}

lawful_test(threads_that_come_and_go_leave_no_memory_behind)
{
    run_threads(1, use_many);
    size_t memory = meta_size();
    for (unsigned round = 0; round < 200; round++)
        run_threads(1, use_many);
    check_eq(meta_size(), memory);
}

static thread_cache_t *cache_of_the_last;

static void *note_cache(void *argument)
{
    cache_of_the_last = thread_cache_provide();
    check(cached_alloc(CLASS) != NULL);
    return argument;
}

lawful_test(the_next_thread_adopts_the_cache_of_one_that_ended)
{
    run_threads(1, use_many);
    size_t held = thread_caches_block_count(1);
    check(held > 0);
    run_threads(1, note_cache);
    check(in_bin(cache_of_the_last, 1) > 0);
    check_eq(thread_caches_block_count(1), held);
    thread_cache_t *first = cache_of_the_last;
    run_threads(1, note_cache);
    check(cache_of_the_last == first);
}

static pthread_barrier_t all_have_one;

/* A cache with eight blocks; no thread ends before each has its own. */
static void *hold_a_cache(void *argument)
{
    cached_free(CLASS, cached_alloc(CLASS));
    pthread_barrier_wait(&all_have_one);
    return argument;
}

static void run_together(unsigned count)
{
    check_eq(pthread_barrier_init(&all_have_one, NULL, count), 0);
    run_threads(count, hold_a_cache);
}

lawful_test(an_orphan_that_nobody_adopts_is_taken_apart)
{
    fake_os_set_clock(5000);
    run_together(2);
    thread_caches_trim_orphans(5000); /* those from before */
    check_eq(thread_caches_block_count(CLASS), 16);
    thread_caches_trim_orphans(5001);
    check_eq(thread_caches_block_count(CLASS), 0);
    check_conserved(CLASS, 0);
}

lawful_test(the_orphan_that_waits_longest_goes_first)
{
    fake_os_set_clock(5000);
    run_together(2);
    fake_os_set_clock(6000);
    run_together(1);
    thread_caches_trim_orphans(5500);
    check_eq(thread_caches_block_count(CLASS), 8);
    run_together(2);
    check_eq(thread_caches_block_count(CLASS), 16);
}

lawful_test(four_orphans_wait_and_no_more)
{
    run_together(20);
    check_eq(thread_caches_block_count(CLASS), 4 * 8);
    check_conserved(CLASS, 0);
}

static pthread_key_t late_key;

static void use_after_the_cache_is_gone(void *argument)
{
    (void)argument;
    check(thread_cache_is_empty_cache(thread_cache_provide()));
    for (unsigned class = 0; class < FIXED_CLASS_COUNT; class++)
        check(bin_pop(&thread_bins[class]) == NULL && !bin_push(&thread_bins[class], &late_key));
}

static void *end_with_a_late_destructor(void *argument)
{
    check_eq(pthread_setspecific(late_key, &late_key), 0);
    return use_many(argument);
}

lawful_test(a_thread_on_its_way_out_gets_no_second_cache)
{
    check_eq(pthread_key_create(&late_key, use_after_the_cache_is_gone), 0);
    run_threads(2, end_with_a_late_destructor);
    thread_caches_trim_orphans(UINT64_MAX);
    check_eq(thread_caches_block_count(1), 0);
}

static char *stack;

/* Runs `work` in a thread on a stack that the test maps, 1 MiB, with its TLS on it. */
static pthread_t begin_on_own_stack(void *(*work)(void *start))
{
    stack = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(stack != MAP_FAILED);
    pthread_attr_t attributes;
    check_eq(pthread_attr_init(&attributes), 0);
    check_eq(pthread_attr_setstack(&attributes, stack, MIB), 0);
    pthread_t thread;
    check_eq(pthread_create(&thread, &attributes, work, stack), 0);
    return thread;
}

static void *take_and_wait(void *argument)
{
    cached_free(CLASS, cached_alloc(CLASS)); /* eight blocks */
    pthread_barrier_wait(&all_have_one);
    pthread_barrier_wait(&all_have_one);
    void *mine[5];
    for (unsigned index = 0; index < 5; index++) /* hits */
        mine[index] = cached_alloc(CLASS);
    pthread_barrier_wait(&all_have_one);
    pthread_barrier_wait(&all_have_one);
    for (unsigned index = 0; index < 5; index++)
        cached_free(CLASS, mine[index]);
    return argument;
}

/* The child of a fork does not have the thread, and may do what it likes with its stack. */
static void check_without_the_thread(void)
{
    check_eq(munmap(stack, MIB), 0);
    check_eq(thread_caches_block_count(CLASS), 3);
}

lawful_test(blocks_in_the_bins_of_a_thread_at_rest_are_counted)
{
    check_eq(pthread_barrier_init(&all_have_one, NULL, 2), 0);
    pthread_t thread = begin_on_own_stack(take_and_wait);
    pthread_barrier_wait(&all_have_one);
    check_eq(thread_caches_block_count(CLASS), 8);
    pthread_barrier_wait(&all_have_one);
    pthread_barrier_wait(&all_have_one);
    check_eq(thread_caches_block_count(CLASS), 3);
    in_child(check_without_the_thread);
    pthread_barrier_wait(&all_have_one);
    check_eq(pthread_join(thread, NULL), 0);
    check_eq(munmap(stack, MIB), 0);
    check_eq(thread_caches_block_count(CLASS), 8);
}

static void *end_unseen(void *start)
{
    use_many(NULL);
    check(!thread_cache_own->has_exit_hook);
    check((char *)thread_bins >= stack && (char *)thread_bins < stack + MIB);
    return start;
}

/* Where the C library has no room for a hook at thread exit, the cache and its blocks stay behind.
 * The bins in the thread's own memory are gone with it, and nobody looks for them there. */
fresh_test(a_cache_whose_thread_ended_unseen_may_be_counted)
{
    fake_os_refuse_thread_exit(true);
    initialise();
    check_eq(pthread_join(begin_on_own_stack(end_unseen), NULL), 0);
    check_eq(munmap(stack, MIB), 0);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
        check(thread_caches_block_count(class) <= 2 * size_classes[class].bin_max);
    thread_caches_at_fork(FORK_PREPARE);
    thread_caches_at_fork(FORK_CHILD);
    thread_cache_verify();
}

enum { SHARED = 512 };
static void *shared[SHARED];

/* Blocks wander between threads through a shared table. */
static void *wander(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (unsigned step = 0; step < 40000; step++) {
        size_t index = next_random(&state) % SHARED;
        unsigned class = 1 + (unsigned)index % 3;
        unsigned char *mine = cached_alloc(class);
        memset(mine, (int)index, size_classes[class].size);
        unsigned char *other = __atomic_exchange_n(&shared[index], mine, __ATOMIC_ACQ_REL);
        if (other == NULL)
            continue;
        check_eq(other[0], index % 256);
        check_eq(other[size_classes[class].size - 1], index % 256);
        cached_free(class, other);
        if (step % 1000 == 0)
            fake_os_advance(100);
    }
    return NULL;
}

lawful_test(blocks_wander_between_threads_and_none_is_lost)
{
    run_threads(4, wander);
    size_t with_program[4] = {0};
    for (size_t index = 0; index < SHARED; index++)
        with_program[1 + index % 3] += shared[index] != NULL;
    for (unsigned class = 1; class <= 3; class++)
        check_conserved(class, with_program[class]);
}

static bool stop;

static void *count_meanwhile(void *argument)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
            check(thread_caches_block_count(class) < 1000000);
    return argument;
}

lawful_test(caches_may_be_counted_while_they_are_used)
{
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, count_meanwhile, NULL), 0);
    run_threads(3, use_many);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    check_eq(pthread_join(thread, NULL), 0);
}

check_main()
