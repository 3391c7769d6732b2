/* Huge blocks. See huge.h. Descriptors hang in a table by address; a block that is kept after its
 * free stays in it, so that a second free of it is seen.
 *
 * What is cut off a mapping to align it, and cannot be unmapped, is an idle block as well.
 *
 *            huge_alloc               huge_free
 *   (none) ────────────▶ LIVE ────────────────────▶ CACHED, warm: it holds memory, and waits for a
 *     ▲                   ▲                           │    request or its age
 *     │                   └── a request of its size ──┤
 *     │                                               ▼ purged
 *     └─────── os_unmap ◀─────────────────────────  CACHED, idle: its addresses alone, where a hole
 *                                                        would be one too many */
#include "large/huge.h"

#include "base/bits.h"
#include "base/count.h"
#include "os/lock.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"
#include "large/huge_kept.h"
#include "heap/huge_page_probe.h"
#include "keep/keep.h"
#include "heap/page_map.h"
#include "keep/pressure.h"

static struct {
    lock_t lock;
    address_tree_t table;
    size_t run_count; /* of blocks without a gap between them: as many mappings, nearly */
    huge_statistics_t statistics;
} huge_state = {.lock = LOCK_INITIAL(LOCK_HUGE)};

/* ---- the table; the caller holds the lock ---- */

/* The block that holds the byte at `ptr`. */
static huge_t *block_around(const void *ptr)
{
    return (huge_t *)(void *)address_tree_at(&huge_state.table, ptr);
}

static huge_t *find(const void *ptr)
{
    huge_t *huge = block_around(ptr);
    return huge != NULL && huge->range.start == ptr ? huge : NULL;
}

/* Does the kernel keep the block and the one that holds the byte at `ptr`, next to it, as one? */
static bool is_joined_at(const huge_t *huge, const void *ptr)
{
    const huge_t *neighbour = huge->is_apart ? NULL : block_around(ptr);
    return neighbour != NULL && !neighbour->is_apart;
}

static bool is_joined_before(const huge_t *huge)
{
    return is_joined_at(huge, huge->range.start - 1);
}

static bool is_joined_behind(const huge_t *huge)
{
    return is_joined_at(huge, huge->range.start + huge->range.size);
}

static void enter(huge_t *huge)
{
    address_tree_insert(&huge_state.table, &huge->range);
    huge_state.run_count += (size_t)1 - is_joined_before(huge) - is_joined_behind(huge);
    huge_state.statistics.mapped_bytes += huge->range.size;
}

static void leave(huge_t *huge)
{
    huge_state.run_count -= (size_t)1 - is_joined_before(huge) - is_joined_behind(huge);
    address_tree_remove(&huge_state.table, &huge->range);
    huge_state.statistics.mapped_bytes -= huge->range.size;
}

static void count_live(const huge_t *huge, bool is_new)
{
    count_add(&huge_state.statistics.live_bytes, is_new ? huge->range.size : -huge->range.size);
    huge_state.statistics.live_count += is_new ? (size_t)1 : (size_t)-1;
}

/* A kept block that fits, of `longest` bytes at most. The caller holds the lock. */
static huge_t *take_cached(size_t size, size_t alignment, size_t longest)
{
    huge_t *best = huge_kept_best(size, alignment, longest);
    if (best == NULL)
        return NULL;
    huge_kept_drop(best);
    best->is_cached = false;
    best->wishes = 0;
    count_live(best, true);
    return best;
}

/* ---- giving up ---- */

/* Unmaps a CACHED block that is in no list, or where that would make a hole too many, keeps its
 * addresses and gives back its memory. The caller does not hold the lock. */
static void give_up(huge_t *huge)
{
    lock_acquire(&huge_state.lock);
    bool is_edge = !is_joined_before(huge) || !is_joined_behind(huge);
    bool may_unmap = is_edge || huge_state.run_count < MOST_RUNS;
    if (may_unmap)
        leave(huge);
    lock_release(&huge_state.lock);
    if (may_unmap && os_unmap(huge->range.start, huge->range.size)) {
        meta_free(huge, sizeof *huge);
        return;
    }
    /* Or the table is full in spite of all that, for the program makes mappings too. */
    if (huge->kept != 0 && os_purge(huge->range.start, huge->range.size))
        huge->kept = 0;
    lock_acquire(&huge_state.lock);
    if (may_unmap)
        enter(huge);
    huge_kept_add_idle(huge);
    lock_release(&huge_state.lock);
}

/* Takes the oldest block that holds memory out of the lists if it was freed before `before_ms`; it
 * stays in the table. NULL: there is none. */
static huge_t *take_oldest(uint64_t before_ms)
{
    lock_acquire(&huge_state.lock);
    huge_t *oldest = huge_kept_oldest(before_ms);
    if (oldest != NULL)
        huge_kept_drop(oldest);
    lock_release(&huge_state.lock);
    return oldest;
}

/* Gives back some `most_bytes` of what blocks freed before `before_ms` hold, the oldest first. No
 * lock is held meanwhile. `since_ms` gets the time since which it was idle. Returns bytes. */
static size_t give_back(uint64_t before_ms, size_t most_bytes, uint64_t *since_ms)
{
    size_t given = 0;
    huge_t *huge;
    while (given < most_bytes && (huge = take_oldest(before_ms)) != NULL) {
        /* Whole huge pages, which the kernel gives in one piece. */
        size_t most = align_up(smaller_of(most_bytes - given, huge->kept), CHUNK_UNITS * UNIT_SIZE);
        size_t more = smaller_of(huge->kept, most);
        *since_ms = huge->freed_ms;
        /* A locked page goes with its mapping only; what lies behind it does not wait for that. */
        if (more == huge->kept || !os_purge(huge->range.start + huge->kept - more, more)) {
            given += huge->kept;
            give_up(huge);
            continue;
        }
        huge->kept -= more;
        lock_acquire(&huge_state.lock);
        huge_kept_add_warm(huge, false);
        lock_release(&huge_state.lock);
        return given + more;
    }
    return given;
}

/* Memory is about to be touched for the first time: as many bytes of what is kept warm go back to
 * the kernel, oldest first. */
static void evict_for(size_t size)
{
    uint64_t since_ms;
    pressure_note_fresh(size >> UNIT_SHIFT);
    (void)give_back(UINT64_MAX, size, &since_ms);
}

size_t huge_give_back(uint64_t before_ms, size_t most_bytes, uint64_t now_ms)
{
    uint64_t since_ms = now_ms;
    size_t most = align_up(smaller_of(most_bytes, PTRDIFF_MAX), os_page_size());
    size_t given = give_back(before_ms, most, &since_ms);
    keep_note_gone(given >> UNIT_SHIFT, since_ms, now_ms);
    return given;
}

/* Tries to unmap idle blocks, the oldest first: a hole may have come up to them meanwhile. */
static void release_idle(size_t most)
{
    for (size_t count = 0; count < most; count++) {
        lock_acquire(&huge_state.lock);
        huge_t *huge = huge_kept_oldest_idle();
        if (huge != NULL)
            huge_kept_drop(huge);
        lock_release(&huge_state.lock);
        if (huge == NULL)
            return;
        give_up(huge);
    }
}

/* ---- new mappings ---- */

/* Unmaps memory that no block ever lay in. Where the kernel refuses, it becomes an idle block. */
static void let_go(char *start, size_t size, huge_t **spare)
{
    if (size == 0 || os_release(start, size))
        return;
    huge_t *huge = *spare;
    *spare = NULL;
    huge->range.start = start;
    huge->range.size = size;
    huge->is_cached = true;
    lock_acquire(&huge_state.lock);
    enter(huge);
    huge_kept_add_idle(huge);
    lock_release(&huge_state.lock);
}

static char *map_aligned(size_t size, size_t alignment, huge_t **spares)
{
    char *start = os_map(size);
    if (start == NULL || is_aligned(start, alignment))
        return start;
    let_go(start, size, &spares[0]);
    start = size + alignment < size ? NULL : os_map(size + alignment);
    if (start == NULL)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)start & (alignment - 1));
    let_go(start, before, &spares[1]);
    let_go(start + before + size, alignment - before, &spares[2]);
    return start + before;
}

static char *map(size_t size, size_t alignment)
{
    enum { LEFTOVERS = 3 };
    huge_t *spares[LEFTOVERS] = {NULL};
    unsigned count = 0;
    if (alignment <= os_page_size())
        return os_map(size);
    /* Before anything is mapped: what cannot be described could be lost. */
    while (count < LEFTOVERS && (spares[count] = meta_alloc(sizeof(huge_t))) != NULL)
        count++;
    char *start = count == LEFTOVERS ? map_aligned(size, alignment, spares) : NULL;
    for (unsigned index = 0; index < LEFTOVERS; index++)
        if (spares[index] != NULL)
            meta_free(spares[index], sizeof(huge_t));
    return start;
}

bool huge_could_map(size_t size)
{
    huge_t *spare = meta_alloc(sizeof *spare);
    if (spare == NULL)
        return false;
    size = align_up(size, os_page_size());
    char *trial = os_map(size);
    if (trial != NULL)
        let_go(trial, size, &spare);
    if (spare != NULL)
        meta_free(spare, sizeof *spare);
    return trial != NULL;
}

static void *map_new(size_t size, size_t alignment)
{
    huge_t *huge = meta_alloc(sizeof *huge);
    if (huge == NULL)
        return NULL;
    huge->range.start = map(size, alignment);
    if (huge->range.start == NULL) {
        meta_free(huge, sizeof *huge);
        return NULL;
    }
    huge->range.size = size;
    evict_for(size);
    lock_acquire(&huge_state.lock);
    enter(huge);
    count_live(huge, true);
    lock_release(&huge_state.lock);
    return huge->range.start;
}

void *huge_alloc(size_t size, size_t alignment, bool *is_zero)
{
    size = align_up(size, os_page_size());
    lock_acquire(&huge_state.lock);
    huge_t *huge = take_cached(size, alignment, size + size / 8);
    lock_release(&huge_state.lock);
    *is_zero = true;
    if (huge == NULL)
        return map_new(size, alignment);
    *is_zero = huge->kept == 0;
    if (huge->kept < size)
        evict_for(size - huge->kept);
    return huge->range.start;
}

void *huge_from_cache(size_t size, size_t alignment)
{
    size = align_up(size, os_page_size());
    lock_acquire(&huge_state.lock);
    huge_t *huge = take_cached(size, alignment, PTRDIFF_MAX);
    lock_release(&huge_state.lock);
    return huge != NULL ? huge->range.start : NULL;
}

huge_state_t huge_find(const void *ptr, size_t *size)
{
    huge_state_t state = HUGE_NONE;
    lock_acquire(&huge_state.lock);
    const huge_t *huge = block_around(ptr);
    if (huge != NULL) {
        *size = huge->range.size;
        state = huge->range.start != ptr ? HUGE_INSIDE : huge->is_cached ? HUGE_CACHED : HUGE_LIVE;
    }
    lock_release(&huge_state.lock);
    return state;
}

static bool is_worth_caching(const huge_t *huge)
{
    size_t limit = pressure_cap((size_t)options.bigcache_max_mb * MIB >> UNIT_SHIFT) << UNIT_SHIFT;
    size_t kept = huge_kept_bytes;
    if ((huge->wishes & HUGE_WISH_KEEP) != 0) {
        limit *= pressure_is_near() ? 1 : SITE_KEPT_TIMES;
        kept = huge_kept_longer_bytes;
    }
    return options.bigcache && (huge->wishes & HUGE_WISH_RETURN) == 0 &&
           kept + huge->range.size <= limit;
}

bool huge_free(void *ptr, uint64_t now_ms)
{
    lock_acquire(&huge_state.lock);
    huge_t *huge = find(ptr);
    bool found = huge != NULL && !huge->is_cached;
    bool is_kept = false;
    size_t size = 0;
    if (found) {
        size = huge->range.size;
        count_live(huge, false);
        huge->is_cached = true;
        huge->freed_ms = now_ms;
        huge->kept = huge->range.size;
        is_kept = is_worth_caching(huge);
        if (is_kept)
            huge_kept_add_warm(huge, true);
    }
    lock_release(&huge_state.lock);
    if (found && !is_kept) {
        size_t unit_count = huge->kept >> UNIT_SHIFT;
        give_up(huge);
        keep_note_gone(unit_count, now_ms, now_ms);
    } else if (found) {
        keep_note_freed(size >> UNIT_SHIFT);
    }
    return found;
}

/* Never a part alone: the kernel moves no block of two kinds. */
static void advise(huge_t *huge, bool wanted)
{
    os_advise_huge_pages(huge->range.start, huge->range.size, wanted);
    huge->is_advised = wanted;
    huge->is_apart = true;
}

void huge_wish(void *ptr, unsigned wishes)
{
    lock_acquire(&huge_state.lock);
    huge_t *huge = find(ptr);
    huge->wishes = (uint8_t)wishes;
    bool is_long = huge->range.size >= CHUNK_UNITS << UNIT_SHIFT;
    if ((wishes & HUGE_WISH_PAGES) != 0 && is_long && !huge->is_advised) {
        leave(huge); /* its neighbours change: it stands apart from now on */
        advise(huge, true);
        enter(huge);
    }
    lock_release(&huge_state.lock);
}

/* Huge pages have proved too dear in a block of the caller's. */
static void do_without(void *ptr)
{
    lock_acquire(&huge_state.lock);
    if (find(ptr) != NULL)
        advise(find(ptr), false);
    lock_release(&huge_state.lock);
}

/* The block is not in the table: its old place may be mapped by another thread the moment it is
 * free. No lock is held: the program may have put hooks into mremap. NULL: refused. */
static void *remap(huge_t *huge, size_t new_size, first_touch_t *touch)
{
    size_t old_size = huge->range.size;
    char *moved = os_remap(huge->range.start, old_size, new_size);
    if (moved != NULL) {
        huge->is_apart |= moved != huge->range.start;
        huge->range.start = moved;
        huge->range.size = new_size;
        if (!huge->is_advised)
            *touch = huge_page_trial_grown(moved, old_size, new_size);
        if (touch->is_huge)
            advise(huge, true);
    }
    lock_acquire(&huge_state.lock);
    enter(huge);
    count_live(huge, true);
    lock_release(&huge_state.lock);
    return moved;
}

void *huge_resize(void *ptr, size_t new_size)
{
    new_size = align_up(new_size, os_page_size());
    lock_acquire(&huge_state.lock);
    huge_t *huge = find(ptr);
    size_t old_size = huge->range.size;
    void *moved = ptr;
    first_touch_t touch = {.start = NULL};
    bool keeps_addresses =
        new_size < old_size && huge_state.run_count >= MOST_RUNS && is_joined_behind(huge);
    if (new_size != old_size && !keeps_addresses) {
        count_live(huge, false);
        leave(huge);
    }
    lock_release(&huge_state.lock);
    if (keeps_addresses) /* the hole would be one too many */
        (void)os_purge((char *)ptr + new_size, old_size - new_size);
    else if (new_size != old_size)
        moved = remap(huge, new_size, &touch);
    if (touch.start != NULL && !huge_page_trial_touch(touch) && touch.is_huge)
        do_without(moved);
    if (moved != NULL && new_size > old_size)
        evict_for(new_size - old_size);
    return moved;
}

size_t huge_cached_size(void)
{
    huge_statistics_t now = huge_statistics();
    return now.mapped_bytes - now.live_bytes;
}

void huge_release_some_idle(void)
{
    if (count_read(&huge_kept_idle_count) != 0)
        release_idle(RUNS_AT_ONCE);
}

size_t huge_release_cached(void)
{
    uint64_t since_ms;
    /* Not more than there is now: a hook of the program may free blocks meanwhile. */
    size_t released = give_back(UINT64_MAX, huge_statistics().cached_bytes, &since_ms);
    release_idle(count_read(&huge_kept_idle_count));
    return released;
}

size_t huge_live_units(void)
{
    return count_read(&huge_state.statistics.live_bytes) >> UNIT_SHIFT;
}

huge_statistics_t huge_statistics(void)
{
    lock_acquire(&huge_state.lock);
    huge_statistics_t copy = huge_state.statistics;
    copy.cached_bytes = huge_kept_bytes + huge_kept_longer_bytes;
    lock_release(&huge_state.lock);
    return copy;
}

void huge_create(void)
{
    huge_kept_create();
}

void huge_at_fork(fork_phase_t phase)
{
    lock_at_fork(&huge_state.lock, phase);
}
