/* Ranges of bits in an array of words. The caller locks. */
#ifndef HAKMEM_BASE_BITMAP_H
#define HAKMEM_BASE_BITMAP_H

#include "base/bits.h"
#include "base/types.h"

/* The bits of word `word` that fall into [first, end). */
static inline uint64_t bitmap_mask(size_t word, size_t first, size_t end)
{
    uint64_t mask = ~(uint64_t)0;
    if (word == first / 64)
        mask &= ~(uint64_t)0 << (first % 64);
    if (word == (end - 1) / 64)
        mask &= low_bits((unsigned)((end - 1) % 64 + 1));
    return mask;
}

/* `count` must not be zero in any of these. */
static inline void bitmap_set(uint64_t *words, size_t first, size_t count)
{
    for (size_t word = first / 64; word <= (first + count - 1) / 64; word++)
        words[word] |= bitmap_mask(word, first, first + count);
}

static inline void bitmap_clear(uint64_t *words, size_t first, size_t count)
{
    for (size_t word = first / 64; word <= (first + count - 1) / 64; word++)
        words[word] &= ~bitmap_mask(word, first, first + count);
}

static inline size_t bitmap_count(const uint64_t *words, size_t first, size_t count)
{
    size_t sum = 0;
    for (size_t word = first / 64; word <= (first + count - 1) / 64; word++)
        sum += count_bits(words[word] & bitmap_mask(word, first, first + count));
    return sum;
}

static inline bool bitmap_has(const uint64_t *words, size_t bit)
{
    return (words[bit / 64] >> (bit % 64)) & 1;
}

/* The first bit at or after `from` whose value is `value`, or `end`. */
static inline size_t bitmap_find(const uint64_t *words, size_t from, size_t end, bool value)
{
    while (from < end) {
        uint64_t word = value ? words[from / 64] : ~words[from / 64];
        word &= ~(uint64_t)0 << (from % 64);
        if (word != 0)
            return smaller_of(end, align_down(from, 64) + lowest_bit(word));
        from = align_down(from, 64) + 64;
    }
    return end;
}

#endif
