/* What all programs here share. Each names its pointer first, then misuses it; what was not
   caught by then is caught when malloc_trim takes the caches apart. Nothing here allocates. */
#ifndef HAKMEM_TESTS_MISUSE_H
#define HAKMEM_TESTS_MISUSE_H

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void free_sized(void *ptr, size_t size) __attribute__((weak));

/* free_sized where there is one: glibc 2.36 has none. */
static inline void release_sized(void *ptr, size_t size)
{
    if (free_sized)
        free_sized(ptr, size);
    else
        free(ptr);
}

#ifdef WARM
/* The program as it is after a while: every bin has blocks and room. */
__attribute__((constructor)) static void warm_up(void)
{
    static void *blocks[24];
    for (size_t size = 16; size <= 32768; size += size < 512 ? 16 : size / 16) {
        for (int i = 0; i < 24; i++) blocks[i] = malloc(size);
        for (int i = 0; i < 24; i += 2) free(blocks[i]);
        for (int i = 1; i < 24; i += 2) free(blocks[i]);
        for (int i = 0; i < 12; i++) blocks[i] = malloc(size);
    }
}
#endif

/* dprintf takes its buffer from malloc, and what it wrote there would stand in the next block. */
static inline void say(const char *text)
{
    (void)!write(1, text, strlen(text));
}

/* The pointer about to be misused. */
static inline void *announce(void *ptr)
{
    char line[40];
    (void)snprintf(line, sizeof line, "misuse 0x%lx\n", (unsigned long)(uintptr_t)ptr);
    say(line);
    return ptr;
}

/* Reached only if the misuse was not stopped at once; the end of every main. */
static inline int survived(void)
{
    say("survived\n");
    malloc_trim(0);
    return 0;
}

#endif
