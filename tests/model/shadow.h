/* The naive model of a heap: which bytes are whose, and what they must hold.

   Blocks lie in one array sorted by address; adding one checks it against its two neighbours.
   Internally locked; static memory only. Included by one program, so the bodies are here. */
#ifndef HAKMEM_TESTS_SHADOW_H
#define HAKMEM_TESTS_SHADOW_H

#include "check.h"

#include <pthread.h>

typedef enum block_kind {
    BLOCK_PLAIN,
    BLOCK_MEMALIGN,
    BLOCK_ALIGNED_ALLOC,
    BLOCK_NEW,
    BLOCK_NEW_ALIGNED,
} block_kind_t;

typedef struct block {
    unsigned char *start; /* NULL: no block. */
    size_t size;          /* As requested. */
    size_t usable;        /* As malloc_usable_size said first. */
    size_t alignment;
    uint64_t seed; /* Of the contents. */
    block_kind_t kind;
} block_t;

typedef struct interval {
    uintptr_t start;
    uintptr_t end;
} interval_t;

enum { SHADOW_CAPACITY = 8192 };
static interval_t shadow_intervals[SHADOW_CAPACITY];
static size_t shadow_interval_count;
static pthread_mutex_t shadow_lock = PTHREAD_MUTEX_INITIALIZER;

static inline size_t shadow_count(void)
{
    return shadow_interval_count;
}

/* Index of the first interval that starts at or after `address`. */
static inline size_t shadow_find(uintptr_t address)
{
    size_t low = 0;
    size_t high = shadow_interval_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (shadow_intervals[middle].start < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A block of no bytes still owns its address. */
static inline void shadow_add(const block_t *block)
{
    const uintptr_t start = (uintptr_t)block->start;
    const uintptr_t end = start + (block->usable > 0 ? block->usable : 1);
    check_eq(pthread_mutex_lock(&shadow_lock), 0);
    check(shadow_interval_count < SHADOW_CAPACITY);
    const size_t at = shadow_find(start);
    const size_t behind = shadow_interval_count - at;
    check(at == 0 || shadow_intervals[at - 1].end <= start);
    check(behind == 0 || shadow_intervals[at].start >= end);
    memmove(&shadow_intervals[at + 1], &shadow_intervals[at], behind * sizeof(interval_t));
    shadow_intervals[at] = (interval_t){start, end};
    shadow_interval_count++;
    check_eq(pthread_mutex_unlock(&shadow_lock), 0);
}

/* Before the block is freed: afterwards another thread may own the address. */
static inline void shadow_remove(const block_t *block)
{
    check_eq(pthread_mutex_lock(&shadow_lock), 0);
    const size_t at = shadow_find((uintptr_t)block->start);
    check(at < shadow_interval_count && shadow_intervals[at].start == (uintptr_t)block->start);
    const size_t behind = shadow_interval_count - at - 1;
    memmove(&shadow_intervals[at], &shadow_intervals[at + 1], behind * sizeof(interval_t));
    shadow_interval_count--;
    check_eq(pthread_mutex_unlock(&shadow_lock), 0);
}

static inline uint64_t shadow_word(const block_t *block, size_t i)
{
    return block->seed + i * 0x9e3779b97f4a7c15u;
}

/* Blocks of more bytes hold the pattern in 4 KiB at each end and in a word of each 64 KiB between
   them: a fuzzer wants many calls more than full blocks. */
static size_t shadow_whole_bytes = SIZE_MAX;

static inline bool shadow_is_whole(const block_t *block)
{
    return block->usable <= shadow_whole_bytes;
}

/* The word of the pattern that follows the word `i`. */
static inline size_t shadow_next(const block_t *block, size_t i)
{
    enum { END = 4096 / sizeof(uint64_t), STEP = 65536 / sizeof(uint64_t) };
    const size_t word_count = block->usable / sizeof(uint64_t);
    if (shadow_is_whole(block) || i + 1 < END || i + 1 + END >= word_count) return i + 1;
    const size_t next = (i / STEP + 1) * STEP;
    return next + END < word_count ? next : word_count - END;
}

static inline void shadow_fill(const block_t *block)
{
    const size_t word_count = block->usable / sizeof(uint64_t);
    for (size_t i = 0; i < word_count; i = shadow_next(block, i)) {
        const uint64_t word = shadow_word(block, i);
        memcpy(block->start + i * sizeof word, &word, sizeof word);
    }
    const uint64_t last = shadow_word(block, word_count);
    memcpy(block->start + word_count * sizeof last, &last, block->usable % sizeof last);
}

/* The first `size` bytes are what shadow_fill wrote. */
static inline void shadow_verify(const block_t *block, size_t size)
{
    const size_t word_count = size / sizeof(uint64_t);
    uint64_t difference = 0;
    for (size_t i = 0; i < word_count; i = shadow_next(block, i)) {
        uint64_t word;
        memcpy(&word, block->start + i * sizeof word, sizeof word);
        difference |= word ^ shadow_word(block, i);
    }
    check_eq(difference, 0);
    if (!shadow_is_whole(block)) return;
    const uint64_t last = shadow_word(block, word_count);
    check(memcmp(block->start + word_count * sizeof last, &last, size % sizeof last) == 0);
}

#endif
