/* A wrong use of the heap, in a process of its own: the first argument of the program names it.

     misuse(static_data) { announce(data); free(data); }

   Each names its pointer first, then misuses it; what was not caught by then is caught when
   malloc_trim takes the caches apart. Nothing else here allocates. docs/hardening.md quotes the
   comment right above each. */
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

#define misuse(name)                                                                               \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        misuse_add(#name, name);                                                                   \
    }                                                                                              \
    static void name(void)

void misuse_add(const char *name, void (*run)(void));

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

/* Without taking the caches apart. */
static inline void end_at_once(void)
{
    say("survived\n");
    exit(0);
}

#endif
