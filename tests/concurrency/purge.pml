/* The purge: free pages go back to the kernel while the lock of the page heap is released.
 *
 * MIRRORS src/heap/page_heap_purge.c page_heap_take_old
 * MIRRORS src/heap/page_heap_purge.c page_heap_purged
 * MIRRORS src/heap/page_heap.c page_heap_take_locked
 * MIRRORS src/heap/page_heap.c page_heap_free_units
 * MIRRORS src/heap/page_heap_purge.c page_heap_list_runs
 * MIRRORS src/heap/free_spans.c free_spans_carve
 * MIRRORS src/heap/free_spans.c free_spans_dirty_part
 * MIRRORS src/heap/free_spans.c free_spans_enter_rest
 * MIRRORS src/heap/free_spans.c free_spans_insert
 * MIRRORS src/heap/free_spans.c free_spans_enter
 * MIRRORS src/heap/free_spans.c free_spans_leave
 * MIRRORS src/heap/free_spans.c free_spans_join
 * MIRRORS src/heap/free_spans.c free_spans_beside
 * MIRRORS src/upkeep/purge.c purge_oldest
 *
 * What happens under the lock is one step here; lock.pml shows that it may be. Which span is served
 * or purged is policy: any may be. A piece of a span is taken, from its first dirty unit on, with
 * clean units between; the kernel clears each run of it, or refuses.
 *
 * Law: every unit is in one span; free neighbours are joined; a span being purged is never handed
 * out and never joined; a unit whose dirty bit is clear reads as zero; nobody's contents go away.
 *
 * Variants that must be refuted:
 * BROKEN FREE_MEANWHILE     the span stays among the free ones during madvise
 * BROKEN PURGING_JOINS      a neighbour that is being purged is taken for a free one
 * BROKEN REFUSAL_IGNORED    what the kernel refused is called clean
 * BROKEN CLEAN_TOO_MUCH     a clean neighbour's bits vouch for what was freed beside it
 */
#define UNITS 4
#define SPANS 5
#define NONE 0
#define USERS 2
#define PURGERS 2
#define TURNS 2
#define UNUSED 0
#define FREE 1
#define PURGING 2
#define LARGE 3

byte state[SPANS + 1], first[SPANS + 1], count[SPANS + 1], dirty_count[SPANS + 1];
byte map[UNITS];      /* window_spans */
bool dirty[UNITS];    /* window_tables.dirty */
bool ready = false;
byte contents[UNITS]; /* the memory: 0, or who wrote it */

/* ---- the page heap, one call at a time: C, so that a call is one step ---- */
c_code {
    static int smaller(int a, int b) { return a < b ? a : b; }

    static int new_descriptor(void)
    {
        int span = 1;
        while (now.state[span] != UNUSED)
            span++;
        return span;
    }

    static int dirty_units(int from, int many)
    {
        int sum = 0;
        for (int unit = from; unit < from + many; unit++)
            sum += now.dirty[unit];
        return sum;
    }

    static void insert_free(int span)
    {
        now.state[span] = FREE;
        now.map[now.first[span]] = span;
        now.map[now.first[span] + now.count[span] - 1] = span;
    }

    static int free_span_at(int unit)
    {
        if (unit < 0 || unit >= UNITS)
            return NONE;
        int span = now.map[unit];
        int most = now.purging_joins ? PURGING : FREE;
        return span != NONE && now.state[span] <= most ? span : NONE;
    }

    static void absorb(int span, int neighbour)
    {
        if (neighbour == NONE)
            return;
        now.map[now.first[neighbour]] = NONE;
        now.map[now.first[neighbour] + now.count[neighbour] - 1] = NONE;
        now.first[span] = smaller(now.first[span], now.first[neighbour]);
        now.count[span] += now.count[neighbour];
        now.dirty_count[span] += now.dirty_count[neighbour];
        now.state[neighbour] = now.first[neighbour] = now.count[neighbour] = 0;
        now.dirty_count[neighbour] = 0;
    }

    static void insert_joined(int span)
    {
        absorb(span, free_span_at(now.first[span] - 1));
        absorb(span, free_span_at(now.first[span] + now.count[span]));
        insert_free(span);
    }

    static void describe_part(int span, int from, int many, int whole_count, int whole_dirty)
    {
        now.first[span] = from;
        now.count[span] = many;
        now.dirty_count[span] = whole_dirty == 0             ? 0
                                : whole_dirty == whole_count ? many
                                                             : dirty_units(from, many);
    }

    static void carve(int span, int from, int many, int state)
    {
        int first = now.first[span], count = now.count[span], dirty = now.dirty_count[span];
        int before = from - first, behind = count - before - many;
        describe_part(span, from, many, count, dirty);
        now.state[span] = state;
        now.map[from] = now.map[from + many - 1] = now.purging_joins ? span : NONE;
        if (before != 0) {
            int part = new_descriptor();
            describe_part(part, first, before, count, dirty);
            insert_free(part);
        }
        if (behind != 0) {
            int part = new_descriptor();
            describe_part(part, from + many, behind, count, dirty);
            insert_free(part);
        }
    }

    static void set_map(int span, int value)
    {
        for (int unit = now.first[span]; unit < now.first[span] + now.count[span]; unit++)
            now.map[unit] = value;
    }

    static void set_dirty(int span, int value)
    {
        for (int unit = now.first[span]; unit < now.first[span] + now.count[span]; unit++)
            if (!now.clean_too_much || unit == 0 || now.dirty[unit - 1])
                now.dirty[unit] = value;
        now.dirty_count[span] = value * now.count[span];
    }

    /* The dirty bits of what the kernel has taken go; nothing is remembered of it. */
    static void clear_purged(int span, unsigned char *purged)
    {
        for (int unit = now.first[span]; unit < now.first[span] + now.count[span]; unit++)
            now.dirty[unit] &= !(purged[unit] || now.refusal_ignored);
        for (int unit = 0; unit < UNITS; unit++)
            purged[unit] = 0;
        now.dirty_count[span] = dirty_units(now.first[span], now.count[span]);
    }

    static int is_zero(int span)
    {
        int sum = 0;
        for (int unit = now.first[span]; unit < now.first[span] + now.count[span]; unit++)
            sum += now.contents[unit];
        return sum == 0;
    }

    /* From the first dirty unit to the end of its run, [*from, *end). */
    static void find_dirty(int span, unsigned char *from, unsigned char *end)
    {
        int behind = now.first[span] + now.count[span];
        for (*from = now.first[span]; !now.dirty[*from]; ++*from) {
        }
        for (*end = *from; *end < behind && now.dirty[*end]; ++*end) {
        }
    }

    static int law_holds(void)
    {
        int covered[UNITS] = {0};
        for (int span = 1; span <= SPANS; span++) {
            int end = now.first[span] + now.count[span];
            if (now.state[span] == UNUSED)
                continue;
            for (int unit = now.first[span]; unit < end; unit++) {
                if (covered[unit]++ != 0)
                    return 0; /* in two spans */
                if (now.state[span] == FREE && !now.dirty[unit] && now.contents[unit] != 0)
                    return 0; /* called clean, and is not */
            }
            if (now.state[span] != FREE)
                continue;
            if (now.dirty_count[span] != dirty_units(now.first[span], now.count[span]))
                return 0;
            for (int other = 1; other <= SPANS; other++)
                if (now.state[other] == FREE && now.first[other] == end)
                    return 0; /* not joined */
        }
        for (int unit = 0; unit < UNITS; unit++)
            if (!covered[unit])
                return 0; /* lost */
        return 1;
    }
}

#ifdef PURGING_JOINS
bool purging_joins = true;
#else
bool purging_joins = false;
#endif
#ifdef REFUSAL_IGNORED
bool refusal_ignored = true;
#else
bool refusal_ignored = false;
#endif
#ifdef CLEAN_TOO_MUCH
bool clean_too_much = true;
#else
bool clean_too_much = false;
#endif

inline keeps_the_law() { c_code [law_holds()] { ; } }

/* ---- the processes ---- */

inline any_span(span)
{
    if :: span = 1 :: span = 2 :: span = 3 :: span = 4 :: span = 5 fi
}

active [USERS] proctype user()
{
    byte span, unit, turn, many;
    ready;
    for (turn : 1 .. TURNS) {
        atomic { /* page_heap_take_locked, page_map_set */
            if :: many = 1 :: many = 2 fi;
            any_span(span);
            if
            :: state[span] == FREE && count[span] >= many ->
                c_code { carve(Puser->span, now.first[Puser->span], Puser->many, LARGE); };
                c_code [now.dirty_count[Puser->span] != 0 || is_zero(Puser->span)] { ; };
                c_code { set_map(Puser->span, Puser->span); };
                keeps_the_law()
            :: else -> span = NONE
            fi;
            many = 0
        }
        if
        :: span != NONE ->
            for (unit : first[span] .. first[span] + count[span] - 1) { contents[unit] = _pid + 1 }
            atomic { /* free_locked, after a look at what was written */
                for (unit : first[span] .. first[span] + count[span] - 1) {
                    assert(contents[unit] == _pid + 1)
                }
                c_code {
                    set_map(Puser->span, NONE);
                    set_dirty(Puser->span, 1);
                    insert_joined(Puser->span);
                };
                keeps_the_law();
                span = NONE; unit = 0
            }
        :: else
        fi
    }
}

active [PURGERS] proctype purger()
{
    byte span, unit, end, turn;
    bool purged[UNITS];
    ready;
    for (turn : 1 .. TURNS) {
        atomic { /* page_heap_take_old */
            any_span(span);
            if
            :: state[span] == FREE && dirty_count[span] != 0 ->
                c_code { find_dirty(Ppurger->span, &Ppurger->unit, &Ppurger->end); };
                if /* more runs, or widened to the clean units */
                :: true
                :: end = first[span] + count[span]
                fi;
#ifndef FREE_MEANWHILE
                c_code { carve(Ppurger->span, Ppurger->unit, Ppurger->end - Ppurger->unit,
                               PURGING); };
                keeps_the_law()
#endif
            :: else -> span = NONE
            fi;
            unit = 0; end = 0
        }
        if
        :: span != NONE ->
            for (unit : first[span] .. first[span] + count[span] - 1) { /* madvise */
                if
                :: contents[unit] = 0; purged[unit] = true
                :: true
                fi
            }
            atomic { /* page_heap_purged */
                c_code { clear_purged(Ppurger->span, Ppurger->purged); };
                c_code { insert_joined(Ppurger->span); };
                keeps_the_law();
                span = NONE; unit = 0
            }
        :: else
        fi
    }
}

init {
    atomic {
        first[1] = 0; count[1] = UNITS;
        c_code { insert_free(1); };
        keeps_the_law();
        ready = true
    }
}
