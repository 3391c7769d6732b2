/* Which route serves which call: needs the checked build of the library, linked, which counts them.
 *
 * A scenario runs in a child that prints its counters at exit (HAKMEM_FREE_ROUTE_TRACE=1); what a
 * child without a scenario prints under the same settings is subtracted. */
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { ROUTES = 32, CALLS = 100000, SLACK = 40, KIB = 1024, MIB = 1024 * KIB };

typedef struct route_counts {
    char names[ROUTES][32];
    long counts[ROUTES];
    size_t length;
} route_counts_t;

static route_counts_t seen;

/* ---- what the child does ---- */

static void *volatile slots[4096];

/* One block at a time. */
static void cycle(size_t size, unsigned count)
{
    for (unsigned index = 0; index < count; index++) {
        slots[0] = malloc(size);
        check(slots[0] != NULL);
        free(slots[0]);
    }
}

static void nothing(void)
{
}

static void hot_loop(void)
{
    cycle(48, CALLS);
}

static void hot_calloc(void)
{
    for (unsigned index = 0; index < CALLS; index++) {
        slots[0] = calloc(3, 16);
        free(slots[0]);
    }
}

static void blocks_of_32_kib(void)
{
    cycle(32 * KIB, CALLS);
}

static void blocks_above_32_kib(void)
{
    cycle(32 * KIB + 1, 1000);
    cycle(4 * MIB - 1, 100);
}

static void blocks_of_32_mib(void)
{
    cycle(32 * MIB, 1000);
}

static void free_of_null(void)
{
    for (unsigned index = 0; index < CALLS; index++)
        free(slots[0]);
}

/* Every slot changes again and again, with all sizes that have a class. */
static void small_of_all_sizes(void)
{
    uint64_t state = 1;
    for (unsigned index = 0; index < CALLS; index++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t slot = (state >> 33) % 4096;
        free(slots[slot]);
        slots[slot] = malloc(1 + (state >> 45) % (32 * KIB));
        check(slots[slot] != NULL);
    }
    for (size_t slot = 0; slot < 4096; slot++)
        free(slots[slot]);
}

static void aligned_small(void)
{
    for (unsigned index = 0; index < CALLS; index++) {
        slots[0] = aligned_alloc(64, 100);
        check(slots[0] != NULL);
        free(slots[0]);
    }
}

enum { BATCH = 4000, BATCHES = 50 };
static sem_t filled, emptied;

static void *consume(void *argument)
{
    for (unsigned round = 0; round < BATCHES; round++) {
        check_eq(sem_wait(&filled), 0);
        for (unsigned index = 0; index < BATCH; index++)
            free(slots[index]);
        check_eq(sem_post(&emptied), 0);
    }
    return argument;
}

static void producer_and_consumer(void)
{
    pthread_t consumer;
    check_eq(sem_init(&filled, 0, 0), 0);
    check_eq(sem_init(&emptied, 0, 0), 0);
    check_eq(pthread_create(&consumer, NULL, consume, NULL), 0);
    for (unsigned round = 0; round < BATCHES; round++) {
        for (unsigned index = 0; index < BATCH; index++)
            slots[index] = malloc(64);
        check_eq(sem_post(&filled), 0);
        check_eq(sem_wait(&emptied), 0);
    }
    check_eq(pthread_join(consumer, NULL), 0);
}

static void small_and_large(void)
{
    cycle(48, 1000);
    cycle(2000, 1000);
    cycle(100 * KIB, 1000);
    cycle(40 * MIB, 1000);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
#define SCENARIO(name) {#name, name}
    SCENARIO(nothing),         SCENARIO(hot_loop),
    SCENARIO(hot_calloc),      SCENARIO(blocks_of_32_kib),
    SCENARIO(blocks_of_32_mib), SCENARIO(blocks_above_32_kib),
    SCENARIO(free_of_null),    SCENARIO(small_of_all_sizes),
    SCENARIO(small_and_large), SCENARIO(producer_and_consumer),
    SCENARIO(aligned_small),
};

static int run_scenario(const char *name)
{
    for (size_t index = 0; index < sizeof scenarios / sizeof scenarios[0]; index++)
        if (strcmp(name, scenarios[index].name) == 0) {
            scenarios[index].run();
            return 0;
        }
    return 1;
}

/* ---- what the parent reads ---- */

/* Runs this program again and returns all that it wrote to standard error. */
static const char *errors_of_child(const char *scenario, const char *setting)
{
    static char text[16384];
    int ends[2];
    check_eq(pipe(ends), 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        check(dup2(ends[1], STDERR_FILENO) >= 0);
        check_eq(setenv("HAKMEM_FREE_ROUTE_TRACE", "1", 1), 0);
        if (setting != NULL)
            check_eq(putenv((char *)(uintptr_t)setting), 0);
        execl("/proc/self/exe", "routes_test", "--child", scenario, (char *)NULL);
        check_end(1);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < sizeof text - 1) {
        got = read(ends[0], text + length, sizeof text - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    text[length] = '\0';
    close(ends[0]);
    int status = 0;
    check_eq(waitpid(child, &status, 0), child);
    if (status != 0)
        (void)fputs(text, stderr);
    check_eq(status, 0);
    return text;
}

static route_counts_t counts_of(const char *scenario, const char *setting)
{
    route_counts_t routes = {.length = 0};
    const char *text = errors_of_child(scenario, setting);
    if (strstr(text, "needs a diagnostic build") != NULL)
        check_skip("the library under test does not count routes");
    while ((text = strstr(text, "]: route ")) != NULL) {
        check(routes.length < ROUTES);
        check_eq(sscanf(text, "]: route %31s %ld", routes.names[routes.length],
                        &routes.counts[routes.length]),
                 2);
        routes.length++;
        text++;
    }
    check(routes.length > 0);
    return routes;
}

/* Fills `seen` with what the scenario adds to a program that does nothing. */
static void observe(const char *scenario, const char *setting)
{
    route_counts_t idle = counts_of("nothing", setting);
    seen = counts_of(scenario, setting);
    check_eq(seen.length, idle.length);
    for (size_t index = 0; index < seen.length; index++)
        seen.counts[index] -= idle.counts[index];
}

static long route(const char *name)
{
    for (size_t index = 0; index < seen.length; index++)
        if (strcmp(seen.names[index], name) == 0)
            return seen.counts[index];
    check_fail(__FILE__, __LINE__, name);
}

/* Calls by all routes whose names begin like this. */
static long all_routes(const char *prefix)
{
    long sum = 0;
    for (size_t index = 0; index < seen.length; index++)
        if (strncmp(seen.names[index], prefix, strlen(prefix)) == 0)
            sum += seen.counts[index];
    return sum;
}

static void check_about(const char *name, long expected)
{
    long count = route(name);
    if (count < expected - SLACK || count > expected + SLACK)
        (void)fprintf(stderr, "%s: %ld calls, expected %ld or so\n", name, count, expected);
    check(count >= expected - SLACK && count <= expected + SLACK);
}

static void check_no_detour(void)
{
    check_eq(route("malloc_large") + route("malloc_huge") + route("malloc_libc"), 0);
    check_eq(route("free_large") + route("free_huge") + route("free_libc"), 0);
}

/* ---- the rules ---- */

test(a_hot_loop_is_served_by_the_bin)
{
    observe("hot_loop", NULL);
    check_about("malloc_bin", CALLS);
    check_about("free_bin", CALLS);
    check_no_detour();
    observe("hot_calloc", NULL);
    check_about("malloc_bin", CALLS);
    check_about("free_bin", CALLS);
}

test(each_call_is_counted_once)
{
    static const char *const names[] = {"hot_loop", "blocks_of_32_kib", "small_of_all_sizes",
                                        "blocks_of_32_mib"};
    static const long calls[] = {CALLS, CALLS, CALLS, 1000};
    for (unsigned index = 0; index < 4; index++) {
        observe(names[index], NULL);
        check_eq(all_routes("malloc_"), calls[index]);
        check_eq(all_routes("free_"), calls[index]);
    }
}

test(an_aligned_block_is_counted_as_well)
{
    observe("aligned_small", NULL);
    check_eq(all_routes("malloc_"), CALLS);
    check_eq(all_routes("free_"), CALLS);
    check_no_detour();
}

test(from_producer_to_consumer_it_goes_by_the_depot)
{
    observe("producer_and_consumer", NULL);
    long magazines = BATCH * BATCHES / 124;
    check(route("malloc_depot") > magazines * 3 / 4);
    check(route("free_depot") > magazines * 3 / 4);
    check(route("malloc_slabs") < magazines / 10);
    check(route("malloc_bin") > (long)BATCH * BATCHES * 95 / 100);
    check(route("free_bin") > (long)BATCH * BATCHES * 95 / 100);
    check_no_detour();
}

test(blocks_of_32_kib_come_from_bins)
{
    observe("blocks_of_32_kib", NULL);
    check_about("malloc_bin", CALLS);
    check_about("free_bin", CALLS);
    check_no_detour();
}

test(blocks_above_32_kib_are_large)
{
    observe("blocks_above_32_kib", NULL);
    check_eq(route("malloc_large"), 1100);
    check_eq(route("free_large"), 1100);
    check_eq(route("malloc_huge") + route("free_huge"), 0);
}

test(blocks_of_32_mib_are_huge)
{
    observe("blocks_of_32_mib", NULL);
    check_eq(route("malloc_huge"), 1000);
    check_eq(route("free_huge"), 1000);
    check_eq(route("malloc_large") + route("free_large"), 0);
}

test(a_free_of_null_is_no_call)
{
    observe("free_of_null", NULL);
    check_eq(all_routes("free_"), 0);
}

test(no_small_block_takes_a_detour)
{
    observe("small_of_all_sizes", NULL);
    check_no_detour();
    check_eq(route("malloc_uncached") + route("free_uncached"), 0);
}

test(in_debug_mode_every_small_call_is_uncached)
{
    observe("small_and_large", "HAKMEM_MODE=debug");
    check_eq(route("malloc_uncached"), 2000);
    check_eq(route("free_uncached"), 2000);
    check_eq(route("malloc_bin") + route("malloc_spare") + route("malloc_depot"), 0);
    check_eq(route("free_bin") + route("free_spare") + route("free_depot"), 0);
    check_eq(route("malloc_large"), 1000);
    check_eq(route("malloc_huge"), 1000);
}

test(in_safe_mode_the_c_library_serves_everything)
{
    observe("small_and_large", "HAKMEM_LD_SAFE=1");
    check_eq(route("malloc_libc"), 4000);
    check_eq(route("free_libc"), 4000);
    check_eq(all_routes("malloc_"), 4000);
    check_eq(all_routes("free_"), 4000);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return run_scenario(argv[2]);
    return check_run(argc, argv);
}
