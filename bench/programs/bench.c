/*
 * Clock, threads, arrays and the report of the benchmark programs. The command line is read in
 * arguments.c. Linked into every program of this folder.
 */
#include "bench.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct runner {
    pthread_t thread;
    pthread_barrier_t *start;
    void (*work)(void *);
    void *context;
} runner_t;

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

_Noreturn void bench_fail(const char *reason)
{
    fprintf(stderr, "%s\n", reason);
    exit(1);
}

void *bench_map(size_t count, size_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    void *start = mmap(NULL, count * size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (start == MAP_FAILED) bench_fail("no memory for the arrays of the benchmark");
    return start;
}

static void *runner_main(void *argument)
{
    runner_t *runner = argument;
    pthread_barrier_wait(runner->start);
    runner->work(runner->context);
    return NULL;
}

uint64_t bench_run_threads(size_t count, void (*work)(void *), void *contexts,
                           size_t context_size)
{
    if (count == 1) {
        uint64_t alone_ns = bench_now_ns();
        work(contexts);
        return bench_now_ns() - alone_ns;
    }
    runner_t *runners = bench_map(count, sizeof(runner_t));
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count + 1);
    for (size_t index = 0; index < count; index++) {
        char *context = (char *)contexts + index * context_size;
        runners[index] = (runner_t){.start = &start, .work = work, .context = context};
        if (pthread_create(&runners[index].thread, NULL, runner_main, &runners[index]) != 0)
            bench_fail("a thread could not be started");
    }
    /* The clock is read before the barrier opens: this thread may be the last to run again. */
    uint64_t start_ns = bench_now_ns();
    pthread_barrier_wait(&start);
    for (size_t index = 0; index < count; index++) pthread_join(runners[index].thread, NULL);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    pthread_barrier_destroy(&start);
    munmap(runners, count * sizeof(runner_t));
    return elapsed_ns;
}

/* The path of the object whose malloc this program calls: the proof of engagement. */
static const char *malloc_owner(void)
{
    Dl_info owner;
    void *symbol = dlsym(RTLD_DEFAULT, "malloc");
    return symbol != NULL && dladdr(symbol, &owner) != 0 ? owner.dli_fname : "unknown";
}

/* True if HAKMEM itself says that a block fresh from malloc lies in its memory. */
static bool is_hakmem_engaged(void)
{
    bool (*hakmem_owns)(const void *);
    void *symbol = dlsym(RTLD_DEFAULT, "hakmem_owns");
    void *block = malloc(100);
    if (symbol == NULL || block == NULL) {
        free(block);
        return false;
    }
    memcpy(&hakmem_owns, &symbol, sizeof symbol); /* C has no cast from data to function */
    bool is_engaged = hakmem_owns(block);
    free(block);
    return is_engaged;
}

uint64_t bench_status_kib(const char *row)
{
    char text[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, text, sizeof text - 1);
    if (length <= 0) bench_fail("/proc/self/status cannot be read");
    text[length] = '\0';
    close(file);
    const char *found = strstr(text, row);
    return found == NULL ? 0 : strtoull(found + strlen(row), NULL, 10);
}

static void print_json(const bench_t *bench, uint64_t operations, uint64_t elapsed_ns,
                       const figure_t *figures, size_t figure_count)
{
    printf("{\"program\": \"%s\", \"parameters\": {", bench->program);
    for (size_t index = 0; index < bench->parameter_count; index++) {
        printf("%s\"%s\": ", index == 0 ? "" : ", ", bench->parameters[index].name);
        const char *quote = bench->parameters[index].kind == KIND_CHOICE ? "\"" : "";
        printf("%s", quote);
        bench_print_value(stdout, &bench->parameters[index]);
        printf("%s", quote);
    }
    printf("}, \"operation\": \"%s\", \"operations\": %" PRIu64, bench->operation, operations);
    printf(", \"seconds\": %.9f", (double)elapsed_ns / (double)NS_PER_SECOND);
    printf(", \"ns_per_operation\": %.4f", (double)elapsed_ns / (double)operations);
    for (size_t index = 0; index < figure_count; index++)
        printf(", \"%s\": %" PRIu64, figures[index].name, figures[index].value);
    printf(", \"peak_rss_kib\": %" PRIu64, bench_status_kib("VmHWM:"));
    printf(", \"end_rss_kib\": %" PRIu64, bench_status_kib("VmRSS:"));
    printf(", \"malloc_owner\": \"%s\", \"hakmem_engaged\": %s}\n", malloc_owner(),
           is_hakmem_engaged() ? "true" : "false");
}

void bench_close_figures(const bench_t *bench, uint64_t operations, uint64_t elapsed_ns,
                         const figure_t *figures, size_t figure_count)
{
    if (elapsed_ns == 0) elapsed_ns = 1;
    for (size_t index = 0; index < figure_count; index++)
        printf("%s = %" PRIu64 "\n", figures[index].name, figures[index].value);
    if (bench->has_json) print_json(bench, operations, elapsed_ns, figures, figure_count);
    double seconds = (double)elapsed_ns / (double)NS_PER_SECOND;
    printf("Throughput = %.0f operations per second, relative time: %.3f s.\n",
           (double)operations / seconds, seconds);
}

void bench_close(const bench_t *bench, uint64_t operations, uint64_t elapsed_ns)
{
    bench_close_figures(bench, operations, elapsed_ns, NULL, 0);
}
