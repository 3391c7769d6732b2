/* Locks: the waiting half, and the rank check of the checked build. */
#include "os/lock.h"

#include "base/arch/cpu.h"
#include "base/assert.h"
#include "os/os.h"
#include "options/tuning.h"

/* What the calling thread holds. Only the checked build writes it. */
static _Thread_local struct {
    uint32_t ranks; /* of its locks, one bit each */
    /* By rank: the lock of that rank that was taken last. Static TLS is scarce in other builds. */
    const lock_t *newest[HAKMEM_CHECKED ? LOCK_COUNT : 1];
} lock_held;

COLD void lock_acquire_slow(lock_t *lock)
{
    for (unsigned spin = 0; spin < SPIN_LIMIT; spin++) {
        uint32_t expected = LOCK_FREE;
        /* relaxed look first: spinning must not steal the line from the holder */
        if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == LOCK_FREE &&
            __atomic_compare_exchange_n(&lock->state, &expected, LOCK_HELD, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return;
        cpu_pause();
    }
    /* acquire: pairs with the release in lock_release */
    while (__atomic_exchange_n(&lock->state, LOCK_CONTENDED, __ATOMIC_ACQUIRE) != LOCK_FREE)
        os_wait(&lock->state, LOCK_CONTENDED);
}

COLD void lock_release_slow(lock_t *lock)
{
    os_wake_one(&lock->state);
}

bool locks_have_come_free = true;

static bool lock_comes_free(lock_t *lock)
{
    for (unsigned spin = 0; spin < LAST_WAIT_MS * (SPIN_LIMIT + 1); spin++) {
        if (lock_try_at_exit(lock))
            return true;
        cpu_pause();
        if (spin % (SPIN_LIMIT + 1) == SPIN_LIMIT)
            os_sleep(1);
    }
    return false;
}

void lock_look_at_exit(lock_t *lock)
{
    locks_have_come_free = locks_have_come_free && lock_comes_free(lock);
    if (locks_have_come_free)
        lock_release(lock);
}

/* Fork takes all locks of a kind in turn, so one may follow another. */
static bool lock_is_one_of_many(const lock_t *lock)
{
    return lock->rank == LOCK_CLASS || lock->rank == LOCK_DEPOT || lock->rank == LOCK_SPANS ||
           lock->rank == LOCK_PRIVATE;
}

void lock_note_acquired(const lock_t *lock)
{
    uint32_t bit = (uint32_t)1 << lock->rank;
    MUST((lock_held.ranks & ~((bit << 1) - 1)) == 0);
    if ((lock_held.ranks & bit) != 0) {
        MUST(lock_is_one_of_many(lock));
        MUST((uintptr_t)lock > (uintptr_t)lock_held.newest[lock->rank]);
    }
    lock_note_tried(lock);
}

void lock_note_tried(const lock_t *lock)
{
    lock_held.ranks |= (uint32_t)1 << lock->rank;
    lock_held.newest[lock->rank] = lock;
}

void lock_note_released(const lock_t *lock)
{
    /* Of many, fork releases several; the first of them takes the note away. */
    MUST(lock_is_held(lock) || (lock_is_one_of_many(lock) && lock->state != LOCK_FREE));
    lock_held.ranks &= ~((uint32_t)1 << lock->rank);
}

bool lock_is_held(const lock_t *lock)
{
    /* relaxed: of a lock that is ours the state is not FREE in anybody's eyes */
    return (lock_held.ranks >> lock->rank & 1) != 0 &&
           __atomic_load_n(&lock->state, __ATOMIC_RELAXED) != LOCK_FREE;
}

bool lock_none_is_held(void)
{
    return lock_held.ranks == 0;
}
