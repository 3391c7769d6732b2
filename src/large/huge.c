/* Huge blocks. See huge.h. Descriptors hang in a table by address; a block that is kept after its
 * free stays in it, so that a second free of it is seen.
 *
 *            huge_alloc               huge_free
 *   (none) ────────────▶ LIVE ────────────────────▶ CACHED, warm: it holds memory, and waits for a
 *     ▲                   ▲                           │    request or its age
 *     │                   └── a request of its size ──┤
 *     │                                               ▼ purged
 *     └─────── os_unmap ◀─────────────────────────  CACHED, idle: its addresses alone, where a hole
 *                                                        would be one too many
 *
 * A block that grows is cut off a longer kept one; the rest stays kept, with its age. The block
 * takes it in where it is when it grows further. */
#include "large/huge.h"

#include <string.h>

#include "base/bits.h"
#include "os/lock.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"
#include "large/huge_kept.h"
#include "large/huge_map.h"
#include "large/huge_purge.h"
#include "large/huge_table.h"
#include "large/zeroed.h"
#include "heap/huge_page_probe.h"
#include "keep/keep.h"
#include "keep/pressure.h"

/* A block in the lists serves a request of `size` bytes. The caller holds the lock. */
static void huge_take(huge_t *huge, size_t size)
{
    huge_kept_drop(huge);
    huge->state = HUGE_LIVE;
    huge->asked_size = size;
    huge->has_grown = huge->is_zeroed = false;
    huge_table_count_live(huge, true);
}

/* A kept block that fits, of `longest` bytes at most. The caller holds the lock. */
static huge_t *huge_take_kept(size_t size, size_t alignment, size_t longest)
{
    huge_t *best = huge_kept_best(size, alignment, longest);
    if (best != NULL)
        huge_take(best, size);
    return best;
}

/* A warm block that is shorter than `size` bytes by an eighth at most: its pages stay where it is
 * made longer. The caller holds the lock. */
static huge_t *huge_take_shorter(size_t size)
{
    huge_t *best = huge_kept_best(size - size / 8, BLOCK_ALIGNMENT, size);
    if (best == NULL || best->list == HUGE_IDLE)
        return NULL;
    huge_take(best, best->range.size);
    return best;
}

/* As huge_take_kept, for a block that grows: also the start of the longest one that holds more. In
 * the rest it grows on where it is, and blocks that grow side by side are not in each other's
 * way. */
static huge_t *huge_take_cut(size_t size)
{
    huge_t *kept = huge_kept_longest(size);
    size_t longest = size + size / 8;
    if (kept != NULL && kept->range.size > longest && kept->kept > size &&
        huge_table_cut(kept, size))
        longest = size;
    return huge_take_kept(size, BLOCK_ALIGNMENT, longest);
}

/* ---- allocation ---- */

static void *huge_map_new(size_t size, size_t alignment, bool is_zeroed)
{
    huge_t *huge = meta_alloc(sizeof *huge);
    if (huge == NULL)
        return NULL;
    huge->range.start = huge_map(size, alignment);
    if (huge->range.start == NULL) {
        meta_free(huge, sizeof *huge);
        return NULL;
    }
    huge->range.size = huge->asked_size = size;
    huge_table_set_mapping(huge);
    huge->state = HUGE_LIVE;
    huge->is_zeroed = is_zeroed;
    huge_evict_for(size);
    lock_acquire(&huge_table.lock);
    huge_table_insert(huge);
    huge_table_count_live(huge, true);
    lock_release(&huge_table.lock);
    return huge->range.start;
}

/* The start of a block that was kept and is LIVE now. */
static void *huge_serve(const huge_t *huge, size_t size)
{
    if (huge->kept < size)
        huge_evict_for(size - huge->kept);
    return huge->range.start;
}

/* NULL: no kept block is nearly long enough, or the kernel does not make it longer. */
static void *huge_lengthen_kept(size_t size)
{
    lock_acquire(&huge_table.lock);
    const huge_t *huge = huge_take_shorter(size);
    lock_release(&huge_table.lock);
    if (huge == NULL)
        return NULL;
    void *start = huge->range.start;
    uint64_t freed_ms = huge->freed_ms;
    void *longer = huge_resize(start, size);
    if (longer == NULL)
        (void)huge_free(start, freed_ms);
    return longer;
}

static huge_t *huge_take_for(size_t size, size_t alignment)
{
    lock_acquire(&huge_table.lock);
    huge_t *huge = huge_take_kept(size, alignment, size + size / 8);
    lock_release(&huge_table.lock);
    return huge;
}

void *huge_alloc(size_t size, size_t alignment, bool *is_zero)
{
    size = align_up(size, os_page_size());
    huge_t *huge = huge_take_for(size, alignment);
    bool may_be_moved = huge == NULL && alignment <= os_page_size();
    void *longer = may_be_moved ? huge_lengthen_kept(size) : NULL;
    *is_zero = longer == NULL && (huge == NULL || huge->kept == 0);
    if (longer != NULL)
        return longer;
    return huge == NULL ? huge_map_new(size, alignment, false) : huge_serve(huge, size);
}

void *huge_alloc_zeroed(size_t size, size_t alignment, bool *is_zero)
{
    size = align_up(size, os_page_size());
    huge_t *huge = huge_take_for(size, alignment);
    *is_zero = huge == NULL;
    if (huge == NULL)
        return huge_map_new(size, alignment, true);
    /* Where such blocks are sparse, no page stays. */
    if (huge->kept != 0 && zeroed_are_sparse() && os_purge(huge->range.start, huge->kept))
        huge->kept = 0;
    huge->is_zeroed = *is_zero = huge->kept == 0;
    return huge_serve(huge, size);
}

void *huge_alloc_growing(size_t size)
{
    bool is_zero = false;
    size_t whole = align_up(size, os_page_size());
    lock_acquire(&huge_table.lock);
    huge_t *huge = huge_take_cut(whole);
    lock_release(&huge_table.lock);
    return huge != NULL ? huge_serve(huge, whole) : huge_alloc(size, BLOCK_ALIGNMENT, &is_zero);
}

void *huge_from_cache(size_t size, size_t alignment)
{
    size = align_up(size, os_page_size());
    lock_acquire(&huge_table.lock);
    huge_t *huge = huge_take_kept(size, alignment, PTRDIFF_MAX);
    lock_release(&huge_table.lock);
    return huge != NULL ? huge->range.start : NULL;
}

huge_state_t huge_find(const void *ptr, size_t *size)
{
    huge_state_t state = HUGE_NONE;
    lock_acquire(&huge_table.lock);
    const huge_t *huge = huge_table_at(ptr);
    if (huge != NULL) {
        *size = huge->range.size;
        state = huge->range.start != ptr ? HUGE_INSIDE : (huge_state_t)huge->state;
    }
    lock_release(&huge_table.lock);
    return state;
}

static bool huge_is_worth_keeping(const huge_t *huge, bool is_sparse)
{
    size_t most_units = (size_t)options.bigcache_max_mb * MIB >> UNIT_SHIFT;
    if (most_units != 0)
        most_units = larger_of(most_units, keep_wanted_units());
    size_t limit = pressure_cap(most_units) << UNIT_SHIFT;
    return options.bigcache && !is_sparse &&
           huge_kept_totals.bytes + huge->range.size <= limit;
}

/* Was the LIVE block at `ptr` given as a zeroed one, and touched in a few places only? */
static bool huge_was_sparse(const void *ptr)
{
    lock_acquire(&huge_table.lock);
    const huge_t *huge = huge_table_find(ptr);
    bool is_zeroed = huge != NULL && huge->state == HUGE_LIVE && huge->is_zeroed;
    size_t size = is_zeroed ? huge->range.size : 0;
    lock_release(&huge_table.lock);
    return is_zeroed && zeroed_note_freed(ptr, size);
}

bool huge_free(void *ptr, uint64_t now_ms)
{
    bool is_sparse = huge_was_sparse(ptr);
    lock_acquire(&huge_table.lock);
    huge_t *huge = huge_table_find(ptr);
    bool found = huge != NULL && huge->state == HUGE_LIVE;
    bool is_kept = false;
    size_t size = 0;
    if (found) {
        size = huge->range.size;
        huge_table_count_live(huge, false);
        huge->state = HUGE_CACHED;
        huge->freed_ms = now_ms;
        huge->kept = huge->range.size;
        is_kept = huge_is_worth_keeping(huge, is_sparse);
        if (is_kept)
            huge_kept_add_warm(huge, true);
    }
    lock_release(&huge_table.lock);
    if (found && !is_kept) {
        huge_give_up(huge);
        keep_note_gone(size >> UNIT_SHIFT, now_ms, now_ms);
    }
    /* Beside a block that is gone less may stay of others. */
    keep_note_freed((is_kept ? size : size / KEEP_SHARE) >> UNIT_SHIFT);
    return found;
}

/* Never a part alone: the kernel moves no block of two kinds. The block is not in the table. */
static void huge_advise(huge_t *huge, bool wanted)
{
    os_advise_huge_pages(huge->range.start, huge->range.size, wanted);
    huge->is_advised = wanted;
    huge_table_set_mapping(huge);
}

/* Huge pages have proved too dear in a block of the caller's. */
static void huge_refuse_pages(void *ptr)
{
    lock_acquire(&huge_table.lock);
    huge_t *huge = huge_table_find(ptr);
    if (huge != NULL) {
        huge_table_remove(huge);
        huge_advise(huge, false);
        huge_table_insert(huge);
    }
    lock_release(&huge_table.lock);
}

/* Bytes of addresses beyond `new_size` that the block shall get when it becomes longer: it has
 * grown before, and by small steps. They are fresh, and hold no memory until the program writes
 * there. */
static size_t huge_room_for(const huge_t *huge, size_t new_size)
{
    bool has_room = huge->has_grown && !pressure_is_near() &&
                    new_size - huge->asked_size <= new_size / GROWTH_STEP_SHARE;
    return has_room ? align_up(new_size / GROWTH_STEP_SHARE, os_page_size()) : 0;
}

/* The block is not in the table: its old place may be mapped by another thread the moment it is
 * free. No lock is held: the program may have put hooks into mremap. NULL: refused. */
static void *huge_remap(huge_t *huge, size_t new_size, size_t room, first_touch_t *touch)
{
    size_t old_size = huge->range.size;
    size_t size = new_size + room;
    char *moved = os_remap(huge->range.start, old_size, size);
    if (moved == NULL && room != 0)
        moved = os_remap(huge->range.start, old_size, size = new_size);
    if (moved != NULL) {
        if (moved != huge->range.start)
            huge_table_set_mapping(huge);
        huge->range.start = moved;
        huge->range.size = size;
        huge->has_grown = new_size > huge->asked_size;
        huge->asked_size = new_size;
        if (!huge->is_advised)
            *touch = huge_page_trial_grown(moved, old_size, size);
        if (touch->is_huge)
            huge_advise(huge, true);
    }
    lock_acquire(&huge_table.lock);
    huge_table_insert(huge);
    huge_table_count_live(huge, true);
    lock_release(&huge_table.lock);
    return moved;
}

/* Does the block stay as long as it is for `new_size` bytes? A block does where it has room for
 * them and does not shrink. The caller holds the lock. */
static bool huge_stays_for(huge_t *huge, size_t new_size)
{
    bool grows = new_size > huge->asked_size;
    bool stays = new_size == huge->range.size ||
                 (new_size >= huge->asked_size && new_size < huge->range.size);
    if (stays) {
        huge->has_grown |= grows;
        huge->asked_size = new_size;
    }
    return stays;
}

/* Copies a LIVE block to kept memory that is there: for a long step that costs less than page
 * faults for what a longer mapping lacks. NULL: there is none. */
static void *huge_copy_to_kept(void *ptr, size_t old_size, size_t new_size)
{
    huge_t *other = NULL;
    if (new_size - old_size < old_size / HUGE_COPY_SHARE)
        return NULL;
    lock_acquire(&huge_table.lock);
    if (huge_kept_longest(new_size) != NULL)
        other = huge_take_cut(new_size);
    lock_release(&huge_table.lock);
    if (other == NULL)
        return NULL;
    memcpy(other->range.start, ptr, old_size);
    (void)huge_free(ptr, os_clock_ms());
    return other->range.start;
}

/* Makes the block shorter, or longer by a longer mapping. */
static void *huge_resize_mapping(void *ptr, size_t new_size)
{
    lock_acquire(&huge_table.lock);
    huge_t *huge = huge_table_find(ptr);
    size_t old_size = huge->range.size;
    size_t room = new_size > old_size ? huge_room_for(huge, new_size) : 0;
    huge_table_count_live(huge, false);
    huge_table_remove(huge);
    lock_release(&huge_table.lock);
    first_touch_t touch = {.start = NULL};
    void *moved = huge_remap(huge, new_size, room, &touch);
    if (touch.start != NULL && !huge_page_trial_touch(touch) && touch.is_huge)
        huge_refuse_pages(moved);
    if (moved != NULL && new_size > old_size)
        huge_evict_for(new_size + room - old_size);
    return moved;
}

void *huge_resize(void *ptr, size_t new_size)
{
    new_size = align_up(new_size, os_page_size());
    lock_acquire(&huge_table.lock);
    huge_t *huge = huge_table_find(ptr);
    size_t fresh = huge_table_absorb(huge, new_size);
    size_t old_size = huge->range.size;
    bool stays = huge_stays_for(huge, new_size);
    lock_release(&huge_table.lock);
    void *moved = stays ? ptr : NULL;
    if (moved == NULL && new_size > old_size)
        moved = huge_copy_to_kept(ptr, old_size, new_size);
    if (moved == NULL)
        moved = huge_resize_mapping(ptr, new_size);
    if (moved != NULL && fresh != 0)
        huge_evict_for(fresh);
    return moved;
}

void huge_create(void)
{
    huge_kept_create();
}

void huge_at_fork(fork_phase_t phase)
{
    lock_at_fork(&huge_table.lock, phase);
}
