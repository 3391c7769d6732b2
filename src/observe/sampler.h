/* Which allocations a profile looks at: a Poisson process over the bytes that are asked for.
 *
 * Each thread has a distance in bytes to its next sample, drawn from the exponential distribution
 * of the given mean. A request that reaches its end is a sample. Each byte thus has the same
 * chance, whatever the pattern of the requests, and a sampled block of `size` bytes stands for
 * 1 / (1 - exp(-size / mean)) blocks like it. (Poisson sampling of heaps: gperftools.)
 *
 * Only calls that take the slow path get here; while sampling is on the hit path of malloc is
 * closed (size_class.h). Integers throughout: a program may have its own state of floating point,
 * and what is drawn is the same on every machine. */
#ifndef HAKMEM_OBSERVE_SAMPLER_H
#define HAKMEM_OBSERVE_SAMPLER_H

#include "base/types.h"

/* Of the calling thread. */
typedef struct sampler {
    int64_t left;    /* bytes to the next sample, and the end */
    int64_t end;     /* the one that `left` was drawn for */
    bool is_busy;    /* a sample is being taken: blocks allocated for that are no samples */
    uint64_t thread; /* its number, from 1 on; 0: it has none yet */
} sampler_t;

extern HIDDEN _Thread_local sampler_t sampler_own;

/* What `left` counts down to. Each start of sampling has an end above the one before, farther than
 * a distance may be. One comparison tells thereby that the distance is used up, or of an earlier
 * start, or that none was drawn yet. SAMPLER_OFF is above all. */
extern HIDDEN int64_t sampler_end;
#define SAMPLER_OFF ((int64_t)1 << 62)

/* The same for hits that are counted (entry/counted_hit.h); SAMPLER_OFF while there are none. */
extern HIDDEN int64_t sampler_hit_end;

/* How weights are written: this is one block. */
#define WEIGHT_ONE ((uint64_t)1 << 16)

/* The least and the most that a mean distance may be, in bytes. At the least every request is a
 * sample, which stands for itself. */
#define SAMPLER_LEAST_MEAN ((size_t)1)
#define SAMPLER_MOST_MEAN GIB

/* Samples all threads from now on, at a mean distance of `mean` bytes. Any thread. */
void sampler_start(size_t mean);
void sampler_stop(void);

/* Opens or closes that hit path, after each start and stop. */
void sampler_open_hits(bool wanted);

/* The mean distance in force, or the last one. */
size_t sampler_mean(void);

/* Draws a new distance for the calling thread, whose distance is used up or was drawn for an
 * earlier start. Returns whether the request is a sample. */
bool sampler_draw(size_t size, int64_t end);

/* How many blocks a sampled one stands for. `mean` as in sampler_start. */
uint64_t sampler_weight(size_t size, size_t mean);

/* An exponentially distributed number of bytes of the given mean, made from 64 random bits. */
int64_t sampler_distance(uint64_t random_bits, size_t mean);

/* For the child of a fork, which must not draw the numbers that its parent draws. */
void sampler_reseed(void);

static inline int64_t sampler_end_now(void)
{
    return __atomic_load_n(&sampler_end, __ATOMIC_RELAXED);
}

/* Counts a request that is no sample, as most are. False: nothing is counted; sampler_is_due
 * tells. */
static inline bool sampler_skips(size_t size)
{
    if (size > PTRDIFF_MAX || UNLIKELY(sampler_own.left - (int64_t)size < sampler_end_now()))
        return false;
    sampler_own.left -= (int64_t)size;
    return true;
}

/* Is the request one of `size` bytes a sample? Counts it. */
static inline bool sampler_is_due(size_t size)
{
    int64_t end = sampler_end_now();
    if (LIKELY(end == SAMPLER_OFF) || size > PTRDIFF_MAX)
        return false;
    sampler_own.left -= (int64_t)size;
    return UNLIKELY(sampler_own.left < end) && sampler_draw(size, end);
}

#endif
