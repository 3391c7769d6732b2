/*
 * lines WORKLOAD THREADS ROUNDS
 *
 * What tools/lines.py steps through to count cache lines that move between processors. The threads
 * run in lockstep: tools/lines.py lets each do one step in turn, a breakpoint ends each step, and
 * only what lies between EVENT_BEGIN and EVENT_END is counted: calls of the allocator, and the
 * blocks. Without a tracer the first breakpoint ends the program.
 *
 * The clock is this program's own and goes by steps: instructions that are stepped through take a
 * thousand times as long, and allocators do some work by time.
 *
 * Each block is written by the thread that allocates it, and read by the one that frees it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MOST = 128, SLOTS = 256, DEPTH = 64, BURST = 500, BLOCK = 64 };

typedef enum event { EVENT_READY, EVENT_BEGIN, EVENT_BLOCK, EVENT_END } event_t;

/* Stops for the tracer; `what` is a block of so many bytes, where the event is one. */
static inline void tell(event_t event, const volatile void *what, size_t size)
{
    __asm__ volatile("int3" ::"D"((uint64_t)event), "S"(what), "d"(size) : "memory");
}

static struct {
    void (*step)(unsigned thread, unsigned round);
    unsigned threads, rounds;
    char *passed[THREADS_MOST][SLOTS]; /* blocks on their way, in rings */
    char *burst[THREADS_MOST][BURST];
    uint64_t random[THREADS_MOST];
    uint64_t word __attribute__((aligned(64)));
} self;

static uint64_t clock_ns __attribute__((aligned(64))); /* a line that tools/lines.py leaves out */

/* In the place of the C library's, for the allocator: 50 ns for each step, and for each call, since
 * some divide by what has passed between two. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    clock_ns += 50;
    now->tv_sec = (time_t)(1000000 + clock_ns / 1000000000);
    now->tv_nsec = (long)(clock_ns % 1000000000);
    return 0;
}

static char *make(size_t size)
{
    char *block = malloc(size);
    if (block == NULL)
        abort();
    tell(EVENT_BLOCK, block, size);
    *(volatile char *)block = 1;
    return block;
}

static void drop(char *block)
{
    if (block == NULL)
        return;
    (void)*(volatile char *)block;
    free(block);
}

static uint64_t draw(unsigned thread)
{
    self.random[thread] = self.random[thread] * 6364136223846793005U + 1442695040888963407U;
    return self.random[thread] >> 33;
}

/* Replaces the block of a slot. */
static void replace(char **slot, size_t size)
{
    char *old = *slot;
    tell(EVENT_BEGIN, NULL, 0);
    drop(old);
    char *block = make(size);
    tell(EVENT_END, NULL, 0);
    *slot = block;
}

/* No allocator: each thread writes the same word. */
static void pingpong(unsigned thread, unsigned round)
{
    tell(EVENT_BEGIN, NULL, 0);
    if (thread == 0)
        tell(EVENT_BLOCK, &self.word, sizeof self.word);
    *(volatile uint64_t *)&self.word = round;
    tell(EVENT_END, NULL, 0);
}

/* The first thread allocates for each other, which frees what was made DEPTH rounds before. */
static void handover(unsigned thread, unsigned round)
{
    if (thread != 0) {
        char *old = round < DEPTH ? NULL : self.passed[thread][(round - DEPTH) % SLOTS];
        tell(EVENT_BEGIN, NULL, 0);
        drop(old);
        tell(EVENT_END, NULL, 0);
        return;
    }
    for (unsigned to = 1; to < self.threads; to++) {
        tell(EVENT_BEGIN, NULL, 0);
        char *block = make(BLOCK);
        tell(EVENT_END, NULL, 0);
        self.passed[to][round % SLOTS] = block;
    }
}

/* The same, but the first thread allocates many blocks before the others free them. */
static void burst(unsigned thread, unsigned round)
{
    (void)round;
    for (unsigned to = 1; to < self.threads; to++) {
        for (unsigned i = 0; i < BURST && (thread == 0 || thread == to); i++) {
            char *old = self.burst[to][i];
            tell(EVENT_BEGIN, NULL, 0);
            if (thread == 0)
                old = make(BLOCK);
            else
                drop(old);
            tell(EVENT_END, NULL, 0);
            self.burst[to][i] = old;
        }
    }
}

/* Each thread allocates for the next, and frees what the one before it has made. */
static void ring(unsigned thread, unsigned round)
{
    char *old = round < DEPTH ? NULL : self.passed[thread][(round - DEPTH) % SLOTS];
    tell(EVENT_BEGIN, NULL, 0);
    drop(old);
    char *block = make(BLOCK);
    tell(EVENT_END, NULL, 0);
    self.passed[(thread + 1) % self.threads][round % SLOTS] = block;
}

/* Each thread replaces blocks of random sizes in an array, which it hands on now and then. */
static void larson(unsigned thread, unsigned round)
{
    unsigned array = (thread + round / (SLOTS * 4)) % self.threads;
    replace(&self.passed[array][draw(thread) % SLOTS], 16 + draw(thread) % 497);
}

/* All threads replace blocks in one array: what a thread frees is mostly of others. */
static void shared(unsigned thread, unsigned round)
{
    (void)round;
    replace(&self.passed[0][draw(thread) % SLOTS], BLOCK);
}

static void *work(void *argument)
{
    unsigned thread = (unsigned)(uintptr_t)argument;
    self.random[thread] = thread + 1;
    tell(EVENT_READY, NULL, 0);
    for (unsigned round = 0; round < self.rounds; round++) {
        self.step(thread, round);
        clock_ns += 50;
        tell(EVENT_READY, NULL, 0); /* the turn is the next thread's */
    }
    return NULL;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*step)(unsigned, unsigned);
    } workloads[] = {{"pingpong", pingpong}, {"handover", handover}, {"burst", burst},
                     {"ring", ring},         {"larson", larson},     {"shared", shared}};
    pthread_t threads[THREADS_MOST];
    for (size_t i = 0; count == 4 && i < sizeof workloads / sizeof *workloads; i++) {
        if (strcmp(words[1], workloads[i].name) == 0)
            self.step = workloads[i].step;
    }
    self.threads = count == 4 ? (unsigned)atoi(words[2]) : 0;
    self.rounds = count == 4 ? (unsigned)atoi(words[3]) : 0;
    if (self.step == NULL || self.threads < 2 || self.threads > THREADS_MOST) {
        fprintf(stderr, "usage: lines pingpong|handover|burst|ring|larson|shared THREADS ROUNDS\n");
        return 2;
    }
    for (unsigned i = 0; i < self.threads; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) != 0)
            abort();
    }
    for (unsigned i = 0; i < self.threads; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
