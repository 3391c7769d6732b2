/* observe/sampler.h: distances are exponential, weights undo what sampling leaves out, and both
 * agree with the formulas in floating point. */
#include "observe/sampler.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/fresh.h"

static uint64_t random_state = 42;

static bool is_near(double a, double b, double part)
{
    return fabs(a - b) <= part * fabs(b);
}

test(distances_are_the_negative_logarithm)
{
    for (unsigned turn = 0; turn < 10000; turn++) {
        uint64_t bits = next_random(&random_state) | 1;
        double wanted = -log((double)bits / 0x1p64) * 524288;
        check(fabs((double)sampler_distance(bits, 524288) - wanted) <= 2 + wanted * 1e-4);
    }
    check(sampler_distance(UINT64_MAX, GIB) >= 0);
    check(sampler_distance(0, GIB) > 0);
}

test(distances_have_the_mean_and_the_spread_of_an_exponential)
{
    enum { DRAWS = 200000 };
    double sum = 0;
    double squares = 0;
    for (unsigned turn = 0; turn < DRAWS; turn++) {
        double distance = (double)sampler_distance(next_random(&random_state), 1000);
        sum += distance;
        squares += distance * distance;
    }
    double mean = sum / DRAWS;
    check(is_near(mean, 1000, 0.01));
    check(is_near(sqrt(squares / DRAWS - mean * mean), 1000, 0.02));
}

test(weights_are_those_of_the_formula)
{
    static const size_t means[] = {2, 7, 4096, 524288, SAMPLER_MOST_MEAN};
    for (unsigned index = 0; index < sizeof means / sizeof means[0]; index++) {
        double mean = (double)means[index];
        for (double size = 1; size < 40 * mean && size < 1e11; size = floor(size * 1.3) + 1) {
            double wanted = 1 / (1 - exp(-size / mean));
            double weight = (double)sampler_weight((size_t)size, means[index]) / WEIGHT_ONE;
            check(is_near(weight, wanted, 0.001));
        }
    }
    check_eq(sampler_weight(PTRDIFF_MAX, 2), WEIGHT_ONE);
    check_eq(sampler_weight(0, 524288), sampler_weight(1, 524288));
}

test(at_the_least_mean_every_request_is_a_sample_and_stands_for_itself)
{
    sampler_start(1);
    for (size_t size = 0; size < 1000; size++) {
        check(sampler_is_due(size));
        check_eq(sampler_weight(size, 1), WEIGHT_ONE);
    }
    sampler_own.is_busy = true;
    check(!sampler_is_due(5));
    sampler_own.is_busy = false;
    check(sampler_is_due(PTRDIFF_MAX) && sampler_is_due(PTRDIFF_MAX) && sampler_is_due(0));
    sampler_stop();
    check(!sampler_is_due(100));
    sampler_start(GIB);
    check(!sampler_is_due(1) && !sampler_is_due(1));
    sampler_stop();
}

/* As malloc asks. */
static bool is_sample(size_t size)
{
    return !sampler_skips(size) && sampler_is_due(size);
}

/* Estimates of blocks and bytes, for one size. */
static void check_unbiased(size_t size, size_t mean, unsigned blocks)
{
    uint64_t weight = 0;
    unsigned samples = 0;
    sampler_start(mean);
    for (unsigned turn = 0; turn < blocks; turn++)
        if (turn % 2 == 0 ? is_sample(size) : sampler_is_due(size)) {
            weight += sampler_weight(size, mean);
            samples++;
        }
    sampler_stop();
    check(samples > 100);
    double deviation = 1 / sqrt(samples);
    check(is_near((double)weight / WEIGHT_ONE, blocks, 5 * deviation));
}

test(estimates_are_unbiased_for_small_and_for_long_blocks)
{
    check_unbiased(24, 4096, 200000);
    check_unbiased(4096, 4096, 20000);
    check_unbiased(40000, 4096, 2000);
    check_unbiased(1, 64, 100000);
}

/* A program that asks for blocks of several sizes in random order, many times over. What a profile
 * estimates for each size has a known spread: requests of one size are independent, and each is a
 * sample with p = 1 - exp(-size / mean). So each stands for 1 / p (Horvitz and Thompson 1952), and
 * `count` of them have the variance count * (1 - p) / p. */
enum { SIZES = 6, REQUESTS = 3000, PROGRAMS = 300, MEAN = 4096 };
static const size_t sizes[SIZES] = {16, 48, 320, 1024, 5000, 20000};

typedef struct spread {
    unsigned outside;           /* estimates more than three deviations from the truth */
    double sum[SIZES];          /* of the estimates, in deviations from the truth, */
    double sum_squares[SIZES];  /* and of their squares */
} spread_t;

static void take_estimate(spread_t *spread, unsigned index, double estimate, unsigned count)
{
    double p = -expm1(-(double)sizes[index] / MEAN);
    double off = (estimate - count) / sqrt(count * (1 - p) / p);
    spread->outside += fabs(off) > 3;
    spread->sum[index] += off;
    spread->sum_squares[index] += off * off;
}

static void live_once(spread_t *poisson, spread_t *bernoulli)
{
    uint64_t weights[SIZES] = {0};
    double reference[SIZES] = {0};
    unsigned counts[SIZES] = {0};
    for (unsigned request = 0; request < REQUESTS * SIZES; request++) {
        unsigned index = (unsigned)(next_random(&random_state) % SIZES);
        double p = -expm1(-(double)sizes[index] / MEAN);
        counts[index]++;
        if (!sampler_skips(sizes[index]) && sampler_is_due(sizes[index]))
            weights[index] += sampler_weight(sizes[index], MEAN);
        if ((double)next_random(&random_state) < p * 0x1p64)
            reference[index] += 1 / p;
    }
    for (unsigned index = 0; index < SIZES; index++) {
        take_estimate(poisson, index, (double)weights[index] / WEIGHT_ONE, counts[index]);
        take_estimate(bernoulli, index, reference[index], counts[index]);
    }
}

/* The seed of the sampler is the machine's, so bounds are such that a correct sampler fails less
 * than once in 500,000 runs: of 1800 estimates some 5 to 10 lie outside of three deviations. */
test(estimates_of_each_size_are_within_three_deviations_and_spread_like_a_bernoulli_sampler_s)
{
    spread_t poisson = {0};
    spread_t bernoulli = {0};
    sampler_start(MEAN);
    for (unsigned program = 0; program < PROGRAMS; program++)
        live_once(&poisson, &bernoulli);
    sampler_stop();
    (void)printf("outside: %u, of the reference %u\n", poisson.outside, bernoulli.outside);
    check(poisson.outside <= 30);
    check(bernoulli.outside <= 30);
    for (unsigned index = 0; index < SIZES; index++) {
        double deviation = sqrt(poisson.sum_squares[index] / PROGRAMS);
        double reference = sqrt(bernoulli.sum_squares[index] / PROGRAMS);
        (void)printf("%zu bytes: deviation %.3f, of the reference %.3f, mean %.3f\n", sizes[index],
                     deviation, reference, poisson.sum[index] / PROGRAMS);
        check(fabs(poisson.sum[index] / PROGRAMS) <= 0.3);
        check(is_near(deviation, reference, 0.35));
    }
}

/* Hash of the distances that the process draws from here on. */
static uint64_t next_draws(void)
{
    uint64_t hash = 0;
    for (unsigned turn = 0; turn < 100; turn++) {
        sampler_start(GIB);
        (void)sampler_is_due(1);
        hash = hash * 31 + (uint64_t)sampler_own.left;
    }
    return hash;
}

/* `random`: what the kernel gives it for its seed; 0: it keeps its parent's. */
static uint64_t draws_of_child(uint64_t random)
{
    uint64_t hash = 0;
    int ends[2];
    check(pipe(ends) == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        fake_os_set_random(random);
        if (random != 0)
            sampler_reseed();
        hash = next_draws();
        _exit(write(ends[1], &hash, sizeof hash) != sizeof hash);
    }
    check(read(ends[0], &hash, sizeof hash) == sizeof hash);
    check(waitpid(child, NULL, 0) == child);
    check(close(ends[0]) == 0 && close(ends[1]) == 0);
    return hash;
}

test(the_child_of_a_fork_draws_other_distances_once_it_is_reseeded)
{
    (void)next_draws();
    check_eq(draws_of_child(0), draws_of_child(0)); /* and else the same */
    check(draws_of_child(1) != draws_of_child(0));
    check(draws_of_child(1) != draws_of_child(2));
    sampler_stop();
}

test(what_is_skipped_is_counted_and_no_sample)
{
    sampler_start(GIB);
    check(!sampler_skips(1)); /* nothing was drawn yet */
    while (sampler_is_due(1) || sampler_own.left - sampler_end < 1000)
        sampler_start(GIB);
    int64_t left = sampler_own.left - sampler_end;
    check(sampler_skips(400) && sampler_skips(0));
    check_eq(sampler_own.left - sampler_end, left - 400);
    check(!sampler_skips((size_t)left) && !sampler_skips(SIZE_MAX));
    check_eq(sampler_own.left - sampler_end, left - 400);
    check(sampler_is_due((size_t)left));
    sampler_start(GIB);
    check(!sampler_skips(1)); /* of the start before */
    sampler_stop();
    sampler_start(1);
    check(sampler_is_due(1) && !sampler_skips(0) && !sampler_skips(1));
    sampler_stop();
}

test(nothing_is_due_while_it_is_off)
{
    sampler_stop();
    for (unsigned turn = 0; turn < 1000; turn++)
        check(!sampler_is_due(GIB));
}

test(what_is_allocated_while_a_sample_is_taken_is_none)
{
    sampler_start(1);
    sampler_own.is_busy = true;
    for (unsigned turn = 0; turn < 100; turn++)
        check(!sampler_is_due(4096));
    sampler_own.is_busy = false;
    check(sampler_is_due(4096));
    sampler_stop();
}

test(an_impossible_size_is_no_sample)
{
    sampler_start(1);
    check(!sampler_is_due(SIZE_MAX));
    check(!sampler_is_due((size_t)PTRDIFF_MAX + 1));
    sampler_stop();
}

test(a_new_start_draws_anew)
{
    sampler_start(SAMPLER_MOST_MEAN);
    check(!sampler_is_due(1));
    sampler_start(1);
    check(sampler_is_due(4096));
    sampler_stop();
}

test(the_mean_stays_within_its_bounds)
{
    sampler_start(0);
    check_eq(sampler_mean(), SAMPLER_LEAST_MEAN);
    sampler_start(SIZE_MAX);
    check_eq(sampler_mean(), SAMPLER_MOST_MEAN);
    sampler_stop();
}

check_main()
