/* A look at the calling thread's cache at the end of the process: a wrong free that no flush has
 * found yet is named after all. It takes no lock and writes nothing, since exit may be called from
 * anywhere. */
#include <string.h>

#include "cache/thread_cache.h"
#include "harden/fatal.h"
#include "slab/slab.h"

/* Blocks of one class that were seen: open addressing. A bin and a spare fill less than half. */
#define SEEN_SLOTS 512
_Static_assert(SEEN_SLOTS >= 2 * 2 * (MAGAZINE_SLOTS + 1), "the search ends at an empty slot");

typedef struct seen {
    const void *blocks[SEEN_SLOTS];
} seen_t;

/* True: it was there already. */
static bool add(seen_t *seen, const void *block)
{
    /* Fibonacci hashing (Knuth, TAOCP 3, 6.4) of the granule */
    size_t slot = ((uintptr_t)block >> GRANULE_SHIFT) * 0x9e3779b97f4a7c15u >> 55;
    while (seen->blocks[slot] != NULL && seen->blocks[slot] != block)
        slot = (slot + 1) % SEEN_SLOTS;
    bool was_there = seen->blocks[slot] == block;
    seen->blocks[slot] = block;
    return was_there;
}

static void verify_block(seen_t *seen, unsigned class, const void *block)
{
    const slab_t *slab = slab_of(block);
    bool is_of_class = slab != NULL && slab->class == class;
    give_result_t state = is_of_class ? slab_check(slab, block) : ALREADY_FREE;
    if (state == NOT_A_BLOCK)
        fatal_inside_block("free", block, size_classes[class].size);
    if (state == ALREADY_FREE || add(seen, block))
        fatal_already_free("free", block, size_classes[class].size);
}

static void verify_class(const thread_cache_t *cache, unsigned class)
{
    const bin_t *bin = &cache->bins[class];
    const magazine_t *spare = cache->spares[class];
    size_t spare_count = spare != NULL ? spare->count : 0;
    size_t bin_blocks = bin_count(bin);
    if (bin_blocks + spare_count == 0)
        return;
    seen_t seen;
    memset(&seen, 0, sizeof seen);
    for (size_t index = 0; index < bin_blocks; index++)
        verify_block(&seen, class, bin_magazine(bin)->slots[index]);
    for (size_t index = 0; index < spare_count; index++)
        verify_block(&seen, class, spare->slots[index]);
}

void thread_cache_verify(void)
{
    const thread_cache_t *cache = thread_cache_own;
    if (thread_cache_is_empty_cache(cache))
        return;
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        verify_class(cache, class);
}
