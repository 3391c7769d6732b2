/* A program to which docs/guide.md gives advice: its threads load a mix of blocks and free all of
   them, in rounds with pauses, and are idle at the end. tools/advice.py starts it with arguments
   such as `pause=300`; their names and defaults are below. It prints KiB, and page faults. */
#include "api/heap.h"
#include "check.h"
#include "weak.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

enum { KIB = 1024, MIB = 1024 * KIB, STEP_MS = 20, CALL_EACH_MS = 100 };
enum { ROUNDS, PAUSE, IDLE, THREADS, LOAD, HUGE, CALLS, PURGE, REST, NAMES };
static const char *const names[NAMES] = {
    "rounds", "pause", "idle", "threads", "load", /* MiB */
    "huge",  /* blocks of 34 MiB beside them */
    "calls", /* malloc and free each 100 ms while it waits */
    "purge", /* hakmem_purge after each round */
    "rest"}; /* hakmem_idle in each thread before it waits */
static size_t setting[NAMES] = {1, 0, 2000, 1, 120, 0, 1, 0, 0};
typedef struct block { struct block *next; size_t size; } block_t;
static pthread_barrier_t all;
static size_t loaded_kib, huge_kib, sum_kib, sample_count;

static size_t read_kib(const char *path, const char *name)
{
    static char text[8 * KIB];
    int file = open(path, O_RDONLY);
    ssize_t length = read(file, text, sizeof text - 1);
    check(length > 0 && close(file) == 0);
    text[length] = '\0';
    return strtoul(strchr(strstr(text, name), ':') + 1, NULL, 10);
}

static void idle(size_t ms)
{
    for (size_t at = 0; at < ms; at += STEP_MS, sample_count++) {
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
        if (setting[CALLS] && at % CALL_EACH_MS == 0) free(hidden(malloc(64)));
        sum_kib += read_kib("/proc/self/status", "VmRSS");
    }
}

/* A fifth of the bytes is in blocks of 1 MiB, a fifth in blocks of 40 KiB, the rest in small
   ones. */
static block_t *load(unsigned seed, size_t huge_count)
{
    block_t *last = NULL;
    size_t sums[3] = {0}, all_bytes = setting[LOAD] * MIB / setting[THREADS];
    for (size_t sum = 0; sum < all_bytes || huge_count != 0; sum += last->size) {
        seed = seed * 1103515245 + 12345;
        unsigned kind = sums[2] <= sum / 5 ? 2 : sums[1] <= sum / 5;
        size_t size = kind == 2 ? MIB : kind == 1 ? 40 * KIB : 16 + (seed >> 16) % 1985;
        if (sum >= all_bytes && huge_count-- != 0) size = 34 * MIB;
        block_t *block = (block_t *)hidden(malloc(size));
        *block = (block_t){last, size};
        for (size_t at = sizeof *block; at < size; at += 64) ((char *)block)[at] = 1;
        last = block;
        sums[kind] += size;
    }
    return last;
}

static void *work(void *number)
{
    for (size_t round = 0; round < setting[ROUNDS]; round++) {
        block_t *last = load((unsigned)round, number == NULL ? setting[HUGE] : 0);
        pthread_barrier_wait(&all);
        if (number == NULL) {
            loaded_kib = read_kib("/proc/self/status", "VmRSS");
            huge_kib = read_kib("/proc/self/smaps_rollup", "AnonHugePages");
        }
        pthread_barrier_wait(&all);
        for (block_t *next; last != NULL; last = next) {
            next = last->next;
            free(last);
        }
        if (setting[PURGE]) hakmem_purge();
        if (setting[REST]) hakmem_idle();
        pthread_barrier_wait(&all);
        if (number == NULL) idle(setting[PAUSE]);
        pthread_barrier_wait(&all);
    }
    while (number != NULL) pause(); /* with its cache */
    return NULL;
}

int main(int argc, char **argv)
{
    for (int at = 1; at < argc; at++)
        for (unsigned name = 0; name < NAMES; name++)
            if (strcspn(argv[at], "=") == strlen(names[name]) && strstr(argv[at], names[name]))
                setting[name] = strtoul(strchr(argv[at], '=') + 1, NULL, 10);
    check_eq(pthread_barrier_init(&all, NULL, (unsigned)setting[THREADS]), 0);
    for (uintptr_t number = 1; number < setting[THREADS]; number++) {
        pthread_t thread;
        check_eq(pthread_create(&thread, NULL, work, (void *)number), 0);
    }
    work(NULL);
    size_t pauses_kib = sample_count != 0 ? sum_kib / sample_count : 0;
    idle(setting[IDLE]);
    struct rusage usage;
    check_eq(getrusage(RUSAGE_SELF, &usage), 0);
    long us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
              usage.ru_stime.tv_usec;
    printf("peak %zu loaded %zu huge %zu pauses %zu rest %zu faults %ld cpu_ms %ld\n",
           read_kib("/proc/self/status", "VmHWM"), loaded_kib, huge_kib, pauses_kib,
           read_kib("/proc/self/status", "VmRSS"), usage.ru_minflt, us / 1000);
    return 0;
}
