/* The sampler. See sampler.h. */
#include "observe/sampler.h"

#include "base/bits.h"
#include "os/os.h"
#include "os/threads.h"

_Thread_local sampler_t sampler_own;
int64_t sampler_end = SAMPLER_OFF;
int64_t sampler_hit_end = SAMPLER_OFF;

/* Of all threads; atomic, each field alone. */
static struct {
    size_t mean_bytes;    /* the mean distance in force, or the last one */
    uint64_t seed;        /* of this process; 0: none was drawn yet */
    uint64_t draw_count;  /* distances drawn */
    uint32_t start_count; /* calls of sampler_start */
} sampler_state = {.mean_bytes = SAMPLER_LEAST_MEAN};

/* Fractions of logarithms have so many bits. */
#define FRACTION 20

/* ln 2, with 16 bits behind the point. */
#define LN_2 45426

/* Ends are so far apart: a distance is at most 64 ln 2 = 44.4 means. There are ENDS of them, in
 * turn. */
#define END_STEP ((int64_t)SAMPLER_MOST_MEAN * 64)
#define ENDS (1 << 24)

void sampler_start(size_t mean)
{
    mean = larger_of(mean, SAMPLER_LEAST_MEAN);
    __atomic_store_n(&sampler_state.mean_bytes, smaller_of(mean, SAMPLER_MOST_MEAN),
                     __ATOMIC_RELAXED);
    if (__atomic_load_n(&sampler_state.seed, __ATOMIC_RELAXED) == 0)
        sampler_reseed();
    uint32_t start = __atomic_add_fetch(&sampler_state.start_count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&sampler_end, (start % ENDS + 1) * END_STEP, __ATOMIC_RELAXED);
}

void sampler_stop(void)
{
    __atomic_store_n(&sampler_end, SAMPLER_OFF, __ATOMIC_RELAXED);
}

void sampler_open_hits(bool wanted)
{
    __atomic_store_n(&sampler_hit_end, wanted ? sampler_end_now() : SAMPLER_OFF, __ATOMIC_RELAXED);
}

size_t sampler_mean(void)
{
    return __atomic_load_n(&sampler_state.mean_bytes, __ATOMIC_RELAXED);
}

void sampler_reseed(void)
{
    uint64_t fresh = (os_random() ^ os_process_id() * 0x9e3779b97f4a7c15u) | 1;
    __atomic_store_n(&sampler_state.seed, fresh, __ATOMIC_RELAXED);
}

/* A counter, mixed (splitmix64, Steele et al. 2014) with the address of the thread's data, for two
 * threads may read the same count. */
static uint64_t random_bits(void)
{
    counter_add(&sampler_state.draw_count, 1);
    uint64_t mixed = __atomic_load_n(&sampler_state.seed, __ATOMIC_RELAXED) +
                     counter_read(&sampler_state.draw_count) * 0x9e3779b97f4a7c15u;
    mixed ^= (uint64_t)(uintptr_t)&sampler_own;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

/* log2 of a number from 1 on, with FRACTION bits behind the point: bit by bit, by squaring. */
static uint64_t binary_logarithm(uint64_t value)
{
    unsigned whole = highest_bit(value);
    uint64_t mantissa = value << (63 - whole) >> 32; /* 1 to 2, as 2^31 to 2^32 */
    uint64_t logarithm = whole;
    for (unsigned bit = 0; bit < FRACTION; bit++) {
        mantissa = mantissa * mantissa >> 31;
        bool is_two = mantissa >> 32 != 0;
        mantissa >>= is_two;
        logarithm = logarithm * 2 + is_two;
    }
    return logarithm;
}

int64_t sampler_distance(uint64_t bits, size_t mean)
{
    uint64_t negative_log2 = ((uint64_t)64 << FRACTION) - binary_logarithm(bits | 1);
    uint64_t negative_ln = negative_log2 * LN_2 >> 16;
    return (int64_t)(negative_ln * mean >> FRACTION);
}

bool sampler_draw(size_t size, int64_t end)
{
    sampler_t *own = &sampler_own;
    bool is_first = own->end != end;
    own->end = end;
    if (sampler_mean() == SAMPLER_LEAST_MEAN) {
        own->left = end - 1; /* the next one too */
        return !own->is_busy;
    }
    own->left = end + sampler_distance(random_bits(), sampler_mean());
    if (!is_first)
        return !own->is_busy;
    own->left -= (int64_t)size; /* the first request of the thread is like any other */
    return own->left < end && sampler_draw(size, end);
}

/* With x = size / mean: up to 1 the first terms of the series 1/x + 1/2 + x/12 - x^3/720 of
 * w(x) = 1 / (1 - exp(-x)); above, x is halved so often and w(2x) = w(x)^2 / (2 w(x) - 1). */
uint64_t sampler_weight(size_t size, size_t mean)
{
    unsigned doublings = 0;
    size = larger_of(size, 1);
    if (mean == SAMPLER_LEAST_MEAN || size / 16 >= mean)
        return WEIGHT_ONE;
    while (size >> doublings > mean)
        doublings++;
    uint64_t x = (uint64_t)size * WEIGHT_ONE / ((uint64_t)mean << doublings);
    uint64_t inverse = ((uint64_t)mean << doublings) * WEIGHT_ONE / size;
    uint64_t cube = (x * x / WEIGHT_ONE) * x / WEIGHT_ONE;
    uint64_t weight = inverse + WEIGHT_ONE / 2 + x / 12 - cube / 720;
    for (; doublings != 0; doublings--)
        weight = weight * weight / (2 * weight - WEIGHT_ONE);
    return weight;
}
