/* Blocks that know what they contain: seed and size in front, behind them a pattern of both. */
#ifndef HAKMEM_TESTS_PAYLOAD_H
#define HAKMEM_TESTS_PAYLOAD_H

#include "api/heap.h"
#include "check.h"
#include "stress/soak.h"

typedef struct payload {
    uint64_t seed;
    uint64_t size; /* Of the whole block; at least sizeof(payload_t). */
} payload_t;

static inline uint64_t random_step(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Each power of two up to 2^top is as likely as the next. */
static inline size_t random_size(uint64_t *state, unsigned top)
{
    const uint64_t power = (uint64_t)1 << (4 + random_step(state) % (top - 3));
    return sizeof(payload_t) + (size_t)(random_step(state) % power);
}

static inline uint64_t payload_word(const payload_t *payload, size_t i)
{
    return payload->seed * 0x9e3779b97f4a7c15u + i * 0xff51afd7ed558ccdu + payload->size;
}

/* Fills the block of `size` bytes with a payload; at most 4 KiB at each end of a long one. */
static inline payload_t *payload_put(void *ptr, size_t size, uint64_t seed)
{
    check(ptr != NULL && heap_is_aligned(ptr, 16) && size >= sizeof(payload_t));
    payload_t *payload = (payload_t *)ptr;
    payload->seed = seed;
    payload->size = size;
    uint64_t *words = (uint64_t *)ptr;
    for (size_t i = 2; i < size / 8; i++) {
        words[i] = payload_word(payload, i);
        if (i == 512 && size / 8 > 1024) i = size / 8 - 512;
    }
    return payload;
}

static inline payload_t *payload_new(size_t size, uint64_t seed)
{
    return payload_put(hidden(malloc(size)), size, seed);
}

static inline void payload_verify(const payload_t *payload)
{
    const uint64_t *words = (const uint64_t *)payload;
    const size_t count = payload->size / 8;
    uint64_t difference = 0;
    for (size_t i = 2; i < count; i++) {
        difference |= words[i] ^ payload_word(payload, i);
        if (i == 512 && count > 1024) i = count - 512;
    }
    check_eq(difference, 0);
}

static inline void payload_free(payload_t *payload)
{
    if (payload == NULL) return;
    payload_verify(payload);
    payload->size = 0; /* A second free, or a stale reader, would find a wrong pattern. */
    free(hidden(payload));
}

#endif
