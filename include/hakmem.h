/* HAKMEM: what it offers beyond malloc(3).
 *
 * A program needs none of this; preloading or linking the library is enough. All functions may be
 * called from any thread at any time except from a signal handler. */
#ifndef HAKMEM_H
#define HAKMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAKMEM_VERSION_MAJOR 0
#define HAKMEM_VERSION_MINOR 1
#define HAKMEM_VERSION_PATCH 0

/* Where the memory is, in bytes unless it says otherwise. A snapshot taken while other threads run
 * need not add up to the byte. */
typedef struct hakmem_statistics {
    size_t mapped;         /* address space taken from the kernel for the program's blocks */
    size_t used;           /* blocks that the program has, rounded up to their size classes */
    size_t cached;         /* free blocks in thread caches and depots */
    size_t free_in_slabs;  /* free blocks in slabs that also hold used ones */
    size_t free_pages;     /* free pages that still hold memory */
    size_t metadata;       /* our own structures */
    size_t huge_used;      /* part of `used` in blocks with a mapping of their own */
    size_t huge_cached;    /* such blocks that were freed and are kept for a while */
    uint64_t purged;       /* given back to the kernel so far */
    uint64_t system_calls; /* number of calls made to the kernel */
} hakmem_statistics_t;

/* "0.1.0", static. */
const char *hakmem_version(void);

/* Does `ptr` lie in a block of this allocator, or in a slab of small blocks, used or free? Any
 * value is allowed; outside the heap of smaller blocks the answer takes a lock. */
bool hakmem_owns(const void *ptr);

/* Gives all idle memory back to the kernel now: this thread's cache, the depots, free pages and
 * kept huge blocks. Returns the bytes given back. */
size_t hakmem_purge(void);

/* Says that the calling thread will be idle for a while: its cache goes to the other threads. */
void hakmem_idle(void);

/* Fills in *statistics. False: `statistics` is NULL. */
bool hakmem_get_statistics(hakmem_statistics_t *statistics);

/* The value in force of an option by its name in docs/options.md, as "purge_delay_ms". Returns 0,
 * or EINVAL when there is no such option or `value` is NULL. */
int hakmem_option_get(const char *name, int64_t *value);

#ifdef __cplusplus
}
#endif

#endif
