/* What the test programs share: names that older C libraries do not declare, and two blindfolds.

   The compiler knows malloc: it folds `p % 16 == 0` to true, removes pairs of malloc and free and
   turns malloc + memset into calloc. A pointer or a size that went through hidden() is unknown to
   it, so each test sees what the allocator did and not what the compiler believes. */
#ifndef HAKMEM_TESTS_HEAP_H
#define HAKMEM_TESTS_HEAP_H

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Weak: absent under a C library older than C23, present under HAKMEM. */
void free_sized(void *ptr, size_t size) __attribute__((weak));
void free_aligned_sized(void *ptr, size_t alignment, size_t size) __attribute__((weak));
void cfree(void *ptr) __attribute__((weak));
void *__libc_malloc(size_t size) __attribute__((weak));
void *__libc_calloc(size_t count, size_t size) __attribute__((weak));
void *__libc_realloc(void *ptr, size_t size) __attribute__((weak));
void *__libc_memalign(size_t alignment, size_t size) __attribute__((weak));
void *__libc_valloc(size_t size) __attribute__((weak));
void *__libc_pvalloc(size_t size) __attribute__((weak));
void __libc_free(void *ptr) __attribute__((weak));
const char *hakmem_version(void) __attribute__((weak));

#if defined(__linux__) && !defined(__GLIBC__) /* musl has not got them, HAKMEM has */
void *pvalloc(size_t size) __attribute__((weak));
int malloc_trim(size_t pad) __attribute__((weak));
#endif

#ifdef __cplusplus
}
#endif

/* Whether HAKMEM serves this process; the same programs also run on the system's allocator. What
   CMake builds is linked with HAKMEM or preloads it: there its absence is a failure. */
static inline bool heap_is_hakmem(void)
{
#ifdef HEAP_MUST_BE_HAKMEM
    if (hakmem_version == NULL) abort();
#endif
    return hakmem_version != NULL;
}

/* Bytes in use, as mallinfo2 counts them; SIZE_MAX where the C library has no mallinfo2. */
static inline size_t heap_used(void)
{
#ifdef __GLIBC__
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return SIZE_MAX;
#endif
}

static inline void *hidden(void *ptr)
{
    __asm__ volatile("" : "+r"(ptr) : : "memory");
    return ptr;
}

static inline size_t hidden_size(size_t size)
{
    __asm__ volatile("" : "+r"(size));
    return size;
}

static inline bool heap_is_aligned(const void *ptr, size_t alignment)
{
    return ((uintptr_t)ptr & (alignment - 1)) == 0;
}

/* Byte i of a block filled with `seed`; differs between neighbours and between seeds. */
static inline unsigned char heap_pattern(size_t i, unsigned seed)
{
    return (unsigned char)((i * 131u + (i >> 8) + seed * 29u) & 0xff);
}

static inline void heap_fill(void *ptr, size_t size, unsigned seed)
{
    unsigned char *bytes = (unsigned char *)ptr;
    for (size_t i = 0; i < size; i++) bytes[i] = heap_pattern(i, seed);
}

static inline bool heap_holds(const void *ptr, size_t size, unsigned seed)
{
    const unsigned char *bytes = (const unsigned char *)ptr;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != heap_pattern(i, seed)) return false;
    }
    return true;
}

static inline bool heap_is_zero(const void *ptr, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)ptr;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0) return false;
    }
    return true;
}

#endif
