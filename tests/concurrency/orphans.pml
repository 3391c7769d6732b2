/* Caches of threads that end: an orphan that the next thread adopts, or taken apart.
 *
 * MIRRORS src/cache/cache_registry.c cache_at_thread_exit
 * MIRRORS src/cache/cache_registry.c cache_move_in
 * MIRRORS src/cache/cache_registry.c cache_move_out
 * MIRRORS src/cache/cache_registry.c cache_orphan
 * MIRRORS src/cache/cache_registry.c cache_adopt
 * MIRRORS src/cache/cache_registry.c cache_create
 * MIRRORS src/cache/cache_registry.c cache_destroy
 * MIRRORS src/cache/cache_registry.c thread_cache_provide
 * MIRRORS src/cache/cache_registry.c thread_caches_trim_orphans
 * MIRRORS src/cache/cache_registry.c cache_bins_of
 * MIRRORS src/cache/cache_registry.c thread_caches_count_blocks
 *
 * Law: every cache has exactly one owner: its thread, the stack of orphans, or the one who takes it
 * apart; at most ORPHANS_MOST wait; none is lost with its blocks; statistics read none that was
 * freed, nor the bins of a thread that has ended. Which orphans are old enough is policy: the cut
 * may be anywhere. The blocks are in the thread while it has a cache, and in the cache while no
 * thread has it. Threads that end unseen are left out: of them statistics read the cache alone. So
 * is the child of a fork, in which one thread makes orphans of the caches of all others.
 *
 * Variants that must be refuted:
 * BROKEN ADOPT_WITHOUT_LOCK   two threads adopt the same cache
 * BROKEN FREED_IN_LIST        a cache is freed before it leaves the list of all
 * BROKEN NO_CUT               the trim leaves what it takes apart among the orphans
 * BROKEN COUNT_FORGOTTEN      the trim does not count what it takes
 * BROKEN ORPHAN_AND_APART     an orphan is taken apart as well
 * BROKEN MOVED_OUT_LATE       the bins leave the thread after its cache has become an orphan
 * BROKEN BINS_LEFT_BEHIND     the cache goes on naming the memory of a thread that has ended
 */
#define CACHES 3
#define NONE 0
#define ORPHANS_MOST 1
#define THREADS 2
#define TURNS 2

bool threads_lock = false, upkeep_lock = false;
byte orphans = NONE, orphan_count = 0;
byte next[CACHES + 1];
bool is_listed[CACHES + 1]; /* among all caches, under the lock */
bool is_alive[CACHES + 1];  /* its memory is ours */
byte owners[CACHES + 1];    /* ghost */
bool has_blocks[CACHES + 1]; /* in `kept` */
byte bins_in[CACHES + 1];    /* the thread whose memory has the bins, or NONE: `kept` */
bool runs[THREADS + 1];      /* its memory is there */
byte filled = 0, returned = 0, done = 0;

inline lock(which) { atomic { !which -> which = true } }
inline unlock(which) { which = false }

inline take_apart(cache)
{
    assert(is_alive[cache] && owners[cache] == 1);
    if :: has_blocks[cache] -> d_step { has_blocks[cache] = false; returned++ } :: else fi;
#ifdef FREED_IN_LIST
    d_step { is_alive[cache] = false; owners[cache] = 0 }
#endif
    lock(threads_lock); is_listed[cache] = false; unlock(threads_lock);
#ifndef FREED_IN_LIST
    d_step { is_alive[cache] = false; owners[cache] = 0 }
#endif
}

inline adopt(cache)
{
#ifndef ADOPT_WITHOUT_LOCK
    lock(threads_lock);
#endif
    cache = orphans;
    if
    :: cache != NONE ->
        orphans = next[cache];
        d_step { orphan_count--; owners[cache]++; assert(owners[cache] == 1) }
    :: else
    fi;
#ifndef ADOPT_WITHOUT_LOCK
    unlock(threads_lock)
#endif
}

inline create(cache)
{
    if
    :: d_step { !is_alive[1] && !is_listed[1] -> cache = 1; is_alive[1] = true; owners[1] = 1 }
    :: d_step { !is_alive[2] && !is_listed[2] -> cache = 2; is_alive[2] = true; owners[2] = 1 }
    :: d_step { !is_alive[3] && !is_listed[3] -> cache = 3; is_alive[3] = true; owners[3] = 1 }
    fi;
    lock(threads_lock); is_listed[cache] = true; unlock(threads_lock)
}

inline move_in(cache)
{
    d_step { bins = has_blocks[cache]; has_blocks[cache] = false };
    bins_in[cache] = self
}

inline move_out(cache)
{
    d_step { has_blocks[cache] = bins; bins = false };
#ifndef BINS_LEFT_BEHIND
    bins_in[cache] = NONE
#endif
}

inline cache_at_thread_exit(cache)
{
    lock(threads_lock);
#ifndef MOVED_OUT_LATE
    move_out(cache);
#endif
    has_room = orphan_count < ORPHANS_MOST;
    if
    :: has_room ->
        next[cache] = orphans;
        owners[cache]--;
        orphans = cache;
        orphan_count++;
        assert(orphan_count <= ORPHANS_MOST)
    :: else
    fi;
    unlock(threads_lock);
#ifdef MOVED_OUT_LATE
    move_out(cache);
#endif
#ifdef ORPHAN_AND_APART
    take_apart(cache)
#else
    if :: has_room :: else -> take_apart(cache) fi
#endif
}

/* One thread of the program after the other. */
active [THREADS] proctype thread()
{
    byte cache, turn, self = _pid + 1;
    bool has_room, bins = false;
    for (turn : 1 .. TURNS) {
        runs[self] = true;
        adopt(cache);
        if :: cache == NONE -> create(cache) :: else fi;
        assert(is_alive[cache] && owners[cache] == 1);
        move_in(cache);
        if :: !bins -> d_step { bins = true; filled++ } :: else fi;
        cache_at_thread_exit(cache);
        runs[self] = false
    }
    done++
}

/* Upkeep, which one thread at a time does, and which any may do. */
active proctype upkeep()
{
    byte leaving, cut, cache, turn;
    for (turn : 1 .. 2) {
        if :: turn == 2 -> done == THREADS :: else fi;
        lock(threads_lock);
        leaving = orphans; cut = NONE;
        do
        :: turn == 1 && leaving != NONE -> cut = leaving; leaving = next[leaving]
        :: break
        od;
#ifndef NO_CUT
        if :: cut == NONE -> orphans = NONE :: else -> next[cut] = NONE fi;
#endif
        cache = leaving;
        do
#ifdef COUNT_FORGOTTEN
        :: cache != NONE -> owners[cache]++; cache = next[cache]
#else
        :: cache != NONE -> orphan_count--; owners[cache]++; cache = next[cache]
#endif
        :: else -> break
        od;
        unlock(threads_lock);
        do
        :: leaving != NONE -> cache = leaving; leaving = next[cache]; take_apart(cache)
        :: else -> break
        od
    }
    assert(orphans == NONE && orphan_count == 0);
    assert(!is_alive[1] && !is_alive[2] && !is_alive[3]);
    assert(filled == returned)
}

active proctype statistics()
{
    byte cache, where;
    lock(threads_lock);
    for (cache : 1 .. CACHES) {
        if
        :: is_listed[cache] ->
            assert(is_alive[cache]);
            where = bins_in[cache];
            if :: where != NONE -> assert(runs[where]) :: else fi
        :: else
        fi
    }
    unlock(threads_lock)
}
