/* The lock of src/os/lock.h: free, held, or held with sleepers, on a futex.
 *
 * MIRRORS src/os/lock.h lock_acquire
 * MIRRORS src/os/lock.h lock_release
 * MIRRORS src/os/lock.h lock_try
 * MIRRORS src/os/lock.h lock_try_state
 * MIRRORS src/os/lock.c lock_acquire_slow
 * MIRRORS src/os/lock.c lock_release_slow
 * MIRRORS src/os/threads.h process_is_single_threaded
 * MIRRORS src/os/os_linux.c os_wait
 * MIRRORS src/os/os_linux.c os_wake_one
 *
 * Law: at most one thread is inside; nobody sleeps for ever (SPIN reports that as an invalid end
 * state). A process with one thread stores plainly, and begins the others outside of the lock.
 *
 * Variants that must be refuted:
 * BROKEN SLEEPERS_UNSAID    a waiter takes the lock as HELD: its release does not wake the next
 * BROKEN NO_RECHECK         the futex sleeps without comparing the state again
 * BROKEN NO_WAKE            the release wakes nobody
 * BROKEN LATE_FLAG          the process says that it has one thread while a second one runs
 * BROKEN PLAIN_EXCHANGE     the acquire reads and writes in two steps
 */
#define FREE 0
#define HELD 1
#define CONTENDED 2
#define TURNS 2

byte state = FREE;
bool several = false; /* not __libc_single_threaded */
bool begun = false;
byte inside = 0;
bool asleep[4];

#define single_threaded (!several) /* process_is_single_threaded */

/* os_wait: the kernel compares and goes to sleep in one step. It wakes only when it is woken here:
 * a wake-up without reason would hide one that is lost. */
inline os_wait(expected)
{
#ifdef NO_RECHECK
    asleep[_pid] = true;
    !asleep[_pid];
#else
    atomic { if :: state == expected -> asleep[_pid] = true :: else fi }
    !asleep[_pid];
#endif
}

inline os_wake_one()
{
    atomic {
        if
        :: asleep[0] -> asleep[0] = false
        :: asleep[1] -> asleep[1] = false
        :: asleep[2] -> asleep[2] = false
        :: asleep[3] -> asleep[3] = false
        :: !asleep[0] && !asleep[1] && !asleep[2] && !asleep[3]
        fi
    }
}

inline acquire_slow()
{
    /* The spin: any number of looks, each followed by a try where it saw the lock free. */
    taken = false;
    do
    :: atomic { state == FREE -> state = HELD; taken = true }; break
    :: true -> break
    od;
    if
    :: taken
    :: else ->
        do
        :: true ->
            atomic {
                seen = state;
#ifdef SLEEPERS_UNSAID
                state = (seen == FREE -> HELD : CONTENDED)
#else
                state = CONTENDED
#endif
            }
            if
            :: seen == FREE -> break
            :: else -> os_wait(CONTENDED)
            fi
        od
    fi
}

inline acquire()
{
    if
    :: single_threaded -> state = HELD
    :: else ->
#ifdef PLAIN_EXCHANGE
        seen = state;
        if :: seen == FREE -> state = HELD :: else -> acquire_slow() fi
#else
        atomic { seen = state; if :: seen == FREE -> state = HELD :: else fi }
        if :: seen == FREE :: else -> acquire_slow() fi
#endif
    fi
}

inline release()
{
    if
    :: single_threaded -> state = FREE
    :: else ->
        atomic { seen = state; state = FREE }
#ifndef NO_WAKE
        if :: seen == CONTENDED -> os_wake_one() :: else fi
#endif
    fi
}

inline section()
{
    inside++;
    assert(inside == 1);
    inside--
}

active proctype first()
{
    byte seen, turn;
    bool taken;
    acquire(); section(); release();
    /* pthread_create: it says so before the second thread exists */
#ifdef LATE_FLAG
    begun = true;
#else
    several = true;
    begun = true;
#endif
    for (turn : 1 .. TURNS) { acquire(); section(); release() }
#ifdef LATE_FLAG
    several = true
#endif
}

active [2] proctype other()
{
    byte seen, turn;
    bool taken;
    begun;
    for (turn : 1 .. TURNS) { acquire(); section(); release() }
}

/* lock_try never waits. */
active proctype passer_by()
{
    byte seen;
    begun;
    atomic { seen = state; if :: seen == FREE && !single_threaded -> state = HELD :: else fi }
    if
    :: seen == FREE && !single_threaded -> section(); release()
    :: else
    fi
}
