/* Arithmetic on powers of two and bits. Pure functions, no state. */
#ifndef HAKMEM_BASE_BITS_H
#define HAKMEM_BASE_BITS_H

#include "base/types.h"

static inline bool is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* The caller makes sure that `value + alignment` does not wrap. */
static inline size_t align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline size_t align_down(size_t value, size_t alignment)
{
    return value & ~(alignment - 1);
}

static inline bool is_aligned(const void *ptr, size_t alignment)
{
    return ((uintptr_t)ptr & (alignment - 1)) == 0;
}

/* `value` must not be zero. */
static inline unsigned lowest_bit(uint64_t value)
{
    return (unsigned)__builtin_ctzll(value);
}

/* floor(log2(value)); `value` must not be zero. */
static inline unsigned highest_bit(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

static inline unsigned count_bits(uint64_t value)
{
    return (unsigned)__builtin_popcountll(value);
}

/* The lowest `count` bits set, 0 <= count <= 64. */
static inline uint64_t low_bits(unsigned count)
{
    return count >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1;
}

/* How many bits are set in a row from the lowest on, 0 to 64. */
static inline unsigned count_low_bits(uint64_t value)
{
    return ~value == 0 ? 64 : lowest_bit(~value);
}

static inline size_t power_of_two_at_least(size_t value)
{
    return value <= 1 ? 1 : (size_t)2 << highest_bit(value - 1);
}

static inline size_t smaller_of(size_t left, size_t right)
{
    return left < right ? left : right;
}

static inline size_t larger_of(size_t left, size_t right)
{
    return left > right ? left : right;
}

#endif
