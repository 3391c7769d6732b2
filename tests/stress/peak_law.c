/* The law of the peak: memory in use and whole free pages are together little more than the most
 * that ever was in use. Phases at random: blocks of 33 KiB to 16 MiB come and go, of one length, of
 * all lengths, growing, in waves. One thread, so that all counts are exact. */
#include "api/heap.h"
#include "check.h"
#include "hakmem.h"
#include "stress/payload.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool hakmem_get_statistics(hakmem_statistics_t *statistics) __attribute__((weak));

enum { SLOTS = 400, PHASES = 30, STEPS = 300, SEEDS = 8 };

/* What upkeep itself guesses: each shard of the span cache may have a MiB that the total does not
 * know of. A huge page is free as a whole. And KEEP_ALWAYS. */
#define ROOM ((size_t)(1 + 2 + 64) << 20)

static char *blocks[SLOTS];
static size_t sizes[SLOTS];
static size_t in_use, most_in_use, phase_limit;
static uint64_t random_state;

static size_t random_length(unsigned kind)
{
    const size_t some = (size_t)random_step(&random_state);
    if (kind == 0) return 33000 + some % 1000;                     /* One length. */
    if (kind == 1) return (size_t)33000 << some % 9;               /* Lengths that double. */
    if (kind == 2) return 33000 + some % ((size_t)1 << 20);        /* Any, shorter ones. */
    if (kind == 3) return 33000 + some % ((size_t)16 << 20);       /* Any. */
    return 5 * (1 << 20) + some % ((size_t)12 << 20);              /* Mappings of their own. */
}

static void drop(size_t slot)
{
    free(blocks[slot]);
    in_use -= sizes[slot];
    blocks[slot] = NULL;
    sizes[slot] = 0;
}

static void take(size_t slot, size_t size)
{
    drop(slot);
    if (in_use + size > phase_limit) return;
    check((blocks[slot] = hidden(malloc(size))) != NULL);
    sizes[slot] = size;
    in_use += size;
}

static void check_law(void)
{
    hakmem_statistics_t now;
    check(hakmem_get_statistics(&now));
    if (now.used > most_in_use) most_in_use = now.used;
    const size_t held = now.used + now.free_pages + now.huge_cached;
    const size_t most = most_in_use + most_in_use / 8 + ROOM;
    if (held > most)
        (void)printf("in use %zu, free pages %zu, huge %zu, most %zu\n", now.used, now.free_pages,
                     now.huge_cached, most_in_use);
    check(held <= most);
}

static void live_a_phase(void)
{
    const unsigned kind = (unsigned)(random_step(&random_state) % 5);
    phase_limit = (size_t)(8 + random_step(&random_state) % 200) << 20;
    for (size_t step = 0; step < STEPS; step++) {
        const size_t slot = (size_t)(random_step(&random_state) % SLOTS);
        if (random_step(&random_state) % 3 == 0)
            drop(slot);
        else
            take(slot, random_length(kind));
        check_law();
    }
    if (random_step(&random_state) % 2 == 0)
        for (size_t slot = 0; slot < SLOTS; slot++) drop(slot);
    check_law();
}

test(free_pages_and_blocks_are_together_little_more_than_the_most_in_use)
{
    if (hakmem_get_statistics == NULL) check_skip("only hakmem promises this");
    const uint64_t first = check_seed(1);
    for (uint64_t seed = first; seed < first + SEEDS; seed++) {
        const pid_t child = fork(); /* Which has used nothing before. */
        check(child >= 0);
        if (child == 0) {
            random_state = seed;
            for (unsigned phase = 0; phase < PHASES; phase++) live_a_phase();
            _exit(0);
        }
        int status = 1;
        check_eq(waitpid(child, &status, 0), child);
        if (status != 0) (void)printf("seed %ju\n", (uintmax_t)seed);
        check_eq(status, 0);
    }
}

check_main()
