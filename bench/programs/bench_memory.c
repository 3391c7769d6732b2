/*
 * bench_memory --workload=NAME [--seconds --mebibytes --threads --seed]
 *
 * Programs whose memory comes, goes and lies idle. Each workload is a script: what is done in each
 * part of it is fixed, and so is when it is done, as long as the allocator is fast enough. So
 * resident memory over time can be compared between allocators, and so can the processor time.
 * MEBIBYTES is about what is live at the highest point.
 *
 * Workloads that end idle say how much they freed before that, and how much the process has shrunk
 * since its highest point when the idle time is over.
 */
#include "pile.h"

#include <pthread.h>

enum { WORKLOAD, SECONDS, MEBIBYTES, THREADS, SEED, PARAMETER_COUNT };

#define WORKLOAD_CHOICES \
    "spike|sawtooth|phases|ttl-store|temporaries|scattered-free|idle|parked-pool|ended-pool"

static parameter_t parameters[PARAMETER_COUNT] = {
    [WORKLOAD] = {"workload", KIND_CHOICE, NAMED_ONLY, 0, 0, 0, WORKLOAD_CHOICES, false},
    [SECONDS] = {"seconds", KIND_SECONDS, NAMED_ONLY, 6 * NS_PER_SECOND, 1000000,
                 LIMIT_SECONDS_NS, NULL, false},
    [MEBIBYTES] = {"mebibytes", KIND_COUNT, NAMED_ONLY, 150, 1, 65536, NULL, false},
    [THREADS] = {"threads", KIND_COUNT, NAMED_ONLY, 1, 1, LIMIT_THREADS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, NAMED_ONLY, 42, 0, UINT32_MAX, NULL, false},
};

static bench_t bench = {"bench_memory", "one malloc or one free, time asleep not counted",
                        parameters, PARAMETER_COUNT, false};

/* What an actor may have live at the highest point. */
static uint64_t most_bytes(void)
{
    return parameters[MEBIBYTES].value * BYTES_PER_MEBIBYTE / parameters[THREADS].value;
}

/* Three times: a burst takes ten times the memory of the daily work, and is over soon. Of 40 ticks
 * 8 build it up and 4 free it in random order; the rest is daily work, which goes on meanwhile. */
static void run_spike(actor_t *actor)
{
    enum { SPIKES = 3, TICKS = 40, RISE = 8, FALL = 4, CHURN = 2000 };
    uint64_t peak = most_bytes() / 11 * 10;
    pile_t daily = pile_create(actor, peak / 10, (sizes_t){32, 7});
    pile_t burst = pile_create(actor, peak, (sizes_t){32, 11});
    pile_grow(&daily, peak / 10);
    for (uint64_t tick = 0; tick < (uint64_t)SPIKES * TICKS; tick++) {
        uint64_t at = tick % TICKS;
        pile_churn(&daily, CHURN);
        if (at < RISE)
            pile_grow(&burst, peak / RISE * (at + 1));
        else if (at < RISE + FALL)
            pile_shrink(&burst, peak / FALL * (RISE + FALL - 1 - at));
        actor_wait(actor, tick + 1, (uint64_t)SPIKES * TICKS);
    }
    pile_drop(&daily);
}

/* Four times: live memory grows steadily, then nine tenths of it, the oldest, go at once: a log, a
 * cache that is flushed, a generation that a collector drops. */
static void run_sawtooth(actor_t *actor)
{
    enum { TEETH = 4, TICKS = 30 };
    uint64_t peak = most_bytes();
    uint64_t rest = peak / 10;
    pile_t pile = pile_create(actor, peak, (sizes_t){32, 11});
    for (uint64_t tick = 0; tick < (uint64_t)TEETH * TICKS; tick++) {
        pile_grow(&pile, rest + (peak - rest) / TICKS * (tick % TICKS + 1));
        if (tick % TICKS == TICKS - 1) pile_expire(&pile, rest);
        actor_wait(actor, tick + 1, (uint64_t)TEETH * TICKS);
    }
    pile_drop(&pile);
}

/* 24 phases, each with blocks of another size, of which a random twentieth is kept to the end. What
 * one phase leaves behind is of no use to the next where memory is bound to a size. */
static void run_phases(actor_t *actor)
{
    enum { PHASES = 24, KEPT_OF = 20, LEAST = 64 };
    uint64_t peak = most_bytes() / (KEPT_OF + PHASES) * KEPT_OF;
    pile_t pile = pile_create(actor, peak, (sizes_t){LEAST, 0});
    pile_t kept = pile_create(actor, peak / KEPT_OF * 6, (sizes_t){LEAST, 0});
    for (uint64_t phase = 0; phase < PHASES; phase++) {
        /* 5 and 24 have no common divisor: small and large sizes in turn, each once. */
        uint64_t step = phase * 5 % PHASES;
        pile.sizes.least = (uint64_t)LEAST * (2 + step % 2) / 2 << step / 2;
        pile_grow(&pile, peak);
        actor_wait(actor, 2 * phase + 1, (uint64_t)2 * PHASES);
        pile_shrink(&pile, peak / KEPT_OF);
        for (uint64_t index = 0; index < pile.count; index++) pile_put(&kept, pile.blocks[index]);
        pile.count = 0;
        pile.bytes = 0;
        actor_wait(actor, 2 * phase + 2, (uint64_t)2 * PHASES);
    }
    pile_drop(&kept);
}

/* An entry of the store, at the start of its block; kept in the list of the tick it expires at. */
typedef struct entry {
    head_t head;
    struct entry *next;
} entry_t;

/* A store whose entries of 64 B to 4 KiB live for 10 to 40 ticks, one in four up to 160. Hours in
 * which a tenth as much comes in follow hours of rush. */
static void run_ttl_store(actor_t *actor)
{
    enum { TICKS = 600, WHEEL = 256, HOUR = 150, MEAN_SIZE = 290, MEAN_TICKS = 40 };
    uint64_t rush = most_bytes() / MEAN_SIZE / MEAN_TICKS;
    entry_t **wheel = bench_map(WHEEL, sizeof *wheel);
    for (uint64_t tick = 0; tick < TICKS + WHEEL; tick++) {
        entry_t **expiring = &wheel[tick % WHEEL];
        while (*expiring != NULL) {
            entry_t *entry = *expiring;
            *expiring = entry->next;
            actor_free(actor, &entry->head);
        }
        if (tick >= TICKS) continue; /* the end: what is left expires */
        uint64_t incoming = tick / HOUR % 2 == 0 ? rush : rush / 10;
        for (; incoming != 0; incoming--) {
            uint64_t life = 10 + actor_draw(actor, actor_draw(actor, 4) == 0 ? 150 : 30);
            entry_t **list = &wheel[(tick + life) % WHEEL];
            entry_t *entry = (entry_t *)actor_allocate(actor, sizes_draw((sizes_t){64, 6}, actor));
            entry->next = *list;
            *list = entry;
        }
        actor_wait(actor, tick + 1, TICKS);
    }
}

/* Beside a third of memory that lives long, three buffers at a time that live for a moment, of all
 * sizes up to the other two thirds: pictures are decoded, tables sorted. Three times 15 ticks of
 * that, then 25 without. */
static void run_temporaries(actor_t *actor)
{
    enum { PERIODS = 3, TICKS = 40, BUSY = 15, BUFFERS = 3, CHURN = 2000 };
    uint64_t most_buffer = most_bytes() * 2 / 3 / BUFFERS;
    pile_t daily = pile_create(actor, most_bytes() / 3, (sizes_t){32, 7});
    pile_grow(&daily, most_bytes() / 3);
    for (uint64_t tick = 0; tick < (uint64_t)PERIODS * TICKS; tick++) {
        head_t *buffers[BUFFERS];
        uint64_t count = tick % TICKS < BUSY ? BUFFERS : 0;
        pile_churn(&daily, CHURN);
        for (uint64_t index = 0; index < count; index++) {
            uint64_t least = most_buffer / 6;
            buffers[index] = actor_allocate(actor, least + actor_draw(actor, most_buffer - least));
        }
        for (uint64_t index = 0; index < count; index++) actor_free(actor, buffers[index]);
        actor_wait(actor, tick + 1, (uint64_t)PERIODS * TICKS);
    }
    pile_drop(&daily);
}

static pthread_barrier_t is_over; /* opens when memory was looked at, the threads still parked */
static uint64_t returned_bytes;

static void look_at_the_end(actor_t *actor)
{
    actor_wait(actor, 1, 1);
    if (actor->index == 0) {
        uint64_t end_kib = bench_status_kib("VmRSS:");
        returned_bytes = (bench_status_kib("VmHWM:") - end_kib) * 1024;
    }
}

/* The end of a script in which all is free and nobody calls the allocator any more. */
static void rest(actor_t *actor)
{
    look_at_the_end(actor);
    pthread_barrier_wait(&is_over);
}

/* Blocks of one size, freed in random order over a sixth of the script; then nothing. */
static void run_scattered_free(actor_t *actor)
{
    enum { TICKS = 60, FALL = 10 };
    pile_t pile = pile_create(actor, most_bytes(), (sizes_t){520, 0});
    pile_grow(&pile, most_bytes());
    actor->freed_bytes = pile.bytes;
    for (uint64_t tick = 1; tick <= FALL; tick++) {
        pile_shrink(&pile, most_bytes() / FALL * (FALL - tick));
        actor_wait(actor, tick, TICKS);
    }
    rest(actor);
}

/* Much of all sizes, freed in one go after a sixth of the script; then nothing. */
static void run_idle(actor_t *actor)
{
    pile_t pile = pile_create(actor, most_bytes(), (sizes_t){32, 15});
    pile_grow(&pile, most_bytes());
    actor->freed_bytes = pile.bytes;
    actor_wait(actor, 1, 6);
    pile_drop(&pile);
    rest(actor);
}

/* Threads that wait for work. Twice all of them use every size at once, hold that for a twelfth of
 * the script, free it and are parked. */
static void run_parked_pool(actor_t *actor)
{
    enum { BURSTS = 2, PARTS = 12 };
    pile_t pile = pile_create(actor, most_bytes(), (sizes_t){32, 12});
    for (uint64_t part = 0; part < PARTS; part += PARTS / BURSTS) {
        actor_wait(actor, part, PARTS);
        pile_grow(&pile, most_bytes());
        actor->freed_bytes = pile.bytes;
        actor_wait(actor, part + 1, PARTS);
        pile_drop(&pile);
    }
    rest(actor);
}

/* Threads that have used every size end all at once, after a sixth of the script; one waits. */
static void run_ended_pool(actor_t *actor)
{
    pile_t pile = pile_create(actor, most_bytes(), (sizes_t){32, 12});
    pile_grow(&pile, most_bytes());
    actor->freed_bytes = pile.bytes;
    pile_drop(&pile);
    actor_wait(actor, 1, 6);
    if (actor->index == 0)
        look_at_the_end(actor);
    else
        actor->slept_ns += actor->length_ns / 6 * 5; /* it is not there any more */
}

/* In the order of WORKLOAD_CHOICES; the first five are for one thread. */
static void (*const workloads[])(actor_t *) = {
    run_spike,       run_sawtooth,       run_phases, run_ttl_store,
    run_temporaries, run_scattered_free, run_idle,   run_parked_pool,
    run_ended_pool,
};
enum { FIRST_THAT_RESTS = 5, FIRST_OF_MANY_THREADS = 6 };

static void work(void *context)
{
    workloads[parameters[WORKLOAD].value](context);
}

static void report(const actor_t *actors, uint64_t elapsed_ns)
{
    uint64_t busy_ns = 0;
    actor_t sum = {.operations = 0};
    for (uint64_t index = 0; index < parameters[THREADS].value; index++) {
        sum.operations += actors[index].operations;
        sum.peak_bytes += actors[index].peak_bytes;
        sum.freed_bytes += actors[index].freed_bytes;
        busy_ns += elapsed_ns - actors[index].slept_ns;
    }
    figure_t figures[] = {
        {"peak_live_bytes", sum.peak_bytes},
        {"freed_bytes", sum.freed_bytes},
        {"returned_bytes", returned_bytes},
    };
    bool has_rested = parameters[WORKLOAD].value >= FIRST_THAT_RESTS;
    bench_close_figures(&bench, sum.operations, busy_ns, figures, has_rested ? 3 : 1);
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    uint64_t thread_count = parameters[THREADS].value;
    if (thread_count > 1 && parameters[WORKLOAD].value < FIRST_OF_MANY_THREADS)
        bench_refuse(bench.program, "this workload has one thread");
    bench_begin(&bench);
    actor_t *actors = bench_map(thread_count, sizeof(actor_t));
    pthread_barrier_init(&is_over, NULL, (unsigned)thread_count);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t index = 0; index < thread_count; index++)
        actors[index] = (actor_t){.random = bench_random_seed(parameters[SEED].value, index),
                                  .index = index,
                                  .start_ns = start_ns,
                                  .length_ns = parameters[SECONDS].value};
    uint64_t elapsed_ns = bench_run_threads(thread_count, work, actors, sizeof(actor_t));
    report(actors, elapsed_ns);
    return 0;
}
