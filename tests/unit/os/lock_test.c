/* os/lock.h: one holder at a time, nobody waits for ever, and ranks are enforced. */
#include "os/lock.h"

#include <pthread.h>

#include "os/os.h"
#include "unit/fresh.h"

enum { THREADS = 4, ROUNDS = 20000 };

static lock_t shared_lock = LOCK_INITIAL(LOCK_HEAP);
static uint64_t guarded;
static uint64_t tries_won;

static void *count_up(void *argument)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        lock_acquire(&shared_lock);
        guarded++;
        lock_release(&shared_lock);
    }
    return argument;
}

fresh_test(no_increment_is_lost_between_threads)
{
    run_threads(THREADS, count_up);
    check_eq(guarded, (uint64_t)THREADS * ROUNDS);
    check_eq(shared_lock.state, LOCK_FREE);
}

static void *count_up_when_free(void *argument)
{
    for (unsigned round = 0; round < ROUNDS; round++)
        if (lock_try(&shared_lock)) {
            guarded++;
            tries_won++;
            lock_release(&shared_lock);
        }
    return argument;
}

fresh_test(a_try_that_succeeds_holds_the_lock)
{
    run_threads(THREADS, count_up_when_free);
    check(tries_won > 0);
    check_eq(guarded, tries_won);
}

/* Holds the lock long enough for the others to give up spinning and sleep. */
static void *hold_and_count(void *argument)
{
    for (unsigned round = 0; round < 50; round++) {
        lock_acquire(&shared_lock);
        uint64_t before = guarded;
        for (volatile unsigned spin = 0; spin < 50000; spin++) {
        }
        guarded = before + 1;
        lock_release(&shared_lock);
    }
    return argument;
}

fresh_test(sleepers_are_woken)
{
    run_threads(THREADS, hold_and_count);
    check_eq(guarded, (uint64_t)THREADS * 50);
}

static void *fail_to_take(void *argument)
{
    check(!lock_try(&shared_lock));
    return argument;
}

fresh_test(a_held_lock_is_not_taken_by_another_thread)
{
    lock_acquire(&shared_lock);
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, fail_to_take, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
    lock_release(&shared_lock);
    check(lock_try(&shared_lock));
    lock_release(&shared_lock);
}

static lock_t low = LOCK_INITIAL(LOCK_DEPOT);
static lock_t middles[2] = {LOCK_INITIAL(LOCK_CLASS), LOCK_INITIAL(LOCK_CLASS)};
static lock_t high = LOCK_INITIAL(LOCK_META);
static lock_t other_high = LOCK_INITIAL(LOCK_META);

fresh_test(locks_may_be_taken_in_the_order_of_their_ranks)
{
    lock_acquire(&low);
    lock_acquire(&middles[0]);
    lock_acquire(&middles[1]);
    lock_acquire(&high);
    lock_release(&high);
    lock_release(&low);
    lock_release(&middles[0]);
    lock_release(&middles[1]);
    lock_acquire(&low);
    lock_release(&low);
}

static void *see_that_it_is_not_ours(void *argument)
{
    check(!lock_is_held(&middles[0]));
    return argument;
}

fresh_test(the_holder_knows_that_it_holds_a_lock_and_nobody_else_does)
{
    check(!lock_is_held(&middles[0]));
    lock_acquire(&middles[0]);
    check(lock_is_held(&middles[0]));
    check(!lock_is_held(&low) && !lock_is_held(&high));
    check(!lock_is_held(&middles[1]));
    run_threads(1, see_that_it_is_not_ours);
    lock_release(&middles[0]);
    check(!lock_is_held(&middles[0]));
}

static void take_against_the_order(void)
{
    lock_acquire(&high);
    lock_acquire(&low);
}

static void take_an_equal(void)
{
    lock_acquire(&high);
    lock_acquire(&other_high);
}

static void take_the_lower_of_many(void)
{
    lock_acquire(&middles[1]);
    lock_acquire(&middles[0]);
}

static void try_against_the_order(void)
{
    lock_acquire(&high);
    (void)lock_try(&low);
}

static void release_what_nobody_has(void)
{
    lock_release(&middles[0]);
}

static void *hold_for_ever(void *argument)
{
    lock_acquire(&high);
    return argument;
}

static void release_what_another_has(void)
{
    run_threads(1, hold_for_ever);
    lock_release(&high);
}

test(a_lock_that_is_not_held_may_not_be_released)
{
    char words[256];
    check_eq(fresh_status(release_what_nobody_has, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "hakmem: broken law at ") == words);
    check_eq(fresh_status(release_what_another_has, words, sizeof words), FAKE_ABORT_STATUS);
}

test(locks_against_the_order_end_the_program)
{
    char words[256];
    check_eq(fresh_status(take_against_the_order, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "hakmem: broken law at ") == words);
    check_eq(fresh_status(take_an_equal, words, sizeof words), FAKE_ABORT_STATUS);
    check_eq(fresh_status(take_the_lower_of_many, words, sizeof words), FAKE_ABORT_STATUS);
    check_eq(fresh_status(try_against_the_order, words, sizeof words), FAKE_ABORT_STATUS);
}

fresh_test(a_fork_leaves_the_lock_open_on_both_sides)
{
    lock_at_fork(&low, FORK_PREPARE);
    lock_at_fork(&high, FORK_PREPARE);
    check_eq(low.state, LOCK_HELD);
    lock_at_fork(&low, FORK_PARENT);
    lock_at_fork(&high, FORK_PARENT);
    check_eq(low.state, LOCK_FREE);
    lock_at_fork(&low, FORK_PREPARE);
    lock_at_fork(&high, FORK_PREPARE);
    high.state = LOCK_CONTENDED; /* somebody waits who will not be in the child */
    lock_at_fork(&low, FORK_CHILD);
    lock_at_fork(&high, FORK_CHILD);
    check_eq(low.state, LOCK_FREE);
    check_eq(high.state, LOCK_FREE);
    lock_acquire(&low);
    lock_release(&low);
}

check_main()
