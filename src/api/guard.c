/* Patterns that make wrong use of memory show. See guard.h. */
#include "api/guard.h"

#include <string.h>

#include "api/slow.h"
#include "api/stack_text.h"
#include "base/bits.h"
#include "harden/fatal.h"
#include "slab/block_record.h"
#include "slab/size_class.h"

/* No such byte is a small number, a letter, or zero, and each is odd as the end of a pointer. */
#define FRESH 0xa5
#define SLACK 0xc5
#define FREED 0xdf

/* How much of each end of a large block is filled: a page of most machines. */
#define LARGE_EDGE (4 * KIB)

static void fill(void *block, int pattern, size_t length)
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

/* Length of a small block that has a record; 0: it is none, or has none. */
static size_t recorded_length(const void *block)
{
    if (!records_are_kept() || !window_has(block))
        return 0;
    unsigned class = record_class(block_record(block));
    return class == 0 ? 0 : size_classes[class].size;
}

void guard_fill_slack(void *block, size_t size)
{
    size_t length = recorded_length(block);
    size = larger_of(size, 1);
    if (length > size)
        memset((char *)block + size, SLACK, length - size);
}

void guard_fill_fresh(void *block, size_t size)
{
    fill(block, FRESH, size); /* not one byte of a block of no bytes */
    guard_fill_slack(block, size);
}

void guard_check_filled(const void *block, size_t length)
{
    if (find_other(block, FREED, 0, length) != length)
        fatal_written_after_free(block, length);
}

void guard_take_back(void *block, unsigned class)
{
    size_t length = size_classes[class].size;
    uint8_t *record = records_are_kept() ? block_record(block) : NULL;
    if (record != NULL && find_other(block, SLACK, record_size(record), length) != length) {
        stack_text_say_origin(block);
        fatal_overflow(block, record_size(record));
    }
    memset(block, FREED, length);
    if (record != NULL)
        *record = RECORD_FILLED;
}

void guard_fill_freed(void *block, size_t length)
{
    fill(block, FREED, length);
}
