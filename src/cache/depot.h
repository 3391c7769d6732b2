/* The depot: full magazines between threads, per size class.
 *
 * A thread that frees more than it allocates leaves full magazines here, a thread that allocates
 * more takes them: 124 blocks change threads for one lock, and none of them is touched. Magazines
 * that the depot has no room for, or that nobody wants for a while, go down to the slabs.
 *
 * A magazine keeps the order in which blocks were freed, and with each round of a program that
 * builds something and takes it down less of the order is left in which it was built: neighbours in
 * a tree come to lie far apart. Slabs hand blocks out by address, which is order again. Hence a
 * depot keeps many magazines only of blocks that lie side by side. */
#ifndef HAKMEM_CACHE_DEPOT_H
#define HAKMEM_CACHE_DEPOT_H

#include "base/types.h"
#include "cache/bin.h"
#include "os/lock.h"
#include "os/shared_total.h"

void depots_create(void);

/* A magazine with blocks of the class, or NULL. In exchange, `empty` (may be NULL) becomes the
 * depot's if one is returned. */
magazine_t *depot_take(unsigned class, magazine_t *empty);

/* Leaves the blocks of a full magazine. Returns an empty one for it: another, or the same when the
 * depot has no room, or there is no memory for another; then the blocks went to the slabs. */
magazine_t *depot_give(unsigned class, magazine_t *full);

/* An empty magazine, or NULL: no memory. */
magazine_t *magazine_create(void);
void magazine_destroy(magazine_t *magazine);

/* Takes up to so many blocks of the class from the slabs into an empty magazine. */
void magazine_fill(magazine_t *magazine, unsigned class, unsigned count);

/* Sends the magazines down to the slabs that were not wanted since the last call (or `all`). */
void depots_trim(bool all);

/* Sends some `most_bytes` of blocks down to the slabs, wanted or not. Returns bytes; 0: there are
 * none. */
size_t depots_give_up(size_t most_bytes);

/* Of blocks in all depots. */
extern HIDDEN shared_total_t depots_total;

/* Blocks of the class in its depots. */
size_t depot_block_count(unsigned class);

/* The law: the counts are those of the magazines. Takes the locks. */
bool depots_are_valid(void);

void depots_at_fork(fork_phase_t phase);

#endif
