/* Programs with one known problem each, for test_answers.py. The first argument says which. A
   program begins, writes "ready", and goes on with a step every tenth of a second until its input
   ends. causes.cc, causes.rs and causes.py do the same in other languages. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#define NOINLINE __attribute__((noinline))

enum { MANY = 40000, THREADS = 24, STEP = 1 << 18, PAGE = (36 << 20) };
static char *volatile kept[2 * MANY];
static unsigned kept_count;
static char *rows;
static size_t rows_size = 8 << 20;
static unsigned step;
static sem_t is_parked;

static void *written(void *block, size_t size)
{
    check(block != NULL);
    return memset(block, 1, size);
}

/* Blocks that nobody frees. */
NOINLINE static void keep_request(void)
{
    if (kept_count < 2 * MANY) kept[kept_count++] = written(malloc(2000), 2000);
}

static void leak_begins(void)
{
    for (unsigned index = 0; index < 10000; index++) keep_request();
}

static void leak_goes_on(void)
{
    for (unsigned index = 0; index < 100; index++) keep_request();
}

/* One block that stays on each page. */
NOINLINE static char *make_index_entry(void) { return written(malloc(512), 512); }
NOINLINE static char *make_temporary(void) { return written(malloc(512), 512); }

static void fragmentation_begins(void)
{
    for (unsigned index = 0; index < 2 * MANY; index++)
        kept[index] = index % 8 == 0 ? make_index_entry() : make_temporary();
    for (unsigned index = 0; index < 2 * MANY; index++)
        if (index % 8 != 0) free(kept[index]);
}

static void fragmentation_goes_on(void) { free(written(malloc(200000), 1)); }

/* Threads that have freed all, and wait. */
NOINLINE static void fill_caches(void)
{
    static _Thread_local char *own[512];
    for (size_t size = 16; size <= 1024; size += 64) {
        for (unsigned index = 0; index < 96; index++) own[index] = written(malloc(size), size);
        for (unsigned index = 0; index < 96; index++) free(own[index]);
    }
}

static void *work_and_park(void *nothing)
{
    fill_caches();
    check_eq(sem_post(&is_parked), 0);
    for (;;) pause();
    return nothing;
}

static void parked_begins(void)
{
    pthread_t thread;
    check_eq(sem_init(&is_parked, 0, 0), 0);
    for (unsigned index = 0; index < THREADS; index++)
        check_eq(pthread_create(&thread, NULL, work_and_park, NULL), 0);
    for (unsigned index = 0; index < THREADS; index++) check_eq(sem_wait(&is_parked), 0);
}

/* One call, whose miss lets the statistics be written. */
static void parked_goes_on(void)
{
    if (++step == 25) free(written(malloc(200000), 1));
}

/* A buffer that is allocated anew for each page, of the same size or a little more each time, and
   later than memory waits to be wanted again. */
NOINLINE static void render_page(size_t size) { free(written(malloc(size), size)); }

static void same_goes_on(void)
{
    if (++step % 7 == 1) render_page(PAGE);
}

static void more_goes_on(void)
{
    if (++step % 7 == 1) render_page(PAGE + (size_t)step * 9000);
}

static void pages_begin(void)
{
    for (unsigned index = 0; index < 8; index++) render_page(PAGE + index);
}

/* An array that gets room for one more piece each time. */
NOINLINE static void append_rows(void)
{
    rows = realloc(rows, rows_size);
    check(rows != NULL);
    memset(rows + rows_size - STEP, 1, STEP);
    rows_size += STEP;
}

static void array_begins(void)
{
    for (unsigned index = 0; index < 40; index++) append_rows();
}

static const struct {
    const char *name;
    void (*begin)(void), (*go_on)(void);
} causes[] = {
    {"leak", leak_begins, leak_goes_on},
    {"fragmentation", fragmentation_begins, fragmentation_goes_on},
    {"parked", parked_begins, parked_goes_on},
    {"same", pages_begin, same_goes_on},
    {"more", pages_begin, more_goes_on},
    {"array", array_begins, append_rows},
};

int main(int argc, char **argv)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    check(argc > 1);
    for (unsigned index = 0; index < sizeof(causes) / sizeof(causes[0]); index++) {
        if (strcmp(argv[1], causes[index].name) != 0) continue;
        causes[index].begin();
        check(write(STDOUT_FILENO, "ready\n", 6) == 6);
        while (poll(&input, 1, 100) == 0) causes[index].go_on();
        free(rows);
        return 0;
    }
    return 2;
}
