/* HAKMEM without taking the process's malloc: the same functions under names of their own, in
 * libhakmem_prefixed.a. For a library that wants HAKMEM for itself, whatever malloc the program
 * has. What these functions give is freed by hk_free, never by free, and the other way round.
 *
 * Each is what the function without the prefix is (malloc(3), C23); hakmem.h works too. They may be
 * called from any thread at any time except from a signal handler. */
#ifndef HAKMEM_PREFIXED_H
#define HAKMEM_PREFIXED_H

#include <stddef.h>
#include <stdio.h>

#include "hakmem.h"

#ifdef __cplusplus
extern "C" {
#endif

void *hk_malloc(size_t size);
void *hk_calloc(size_t count, size_t size);
void *hk_realloc(void *ptr, size_t size);
void *hk_reallocarray(void *ptr, size_t count, size_t size);
void *hk_aligned_alloc(size_t alignment, size_t size);
void *hk_memalign(size_t alignment, size_t size);
int hk_posix_memalign(void **result, size_t alignment, size_t size);
void *hk_valloc(size_t size);
void *hk_pvalloc(size_t size);
void hk_free(void *ptr);
void hk_free_sized(void *ptr, size_t size);
void hk_free_aligned_sized(void *ptr, size_t alignment, size_t size);
size_t hk_malloc_usable_size(void *ptr);
int hk_malloc_trim(size_t keep);
int hk_malloc_info(int options, FILE *stream);
void hk_malloc_stats(void);

#ifdef __cplusplus
}
#endif

#endif
