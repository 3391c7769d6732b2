/* A look at caches at the end of the process: a wrong free that no flush has found yet is named
 * after all. The caches are the calling thread's and some of threads that are gone. The look
 * waits for no lock and writes nothing, since exit may be called from anywhere. At any moment a bin
 * and a spare name only blocks that are nowhere else: a block that leaves them is taken out of them
 * first. */
#include <string.h>

#include "cache/thread_cache.h"
#include "os/fatal.h"
#include "slab/slab.h"

/* Blocks of one class that were seen: open addressing. A bin and a spare fill less than half. */
#define SEEN_SLOTS 512
_Static_assert(SEEN_SLOTS >= 2 * 2 * (MAGAZINE_SLOTS + 1), "the search ends at an empty slot");

typedef struct seen {
    const void *blocks[SEEN_SLOTS];
} seen_t;

/* True: it was there already. */
static bool seen_add(seen_t *seen, const void *block)
{
    /* Fibonacci hashing (Knuth, TAOCP 3, 6.4) of the granule */
    size_t slot = ((uintptr_t)block >> GRANULE_SHIFT) * 0x9e3779b97f4a7c15u >> 55;
    while (seen->blocks[slot] != NULL && seen->blocks[slot] != block)
        slot = (slot + 1) % SEEN_SLOTS;
    bool was_there = seen->blocks[slot] == block;
    seen->blocks[slot] = block;
    return was_there;
}

/* The first wrong free that was found. */
typedef struct finding {
    const void *block; /* NULL: none */
    unsigned class;
    bool is_inside; /* a block; else it was freed twice, or never handed out */
} finding_t;

static bool is_wrong(seen_t *seen, unsigned class, const void *block, bool *is_inside)
{
    const slab_t *slab = slab_of(block);
    bool is_of_class = slab != NULL && slab->class == class;
    slab_verdict_t state = is_of_class ? slab_check(slab, block) : ALREADY_FREE;
    *is_inside = state == NOT_A_BLOCK;
    return state != IN_USE || seen_add(seen, block);
}

static void verify_magazine(seen_t *seen, unsigned class, void *const *blocks, size_t count,
                            finding_t *finding)
{
    for (size_t index = 0; index < count && finding->block == NULL; index++)
        if (is_wrong(seen, class, blocks[index], &finding->is_inside)) {
            finding->block = blocks[index];
            finding->class = class;
        }
}

static void verify_class(const thread_cache_t *cache, unsigned class, finding_t *finding)
{
    const bin_t *bin = &cache->bins[class];
    const magazine_t *spare = cache->spares[class];
    size_t spare_count = spare != NULL ? spare->count : 0;
    if (bin_count(bin) + spare_count == 0)
        return;
    static seen_t seen SPARSE; /* one thread ends the process, and its stack may be short */
    memset(&seen, 0, sizeof seen);
    verify_magazine(&seen, class, bin_magazine(bin)->slots, bin_count(bin), finding);
    if (spare != NULL)
        verify_magazine(&seen, class, spare->slots, spare_count, finding);
}

static void verify_cache(const thread_cache_t *cache, void *finding)
{
    for (unsigned class = 1; class < size_classes_made(); class++)
        verify_class(cache, class, finding);
}

void thread_cache_verify(void)
{
    finding_t finding = {.block = NULL};
    if (!thread_cache_is_empty_cache(thread_cache_own))
        verify_cache(thread_cache_own, &finding);
    thread_caches_visit_orphans(verify_cache, &finding);
    if (finding.block == NULL)
        return;
    /* No lock is held: the program's handler of SIGABRT may allocate. */
    if (finding.is_inside)
        fatal_inside_block("free", finding.block, size_classes[finding.class].size);
    fatal_already_free("free", finding.block, size_classes[finding.class].size);
}
