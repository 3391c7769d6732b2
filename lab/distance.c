/*
 * distance
 *
 * Prints how many nanoseconds a cache line takes from one processor to another and back: in the
 * fastest of some batches, for the farthest pair of processors that follow each other among those
 * that may be used; 0, if there is only one. It takes a few milliseconds. The host of a virtual
 * machine may move its processors nearer together or farther apart at any time, and programs with
 * several threads are faster or slower by it; so the laboratory measures it before each run.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { BATCHES = 15, TRIPS = 500, PAIRS_MOST = 16, LIMIT_NS = 20000000 };

static struct {
    uint32_t turn __attribute__((aligned(128)));    /* even: the caller's; atomic */
    uint32_t is_over __attribute__((aligned(128))); /* atomic */
} self;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void stay_on(size_t processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *answer(void *processor)
{
    stay_on((size_t)processor);
    while (!__atomic_load_n(&self.is_over, __ATOMIC_RELAXED)) {
        uint32_t turn = __atomic_load_n(&self.turn, __ATOMIC_ACQUIRE);
        if (turn % 2 == 1)
            __atomic_store_n(&self.turn, turn + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void go_and_return(void)
{
    uint32_t turn = self.turn + 1;
    __atomic_store_n(&self.turn, turn, __ATOMIC_RELEASE);
    while (__atomic_load_n(&self.turn, __ATOMIC_ACQUIRE) == turn) {
    }
}

/* Where other work has one of the two processors, fewer batches fit into the time. */
static double round_trip_ns(size_t from, size_t to)
{
    double fastest = 0;
    unsigned count = 0;
    pthread_t other;
    self.turn = 0;
    self.is_over = 0;
    stay_on(from);
    if (pthread_create(&other, NULL, answer, (void *)to) != 0)
        return 0;
    go_and_return();
    uint64_t first_ns = now_ns();
    do {
        uint64_t start_ns = now_ns();
        for (unsigned i = 0; i < TRIPS; i++)
            go_and_return();
        double ns = (double)(now_ns() - start_ns) / TRIPS;
        fastest = count == 0 || ns < fastest ? ns : fastest;
    } while (++count < BATCHES && now_ns() - first_ns < LIMIT_NS);
    __atomic_store_n(&self.is_over, 1, __ATOMIC_RELAXED);
    pthread_join(other, NULL);
    return fastest;
}

int main(void)
{
    cpu_set_t usable;
    size_t last = CPU_SETSIZE, pairs = 0;
    double farthest = 0;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        return 1;
    for (size_t processor = 0; processor < CPU_SETSIZE && pairs < PAIRS_MOST; processor++) {
        if (!CPU_ISSET(processor, &usable))
            continue;
        if (last != CPU_SETSIZE) {
            double ns = round_trip_ns(last, processor);
            farthest = ns > farthest ? ns : farthest;
            pairs++;
        }
        last = processor;
    }
    printf("%.1f\n", farthest);
    return 0;
}
