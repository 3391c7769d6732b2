/* The depot of one size class, its empty magazines, and the pool where os/meta.c keeps the others.
 *
 * MIRRORS src/cache/depot.c depot_take
 * MIRRORS src/cache/depot.c depot_give
 * MIRRORS src/cache/depot.c depot_give_for_new_one
 * MIRRORS src/cache/depot.c depot_push
 * MIRRORS src/cache/depot.c depot_trim
 * MIRRORS src/cache/depot.c magazine_send_down
 * MIRRORS src/cache/depot.c magazine_create
 * MIRRORS src/cache/depot.c magazine_destroy
 * MIRRORS src/cache/depot.c magazine_push
 * MIRRORS src/cache/depot.c magazine_pop
 * MIRRORS src/cache/depot.c depot_set_full_count
 *
 * Law: no magazine is lost or in two places; the count says how many full ones there are; blocks
 * are neither lost nor doubled. The looks without the lock see any value: nothing may follow but a
 * missed turn.
 *
 * Variants that must be refuted:
 * BROKEN NO_LOCK            depot_take pops without the lock
 * BROKEN EMPTY_TWICE        the empty magazine goes to the depot and to the pool
 * BROKEN LOOK_IS_TRUSTED    depot_take believes that a count seen above zero is still so
 * BROKEN COUNT_OF_THE_LOOK  depot_take writes back the count that it saw without the lock
 * BROKEN TRIM_KEEPS         the trim leaves what it takes in the depot
 */
#define MAGAZINES 3
#define NONE 0
#define FULL_MOST 2    /* depot_max; a magazine in no order may find that there is less room */
#define EMPTIES_KEPT 1
#define TURNS 2
#define THREADS 2

byte next[MAGAZINES + 1];
byte fulls = NONE, empties = NONE, pool = NONE;
byte full_count = 0, empty_count = 0;
bool depot_lock = false, pool_lock = false;
bool has_blocks[MAGAZINES + 1];
byte holders[MAGAZINES + 1]; /* ghost: threads that hold it outside of the stacks */
byte made = 0, done = 0;
short sent_down = 0, brought = 0, taken_out = 0; /* in magazines full of blocks */

inline lock(which) { atomic { !which -> which = true } }
inline unlock(which) { which = false }

/* Two steps each, as the processor makes them: only the lock keeps others out. */
inline push(stack, magazine)
{
    d_step { holders[magazine]--; next[magazine] = stack }
    stack = magazine
}

inline pop(stack, magazine)
{
    magazine = stack;
    if
    :: magazine != NONE ->
        d_step { stack = next[magazine]; holders[magazine]++; assert(holders[magazine] == 1) }
    :: else
    fi
}

inline magazine_create(magazine)
{
    lock(pool_lock); pop(pool, magazine); unlock(pool_lock);
    if
    :: magazine == NONE ->
        if
        :: atomic { made < MAGAZINES -> made++; magazine = made; holders[magazine] = 1 }
        :: true /* no memory */
        fi
    :: else
    fi
}

inline magazine_destroy(magazine)
{
    assert(!has_blocks[magazine]);
    lock(pool_lock); push(pool, magazine); unlock(pool_lock)
}

inline magazine_send_down(magazine)
{
    d_step { assert(has_blocks[magazine]); has_blocks[magazine] = false; sent_down++ }
}

/* `mine` (or NONE) is empty; afterwards it is full, or what it was. */
inline depot_take()
{
    if /* what a relaxed load may see: anything that the count ever was */
    :: look = full_count
    :: look = 0
    :: look = FULL_MOST
    fi;
    if
    :: look == 0
    :: else ->
#ifndef NO_LOCK
        lock(depot_lock);
#endif
        pop(fulls, got);
#ifdef LOOK_IS_TRUSTED
        assert(got != NONE);
#endif
        if
        :: got != NONE ->
#ifdef COUNT_OF_THE_LOOK
            full_count = look - 1;
#else
            full_count = full_count - 1;
#endif
            if
            :: mine != NONE && empty_count < EMPTIES_KEPT ->
                push(empties, mine); empty_count++;
#ifndef EMPTY_TWICE
                mine = NONE
#endif
            :: else
            fi
        :: else
        fi;
#ifndef NO_LOCK
        unlock(depot_lock);
#endif
        if
        :: got != NONE ->
            if :: mine != NONE -> magazine_destroy(mine) :: else fi;
            mine = got; got = NONE;
            d_step { assert(has_blocks[mine]); has_blocks[mine] = false; taken_out++ }
        :: else
        fi
    fi
}

/* `mine` is full; afterwards it is an empty one. */
inline depot_give()
{
    lock(depot_lock);
    if
    :: full_count < FULL_MOST -> /* there is room for this one */
        pop(empties, got);
        if :: got != NONE -> empty_count--; push(fulls, mine); full_count++ :: else fi;
        unlock(depot_lock);
        if
        :: got == NONE -> /* depot_give_for_new_one */
            magazine_create(got);
            if
            :: got == NONE -> magazine_send_down(mine); got = mine
            :: else -> lock(depot_lock); push(fulls, mine); full_count++; unlock(depot_lock)
            fi
        :: else
        fi;
        mine = got; got = NONE
    :: full_count > 0 -> /* none, or its blocks lie in no order */
        unlock(depot_lock);
        magazine_send_down(mine)
    fi
}

active [THREADS] proctype thread()
{
    byte mine = NONE, got = NONE, look, turn;
    for (turn : 1 .. TURNS) {
        if
        :: true ->
            if :: mine == NONE -> magazine_create(mine) :: else fi;
            if
            :: mine != NONE -> d_step { has_blocks[mine] = true; brought++ }; depot_give()
            :: else
            fi
        :: true -> depot_take()
        fi
    }
    if :: mine != NONE -> magazine_destroy(mine); mine = NONE :: else fi;
    done++
}

/* depot_trim takes any part of the stack: how many leave is policy. */
active proctype upkeep()
{
    byte leaving, staying, cut, magazine, turn;
    for (turn : 1 .. 2) {
        if :: turn == 2 -> done == THREADS :: else fi; /* the last one finds all at rest */
        lock(depot_lock);
        d_step {
            leaving = fulls; staying = 0;
            do
            :: leaving != NONE && staying <= MAGAZINES -> leaving = next[leaving]; staying++
            :: else -> break
            od;
            assert(staying == full_count);
            leaving = fulls; staying = 0; cut = NONE
        }
        do
        :: turn == 1 && leaving != NONE ->
            cut = leaving; leaving = next[leaving]; staying++
        :: break
        od;
        full_count = staying;
#ifndef TRIM_KEEPS
        if :: cut == NONE -> fulls = NONE :: else -> next[cut] = NONE fi;
#endif
        unlock(depot_lock);
        do
        :: leaving != NONE ->
            magazine = leaving;
            d_step { leaving = next[magazine]; holders[magazine]++; assert(holders[magazine] == 1) }
            magazine_send_down(magazine);
            magazine_destroy(magazine)
        :: else -> break
        od
    }
    /* Everything is at rest: each magazine that was made stands in one stack. */
    assert(fulls == NONE && full_count == 0);
    assert(brought == sent_down + taken_out);
    d_step {
        staying = 0;
        magazine = pool;
        do
        :: magazine != NONE && staying <= MAGAZINES -> staying++; magazine = next[magazine]
        :: else -> break
        od;
        magazine = empties;
        do
        :: magazine != NONE && staying <= MAGAZINES -> staying++; magazine = next[magazine]
        :: else -> break
        od;
        assert(staying == made)
    }
}
