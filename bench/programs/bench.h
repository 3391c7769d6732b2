/*
 * What every benchmark program shares: parameters, clock, random numbers, threads, the report.
 *
 * A program states its parameters as one table, calls bench_open and bench_begin, does its work
 * between two calls of bench_now_ns, and calls bench_close. Nothing here calls malloc between the
 * two.
 * Included by the programs of this folder only.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A whole number; a time given in seconds and held in nanoseconds; one word out of `choices`. */
typedef enum parameter_kind { KIND_COUNT, KIND_SECONDS, KIND_CHOICE } parameter_kind_t;
typedef enum parameter_place { POSITIONAL, NAMED_ONLY } parameter_place_t;

typedef struct parameter {
    const char *name;
    parameter_kind_t kind;
    parameter_place_t place;
    uint64_t value; /* the default, until bench_open has read the command line */
    uint64_t least;
    uint64_t most;
    const char *choices; /* "ends|pages": the value is the index of the word */
    bool is_given;
} parameter_t;

typedef struct bench {
    const char *program;
    const char *operation; /* what one operation is, in words */
    parameter_t *parameters;
    size_t parameter_count;
    bool has_json;
} bench_t;

/* A further figure of a program, such as a percentile. */
typedef struct figure {
    const char *name;
    uint64_t value;
} figure_t;

/* Ceilings of the usual parameters. */
#define LIMIT_CYCLES UINT64_C(1000000000000)
#define LIMIT_SLOTS UINT64_C(100000000)
#define LIMIT_SIZE UINT64_C(1073741824)
#define LIMIT_THREADS UINT64_C(1024)
#define LIMIT_SECONDS_NS UINT64_C(86400000000000)
#define NS_PER_SECOND UINT64_C(1000000000)
#define LIMIT_MEBIBYTES UINT64_C(1048576)
#define BYTES_PER_MEBIBYTE UINT64_C(1048576)

/* Reads the command line; ends the program if it is malformed. */
void bench_open(bench_t *bench, int argument_count, char **arguments);

/* Prints what was understood, once all of it is found to be sound; with --echo that is all. */
void bench_begin(const bench_t *bench);

/* Prints one line with the reason and ends the program with status 2. */
_Noreturn void bench_refuse(const char *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Refuses the command line unless least <= most, both given as indices of parameters. */
void bench_check_order(const bench_t *bench, size_t least, size_t most);

/* Prints the value of a parameter as the user would write it. */
void bench_print_value(FILE *file, const parameter_t *parameter);

/* Prints one line with the reason and ends the program with status 1: the allocator went wrong. */
_Noreturn void bench_fail(const char *reason);

/* Prints the report; the throughput is the last line. */
void bench_close(const bench_t *bench, uint64_t operations, uint64_t elapsed_ns);
void bench_close_figures(const bench_t *bench, uint64_t operations, uint64_t elapsed_ns,
                         const figure_t *figures, size_t figure_count);

uint64_t bench_now_ns(void);

/* A row of /proc/self/status in KiB, as "VmRSS:"; calls no allocator. VmHWM, the peak, belongs to
 * this image and inherits nothing. */
uint64_t bench_status_kib(const char *row);

/* Zeroed memory straight from the kernel, touched, so that arrays of ours disturb no allocator. */
void *bench_map(size_t count, size_t size);

/*
 * Runs work(context) in `count` threads, each on contexts + index * context_size, lets them start
 * together, and returns the time from the start to the end of the last. One thread means the
 * caller's own, so that a single-threaded program stays one.
 */
uint64_t bench_run_threads(size_t count, void (*work)(void *), void *contexts,
                           size_t context_size);

typedef struct bench_random {
    uint64_t state;
} bench_random_t;

__extension__ typedef unsigned __int128 bench_product_t;

static inline bench_random_t bench_random_seed(uint64_t seed, uint64_t stream)
{
    return (bench_random_t){(seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
                            (stream + 1) * UINT64_C(0xd1342543de82ef95)};
}

/* wyrand: one add carries the state from call to call, so calls overlap. */
static inline uint64_t bench_random_next(bench_random_t *random)
{
    random->state += UINT64_C(0xa0761d6478bd642f);
    bench_product_t product =
        (bench_product_t)random->state * (random->state ^ UINT64_C(0xe7037ed1a0b428db));
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Scales 32 random bits to [0, range) by multiply and shift; range < 2^32. */
static inline uint64_t bench_scale(uint64_t bits, uint64_t range)
{
    return ((bits & UINT32_MAX) * range) >> 32;
}

/* The compiler must believe that the block is used here. */
static inline void bench_use(void *block)
{
    __asm__ volatile("" : : "r"(block) : "memory");
}

/* What a program writes of a block: first and last byte, a byte of every page, all, nothing. */
typedef enum touch { TOUCH_ENDS, TOUCH_PAGES, TOUCH_WHOLE, TOUCH_NONE } touch_t;
#define TOUCH_CHOICES "ends|pages|whole|none"

enum { BENCH_PAGE_SIZE = 4096 };

/* Writes to a block fresh from the allocator; NULL ends the program. */
static inline void bench_touch(unsigned char *block, uint64_t size, touch_t touch)
{
    if (block == NULL) bench_fail("the allocator returned NULL");
    if (touch == TOUCH_NONE) return;
    if (touch == TOUCH_WHOLE) memset(block, 1, size);
    if (touch == TOUCH_PAGES)
        for (uint64_t offset = 0; offset < size; offset += BENCH_PAGE_SIZE) block[offset] = 1;
    block[0] = 1;
    block[size - 1] = 1;
}

static inline void bench_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("" : : : "memory");
#endif
}

#endif
