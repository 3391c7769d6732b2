/* Pointers that may not be freed, and blocks that are freed twice or with a wrong size. */
#include "misuse.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A tiny block is freed twice in a row. */
misuse(double_free_now)
{
    char *block = malloc(48);
    announce(block);
    free(block);
    free(block);
}

static void *free_twice(void *block)
{
    free(block);
    free(block);
    return NULL;
}

/* The first thing that a thread frees is another's block, and it frees it twice in a row. */
misuse(double_free_first)
{
    void *volatile block = malloc(48);
    pthread_t thread;
    announce(block);
    pthread_create(&thread, NULL, free_twice, block);
    pthread_join(thread, NULL);
}

/* Twice in a row, into a bin that was taken apart before. */
misuse(double_free_of_idle)
{
    char *volatile block = malloc(100);
    malloc_trim(0);
    announce(block);
    free(block);
    free(block);
}

/* A mid block is freed twice in a row. */
misuse(double_free_mid)
{
    char *block = malloc(8192);
    announce(block);
    free(block);
    free(block);
}

/* An aligned block is freed twice in a row. */
misuse(double_free_aligned)
{
    char *block = memalign(4096, 4096);
    announce(block);
    free(block);
    free(block);
}

/* realloc to zero has freed the block already. */
misuse(double_free_by_realloc)
{
    char *block = malloc(48);
    announce(block);
    realloc(block, 0);
    free(block);
}

/* A large block is freed twice in a row. */
misuse(double_free_large)
{
    char *block = malloc(262144);
    announce(block);
    free(block);
    free(block);
}

/* A huge block is freed twice in a row. */
misuse(double_free_huge)
{
    char *block = malloc(8 << 20);
    announce(block);
    free(block);
    free(block);
}

/* A block is freed again after two other frees. */
misuse(double_free_later)
{
    char *block = malloc(48);
    char *other = malloc(48);
    char *third = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(third);
    free(block);
}

/* A block is freed again after 300 other frees of its size. */
misuse(double_free_after_many)
{
    char *others[300];
    char *block = malloc(64);
    for (int i = 0; i < 300; i++) others[i] = malloc(64);
    announce(block);
    free(block);
    for (int i = 0; i < 300; i++) free(others[i]);
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

static void *free_there(void *block)
{
    free(block);
    return NULL;
}

/* Another thread has freed the block already. */
misuse(double_free_other_thread)
{
    char *block = malloc(48);
    pthread_t thread;
    announce(block);
    pthread_create(&thread, NULL, free_there, block);
    pthread_join(thread, NULL);
    free(block);
}

/* Two threads, one after the other, free a block of a third. */
misuse(double_free_two_threads)
{
    char *block = malloc(1024);
    announce(block);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, free_there, block);
        pthread_join(thread, NULL);
    }
}

/* realloc has moved the block away; its old address is freed. */
misuse(double_free_moved)
{
    char *block = malloc(64);
    announce(block);
    char *moved = realloc(block, 100000);
    if (moved == block) exit(2);
    free(block);
}

/* A block is freed, then another, then the first again; all of it is in use again at the end. */
misuse(double_free_reused)
{
    char *block = malloc(48);
    char *other = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(block);
    malloc(48);
    malloc(48);
    malloc(48);
}

/* A block is freed, then two others, then the first again; all of it is in use again at the end. */
misuse(double_free_reused_later)
{
    char *block = malloc(48);
    char *other = malloc(48);
    char *third = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(third);
    free(block);
    malloc(48);
    malloc(48);
    malloc(48);
    malloc(48);
}

/* A block is freed again after two others; the program ends without taking the caches apart. */
misuse(double_free_until_exit)
{
    char *block = malloc(48);
    char *other = malloc(48);
    char *third = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(third);
    free(block);
    say("survived\n");
    exit(0);
}

/* A block of no bytes is freed twice. */
misuse(double_free_empty)
{
    char *block = malloc(0);
    announce(block);
    free(block);
    free(block);
}

/* A block is freed twice in a row by free_sized. */
misuse(free_sized_twice)
{
    char *block = malloc(48);
    announce(block);
    release_sized(block, 48);
    release_sized(block, 48);
}

/* A pointer into the middle of a tiny block is freed. */
misuse(interior_tiny)
{
    char *block = malloc(1024);
    announce(block + 512);
    free(block + 512);
}

/* A pointer into the middle of a mid block is freed. */
misuse(interior_mid)
{
    char *block = malloc(32768);
    announce(block + 16384);
    free(block + 16384);
}

/* A pointer one byte into a tiny block is freed. */
misuse(misaligned_tiny)
{
    char *block = malloc(64);
    announce(block + 1);
    free(block + 1);
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

/* A pointer into the middle of a tiny block is freed; the program then simply ends. */
misuse(interior_until_exit)
{
    char *block = malloc(1024);
    announce(block + 512);
    free(block + 512);
    say("survived\n");
    exit(0);
}

/* An array of objects is freed past the 8 bytes that hold its length. */
misuse(misaligned_by_cookie)
{
    char *block = malloc(200);
    announce(block + 8);
    free(block + 8);
}

/* A pointer behind a block of no bytes is freed. */
misuse(interior_empty)
{
    char *block = malloc(0);
    announce(block + 1);
    free(block + 1);
}

/* A pointer into the second page of a large block is freed. */
misuse(interior_large)
{
    char *block = malloc(262144);
    announce(block + 4096);
    free(block + 4096);
}

/* A pointer far into a large block is freed. */
misuse(interior_large_far)
{
    char *block = malloc((1 << 20));
    announce(block + (1 << 19));
    free(block + (1 << 19));
}

/* A pointer eight bytes into a large block is freed. */
misuse(misaligned_large)
{
    char *block = malloc(131072);
    announce(block + 8);
    free(block + 8);
}

/* A pointer into the middle of a huge block is freed. */
misuse(interior_huge)
{
    char *block = malloc(8 << 20);
    announce(block + (4 << 20));
    free(block + (4 << 20));
}

/* The freed tail of a large block that was shrunk is freed as if it were a block. */
misuse(half_overlapping_large)
{
    char *block = malloc((1 << 20));
    block = realloc(block, 1 << 18);
    announce(block + (1 << 19));
    free(block + (1 << 19));
}

/* A local variable is freed by free_sized. */
misuse(free_sized_stack)
{
    char local[64];
    announce(local);
    release_sized(local, 64);
}

/* free_sized with a size of another class. */
misuse(free_sized_wrong)
{
    char *block = malloc(48);
    announce(block);
    release_sized(block, 5000);
}

/* free_sized names fewer bytes than were asked for, of the same size class. */
misuse(free_sized_less)
{
    char *block = malloc(1000);
    announce(block);
    release_sized(block, 990);
}
