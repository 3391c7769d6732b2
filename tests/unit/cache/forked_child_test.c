/* cache/thread_cache.h: what becomes of caches in the child of a fork, which has one thread. The
 * others are at rest at the moment of the fork, each at a place that the test chooses. */
#include "cache/thread_cache.h"

#include <sched.h>
#include <unistd.h>

#include "unit/cached.h"

enum { CLASS = 4, THREADS = 12, EACH = 8 }; /* a first refill takes so many blocks */

static pthread_barrier_t at_rest;
static pthread_t threads[THREADS];

static void rest(void)
{
    pthread_barrier_wait(&at_rest); /* from here on the main thread forks */
    pthread_barrier_wait(&at_rest); /* until here */
}

static void start(unsigned count, void *(*work)(void *number))
{
    check_eq(pthread_barrier_init(&at_rest, NULL, count + 1), 0);
    for (uintptr_t number = 0; number < count; number++)
        check_eq(pthread_create(&threads[number], NULL, work, (void *)number), 0);
    pthread_barrier_wait(&at_rest);
}

static void end(unsigned count)
{
    pthread_barrier_wait(&at_rest);
    for (unsigned number = 0; number < count; number++)
        check_eq(pthread_join(threads[number], NULL), 0);
}

/* In a child, while the other threads rest. */
static void in_child_among(void *(*work)(void *number), void (*body)(void))
{
    start(THREADS, work);
    in_child(body);
    end(THREADS);
}

/* Blocks that caches have, orphans that wait, and caches that are out of use. */
static void check_caches(size_t blocks, size_t orphans, size_t left)
{
    thread_cache_counts_t counts = thread_caches_count();
    check_eq(thread_caches_block_count(CLASS), blocks);
    check_eq(counts.orphans, orphans);
    check_eq(counts.left_by_forks, left);
}

static void *hold(void *number)
{
    cached_free(CLASS, cached_alloc(CLASS));
    rest();
    return number;
}

static void give_all_back(void)
{
    thread_caches_trim_orphans(UINT64_MAX);
    depots_trim(true);
    central_lists_trim(1, true);
}

static void check_all_comes_back(void)
{
    give_all_back();
    check_caches(0, 0, 0);
    check_eq(central_list_statistics(CLASS).block_count, 0);
    check_eq(page_heap.used_units, 0);
}

lawful_test(what_gone_threads_had_can_all_be_given_back)
{
    in_child_among(hold, check_all_comes_back);
    check_conserved(CLASS, 0);
}

static void check_some_wait(void)
{
    check_caches(THREADS * EACH, THREADS, 0);
    check_eq(thread_caches_count().shared, 0); /* the others leave their share */
    thread_caches_trim_orphans(ORPHANED_TO_GO + 1);
    check_caches(ORPHANS_MOST * EACH, ORPHANS_MOST, 0);
    check_conserved(CLASS, 0);
    thread_cache_verify();
}

lawful_test(no_more_caches_of_gone_threads_wait_than_of_ended_ones)
{
    in_child_among(hold, check_some_wait);
}

/* The library's upkeep trims at the first look. */
static void check_first_look(void)
{
    upkeep_at_fork(FORK_PREPARE);
    upkeep_at_fork(FORK_CHILD);
    (void)upkeep(os_clock_ms());
    check_caches(ORPHANS_MOST * EACH, ORPHANS_MOST, 0);
}

lawful_test(the_first_look_of_the_child_takes_the_others_apart)
{
    fake_os_set_clock(5000);
    (void)upkeep(os_clock_ms()); /* which would else be the last one for a while */
    in_child_among(hold, check_first_look);
}

static void check_adoption(void)
{
    cached_free(CLASS, cached_alloc(CLASS));
    check_eq(miss_count, 0);
    check_caches(THREADS * EACH, THREADS - 1, 0);
    check_eq(thread_caches_count().shared, 1);
    check_conserved(CLASS, 0);
}

lawful_test(a_thread_of_the_child_adopts_one)
{
    in_child_among(hold, check_adoption);
}

static void fork_again(void)
{
    in_child(check_all_comes_back);
    check_caches(THREADS * EACH, THREADS, 0);
    cached_free(CLASS, cached_alloc(CLASS));
    in_child(check_adoption);
    thread_caches_trim_orphans(UINT64_MAX);
    check_caches(EACH, 0, 0);
}

lawful_test(a_child_of_the_child_has_them_too)
{
    in_child_among(hold, fork_again);
}

static void *be_at_work(void *number)
{
    cached_free(CLASS, cached_alloc(CLASS));
    thread_cache_own->is_entered = number == NULL; /* as within a miss */
    rest();
    thread_cache_own->is_entered = false;
    return number;
}

static void check_one_is_left(void)
{
    give_all_back();
    check_caches(EACH, 0, 1);
    check_eq(thread_caches_count().shared, 0);
    check_conserved(CLASS, 0);
}

static void check_one_is_left_twice(void)
{
    check_caches(THREADS * EACH, THREADS - 1, 1);
    in_child(check_one_is_left);
    check_one_is_left();
    in_child(check_one_is_left);
}

lawful_test(a_cache_that_a_thread_was_at_work_in_is_left_alone)
{
    in_child_among(be_at_work, check_one_is_left_twice);
    check_caches(ORPHANS_MOST * EACH, ORPHANS_MOST, 0);
}

static void check_none_waits(void)
{
    check_caches(0, 0, THREADS); /* what may be gone was not read; no thread began with blocks */
    give_all_back();
    check_laws();
}

fresh_test(caches_whose_threads_may_have_ended_unseen_are_left_alone)
{
    fake_os_refuse_thread_exit(true);
    initialise();
    in_child_among(hold, check_none_waits);
}

static unsigned step; /* that has been reached; atomic */
static thread_cache_t *leaving;

static void reach(unsigned next)
{
    __atomic_store_n(&step, next, __ATOMIC_RELEASE);
}

static void wait_for(unsigned next)
{
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < next)
        sched_yield();
}

static void *hold_lists(void *unused)
{
    central_list_lock(CLASS);
    reach(1);
    wait_for(3);
    central_list_unlock(CLASS);
    return unused;
}

static void *end_last(void *number)
{
    cached_free(CLASS, cached_alloc(CLASS));
    if (number == NULL)
        leaving = thread_cache_own;
    rest();
    if (number == NULL)
        wait_for(2);
    return number;
}

static bool has_left(const thread_cache_t *cache)
{
    lock_acquire(&thread_caches.lock);
    bool has_no_thread = cache->bins == cache->kept;
    lock_release(&thread_caches.lock);
    return has_no_thread;
}

static void check_it_is_left(void)
{
    thread_cache_counts_t counts = thread_caches_count();
    check_eq(counts.left_by_forks, 1);
    check_eq(counts.orphans, ORPHANS_MOST);
    check_eq(counts.shared, ORPHANS_MOST);
}

static void check_it_is_left_twice(void)
{
    check_it_is_left();
    in_child(check_it_is_left);
}

/* Its thread waits for the lists, to give its blocks back: there are orphans enough. */
fresh_test(a_cache_that_is_being_taken_apart_is_left_alone)
{
    pthread_t holder;
    initialise();
    start(ORPHANS_MOST + 1, end_last);
    pthread_barrier_wait(&at_rest);
    for (unsigned number = 1; number <= ORPHANS_MOST; number++)
        check_eq(pthread_join(threads[number], NULL), 0);
    check_eq(pthread_create(&holder, NULL, hold_lists, NULL), 0);
    wait_for(1);
    reach(2);
    while (!has_left(leaving))
        sched_yield();
    in_child(check_it_is_left_twice);
    reach(3);
    check_eq(pthread_join(holder, NULL), 0);
    check_eq(pthread_join(threads[0], NULL), 0);
    check_caches(ORPHANS_MOST * EACH, ORPHANS_MOST, 0);
    check_conserved(CLASS, 0);
}

/* Hits in slow motion, one in each of three bins: before a pop moves the top, behind it, and before
 * a push moves the top. Only the second has a block that is in no bin. */
static void *be_in_hits(void *number)
{
    for (unsigned class = CLASS; class < CLASS + 3; class++)
        cached_free(class, cached_alloc(class));
    void *popped = bin_pop(&thread_bins[CLASS + 1]);
    void *pushed = bin_pop(&thread_bins[CLASS + 2]);
    *thread_bins[CLASS + 2].top = pushed;
    rest();
    check(bin_push(&thread_bins[CLASS + 2], pushed) && bin_push(&thread_bins[CLASS + 1], popped));
    return number;
}

static void check_hits(void)
{
    for (unsigned lost = 0; lost <= 2; lost++)
        check_conserved(CLASS + lost, lost == 0 ? 0 : THREADS);
    check_caches(THREADS * EACH, THREADS, 0);
    thread_cache_verify();
    give_all_back(); /* where a block that came twice would end the program */
    for (unsigned lost = 0; lost <= 2; lost++)
        check_conserved(CLASS + lost, lost == 0 ? 0 : THREADS);
}

lawful_test(a_block_in_hand_is_lost_and_none_comes_twice)
{
    in_child_among(be_in_hits, check_hits);
}

check_main()
