/* A size class that is made while threads allocate: its shape, the count of classes, its number and
 * its offset in the tables of granules.
 *
 * MIRRORS src/slab/size_class.c size_class_make
 * MIRRORS src/slab/size_class.c size_class_give_granule
 * MIRRORS src/slab/size_class.h size_class_of
 * MIRRORS src/slab/size_class.h size_classes_made
 * MIRRORS src/cache/thread_cache.c thread_cache_heed_classes
 *
 * As in publication.pml, the reorderings of ARM are spelled out: the writer's stores arrive one by
 * one, in any order that their kinds allow. The hit path reads the offset relaxed, and pops from the
 * bin of its own thread; the slow half reads the number with an acquire.
 *
 * Law: who uses the shape of the class finds it whole, and a block that a request gets is never
 * shorter than it. The class serves requests of one size; blocks of its fixed class serve it, too.
 *
 * Variants that must be refuted:
 * BROKEN RELAXED_NUMBER  the number may be seen before the shape
 * BROKEN COUNT_FIRST     the class is counted before its shape is written
 * BROKEN OFFSET_TRUSTED  the slow half takes the class from the offset
 */
bool has_shape = false, is_counted = false, has_number = false, has_offset = false;

/* A process per store that is under way: it arrives when it likes. */
active proctype shape_arrives() { has_shape = true }

active proctype count_arrives()
{
#ifndef COUNT_FIRST
    has_shape;
#endif
    is_counted = true
}

active proctype number_arrives()
{
#ifndef RELAXED_NUMBER
    has_shape && is_counted;
#endif
    has_number = true
}

/* Its release orders it behind the shape, but the hit path's relaxed load orders nothing: what the
 * thread reads next may be older. */
active proctype offset_arrives() { has_offset = true }

/* A thread that allocates three times, and hears of new classes when it likes. */
active [2] proctype thread()
{
    bool bin_has_new = false, bin_has_fixed = false, is_new, counted;
    byte calls = 0;
    do
    :: calls == 3 -> break
    :: calls < 3 ->
        calls++;
        is_new = has_offset;
        if
        :: is_new && bin_has_new -> assert(has_shape) /* a block of the class */
        :: !is_new && bin_has_fixed -> skip           /* of the fixed one: as long, or longer */
        :: else ->                                    /* a miss */
#ifdef OFFSET_TRUSTED
            skip;
#else
            is_new = has_number;
#endif
            if
            :: is_new -> assert(has_shape); bin_has_new = true
            :: else -> bin_has_fixed = true
            fi
        fi
    :: calls < 3 ->
        counted = is_counted;
        assert(!counted || has_shape);
        calls++
    od
}
