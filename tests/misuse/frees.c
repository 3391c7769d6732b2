/* Pointers that may not be freed, and blocks that are freed twice or with a wrong size.
 *
 * A row of a table is a size, an offset or a number of other blocks, and what is done with them. */
#include "misuse.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void free_twice(char *block)
{
    announce(block);
    free(block);
    free(block);
}

/* So many other frees of its size lie between; then as many blocks are in use again. */
static void free_around(size_t size, int other_count, int reused_count)
{
    char *others[300];
    char *block = malloc(size);
    for (int i = 0; i < other_count; i++) others[i] = malloc(size);
    announce(block);
    free(block);
    for (int i = 0; i < other_count; i++) free(others[i]);
    free(block);
    for (int i = 0; i < reused_count; i++) malloc(size);
}

static void free_inside(char *block, size_t offset)
{
    announce(block + offset);
    free(block + offset);
}

static void free_sized_of(char *block, size_t size, int times)
{
    announce(block);
    for (int i = 0; i < times; i++) release_sized(block, size);
}

static void *free_once_there(void *block)
{
    free(block);
    return NULL;
}

static void *free_twice_there(void *block)
{
    free(block);
    free(block);
    return NULL;
}

static void in_thread(void *(*work)(void *), char *block)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, block);
    pthread_join(thread, NULL);
}

/* clang-format off */

/* A tiny block is freed twice in a row. */
misuse(double_free_now) { free_twice(malloc(48)); }
/* A mid block is freed twice in a row. */
misuse(double_free_mid) { free_twice(malloc(8192)); }
/* An aligned block is freed twice in a row. */
misuse(double_free_aligned) { free_twice(memalign(4096, 4096)); }
/* A large block is freed twice in a row. */
misuse(double_free_large) { free_twice(malloc(262144)); }
/* A huge block is freed twice in a row. */
misuse(double_free_huge) { free_twice(malloc(8 << 20)); }
/* A block of no bytes is freed twice. */
misuse(double_free_empty) { free_twice(malloc(0)); }
/* A block is freed again after two other frees. */
misuse(double_free_later) { free_around(48, 2, 0); }
/* A block is freed again after 300 other frees of its size. */
misuse(double_free_after_many) { free_around(64, 300, 0); }
/* A block is freed, then another, then the first again; all of it is in use again at the end. */
misuse(double_free_reused) { free_around(48, 1, 3); }
/* A block is freed, then two others, then the first again; all of it is in use again at the end. */
misuse(double_free_reused_later) { free_around(48, 2, 4); }
/* A block is freed again after two others; the program ends without taking the caches apart. */
misuse(double_free_until_exit) { free_around(48, 2, 0); end_at_once(); }
/* A block is freed twice in a row by free_sized. */
misuse(free_sized_twice) { free_sized_of(malloc(48), 48, 2); }
/* free_sized with a size of another class. */
misuse(free_sized_wrong) { free_sized_of(malloc(48), 5000, 1); }
/* free_sized names fewer bytes than were asked for, of the same size class. */
misuse(free_sized_less) { free_sized_of(malloc(1000), 990, 1); }
/* A local variable is freed by free_sized. */
misuse(free_sized_stack) { free_sized_of((char[64]){0}, 64, 1); }
/* A pointer into the middle of a tiny block is freed. */
misuse(interior_tiny) { free_inside(malloc(1024), 512); }
/* A pointer into the middle of a tiny block is freed; the program then simply ends. */
misuse(interior_until_exit) { free_inside(malloc(1024), 512); end_at_once(); }
/* A pointer into the middle of a mid block is freed. */
misuse(interior_mid) { free_inside(malloc(32768), 16384); }
/* A pointer one byte into a tiny block is freed. */
misuse(misaligned_tiny) { free_inside(malloc(64), 1); }
/* An array of objects is freed past the 8 bytes that hold its length. */
misuse(misaligned_by_cookie) { free_inside(malloc(200), 8); }
/* A pointer behind a block of no bytes is freed. */
misuse(interior_empty) { free_inside(malloc(0), 1); }
/* A pointer into the second page of a large block is freed. */
misuse(interior_large) { free_inside(malloc(262144), 4096); }
/* A pointer far into a large block is freed. */
misuse(interior_large_far) { free_inside(malloc(1 << 20), 1 << 19); }
/* A pointer eight bytes into a large block is freed. */
misuse(misaligned_large) { free_inside(malloc(131072), 8); }
/* A pointer into the middle of a huge block is freed. */
misuse(interior_huge) { free_inside(malloc(8 << 20), 4 << 20); }
/* The freed tail of a large block that was shrunk is freed as if it were a block. */
misuse(half_overlapping_large) { free_inside(realloc(malloc(1 << 20), 1 << 18), 1 << 19); }

/* clang-format on */

/* The first thing that a thread frees is another's block, and it frees it twice in a row. */
misuse(double_free_first)
{
    in_thread(free_twice_there, announce(malloc(48)));
}

/* Another thread has freed the block already. */
misuse(double_free_other_thread)
{
    char *block = announce(malloc(48));
    in_thread(free_once_there, block);
    free(block);
}

/* Two threads, one after the other, free a block of a third. */
misuse(double_free_two_threads)
{
    char *block = announce(malloc(1024));
    in_thread(free_once_there, block);
    in_thread(free_once_there, block);
}

/* Twice in a row, into a bin that was taken apart before. */
misuse(double_free_of_idle)
{
    char *volatile block = malloc(100);
    malloc_trim(0);
    free_twice(block);
}

/* realloc to zero has freed the block already. */
misuse(double_free_by_realloc)
{
    char *block = announce(malloc(48));
    realloc(block, 0);
    free(block);
}

/* realloc has moved the block away; its old address is freed. */
misuse(double_free_moved)
{
    char *block = announce(malloc(64));
    char *moved = realloc(block, 100000);
    if (moved == block) exit(2);
    free(block);
}

/* A block is freed again after its memory was given back. */
misuse(double_free_after_trim)
{
    char *others[300];
    char *block = malloc(4096);
    for (int i = 0; i < 300; i++) others[i] = malloc(4096);
    announce(block);
    for (int i = 0; i < 300; i++) free(others[i]);
    free(block);
    malloc_trim(0);
    free(block);
}

/* Pointers to each 16 bytes of a block are freed, of blocks of many sizes; each in a child. */
misuse(interior_small)
{
    char *block = malloc(208);
    announce(block + 16);
    for (size_t size = 32; size <= 4096; size += 8) {
        char *inside = malloc(size);
        for (size_t offset = 16; offset < 64 && offset < size; offset += 16) {
            pid_t child = fork();
            if (child == 0) {
                close(2);
                free(inside + offset);
                malloc_trim(0);
                _exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) return;
        }
    }
    free(block + 16);
}
