/* Patterns that make wrong use of memory show. See guard.h. */
#include "check/guard.h"

#include <string.h>

#include "observe/stack_text.h"
#include "base/bits.h"
#include "os/fatal.h"
#include "os/lock.h"
#include "options/options.h"
#include "check/all_blocks.h"
#include "slab/block_record.h"
#include "slab/size_class.h"

/* No such byte is a small number, a letter, or zero, and each is odd as the end of a pointer. */
#define FRESH 0xa5
#define SLACK 0xc5
#define FREED 0xdf

/* Held while the record of a block is written, and what lies behind the request is filled or read.
 * Whoever sees a record, then, sees the pattern that the record speaks of. */
static lock_t guard_lock = LOCK_INITIAL(LOCK_GUARD);

/* How much of each end of a large block is filled: a page of most machines. */
#define LARGE_EDGE (4 * KIB)

static void guard_fill(void *block, int pattern, size_t length)
{
    if (length <= MID_MAX) {
        memset(block, pattern, length);
        return;
    }
    memset(block, pattern, LARGE_EDGE);
    memset((char *)block + length - LARGE_EDGE, pattern, LARGE_EDGE);
}

/* The first byte from `from` on that is not `pattern`; `length`: there is none. */
static size_t find_other(const void *block, uint8_t pattern, size_t from, size_t length)
{
    const uint8_t *bytes = block;
    while (from < length && bytes[from] == pattern)
        from++;
    return from;
}

/* Length of a small block that has a record; 0: the block is not small, or has no record. */
static size_t recorded_length(const void *block)
{
    if (!frees_are_checked() || !window_has(block))
        return 0;
    unsigned class = record_class(block_record(block));
    return class == 0 ? 0 : size_classes[class].size;
}

void guard_fill_slack_of(void *block, size_t size)
{
    size_t length = recorded_length(block);
    size = larger_of(size, 1);
    if (length > size)
        memset((char *)block + size, SLACK, length - size);
}

void guard_set_record(void *block, unsigned class, size_t size)
{
    if (!options.junk) {
        record_set(block_record(block), class, size);
        return;
    }
    lock_acquire(&guard_lock);
    memset((char *)block + size, SLACK, size_classes[class].size - size);
    record_set(block_record(block), class, size);
    lock_release(&guard_lock);
}

void guard_fill_fresh_block(void *block, size_t size)
{
    guard_fill(block, FRESH, size); /* not one byte of a block of no bytes */
    guard_fill_slack_of(block, size);
}

static void guard_check_filled(const void *block, size_t length)
{
    if (find_other(block, FREED, 0, length) == length)
        return;
    stack_text_say_history(block);
    fatal_written_after_free(block, length);
}

void guard_hand_out(void *block, unsigned class, size_t size)
{
    if (*block_record(block) == RECORD_FILLED)
        guard_check_filled(block, size_classes[class].size);
    guard_set_record(block, class, size);
}

/* Clears the record. False: what lies behind the request was written, and the record stands. */
static bool guard_take_record(void *block, size_t length)
{
    uint8_t *record = block_record(block);
    lock_acquire(&guard_lock);
    bool is_intact = find_other(block, SLACK, record_size(record), length) == length;
    if (is_intact)
        record_clear(record);
    lock_release(&guard_lock);
    return is_intact;
}

void guard_take_back(void *block, unsigned class)
{
    size_t length = size_classes[class].size;
    if (!options.junk) {
        record_clear(block_record(block));
        return;
    }
    if (frees_are_checked() && !guard_take_record(block, length)) {
        stack_text_say_history(block);
        fatal_overflow(block, record_size(block_record(block)));
    }
    memset(block, FREED, length);
    if (frees_are_checked())
        *block_record(block) = RECORD_FILLED;
}

/* ---- all blocks ---- */

typedef struct inspection {
    size_t count;
    size_t size; /* of the block that was found: what was asked for, or its length */
    bool is_freed;
} inspection_t;

/* Has the program written behind the end of the block? Not if it is in nobody's hands just now. */
static bool has_overflown(const void *block, unsigned class, size_t *size)
{
    const uint8_t *record = block_record(block);
    size_t length = size_classes[class].size;
    lock_acquire(&guard_lock);
    bool is_used = record_class(record) == class;
    *size = is_used ? record_size(record) : length;
    bool is_written = find_other(block, SLACK, *size, length) < length;
    lock_release(&guard_lock);
    return is_written;
}

static bool is_written_wrongly(const void *block, unsigned class, bool is_free, void *context)
{
    inspection_t *inspection = context;
    inspection->count++;
    inspection->is_freed = is_free;
    if (!is_free)
        return has_overflown(block, class, &inspection->size);
    inspection->size = size_classes[class].size;
    return *block_record(block) == RECORD_FILLED &&
           find_other(block, FREED, 0, inspection->size) != inspection->size;
}

size_t guard_check_all(void)
{
    inspection_t inspection = {0};
    if (!options.junk || !frees_are_checked())
        return 0;
    const void *block = all_blocks_find(is_written_wrongly, &inspection);
    if (block == NULL)
        return inspection.count;
    stack_text_say_history(block);
    if (inspection.is_freed)
        fatal_written_after_free(block, inspection.size);
    fatal_overflow(block, inspection.size);
}

void guard_at_fork(fork_phase_t phase)
{
    lock_at_fork(&guard_lock, phase);
}

/* ---- large blocks ---- */

void guard_fill_freed_block(void *block, size_t length)
{
    guard_fill(block, FREED, length);
}
