/* The span cache: a block is claimed once, however many free it; shards pass spans on.
 *
 * MIRRORS src/heap/span_cache.c span_cache_claim
 * MIRRORS src/heap/span_cache.c span_cache_give
 * MIRRORS src/heap/span_cache.c span_cache_bypass
 * MIRRORS src/heap/span_cache.c shard_take
 * MIRRORS src/heap/span_cache.c shard_release_one
 * MIRRORS src/heap/span_cache.c shard_release_aged
 * MIRRORS src/heap/span_cache.c shard_insert
 * MIRRORS src/heap/span_cache.c shard_remove
 * MIRRORS src/heap/span_cache.c shard_publish
 * MIRRORS src/heap/span.h span_of
 *
 * One block, which the program frees twice, by two threads at any time. Shards take turns with it;
 * others allocate, trim, and look at the counts without the lock.
 *
 * Law: as long as nobody was handed the block again, one of the frees is let through and any other
 * ends the program. The block is in one shard at most, has one owner at most, and every count ends
 * where the shards are. A look that comes late costs a missed turn and nothing else.
 *
 * Variants that must be refuted:
 * BROKEN CLAIM_IN_TWO_STEPS   the state is read, then written
 * BROKEN LARGE_MEANWHILE      a span on its way to the page heap looks as if it were in use
 * BROKEN TAKE_WITHOUT_LOCK    a shard is taken from without its lock
 * BROKEN LOOK_IS_TRUSTED      a count seen above zero is believed after the lock was taken
 * BROKEN PUBLISHED_TWICE      a span is added to the total again
 */
#define FREE 0
#define PURGING 1
#define CACHED 2
#define LARGE 3
#define SHARDS 2
#define FREES 2

byte state = LARGE;
bool shard_lock[SHARDS], has_span[SHARDS];
byte cached[SHARDS];
short published[SHARDS], published_total = 0;
byte owners = 1;   /* ghost: the program, a shard, a thread that moves it, the page heap */
byte let_through = 0, handed_out = 0, done = 0;
bool ended = false; /* fatal_already_free: the process is gone */

inline lock(which) { atomic { !shard_lock[which] -> shard_lock[which] = true } }
inline unlock(which) { shard_lock[which] = false }

/* By any amount or not at all: the total may be late. */
inline publish(which)
{
    if
    :: true ->
        published_total = published_total + cached[which] - published[which];
#ifndef PUBLISHED_TWICE
        published[which] = cached[which]
#endif
    :: true
    fi
}

inline shard_insert(which)
{
    assert(!has_span[which]);
    has_span[which] = true;
    cached[which]++;
    publish(which)
}

inline shard_remove(which)
{
    has_span[which] = false;
    cached[which]--;
    publish(which)
}

inline page_heap_free()
{
    atomic { assert(state == CACHED || handed_out > 0); state = FREE }
}

active [FREES] proctype freer()
{
    byte before, shard = _pid % SHARDS;
    /* span_of: what is free or being purged is nobody's, an error of its own */
    if
    :: ended || state == FREE || state == PURGING -> goto gone
    :: else
    fi;
#ifdef CLAIM_IN_TWO_STEPS
    before = state; state = CACHED;
#else
    atomic { before = state; state = CACHED }
#endif
    if
    :: before != LARGE -> ended = true; goto gone
    :: else
    fi;
    atomic { let_through++; assert(let_through <= 1 + handed_out) }
    if
    :: true -> /* span_cache_give */
        lock(shard); shard_insert(shard); unlock(shard)
    :: true -> /* span_cache_bypass */
        page_heap_free()
    fi;
gone:
    done++
}

/* Another thread's malloc. */
active proctype taker()
{
    byte shard, look;
    for (shard : 0 .. SHARDS - 1) {
        if :: look = cached[shard] :: look = 0 :: look = 1 fi; /* a look: anything it ever was */
        if
        :: look != 0 && !ended ->
#ifndef TAKE_WITHOUT_LOCK
            lock(shard);
#endif
#ifdef LOOK_IS_TRUSTED
            assert(has_span[shard]);
#endif
            if
            :: has_span[shard] ->
                shard_remove(shard);
                assert(cached[shard] == 0);
                atomic { handed_out++; state = LARGE }
            :: else
            fi;
#ifndef TAKE_WITHOUT_LOCK
            unlock(shard)
#endif
        :: else
        fi
    }
    done++
}

/* Upkeep, or a thread whose shard is full. */
active proctype trimmer()
{
    byte shard, look;
    bool found;
    for (shard : 0 .. SHARDS - 1) {
        if :: look = cached[shard] :: look = 0 :: look = 1 fi;
        if
        :: look != 0 && !ended ->
            lock(shard);
            found = has_span[shard];
            if
            :: found -> shard_remove(shard);
#ifdef LARGE_MEANWHILE
                state = LARGE
#endif
            :: else
            fi;
            unlock(shard);
            if
            :: found ->
#ifdef LARGE_MEANWHILE
                state = FREE
#else
                page_heap_free()
#endif
            :: else
            fi
        :: else
        fi
    }
    done++
}

active proctype judge()
{
    byte shard;
    done == FREES + 2;
    if
    :: ended && handed_out == 0 -> assert(let_through == 1)
    :: else
    fi;
    assert(has_span[0] + has_span[1] <= 1);
    for (shard : 0 .. SHARDS - 1) {
        assert(cached[shard] == has_span[shard]);
        published_total = published_total + cached[shard] - published[shard]
    }
    assert(published_total == has_span[0] + has_span[1])
}
