/* What is published by a release and seen by an acquire: window_unit_count and the tables behind it.
 *
 * MIRRORS src/heap/page_map.c page_map_map_at_end
 * MIRRORS src/heap/span.h span_at
 * MIRRORS src/heap/free_spans.c free_spans_beside
 *
 * SPIN's memory is sequentially consistent, so the reorderings are spelled out. The stores of the
 * writer reach the reader one by one, in any order that their kinds allow: behind a release stands
 * nothing that was written before it. The reader's two loads happen in either order, unless the
 * first is an acquire. Locks hand over in the same shape: the exchange of lock_release is the
 * release, the compare-exchange of lock_acquire the acquire.
 *
 * Law: who sees a unit counted finds its tables readable and the kind of its chunk known. A stale,
 * smaller count only says that the unit is not ours, for as long as nobody was given a block in it.
 *
 * Variants that must be refuted:
 * BROKEN RELAXED_STORE   the count may be seen before what it stands for
 * BROKEN RELAXED_LOAD    the kind may be read before the count
 * BROKEN COUNT_FIRST     the count is stored before the kinds
 */
bool tables_are_readable = false, kind_is_known = false, is_counted = false;
bool has_block = false; /* a block of the unit was handed over, under a lock */

/* A process per store that is under way: it arrives when it likes. */
active proctype commit_arrives() { tables_are_readable = true }

active proctype kind_arrives() { kind_is_known = true }

active proctype count_arrives()
{
#ifdef COUNT_FIRST
    tables_are_readable;
#else
#ifndef RELAXED_STORE
    tables_are_readable && kind_is_known;
#endif
#endif
    is_counted = true
}

/* The writer's own lock is released after all of it, which the receiver of a block acquires. */
active proctype hand_over()
{
    tables_are_readable && kind_is_known && is_counted;
    has_block = true
}

active [2] proctype reader()
{
    bool counted, readable, known, mine;
    mine = has_block;
#ifdef RELAXED_LOAD
    if
    :: readable = tables_are_readable; known = kind_is_known; counted = is_counted
    :: counted = is_counted; readable = tables_are_readable; known = kind_is_known
    fi;
#else
    counted = is_counted; readable = tables_are_readable; known = kind_is_known;
#endif
    assert(!counted || (readable && known));
    assert(!mine || counted)
}
