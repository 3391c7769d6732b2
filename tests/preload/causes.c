/* Programs whose memory has one known cause each, for the tests of `hakmem why`. Does what the
   first argument says, and waits for the end of its input. Meanwhile it makes one call that misses,
   after a second, so that statistics tell what was done; or calls that miss, if the second argument
   is "busy"; or more and more blocks, if it is "on". */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

enum { MANY = 400000, THREADS = 24 };
static char *volatile kept[MANY];
static sem_t is_parked;

static void *allocate(size_t size)
{
    char *block = malloc(size);
    check(block != NULL);
    memset(block, 1, size);
    return block;
}

/* 80 MB that are never freed. */
test(leak)
{
    for (unsigned index = 0; index < MANY; index++) kept[index] = allocate(200);
}

/* 100 MB that are freed at once. */
test(spike)
{
    for (unsigned index = 0; index < 1000; index++) kept[index] = allocate(100000);
    for (unsigned index = 0; index < 1000; index++) free(kept[index]);
}

/* The second time they are wanted again, and kept. */
test(rounds)
{
    for (unsigned round = 0; round < 3; round++) spike();
}

/* A buffer of 64 MiB and a little more each time, that is freed at once. */
test(temporary)
{
    for (unsigned index = 0; index < 6; index++) {
        free(allocate(((size_t)64 << 20) + index * 65536));
        (void)poll(NULL, 0, 120);
    }
}

/* Buffers of 36 MiB, one after the other. */
test(pages)
{
    for (unsigned index = 0; index < 8; index++) free(allocate((size_t)36 << 20));
}

/* 80 MB of which every twentieth block stays: all pages have one. */
test(fragmentation)
{
    leak();
    for (unsigned index = 0; index < MANY; index++)
        if (index % 20 != 0) free(kept[index]);
}

/* 128 MB, all of it written, which go back to the kernel; then as much, of which a byte in each
   quarter of a MiB is written. */
test(slack)
{
    for (unsigned index = 0; index < 2000; index++) kept[index] = allocate(65536);
    for (unsigned index = 0; index < 2000; index++) free(kept[index]);
    (void)poll(NULL, 0, 3000);
    for (unsigned index = 0; index < 500; index++) {
        kept[index] = malloc((size_t)256 << 10);
        check(kept[index] != NULL);
        kept[index][0] = 1;
    }
}

static void *fill_and_park(void *nothing)
{
    static _Thread_local char *own[4000];
    for (size_t size = 16; size <= 1024; size += 16) {
        size_t count = 100000 / size < 100 ? 100000 / size : 100;
        for (size_t index = 0; index < count; index++) own[index] = allocate(size);
        for (size_t index = 0; index < count; index++) free(own[index]);
    }
    check_eq(sem_post(&is_parked), 0);
    for (;;) pause();
    return nothing;
}

test(parked)
{
    pthread_t thread;
    check_eq(sem_init(&is_parked, 0, 0), 0);
    for (unsigned index = 0; index < THREADS; index++)
        check_eq(pthread_create(&thread, NULL, fill_and_park, NULL), 0);
    for (unsigned index = 0; index < THREADS; index++) check_eq(sem_wait(&is_parked), 0);
}

int main(int argc, char **argv)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    const bool grows = argc > 2 && strcmp(argv[2], "on") == 0;
    const bool is_busy = argc > 2 && strcmp(argv[2], "busy") == 0;
    check_eq(check_run(2, argv), 0);
    check(write(STDOUT_FILENO, "ready\n", 6) == 6);
    if (poll(&input, 1, 1500) == 0) free(malloc(200000));
    while (poll(&input, 1, 20) == 0) {
        if (grows || is_busy) free(malloc(200000)); /* a large block: each free may do the upkeep */
        for (unsigned index = 0; grows && index < 100; index++) (void)allocate(500);
    }
    return 0;
}
