/* upkeep/idle_cache.h: blocks leave the cache of a thread that does nothing. Where the thread does
 * something after all, it does it within the barriers: those are all that the two share. */
#include "upkeep/idle_cache.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "unit/cached.h"

enum { CLASS = 20, MOST = 8000 };

static void *held[MOST]; /* by the program */
static size_t held_count;

/* One at a time. */
static void reclaim(thread_cache_t *cache, const bin_t *bins)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    check_eq(pthread_mutex_lock(&mutex), 0);
    idle_cache_reclaim(cache, bins);
    idle_cache_give();
    check_eq(pthread_mutex_unlock(&mutex), 0);
}

static void take_some(size_t count)
{
    for (; count > 0; count--) {
        held[held_count] = cached_alloc(CLASS);
        check(held[held_count] != NULL);
        held_count++;
    }
}

static void give_some(size_t count)
{
    for (; count > 0; count--)
        cached_free(CLASS, held[--held_count]);
}

static void give_all_back(void)
{
    give_some(held_count);
    thread_cache_trim(thread_cache_own, true);
    depots_trim(true);
    central_lists_trim(1, true);
}

/* The calling thread's, with `count` blocks in its bin. */
static thread_cache_t *cache_with(size_t count)
{
    if (thread_cache_is_empty_cache(thread_cache_own))
        initialise();
    take_some(1000);
    while ((held[held_count] = bin_pop(&thread_bins[CLASS])) != NULL)
        held_count++;
    give_some(count);
    check_eq(bin_count(&thread_bins[CLASS]), count);
    check_eq(thread_caches_block_count(CLASS), count);
    return thread_cache_own;
}

/* No block has gone, and none is there twice. */
static void check_each_is_there_once(void)
{
    check_conserved(CLASS, held_count);
    take_some(central_list_statistics(CLASS).block_count - held_count);
    for (size_t index = 0; index < held_count; index++)
        *(size_t *)held[index] = index;
    for (size_t index = 0; index < held_count; index++)
        check_eq(*(size_t *)held[index], index);
    check_conserved(CLASS, held_count);
}

fresh_test(what_an_idle_cache_holds_goes_but_for_three_blocks)
{
    thread_cache_t *cache = cache_with(50);
    size_t free_before = central_list_statistics(CLASS).free_count;
    void *topmost[3];
    for (unsigned index = 0; index < 3; index++)
        topmost[index] = thread_bins[CLASS].top[-1 - (int)index];
    reclaim(cache, thread_bins);
    check_eq(thread_caches_block_count(CLASS), 3);
    check_eq(central_list_statistics(CLASS).free_count, free_before + 47);
    check(thread_cache_has_on_top(topmost[0], CLASS) && thread_cache_has_on_top(topmost[1], CLASS));
    for (unsigned index = 0; index < 3; index++) {
        take_some(1);
        check(held[held_count - 1] == topmost[index]);
    }
    check_each_is_there_once();
}

fresh_test(spares_go_too)
{
    thread_cache_t *cache = cache_with(0);
    give_some(held_count);
    check(cache->spares[CLASS] != NULL && cache->spares[CLASS]->count > 0);
    reclaim(cache, thread_bins);
    check(cache->spares[CLASS] == NULL);
    check_eq(thread_caches_block_count(CLASS), 3);
    check_each_is_there_once();
}

fresh_test(a_thread_that_wakes_up_may_free_first)
{
    for (size_t count = 1; count < 200; count++) {
        thread_cache_t *cache = cache_with(50);
        reclaim(cache, thread_bins);
        give_some(count); /* hits on top of the marks, misses later */
        check_conserved(CLASS, held_count);
        take_some(count % 7);
        check_each_is_there_once();
        give_all_back();
    }
}

fresh_test(reclaimed_twice_a_cache_is_whole)
{
    thread_cache_t *cache = cache_with(50);
    for (unsigned round = 0; round < 5; round++) {
        reclaim(cache, thread_bins);
        give_some(80);
        take_some(3);
        check_eq(cache->reclaim, RECLAIM_NONE);
    }
    check_each_is_there_once();
}

fresh_test(bins_of_fewer_than_five_stay)
{
    for (size_t count = 0; count < 5; count++) {
        thread_cache_t *cache = cache_with(count);
        reclaim(cache, thread_bins);
        check_eq(thread_caches_block_count(CLASS), count);
        for (size_t index = 0; index < count; index++)
            check(bin_pop(&thread_bins[CLASS]) == held[held_count + index]);
        held_count += count;
        check_each_is_there_once();
        give_all_back();
    }
}

fresh_test(a_thread_at_work_is_left_alone)
{
    thread_cache_t *cache = cache_with(50);
    cache->is_entered = true;
    reclaim(cache, thread_bins);
    cache->is_entered = false;
    check_eq(cache->reclaim, RECLAIM_NONE);
    check_eq(thread_caches_block_count(CLASS), 50);
    check(thread_bins[CLASS].top[-1] != NULL);
}

static unsigned barriers;
static unsigned refused;

static bool refuse_one(void)
{
    return ++barriers != refused;
}

fresh_test(without_a_barrier_nothing_goes)
{
    fake_os_set_barrier(refuse_one);
    for (refused = 1; refused <= 3; refused++) {
        thread_cache_t *cache = cache_with(50);
        barriers = 0;
        reclaim(cache, thread_bins);
        check_eq(barriers, refused);
        check_eq(thread_caches_block_count(CLASS), 50);
        take_some(50);
        check_eq(thread_caches_block_count(CLASS), 0);
        check_each_is_there_once();
        give_all_back();
    }
}

/* ---- hits meanwhile ---- */

/* What the thread does between the barriers, without seeing the marks yet: it pops, then pushes.
 * The last of these may be done in part only, at the second barrier. */
typedef struct work {
    unsigned pops;
    unsigned pushes;
    bool is_half_done;
} work_t;

static work_t work;
static void **top_after;
static void *slots_before[MAGAZINE_SLOTS];

static bool work_between(void)
{
    void **slots = bin_magazine(&thread_bins[CLASS])->slots;
    if (++barriers == 1)
        memcpy(slots_before, slots, sizeof slots_before);
    if (barriers != 2)
        return true;
    top_after = thread_bins[CLASS].top;
    for (unsigned step = 1; step <= work.pops + work.pushes; step++) {
        if (step <= work.pops)
            held[held_count++] = slots_before[--top_after - slots];
        else
            *top_after++ = held[--held_count];
        if (step < work.pops + work.pushes || !work.is_half_done)
            thread_bins[CLASS].top = top_after;
    }
    return true;
}

static void do_meanwhile(bool misses_malloc)
{
    thread_cache_t *cache = cache_with(20);
    barriers = 0;
    reclaim(cache, thread_bins);
    thread_bins[CLASS].top = top_after;
    check_eq(barriers, 3);
    /* Those that are pushed are others than those that were popped. */
    if (misses_malloc)
        take_some(30);
    else
        give_some(150);
    check_eq(cache->reclaim, RECLAIM_NONE);
    check_each_is_there_once();
    give_all_back();
}

fresh_test(its_thread_may_pop_and_push_meanwhile)
{
    fake_os_set_barrier(work_between);
    for (work.pops = 0; work.pops < 9; work.pops++)
        for (work.pushes = 0; work.pushes < 7; work.pushes++)
            for (unsigned choice = 0; choice < 4; choice++) {
                work.is_half_done = choice % 2 != 0;
                do_meanwhile(choice / 2 != 0);
            }
}

/* The same before the marks are made: they are made at a top that is no longer the top. */
static bool work_before(void)
{
    void **slots = bin_magazine(&thread_bins[CLASS])->slots;
    if (++barriers != 2)
        return true;
    unsigned counted = thread_cache_own->marks->counts[CLASS];
    /* As if the thread had popped before the marks were made, and had only pushed since. */
    const idle_marks_t *marks = thread_cache_own->marks;
    void *marked[2] = {marks->lower[CLASS], marks->upper[CLASS]};
    top_after = thread_bins[CLASS].top;
    for (unsigned step = 0; step < work.pops; step++) {
        size_t slot = (size_t)(--top_after - slots);
        bool is_marked = slot < counted && slot + 2 >= counted;
        held[held_count++] = is_marked ? marked[slot + 2 - counted] : slots[slot];
    }
    for (unsigned step = 1; step <= work.pushes; step++) {
        *top_after++ = held[held_count - work.pops - step];
        held[held_count - work.pops - step] = NULL;
    }
    thread_bins[CLASS].top = top_after;
    return true;
}

static void forget_those_pushed(void)
{
    size_t kept = 0;
    for (size_t index = 0; index < held_count; index++)
        if (held[index] != NULL)
            held[kept++] = held[index];
    held_count = kept;
}

fresh_test(marks_at_a_top_of_before_do_no_harm)
{
    fake_os_set_barrier(work_before);
    for (work.pops = 0; work.pops < 9; work.pops++)
        for (work.pushes = 0; work.pushes < 7; work.pushes++) {
            thread_cache_t *cache = cache_with(20);
            barriers = 0;
            reclaim(cache, thread_bins);
            forget_those_pushed();
            give_some(150);
            check_each_is_there_once();
            give_all_back();
        }
}

/* ---- its end, and the end of the process ---- */

static void *end_with_marks(void *argument)
{
    void *own[300];
    for (unsigned index = 0; index < 300; index++)
        own[index] = cached_alloc(CLASS);
    for (unsigned index = 0; index < 300; index++)
        cached_free(CLASS, own[index]);
    reclaim(thread_cache_own, thread_bins);
    check_eq(thread_cache_own->reclaim, RECLAIM_DONE);
    return argument;
}

fresh_test(a_thread_may_end_with_marks)
{
    initialise();
    run_threads(3, end_with_marks);
    check_conserved(CLASS, 0);
    check(thread_caches_block_count(CLASS) <= 3 * 3);
    take_some(1); /* an orphan is adopted */
    check_each_is_there_once();
}

fresh_test(marks_are_no_wrong_frees)
{
    thread_cache_t *cache = cache_with(0);
    give_some(held_count);
    reclaim(cache, thread_bins);
    thread_cache_verify();
    cache->reclaim = RECLAIM_UNDER_WAY; /* as if another thread were at it */
    thread_cache_verify();
    check(!cache->is_entered);
}

fresh_test(a_cache_is_idle_when_nothing_has_changed_since_the_last_look)
{
    thread_cache_t *cache = cache_with(0);
    give_some(held_count);
    check(!idle_cache_is_worth_it(cache, thread_bins));
    check(idle_cache_is_worth_it(cache, thread_bins));
    take_some(1);
    check(!idle_cache_is_worth_it(cache, thread_bins));
    check(idle_cache_is_worth_it(cache, thread_bins));
    reclaim(cache, thread_bins);
    check(!idle_cache_is_worth_it(cache, thread_bins));
    check(!idle_cache_is_worth_it(cache, thread_bins)); /* there is nothing left */
}

/* ---- threads ---- */

static bool real_barrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

enum { ROUNDS = 40000, THREADS = 3, OWN = 400, IN_HAND = 0x5a5a };

static thread_cache_t *shown[THREADS];
static bin_t *shown_bins[THREADS];
static unsigned done_count;

static void show_own(size_t thread)
{
    (void)thread_cache_provide();
    shown_bins[thread] = thread_bins;
    __atomic_store_n(&shown[thread], thread_cache_own, __ATOMIC_RELEASE);
}

/* Hits and misses in turn; who gets a block that another has sees it. */
static void use_blocks(uint64_t draw)
{
    static _Thread_local size_t *own[OWN];
    for (unsigned step = 0; step < ROUNDS * 200; step++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
        size_t index = (draw >> 40) % (step / 200 % 3 == 0 ? OWN : 10);
        if (own[index] == NULL) {
            own[index] = cached_alloc(CLASS);
            check_eq(__atomic_exchange_n(own[index], IN_HAND, __ATOMIC_RELAXED), 0);
        } else {
            check_eq(__atomic_exchange_n(own[index], 0, __ATOMIC_RELAXED), IN_HAND);
            cached_free(CLASS, own[index]);
            own[index] = NULL;
        }
    }
    for (unsigned index = 0; index < OWN; index++)
        if (own[index] != NULL) {
            *own[index] = 0;
            cached_free(CLASS, own[index]);
        }
}

/* All caches again and again, idle or not. Returns how often. */
static size_t reclaim_all(void)
{
    size_t count = 0;
    while (__atomic_load_n(&done_count, __ATOMIC_ACQUIRE) < THREADS)
        for (unsigned thread = 0; thread < THREADS; thread++) {
            thread_cache_t *cache = __atomic_load_n(&shown[thread], __ATOMIC_ACQUIRE);
            if (cache == NULL || __atomic_load_n(&cache->reclaim, __ATOMIC_ACQUIRE) != RECLAIM_NONE)
                continue;
            reclaim(cache, shown_bins[thread]);
            count += cache->reclaim != RECLAIM_NONE;
        }
    return count;
}

static void *use_or_reclaim(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    if (number > THREADS) {
        check(reclaim_all() > 0);
        __atomic_fetch_add(&done_count, 1, __ATOMIC_RELEASE);
    } else {
        show_own(number - 1);
        use_blocks(number);
        __atomic_fetch_add(&done_count, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&done_count, __ATOMIC_ACQUIRE) <= THREADS)
            sched_yield(); /* the cache may be under work still */
    }
    return argument;
}

fresh_test(threads_at_work_lose_no_block_and_get_none_twice)
{
#ifdef __SANITIZE_THREAD__
    exit(CHECK_SKIPPED); /* it knows nothing of membarrier */
#endif
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
        exit(CHECK_SKIPPED);
    initialise();
    fake_os_set_barrier(real_barrier);
    run_threads(THREADS + 1, use_or_reclaim);
    check_conserved(CLASS, 0);
    take_some(1);
    check_each_is_there_once();
}

check_main()
