/* The cache of an idle thread: another takes the blocks out, while the owner may hit at any moment.
 *
 * MIRRORS src/upkeep/idle_cache.c idle_cache_mark
 * MIRRORS src/upkeep/idle_cache.c idle_cache_is_above
 * MIRRORS src/upkeep/idle_cache.c idle_cache_take
 * MIRRORS src/upkeep/idle_cache.c idle_cache_mark_and_take
 * MIRRORS src/upkeep/idle_cache.c idle_cache_reclaim
 * MIRRORS src/cache/thread_cache.c bin_unmark
 * MIRRORS src/cache/thread_cache.c bin_repair
 * MIRRORS src/cache/thread_cache.c cache_enter_reclaimed
 * MIRRORS src/cache/thread_cache.c cache_enter
 * MIRRORS src/cache/thread_cache.c cache_leave
 * MIRRORS src/cache/bin.h thread_bin_pop
 * MIRRORS src/cache/bin.h thread_bin_push
 *
 * Law: a block that goes to the slabs was in the bin, and nobody else gets it; what the owner has
 * not popped is in its bin after a repair, once. The owner's stores wait in a buffer until they
 * reach memory, those to different places in any order (Arm), or until a barrier; its loads see
 * them before. One bin stands for all, and one block for those on top that are left alone.
 *
 * Variants that must be refuted:
 * BROKEN ONE_MARK            only the topmost block is exchanged
 * BROKEN NO_FIRST_BARRIER    the owner may be at work beyond a hit, unseen
 * BROKEN NO_SECOND_BARRIER   the owner may have passed the marks, unseen
 * BROKEN NO_THIRD_BARRIER    its top may be seen before what it has pushed
 * BROKEN TOP_UNCHECKED       its top may be below the marks
 * BROKEN LOWER_UNCHECKED     it may have overwritten them
 * BROKEN UPPER_TAKEN         the topmost block goes too
 * BROKEN UPPER_PUT_BACK      the repair does not look whether the mark still stands
 * BROKEN NO_WAIT             the owner goes to work though the cache is being reclaimed
 */
#define SLOTS 5
#define BLOCKS 4
#define ON_TOP 1
#define STEPS 6
#define ROOM 3 /* of the buffer */

#define NONE 0
#define UNDER_WAY 1
#define DONE 2

#define TOP 0
#define SLOT 1
#define ENTERED 2

#define IN_BIN 0
#define WITH_PROGRAM 1
#define IN_SLABS 2

/* memory */
byte top = BLOCKS;
byte slots[SLOTS] = {1, 2, 3, 4, 0};
bool is_entered = false;
byte state = NONE;
byte counted = 0, upper = 0, lower = 0;
bool taken = false;

byte where[BLOCKS + 1]; /* ghost */
bool reclaim_is_over = false;
bool works = false; /* ghost: the owner, beyond a hit */

/* the owner's stores on their way */
byte kinds[ROOM], places[ROOM], values[ROOM];
byte used = 0, spare = 0;

inline apply_first()
{
    if
    :: kinds[0] == TOP -> top = values[0]
    :: kinds[0] == SLOT -> slots[places[0]] = values[0]
    :: kinds[0] == ENTERED -> is_entered = values[0]
    fi;
    kinds[0] = kinds[1]; places[0] = places[1]; values[0] = values[1];
    kinds[1] = kinds[2]; places[1] = places[2]; values[1] = values[2];
    used--;
    kinds[used] = 0; places[used] = 0; values[used] = 0
}

inline apply_all() { do :: used > 0 -> apply_first() :: else -> break od }

#define differ(one, other) \
    (kinds[one] != kinds[other] || (kinds[one] == SLOT && places[one] != places[other]))

inline swap(one, other)
{
    spare = kinds[one]; kinds[one] = kinds[other]; kinds[other] = spare;
    spare = places[one]; places[one] = places[other]; places[other] = spare;
    spare = values[one]; values[one] = values[other]; values[other] = spare;
    spare = 0
}

inline barrier() { d_step { apply_all() } }

inline store(kind, place, value)
{
    atomic {
        used < ROOM;
        kinds[used] = kind; places[used] = place; values[used] = value;
        used++
    }
}

active proctype memory()
{
end:
    do
    :: atomic { used > 0 -> apply_first() }
    :: atomic { used > 1 && differ(0, 1) -> swap(0, 1); apply_first() }
    :: atomic { used > 2 && differ(0, 2) && differ(1, 2) -> swap(1, 2); swap(0, 1); apply_first() }
    od
}

/* ---- the owner ---- */

byte own_top = BLOCKS;
byte block = 0;

/* What the owner finds in a slot: its last store there, or memory. */
inline load(place)
{
    if
    :: used > 2 && kinds[2] == SLOT && places[2] == place -> block = values[2]
    :: else ->
        if
        :: used > 1 && kinds[1] == SLOT && places[1] == place -> block = values[1]
        :: else ->
            if
            :: used > 0 && kinds[0] == SLOT && places[0] == place -> block = values[0]
            :: else -> block = slots[place]
            fi
        fi
    fi
}

inline unmark(place, mark)
{
#ifdef UPPER_PUT_BACK
    if :: place < own_top -> slots[place] = mark :: else fi
#else
    if :: place < own_top && slots[place] == 0 -> slots[place] = mark :: else fi
#endif
}

/* Nobody else is there, so its own order is all that counts. */
inline repair()
{
    d_step {
        apply_all();
        if
        :: counted != 0 ->
            unmark(counted - 1, upper);
            if
            :: taken ->
                assert(own_top + 1 >= counted);
                byte from = counted - 1;
                do
                :: from < own_top -> slots[from - (counted - 1)] = slots[from]; from++
                :: else -> break
                od;
                own_top = own_top - (counted - 1);
                top = own_top
            :: else -> unmark(counted - 2, lower)
            fi
        :: else
        fi;
        from = 0; counted = 0; taken = false; upper = 0; lower = 0;
        state = NONE
    }
}

inline miss()
{
    store(ENTERED, 0, true);
#ifndef NO_WAIT
    do
    :: state == UNDER_WAY ->
        store(ENTERED, 0, false);
        state != UNDER_WAY;
        store(ENTERED, 0, true)
    :: else -> break
    od;
#endif
    works = true;
    if :: state == DONE -> repair() :: else fi;
    works = false;
    store(ENTERED, 0, false)
}

inline pop()
{
    if
    :: own_top == 0 -> block = 0
    :: else ->
        atomic {
            load(own_top - 1);
            if
            :: block != 0 -> assert(where[block] == IN_BIN); where[block] = WITH_PROGRAM
            :: else
            fi
        }
    fi;
    if
    :: block == 0 -> miss()
    :: else -> own_top--; store(TOP, 0, own_top)
    fi
}

inline push(which)
{
    if
    :: own_top == SLOTS -> miss()
    :: else ->
        where[which] = IN_BIN;
        store(SLOT, own_top, which);
        own_top++;
        store(TOP, 0, own_top)
    fi
}

active proctype owner()
{
    byte step = 0;
    do
    :: step < STEPS ->
        if
        :: pop()
        :: where[1] == WITH_PROGRAM -> push(1)
        :: where[2] == WITH_PROGRAM -> push(2)
        :: where[3] == WITH_PROGRAM -> push(3)
        :: where[4] == WITH_PROGRAM -> push(4)
        fi;
        block = 0;
        step++
    :: step == STEPS -> break
    od;
    reclaim_is_over;
    miss();
    d_step {
        apply_all();
        byte index = 0, inside = 0;
        do
        :: index < own_top ->
            assert(slots[index] != 0 && where[slots[index]] == IN_BIN);
            where[slots[index]] = WITH_PROGRAM; /* once */
            index++
        :: else -> break
        od;
        index = 1;
        do
        :: index <= BLOCKS -> assert(where[index] != IN_BIN); index++
        :: else -> break
        od
    }
}

/* ---- the other thread ---- */

inline give(which)
{
    d_step {
        assert(which != 0 && where[which] == IN_BIN);
        where[which] = IN_SLABS
    }
}

active proctype other()
{
    byte seen, below, index;
    state = UNDER_WAY;
#ifndef NO_FIRST_BARRIER
    barrier();
#endif
    if
    :: is_entered -> state = NONE
    :: else ->
        assert(!works);
        seen = top;
        if
        :: seen >= 3 + ON_TOP ->
            seen = seen - ON_TOP;
            atomic { upper = slots[seen - 1]; slots[seen - 1] = 0 };
#ifdef ONE_MARK
            lower = slots[seen - 2];
#else
            atomic { lower = slots[seen - 2]; slots[seen - 2] = 0 };
#endif
            counted = seen
        :: else
        fi;
        assert(!works);
#ifndef NO_SECOND_BARRIER
        barrier();
#endif
        seen = top;
#ifndef NO_THIRD_BARRIER
        barrier();
#endif
        if :: counted != 0 -> below = slots[counted - 2] :: else fi;
#ifdef ONE_MARK
        below = 0;
#endif
#ifdef LOWER_UNCHECKED
        below = 0;
#endif
#ifdef TOP_UNCHECKED
        seen = SLOTS;
#endif
        if
        :: counted != 0 && seen >= counted && below == 0 ->
            index = 0;
            do
            :: index + 2 < counted -> give(slots[index]); slots[index] = 0; index++
            :: else -> break
            od;
            give(lower);
#ifdef UPPER_TAKEN
            give(upper);
#endif
            taken = true
        :: else
        fi;
        assert(!works);
        state = DONE
    fi;
    reclaim_is_over = true
}

