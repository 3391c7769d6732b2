/* Huge blocks. See huge.h. Descriptors hang in a table of chains by address; a cached block stays
 * in it, so that a second free of it is seen. */
#include "span/huge.h"

#include "base/bits.h"
#include "base/list.h"
#include "os/lock.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"

#define CHAIN_COUNT 4096

typedef struct huge {
    struct huge *next;    /* in its chain */
    list_node_t age_node; /* CACHED: youngest first */
    char *start;
    size_t size; /* mapped bytes */
    size_t kept; /* CACHED: bytes from the start that may still hold memory */
    uint64_t freed_ms;
    bool is_cached;
    bool is_advised; /* to use huge pages */
} huge_t;

static lock_t lock = LOCK_INITIAL(LOCK_HUGE);
static huge_t *chains[CHAIN_COUNT];
static list_node_t cache;
static huge_statistics_t statistics;

static huge_t **chain_of(const void *ptr)
{
    /* Fibonacci hashing (Knuth, TAOCP 3, 6.4) of the page number */
    uint64_t hash = ((uintptr_t)ptr >> 12) * 0x9e3779b97f4a7c15u;
    return &chains[hash >> 52];
}

static huge_t *find(const void *ptr)
{
    huge_t *huge = *chain_of(ptr);
    while (huge != NULL && huge->start != ptr)
        huge = huge->next;
    return huge;
}

static void enter(huge_t *huge)
{
    huge_t **chain = chain_of(huge->start);
    huge->next = *chain;
    *chain = huge;
}

static void leave(huge_t *huge)
{
    huge_t **link = chain_of(huge->start);
    while (*link != huge)
        link = &(*link)->next;
    *link = huge->next;
}

static void count_live(const huge_t *huge, bool born)
{
    statistics.live_bytes += born ? huge->size : -huge->size;
    statistics.live_count += born ? (size_t)1 : (size_t)-1;
}

/* Smallest cached block that fits and is no more than `most_waste` longer. */
static huge_t *take_cached(size_t size, size_t alignment, size_t most_waste)
{
    huge_t *best = NULL;
    for (list_node_t *node = cache.next; node != &cache; node = node->next) {
        huge_t *huge = LIST_ITEM(node, huge_t, age_node);
        if (huge->size >= size && huge->size - size <= most_waste &&
            is_aligned(huge->start, alignment) && (best == NULL || huge->size < best->size))
            best = huge;
    }
    if (best != NULL) {
        list_remove(&best->age_node);
        best->is_cached = false;
        statistics.cached_bytes -= best->kept;
        count_live(best, true);
    }
    return best;
}

/* Unmaps a block that is in no list and in no chain any more. */
static void unmap(huge_t *huge)
{
    /* With the table of mappings full munmap fails: at least the memory goes back. */
    if (!os_release(huge->start, huge->size))
        (void)os_purge(huge->start, huge->size);
    meta_free(huge, sizeof *huge);
}

/* Takes the oldest block out of the cache if it was freed before `before_ms`, and out of the table
 * too unless it keeps more than `most` bytes. NULL: there is none. */
static huge_t *take_oldest(uint64_t before_ms, size_t most)
{
    huge_t *oldest = NULL;
    lock_acquire(&lock);
    if (!list_is_empty(&cache))
        oldest = LIST_ITEM(cache.previous, huge_t, age_node);
    if (oldest != NULL && oldest->freed_ms <= before_ms) {
        list_remove(&oldest->age_node);
        statistics.cached_bytes -= oldest->kept;
        if (oldest->kept <= most)
            leave(oldest);
    } else {
        oldest = NULL;
    }
    lock_release(&lock);
    return oldest;
}

/* Memory is about to be touched for the first time: as many bytes of what lies idle in the cache go
 * back to the kernel, oldest first. No lock is held meanwhile, for that takes its time; a block of
 * which a part goes is in no list but still in the table. */
static void give_way(size_t size)
{
    while (size > 0) {
        huge_t *huge = take_oldest(UINT64_MAX, size);
        if (huge == NULL)
            return;
        if (huge->kept <= size) {
            size -= huge->kept;
            unmap(huge);
            continue;
        }
        if (os_purge(huge->start + huge->kept - size, size))
            huge->kept -= size;
        lock_acquire(&lock);
        list_push_back(&cache, &huge->age_node);
        statistics.cached_bytes += huge->kept;
        lock_release(&lock);
        return;
    }
}

static void *map_new(size_t size, size_t alignment)
{
    huge_t *huge = meta_alloc(sizeof *huge);
    if (huge == NULL)
        return NULL;
    huge->start = os_map(size, larger_of(alignment, os_page_size()));
    if (huge->start == NULL) {
        meta_free(huge, sizeof *huge);
        return NULL;
    }
    huge->size = size;
    huge->is_advised = false;
    list_init(&huge->age_node);
    give_way(size);
    lock_acquire(&lock);
    enter(huge);
    count_live(huge, true);
    lock_release(&lock);
    return huge->start;
}

void *huge_alloc(size_t size, size_t alignment, bool *is_zero)
{
    size = align_up(size, os_page_size());
    lock_acquire(&lock);
    huge_t *huge = take_cached(size, alignment, size / 8);
    lock_release(&lock);
    *is_zero = huge == NULL;
    return huge != NULL ? huge->start : map_new(size, alignment);
}

void *huge_from_cache(size_t size, size_t alignment)
{
    lock_acquire(&lock);
    huge_t *huge = take_cached(size, alignment, SIZE_MAX);
    lock_release(&lock);
    return huge != NULL ? huge->start : NULL;
}

huge_state_t huge_find(const void *ptr, size_t *size)
{
    huge_state_t state = HUGE_NONE;
    lock_acquire(&lock);
    huge_t *huge = is_aligned(ptr, os_page_size()) ? find(ptr) : NULL;
    if (huge != NULL) {
        *size = huge->size;
        state = huge->is_cached ? HUGE_CACHED : HUGE_LIVE;
    } else {
        /* Only a program that is about to be told off comes here: look everywhere. */
        for (unsigned chain = 0; chain < CHAIN_COUNT && state == HUGE_NONE; chain++)
            for (huge = chains[chain]; huge != NULL; huge = huge->next)
                if ((uintptr_t)ptr - (uintptr_t)huge->start < huge->size) {
                    *size = huge->size;
                    state = HUGE_INSIDE;
                }
    }
    lock_release(&lock);
    return state;
}

static bool is_worth_caching(const huge_t *huge)
{
    size_t limit = (size_t)options.bigcache_max_mb * MIB;
    return options.bigcache && statistics.cached_bytes + huge->size <= limit;
}

bool huge_free(void *ptr, uint64_t now_ms)
{
    lock_acquire(&lock);
    huge_t *huge = is_aligned(ptr, os_page_size()) ? find(ptr) : NULL;
    bool found = huge != NULL && !huge->is_cached;
    bool kept = false;
    if (found) {
        count_live(huge, false);
        kept = is_worth_caching(huge);
        if (kept) {
            huge->is_cached = true;
            huge->freed_ms = now_ms;
            huge->kept = huge->size;
            list_push_front(&cache, &huge->age_node);
            statistics.cached_bytes += huge->kept;
        } else {
            leave(huge);
        }
    }
    lock_release(&lock);
    if (found && !kept)
        unmap(huge);
    return found;
}

/* What grows is full up to where it ended, so huge pages waste nothing of it. Blocks that are only
 * allocated are not advised: many a program touches a few pages of a great one. */
static void advise_grown(huge_t *huge, size_t old_size)
{
    size_t threshold = (size_t)options.thp_min_heap_mb * MIB;
    if (huge->is_advised || huge->size < old_size || huge->size < threshold)
        return;
    os_advise_huge_pages(huge->start, huge->size, true);
    huge->is_advised = true;
}

void *huge_resize(void *ptr, size_t new_size)
{
    new_size = align_up(new_size, os_page_size());
    lock_acquire(&lock);
    huge_t *huge = find(ptr);
    void *moved = ptr;
    size_t fresh = 0;
    if (huge->size != new_size) {
        /* The mapping moves while the lock is held: its old place may be mapped by another thread
         * the moment it is free, and must not be found in the table by then. */
        leave(huge);
        size_t old_size = huge->size;
        moved = os_remap(huge->start, old_size, new_size);
        if (moved != NULL) {
            count_live(huge, false);
            huge->start = moved;
            huge->size = new_size;
            count_live(huge, true);
            advise_grown(huge, old_size);
            fresh = new_size > old_size ? new_size - old_size : 0;
        }
        enter(huge);
    }
    lock_release(&lock);
    give_way(fresh);
    return moved;
}

size_t huge_cached_size(void)
{
    size_t size = 0;
    lock_acquire(&lock);
    for (list_node_t *node = cache.next; node != &cache; node = node->next)
        size += LIST_ITEM(node, huge_t, age_node)->size;
    lock_release(&lock);
    return size;
}

size_t huge_release_cached(uint64_t before_ms)
{
    size_t released = 0;
    huge_t *oldest;
    while ((oldest = take_oldest(before_ms, SIZE_MAX)) != NULL) {
        released += oldest->kept;
        unmap(oldest);
    }
    return released;
}

huge_statistics_t huge_statistics(void)
{
    lock_acquire(&lock);
    huge_statistics_t copy = statistics;
    lock_release(&lock);
    return copy;
}

void huge_create(void)
{
    list_init(&cache);
}

void huge_at_fork(fork_phase_t phase)
{
    lock_at_fork(&lock, phase);
}
