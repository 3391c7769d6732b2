/* Block records: what the checked mode knows of every small block in use, out of line.
 *
 *   granules   | block of 48 bytes, 40 asked for |  free  | 16 bytes, 5 asked for |
 *   records       class     40        0             0        0x80 | 5
 *
 * One byte per granule of 16 bytes, only where check_frees is on (window_records). The first byte
 * of a block in use is its class, the next two hold the size that was asked for. A block of 16
 * bytes has one granule, and one byte says both. Any other byte is 0, or says that the debug mode
 * has filled a freed block. So one load tells whether a block in use begins at an address.
 *
 * A record is written by the thread that hands the block out and cleared by the thread that takes
 * it back; no two threads write one at a time unless the program frees a block twice at that
 * moment. */
#ifndef HAKMEM_SLAB_BLOCK_RECORD_H
#define HAKMEM_SLAB_BLOCK_RECORD_H

#include "base/types.h"
#include "slab/size_class.h"
#include "span/page_map.h"

/* First byte of a block of 16 bytes: this, and the size that was asked for. */
#define RECORD_TINIEST 0x80

/* First byte of a free block that is filled with the pattern of freed memory. */
#define RECORD_FILLED 0x7f

_Static_assert(CLASS_COUNT <= RECORD_FILLED, "a class is a byte below the marks");

static inline bool records_are_kept(void)
{
    return window_records != NULL;
}

/* The first record of the block that begins at `block`, an address in the window. */
static inline uint8_t *block_record(const void *block)
{
    return window_records + granule_at(block);
}

/* The class of the block in use that begins where `record` stands; 0: none does. */
static inline unsigned record_class(const uint8_t *record)
{
    unsigned first = *record;
    if (first >= RECORD_TINIEST)
        return 1;
    return first != RECORD_FILLED ? first : 0;
}

/* Notes that a block of the class is in use, for a request of `size` bytes (0 counts as 1). */
static inline void record_set(uint8_t *record, unsigned class, size_t size)
{
    if (class == 1) {
        *record = (uint8_t)(RECORD_TINIEST | size);
        return;
    }
    record[0] = (uint8_t)class;
    record[1] = (uint8_t)size;
    if (class > 2)
        record[2] = (uint8_t)(size >> 8);
}

/* The size that was asked for, of a block in use. */
static inline size_t record_size(const uint8_t *record)
{
    if (record[0] >= RECORD_TINIEST)
        return record[0] - RECORD_TINIEST;
    return record[0] > 2 ? record[1] | (size_t)record[2] << 8 : record[1];
}

static inline void record_clear(uint8_t *record)
{
    *record = 0;
}

#endif
