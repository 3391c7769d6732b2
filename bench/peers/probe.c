/*
 * probe: the small program that proves a peer. It runs under LD_PRELOAD, uses every common entry of
 * the malloc family from two threads, and prints the path of the object that owns `malloc`.
 * It asks whether the peer works, not whether it is correct: bench_aligned checks alignments.
 * Run by build.py only.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_COUNT = 10000, LARGEST_BLOCK = 200000 };

static void *blocks[BLOCK_COUNT];

static void *exercise(void *argument)
{
    for (size_t index = 0; index < BLOCK_COUNT; index++) {
        free(blocks[index]);
        size_t size = (index * 7919) % LARGEST_BLOCK + 1;
        unsigned char *block = index % 2 == 0 ? malloc(size) : calloc(1, size);
        if (block == NULL || malloc_usable_size(block) < size) return NULL;
        memset(block, 0x5a, size);
        block = realloc(block, size * 2);
        if (block == NULL || block[size - 1] != 0x5a) return NULL;
        free(block);
        if (posix_memalign(&blocks[index], 256, size % 4096 + 1) != 0) return NULL;
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    void *result = NULL;
    if (exercise(blocks) == NULL) return 1;
    if (pthread_create(&thread, NULL, exercise, blocks) != 0) return 1;
    if (pthread_join(thread, &result) != 0 || result == NULL) return 1;
    Dl_info owner;
    void *symbol = dlsym(RTLD_DEFAULT, "malloc");
    if (symbol == NULL || dladdr(symbol, &owner) == 0) return 1;
    printf("%s\n", owner.dli_fname);
    return 0;
}
