/* A lock of four bytes: free, held, or held with sleepers (Drepper, "Futexes are tricky", mutex 2),
 * with a short spin before it sleeps. In a single-threaded process it is a plain store.
 *
 * Ranks: a thread may only take a lock of a higher rank than those it holds. Of depots, size
 * classes, private heaps and shards of the span cache there are several, in arrays: they may follow
 * each other in the order of their addresses. The checked build aborts on a violation.
 * docs/concurrency.md lists what each lock protects. */
#ifndef HAKMEM_OS_LOCK_H
#define HAKMEM_OS_LOCK_H

#include "base/config.h"
#include "base/types.h"
#include "os/threads.h"

typedef enum lock_rank {
    LOCK_PROCESS = 1, /* initialisation of the process */
    LOCK_UPKEEP,      /* one thread at a time tidies up */
    LOCK_RECLAIM,     /* one thread at a time gathers what is idle */
    LOCK_THREADS,     /* lists of thread caches */
    LOCK_DEPOT,       /* full magazines of one size class */
    LOCK_MADE_CLASSES, /* size classes that are made while the program runs */
    LOCK_CLASS,       /* slabs of one size class */
    LOCK_GUARD,       /* patterns and records agree: the debug mode */
    LOCK_PRIVATE,     /* private heaps: their table, then one of them */
    LOCK_HUGE,        /* table of huge blocks and their cache */
    LOCK_SPANS,       /* a shard of the span cache */
    LOCK_HEAP,        /* the page heap */
    LOCK_TOUCH,       /* what first touches of pages cost */
    LOCK_WINDOW,      /* growth of the window */
    LOCK_META,        /* memory for our own structures */
    LOCK_ZERO,        /* blocks of no bytes */
    LOCK_KEEP,        /* what is kept, learnt from what went back */
    LOCK_SAMPLES,     /* samples of the profile */
    LOCK_COUNT
} lock_rank_t;

typedef struct lock {
    uint32_t state;
    uint32_t rank; /* lock_rank_t; only the checked build reads it */
} lock_t;

enum { LOCK_FREE, LOCK_HELD, LOCK_CONTENDED };

#define LOCK_INITIAL(lock_rank) {LOCK_FREE, lock_rank}

void lock_acquire_slow(lock_t *lock);
void lock_release_slow(lock_t *lock);
void lock_note_acquired(const lock_t *lock);
void lock_note_tried(const lock_t *lock);
void lock_note_released(const lock_t *lock);

/* For MUST, in what the holder of a lock calls: it is taken, and this thread has one of its rank.
 */
bool lock_is_held(const lock_t *lock);

/* For MUST, where code of the program may run: this thread holds no lock. */
bool lock_none_is_held(void);

static inline void lock_acquire(lock_t *lock)
{
    if (config_checked)
        lock_note_acquired(lock);
    if (process_is_single_threaded()) {
        lock->state = LOCK_HELD;
        return;
    }
    uint32_t expected = LOCK_FREE;
    /* acquire: pairs with the release in lock_release */
    if (UNLIKELY(!__atomic_compare_exchange_n(&lock->state, &expected, LOCK_HELD, false,
                                              __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        lock_acquire_slow(lock);
}

static inline void lock_release(lock_t *lock)
{
    if (config_checked)
        lock_note_released(lock);
    if (process_is_single_threaded()) {
        lock->state = LOCK_FREE;
        return;
    }
    /* release: pairs with the acquire in lock_acquire and lock_acquire_slow */
    if (UNLIKELY(__atomic_exchange_n(&lock->state, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_CONTENDED))
        lock_release_slow(lock);
}

static inline bool lock_try_state(lock_t *lock)
{
    if (process_is_single_threaded()) {
        lock->state = LOCK_HELD;
        return true;
    }
    uint32_t expected = LOCK_FREE;
    /* acquire: pairs with the release in lock_release */
    return __atomic_compare_exchange_n(&lock->state, &expected, LOCK_HELD, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* True: taken. Never waits. */
static inline bool lock_try(lock_t *lock)
{
    bool is_taken = lock_try_state(lock);
    if (config_checked && is_taken)
        lock_note_acquired(lock);
    return is_taken;
}

/* The same whatever the thread holds: for the end of the process, which may come in a signal
 * handler that has interrupted any code of ours. */
static inline bool lock_try_at_exit(lock_t *lock)
{
    bool is_taken = lock_try_state(lock);
    if (config_checked && is_taken)
        lock_note_tried(lock);
    return is_taken;
}

/* Does somebody hold it, at this moment? A look, which orders nothing. */
static inline bool lock_looks_taken(const lock_t *lock)
{
    return __atomic_load_n(&lock->state, __ATOMIC_RELAXED) != LOCK_FREE;
}

/* A thread that ends the process looks whether each lock comes free: what a signal handler has
 * interrupted holds its locks for ever. */
extern HIDDEN bool locks_have_come_free;
void lock_look_at_exit(lock_t *lock);

/* Locks are taken before a fork, so that the child finds everything behind them in order. The last
 * phase is no fork's: each is looked at when the process ends. */
typedef enum fork_phase { FORK_PREPARE, FORK_PARENT, FORK_CHILD, EXIT_LOOK } fork_phase_t;

static inline void lock_at_fork(lock_t *lock, fork_phase_t phase)
{
    if (phase == FORK_PREPARE) {
        lock_acquire(lock);
    } else if (phase == FORK_PARENT) {
        lock_release(lock);
    } else if (phase == EXIT_LOOK) {
        lock_look_at_exit(lock);
    } else { /* the one thread of the child holds it; those that waited for it are not here */
        if (config_checked)
            lock_note_released(lock);
        lock->state = LOCK_FREE;
    }
}

#endif
