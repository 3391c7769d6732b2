/* Programs whose memory has one known cause each, for the tests of `hakmem why`. Does what the
   first argument says, misses once more so that statistics are written, and waits for the end of
   its input. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

enum { MANY = 400000, THREADS = 24 };
static char *volatile kept[MANY];
static sem_t parked;

static void *allocate(size_t size)
{
    char *block = malloc(size);
    check(block != NULL);
    memset(block, 1, size);
    return block;
}

/* 80 MB that are never freed. */
static void leak(void)
{
    for (unsigned index = 0; index < MANY; index++) kept[index] = allocate(200);
}

/* 100 MB that are freed at once. */
static void spike(void)
{
    for (unsigned index = 0; index < 1000; index++) kept[index] = allocate(100000);
    for (unsigned index = 0; index < 1000; index++) free(kept[index]);
}

/* 80 MB of which every twentieth block stays: all pages have one. */
static void fragmentation(void)
{
    leak();
    for (unsigned index = 0; index < MANY; index++)
        if (index % 20 != 0) free(kept[index]);
}

static void *fill_and_park(void *nothing)
{
    static _Thread_local char *own[4000];
    for (size_t size = 16; size <= 1024; size += 16) {
        size_t count = 100000 / size < 100 ? 100000 / size : 100;
        for (size_t index = 0; index < count; index++) own[index] = allocate(size);
        for (size_t index = 0; index < count; index++) free(own[index]);
    }
    check_eq(sem_post(&parked), 0);
    for (;;) pause();
    return nothing;
}

static void parked_threads(void)
{
    pthread_t thread;
    check_eq(sem_init(&parked, 0, 0), 0);
    for (unsigned index = 0; index < THREADS; index++)
        check_eq(pthread_create(&thread, NULL, fill_and_park, NULL), 0);
    for (unsigned index = 0; index < THREADS; index++) check_eq(sem_wait(&parked), 0);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } causes[] = {
        {"leak", leak}, {"spike", spike}, {"fragmentation", fragmentation},
        {"parked", parked_threads}};
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool grows = argc > 2;
    for (unsigned index = 0; argc > 1 && index < 4; index++)
        if (strcmp(argv[1], causes[index].name) == 0) causes[index].run();
    check(write(STDOUT_FILENO, "ready\n", 6) == 6);
    while (poll(&input, 1, 20) == 0) {
        free(malloc(200000)); /* a large block: each free may do the upkeep */
        for (unsigned index = 0; grows && index < 100; index++) (void)allocate(500);
    }
    return 0;
}
