/* Giving back what kept huge blocks hold. See huge_purge.h. */
#include "large/huge_purge.h"

#include "base/bits.h"
#include "base/count.h"
#include "heap/page_map.h"
#include "keep/keep.h"
#include "keep/pressure.h"
#include "large/huge.h"
#include "large/huge_table.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/tuning.h"

void huge_give_up(huge_t *huge)
{
    lock_acquire(&huge_table.lock);
    huge_table_remove(huge);
    lock_release(&huge_table.lock);
    if (os_unmap(huge->range.start, huge->range.size)) {
        meta_free(huge, sizeof *huge);
        return;
    }
    /* The kernel's table of mappings is full, and the hole would take one more. */
    if (huge->kept != 0 && os_purge(huge->range.start, huge->range.size))
        huge->kept = 0;
    lock_acquire(&huge_table.lock);
    huge_table_insert(huge);
    huge_kept_add_idle(huge);
    lock_release(&huge_table.lock);
}

/* Takes the oldest block that holds memory out of the lists if it was freed before `before_ms`; it
 * stays in the table. NULL: there is none. */
static huge_t *huge_take_oldest(uint64_t before_ms)
{
    lock_acquire(&huge_table.lock);
    huge_t *oldest = huge_kept_oldest(before_ms);
    if (oldest != NULL)
        huge_kept_drop(oldest);
    lock_release(&huge_table.lock);
    return oldest;
}

/* Gives back some `most_bytes` of what blocks freed before `before_ms` hold, the oldest first. No
 * lock is held meanwhile. `since_ms` gets the time since which it was idle. Returns bytes. */
static size_t huge_give_back_oldest(uint64_t before_ms, size_t most_bytes, uint64_t *since_ms)
{
    size_t given = 0;
    huge_t *huge;
    while (given < most_bytes && (huge = huge_take_oldest(before_ms)) != NULL) {
        /* Whole huge pages, which the kernel gives in one piece. */
        size_t most = align_up(smaller_of(most_bytes - given, huge->kept), CHUNK_UNITS * UNIT_SIZE);
        size_t more = smaller_of(huge->kept, most);
        *since_ms = huge->freed_ms;
        /* A locked page goes with its mapping only; what lies behind it does not wait for that. */
        if (more == huge->kept || !os_purge(huge->range.start + huge->kept - more, more)) {
            given += huge->kept;
            huge_give_up(huge);
            continue;
        }
        huge->kept -= more;
        lock_acquire(&huge_table.lock);
        huge_kept_add_warm(huge, false);
        lock_release(&huge_table.lock);
        return given + more;
    }
    return given;
}

void huge_evict_for(size_t size)
{
    uint64_t since_ms;
    pressure_note_fresh(size >> UNIT_SHIFT);
    (void)huge_give_back_oldest(UINT64_MAX, size, &since_ms);
}

size_t huge_give_back(uint64_t before_ms, size_t most_bytes, uint64_t now_ms)
{
    uint64_t since_ms = now_ms;
    size_t most = align_up(smaller_of(most_bytes, PTRDIFF_MAX), os_page_size());
    size_t given = huge_give_back_oldest(before_ms, most, &since_ms);
    keep_note_gone(given >> UNIT_SHIFT, since_ms, now_ms);
    return given;
}

/* Tries to unmap idle blocks, the oldest first: a hole may have come up to them meanwhile. */
static void huge_release_idle(size_t most)
{
    for (size_t count = 0; count < most; count++) {
        lock_acquire(&huge_table.lock);
        huge_t *huge = huge_kept_oldest_idle();
        if (huge != NULL)
            huge_kept_drop(huge);
        lock_release(&huge_table.lock);
        if (huge == NULL)
            return;
        huge_give_up(huge);
    }
}

void huge_release_some_idle(void)
{
    if (count_read(&huge_kept_totals.idle_count) != 0)
        huge_release_idle(RUNS_AT_ONCE);
}

size_t huge_release_cached(void)
{
    uint64_t since_ms;
    /* Not more than there is now: a hook of the program may free blocks meanwhile. */
    size_t released = huge_give_back_oldest(UINT64_MAX, huge_statistics().cached_bytes, &since_ms);
    huge_release_idle(count_read(&huge_kept_totals.idle_count));
    return released;
}
