/*
 * A bounded ring of block pointers between one writer and one reader, moved in batches. Each side
 * keeps a copy of the other's position and looks again only when that copy says full or empty, so
 * the ring costs little beside the allocator. Shared by bench_producer_consumer and bench_ring.
 */
#ifndef RING_H
#define RING_H

#include "bench.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RING_LINE = 128, RING_PATIENCE = 64 };

typedef struct ring {
    _Alignas(RING_LINE) _Atomic uint64_t written; /* by the writer */
    uint64_t read_seen;
    _Alignas(RING_LINE) _Atomic uint64_t read; /* by the reader */
    uint64_t written_seen;
    _Alignas(RING_LINE) void **entries;
    uint64_t capacity; /* a power of two */
} ring_t;

/* Room for eight batches. */
static inline void ring_create(ring_t *ring, uint64_t batch)
{
    ring->capacity = 1024;
    while (ring->capacity < 8 * batch) ring->capacity *= 2;
    ring->entries = bench_map(ring->capacity, sizeof(void *));
}

/* Called in a loop while the other side is behind. */
static inline void ring_wait(unsigned *tries)
{
    if (++*tries % RING_PATIENCE == 0)
        sched_yield();
    else
        bench_pause();
}

/* True if `count` more entries fit. */
static inline bool ring_has_room(ring_t *ring, uint64_t count)
{
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    if (written + count - ring->read_seen <= ring->capacity) return true;
    /* acquire: pairs with the release in ring_read_done */
    ring->read_seen = atomic_load_explicit(&ring->read, memory_order_acquire);
    return written + count - ring->read_seen <= ring->capacity;
}

/* True if `count` entries can be read. */
static inline bool ring_has_entries(ring_t *ring, uint64_t count)
{
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    if (ring->written_seen - read >= count) return true;
    /* acquire: pairs with the release in ring_write_done */
    ring->written_seen = atomic_load_explicit(&ring->written, memory_order_acquire);
    return ring->written_seen - read >= count;
}

/* The entry `offset` places after the position of the writer or of the reader. */
static inline void **ring_entry(ring_t *ring, _Atomic uint64_t *position, uint64_t offset)
{
    uint64_t start = atomic_load_explicit(position, memory_order_relaxed);
    return &ring->entries[(start + offset) & (ring->capacity - 1)];
}

static inline void ring_write_done(ring_t *ring, uint64_t count)
{
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    atomic_store_explicit(&ring->written, written + count, memory_order_release);
}

static inline void ring_read_done(ring_t *ring, uint64_t count)
{
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    atomic_store_explicit(&ring->read, read + count, memory_order_release);
}

/* Allocates a batch of random sizes and marks the first byte of each; the ring has room. */
static inline void ring_fill(ring_t *ring, uint64_t batch, uint64_t least_size,
                             uint64_t size_range, bench_random_t *random, touch_t touch)
{
    for (uint64_t index = 0; index < batch; index++) {
        uint64_t size = least_size + bench_scale(bench_random_next(random), size_range);
        unsigned char *block = malloc(size);
        bench_touch(block, size, touch);
        block[0] = 1;
        *ring_entry(ring, &ring->written, index) = block;
    }
    ring_write_done(ring, batch);
}

/* Reads a batch, looks at each block and frees it; the ring has the entries. */
static inline void ring_drain(ring_t *ring, uint64_t batch)
{
    for (uint64_t index = 0; index < batch; index++) {
        unsigned char *block = *ring_entry(ring, &ring->read, index);
        if (block[0] != 1) bench_fail("a block changed on its way");
        free(block);
    }
    ring_read_done(ring, batch);
}

#endif
