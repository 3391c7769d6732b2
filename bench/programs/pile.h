/*
 * What the workloads of bench_memory are made of: an actor, that is a thread with its counters and
 * its place in the script, and piles of blocks that it allocates, writes and frees. Every page of a
 * block is written. Its head says how large it is, and is checked when the block is freed.
 */
#ifndef PILE_H
#define PILE_H

#include "bench.h"

#include <stdlib.h>
#include <time.h>

typedef struct actor {
    bench_random_t random;
    uint64_t index;
    uint64_t start_ns;    /* of the script, the same for all actors */
    uint64_t length_ns;   /* of the script */
    uint64_t slept_ns;    /* ahead of the script */
    uint64_t operations;  /* mallocs and frees */
    uint64_t live_bytes;  /* as requested */
    uint64_t peak_bytes;  /* of live_bytes */
    uint64_t freed_bytes; /* in one go, before the actor rests */
} actor_t;

/* Sleeps until `done` of `total` parts of the script are over; not at all if that is past. */
static inline void actor_wait(actor_t *actor, uint64_t done, uint64_t total)
{
    uint64_t before_ns = bench_now_ns();
    uint64_t until_ns = actor->start_ns + actor->length_ns / total * done;
    struct timespec until = {(time_t)(until_ns / NS_PER_SECOND), (long)(until_ns % NS_PER_SECOND)};
    if (until_ns <= before_ns) return;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    actor->slept_ns += bench_now_ns() - before_ns;
}

static inline uint64_t actor_draw(actor_t *actor, uint64_t range)
{
    return bench_scale(bench_random_next(&actor->random), range);
}

/* The first bytes of a block, which has 16 at least. */
typedef struct head {
    uint64_t size;
    uint64_t check; /* size ^ address */
} head_t;

static inline head_t *actor_allocate(actor_t *actor, uint64_t size)
{
    head_t *block = malloc(size);
    bench_touch((unsigned char *)block, size, TOUCH_PAGES);
    *block = (head_t){size, size ^ (uintptr_t)block};
    actor->operations++;
    actor->live_bytes += size;
    if (actor->live_bytes > actor->peak_bytes) actor->peak_bytes = actor->live_bytes;
    return block;
}

/* Returns how large the block was. */
static inline uint64_t actor_free(actor_t *actor, head_t *block)
{
    uint64_t size = block->size;
    if (block->check != (size ^ (uintptr_t)block)) bench_fail("a block changed while it was live");
    free(block);
    actor->operations++;
    actor->live_bytes -= size;
    return size;
}

/* Sizes from `least` up to least << octaves. Each octave has the same share of the bytes, so small
 * blocks are many and large ones few; 0 octaves: all of the size `least`. */
typedef struct sizes {
    uint64_t least;
    unsigned octaves;
} sizes_t;

static inline uint64_t sizes_draw(sizes_t sizes, actor_t *actor)
{
    if (sizes.octaves == 0) return sizes.least;
    uint64_t bits = bench_random_next(&actor->random);
    unsigned octave = (unsigned)__builtin_ctz((unsigned)(bits >> 32) | UINT32_C(1) << 31);
    uint64_t start = sizes.least << octave % sizes.octaves;
    return start + bench_scale(bits, start);
}

/* Live blocks, the oldest first until one is taken out of the middle. */
typedef struct pile {
    actor_t *actor;
    sizes_t sizes;
    head_t **blocks;
    uint64_t count;
    uint64_t capacity;
    uint64_t bytes;
} pile_t;

/* A pile for at most so many bytes. */
static inline pile_t pile_create(actor_t *actor, uint64_t most_bytes, sizes_t sizes)
{
    /* The mean size is 3/4 of the least for each octave; less if no large one is drawn. */
    uint64_t capacity = most_bytes / sizes.least;
    if (sizes.octaves != 0) capacity = capacity / sizes.octaves * 2;
    capacity += 4096;
    return (pile_t){.actor = actor,
                    .sizes = sizes,
                    .blocks = bench_map(capacity, sizeof(head_t *)),
                    .capacity = capacity};
}

static inline void pile_put(pile_t *pile, head_t *block)
{
    if (pile->count == pile->capacity) bench_fail("a pile has more blocks than was meant");
    pile->blocks[pile->count++] = block;
    pile->bytes += block->size;
}

static inline void pile_add(pile_t *pile)
{
    pile_put(pile, actor_allocate(pile->actor, sizes_draw(pile->sizes, pile->actor)));
}

static inline void pile_grow(pile_t *pile, uint64_t bytes)
{
    while (pile->bytes < bytes) pile_add(pile);
}

/* Frees the block at `index`; the last one takes its place. */
static inline void pile_free_at(pile_t *pile, uint64_t index)
{
    head_t *block = pile->blocks[index];
    pile->blocks[index] = pile->blocks[--pile->count];
    pile->bytes -= actor_free(pile->actor, block);
}

/* Frees blocks drawn at random until so many bytes are left. */
static inline void pile_shrink(pile_t *pile, uint64_t bytes)
{
    while (pile->bytes > bytes) pile_free_at(pile, actor_draw(pile->actor, pile->count));
}

/* Frees the oldest blocks until so many bytes are left. */
static inline void pile_expire(pile_t *pile, uint64_t bytes)
{
    uint64_t expired = 0;
    for (; pile->bytes > bytes; expired++)
        pile->bytes -= actor_free(pile->actor, pile->blocks[expired]);
    pile->count -= expired;
    memmove(pile->blocks, pile->blocks + expired, pile->count * sizeof(head_t *));
}

/* Replaces so many blocks drawn at random: the daily work of a program. */
static inline void pile_churn(pile_t *pile, uint64_t count)
{
    for (; count != 0; count--) {
        pile_free_at(pile, actor_draw(pile->actor, pile->count));
        pile_add(pile);
    }
}

static inline void pile_drop(pile_t *pile)
{
    pile_shrink(pile, 0);
}

#endif
