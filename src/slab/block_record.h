/* Block records: what the checked mode knows of every small block in use, out of line.
 *
 *   granules   | block of 80 bytes, 70 asked for            |  free  | 16 bytes, 5 asked for |
 *   records      0x80 | class    70      0      0     (0)       0        0xf0 | 5 - 1
 *
 * There is one byte per granule of 16 bytes, only where check_frees is on. The first byte of a
 * block in use has its top bit set, and no other byte has: one load tells whether a block in use
 * begins at an address. This byte names the class. Behind it stands the size that was asked for, in
 * digits of 7 bits. A block of 16 bytes has one byte for both.
 *
 * A record is written by the thread that hands the block out and cleared by the thread that takes
 * it back. Two threads write one at a time only if the program frees a block twice just then. */
#ifndef HAKMEM_SLAB_BLOCK_RECORD_H
#define HAKMEM_SLAB_BLOCK_RECORD_H

#include "base/types.h"
#include "options/options.h"
#include "slab/size_class.h"
#include "heap/page_map.h"

/* First byte of a block in use: this, and its class. */
#define RECORD_USED 0x80

/* First byte of a block of 16 bytes: this, and the size that was asked for, less 1. */
#define RECORD_TINIEST 0xf0

/* First byte of a free block that is filled with the pattern of freed memory. */
#define RECORD_FILLED 0x7f

/* Digits of the size. */
#define RECORD_DIGIT 7
#define RECORD_DIGIT_MASK ((1 << RECORD_DIGIT) - 1)

/* Blocks of so many bytes have four granules, and sizes of more than one digit. */
#define RECORD_LONG 64

_Static_assert((RECORD_USED | (CLASS_COUNT - 1)) < RECORD_TINIEST, "a class is no tiniest block");
_Static_assert(MID_MAX >> (3 * RECORD_DIGIT) == 0, "three digits hold every size");

static inline bool frees_are_checked(void)
{
    return options.check_frees != 0;
}

/* The first record of the block that begins at `block`, an address in the window. */
static inline uint8_t *block_record(const void *block)
{
    return window_tables.records + granule_at(block);
}

/* The class of the block in use that begins where `record` stands; 0: none does. */
static inline unsigned record_class(const uint8_t *record)
{
    unsigned first = *record;
    if (UNLIKELY(first < RECORD_USED))
        return 0;
    return first < RECORD_TINIEST ? first - RECORD_USED : 1;
}

/* Notes that a block of the class is in use, for a request of `size` bytes (0 counts as 1). */
static inline void record_set(uint8_t *record, unsigned class, size_t size)
{
    if (class == 1) {
        *record = (uint8_t)(RECORD_TINIEST | (size - 1));
        return;
    }
    record[0] = (uint8_t)(RECORD_USED | class);
    record[1] = (uint8_t)(size & RECORD_DIGIT_MASK);
    if (size_classes[class].size >= RECORD_LONG) {
        record[2] = (uint8_t)(size >> RECORD_DIGIT & RECORD_DIGIT_MASK);
        record[3] = (uint8_t)(size >> 2 * RECORD_DIGIT);
    }
}

/* The size that was asked for, of a block in use. */
static inline size_t record_size(const uint8_t *record)
{
    if (record[0] >= RECORD_TINIEST)
        return record[0] - RECORD_TINIEST + (size_t)1;
    if (size_classes[record[0] - RECORD_USED].size < RECORD_LONG)
        return record[1];
    return record[1] | (size_t)record[2] << RECORD_DIGIT | (size_t)record[3] << 2 * RECORD_DIGIT;
}

static inline void record_clear(uint8_t *record)
{
    *record = 0;
}

#endif
