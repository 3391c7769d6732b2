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

/* Where the memory is, in bytes unless it says otherwise. While no other thread is at work, not the
 * library's own either, it adds up to the byte:
 *
 *   mapped   = used + slab_ends + cached + free_in_slabs + free_pages + clean_pages + huge_cached
 *   resident = mapped + metadata - clean_pages - purged_in_slabs
 *
 * While others run, each figure is a good guess, and they need not add up. What a program asked for
 * is not recorded: what its requests were rounded up by is part of `used`.
 *
 * What was given back stopped being resident at once. Nothing is given back lazily (MADV_FREE), so
 * no field says what the kernel may take. docs/memory.md explains what each part is kept for.
 *
 * `resident` counts each block as if the program had written all of it. The kernel counts less for
 * pages that the program has not touched yet, and for pages that a slab gave back before all of its
 * blocks were free. The kernel counts more where a huge page also covers clean pages. The library's
 * code and static data, and the bins of each thread in its TLS, are in none of the figures.
 *
 * The structure keeps its size: a later version gives a name to a word of `reserved`. */
typedef struct hakmem_statistics {
    size_t mapped;         /* address space taken from the kernel for the program's blocks */
    size_t used;           /* blocks that the program has, rounded up to their size classes */
    size_t cached;         /* free blocks up to 32 KiB in thread caches and depots */
    size_t free_in_slabs;  /* free blocks up to 32 KiB in their slabs */
    size_t free_pages;     /* free pages that may hold memory (dirty), kept large blocks too */
    size_t metadata;       /* memory that our own structures hold */
    size_t huge_used;      /* part of `used` in blocks with a mapping of their own */
    size_t huge_cached;    /* memory of such blocks that were freed and are kept for a while */
    uint64_t purged;       /* given back to the kernel so far, without huge blocks */
    uint64_t system_calls; /* number of calls made to the kernel */

    size_t clean_pages;     /* free addresses without memory: never touched, or purged */
    size_t slab_ends;       /* what slabs have behind their last block, too short for another */
    size_t cached_threads;  /* part of `cached`: in caches of threads, also of ended ones */
    size_t cached_depots;   /* the other part: on the way between threads */
    size_t cached_large;    /* part of `free_pages`: freed large blocks kept whole (span cache) */
    size_t purged_in_slabs; /* purged pages of slabs, part of `free_in_slabs` and `slab_ends` */
    size_t metadata_mapped; /* address space of our own structures, most of it only reserved */
    size_t resident;        /* our part of the process's resident memory, at most */
    uint64_t purge_calls;   /* calls that gave memory back and kept its addresses (madvise) */
    uint64_t purge_bytes;   /* what they gave back so far, pages that never held memory too */
    uint64_t purge_us;      /* microseconds that they took, in the threads that made them */
    size_t reserved[3];     /* 0 */
} hakmem_statistics_t;

/* "0.1.0", static. */
const char *hakmem_version(void);

/* Does `ptr` lie in a block of this allocator, or in a slab of small blocks, used or free? Any
 * value is allowed; outside the heap of smaller blocks the answer takes a lock. */
bool hakmem_owns(const void *ptr);

/* Gives all idle memory back to the kernel now: this thread's cache, the depots, free pages, pages
 * of slabs on which no block is in use (but for those of heaps of the program's own), and kept huge
 * blocks. Returns the bytes given back. */
size_t hakmem_purge(void);

/* Says that the calling thread will be idle for a while: its cache goes to the other threads. */
void hakmem_idle(void);

/* The mode debug: looks at every block of up to 32 KiB, and ends the program with the usual line if
 * it has written behind the end of one, or into one that it had freed. The same happens at exit.
 * Blocks of hakmem_heap_new are left out. Returns how many blocks it has looked at; 0: another mode
 * is in force. */
size_t hakmem_check(void);

/* Fills in *statistics. False: `statistics` is NULL. */
bool hakmem_get_statistics(hakmem_statistics_t *statistics);

/* The value in force of an option by its name in docs/options.md, as "purge_delay_ms". Returns 0,
 * or EINVAL when there is no such option or `value` is NULL. */
int hakmem_option_get(const char *name, int64_t *value);

/* ---- the heap profile (docs/profile.md) ---- */

/* Samples allocations from now on, of all threads: on average one for each `mean` bytes that are
 * allocated. 0 is what HAKMEM_PROFILE_MEAN_KB says; more than 2^30 counts as 2^30. Samples add up
 * over all starts.
 * Returns 0; ENOMEM; EBUSY, where HAKMEM_LEAK_REPORT=stacks has every block sampled to the end; or
 * ENOTSUP, where HAKMEM_LD_SAFE leaves all blocks to the C library. */
int hakmem_profile_start(size_t mean);

/* Samples no more. Frees of sampled blocks are still noted. */
void hakmem_profile_stop(void);

/* Writes what was sampled so far to the file at `path`, in the format of pprof, whether sampling is
 * on or not. Returns 0; EINVAL where no profile was ever started or `path` is NULL; ENOMEM; or what
 * went wrong with the file: the error of open, or EIO. Threads that free a sampled block wait
 * meanwhile. */
int hakmem_profile_write(const char *path);

/* ---- heaps of the program's own ---- */

/* A heap beside the one of malloc. None of its blocks stands in a slab with others', and all go at
 * once with it: for a request, a document, a plug-in. A heap takes some KiB, and a slab of 64 to
 * 128 KiB of addresses for each size class that it has blocks of. Any thread may use a heap at any
 * time; each call takes a lock. A block of it is freed, resized and asked for its size like any
 * other: free, realloc (which keeps it in its heap), malloc_usable_size. A wrong free of it is
 * found at once, in every mode. Its exact size is not recorded: free_sized and sized deletes are
 * checked against the length of the block. */
typedef struct hakmem_heap hakmem_heap_t;

/* NULL with errno ENOMEM: no memory, or 65,535 heaps. */
hakmem_heap_t *hakmem_heap_new(void);

/* As malloc, calloc and aligned_alloc, which also serve where `heap` is NULL. NULL with errno
 * ENOMEM, or with EINVAL where `alignment` is no power of two. */
void *hakmem_heap_malloc(hakmem_heap_t *heap, size_t size);
void *hakmem_heap_calloc(hakmem_heap_t *heap, size_t count, size_t size);
void *hakmem_heap_aligned_alloc(hakmem_heap_t *heap, size_t alignment, size_t size);

/* The heap of the block that begins at `ptr`. NULL: it is malloc's, or none in use begins there.
 * Any value is allowed; outside the heap of smaller blocks the answer takes a lock. */
hakmem_heap_t *hakmem_heap_of(const void *ptr);

/* What a heap has. */
typedef struct hakmem_heap_statistics {
    size_t used;       /* bytes of its blocks that the program has */
    size_t used_count; /* and their number */
    size_t mapped;     /* bytes of its slabs and large blocks, touched or not */
} hakmem_heap_statistics_t;

/* Counts; other threads may use the heap meanwhile. False: one of the two is NULL. */
bool hakmem_heap_get_statistics(const hakmem_heap_t *heap, hakmem_heap_statistics_t *statistics);

/* Frees all blocks of the heap, and the heap itself. No thread may use either afterwards: a heap
 * that was destroyed ends the program with one line when it is used, until another has its place.
 * NULL is allowed. */
void hakmem_heap_destroy(hakmem_heap_t *heap);

/* ---- groups ---- */

/* Groups have the numbers from 1 to this. */
#define HAKMEM_GROUPS 15

/* As malloc and aligned_alloc, but the block stands among blocks of its group alone. For blocks
 * that live much longer than others of their size: where one of them stays on a page, the page
 * stays. A policy may put blocks of call sites into the same groups (docs/learning.md). Blocks are
 * freed and resized like any other; realloc keeps them in their group. Blocks above 32 KiB have
 * pages of their own, and no group. All groups together have 32 size classes at least. What is
 * asked for beyond these stands among malloc's blocks, and so does another number's. NULL with
 * errno ENOMEM, or with EINVAL where `alignment` is no power of two. */
void *hakmem_malloc_group(unsigned group, size_t size);
void *hakmem_aligned_alloc_group(unsigned group, size_t alignment, size_t size);

/* Defines `name`, a malloc whose blocks stand in a group: HAKMEM_GROUP_MALLOC(entry_malloc, 2) */
#define HAKMEM_GROUP_MALLOC(name, group)                                                           \
    __attribute__((malloc, alloc_size(1), unused)) static inline void *name(size_t size)           \
    {                                                                                              \
        return hakmem_malloc_group(group, size);                                                   \
    }

/* ---- a policy in the program ---- */

/* Puts a policy into the file of the program, as a note, at file scope in one of its sources:
 *
 *   HAKMEM_POLICY_NOTE("option price lean\n"
 *                      "option free_policy adaptive\n")
 *
 * The text is that of docs/learning.md without its first line and without a line `program`: it is
 * for options, and for sites in shared libraries. The text is in force where HAKMEM_POLICY is not
 * set and the program is not setuid. One to a program, no semicolon behind it; notes of shared
 * libraries are not looked at. The library only reads it: no function is called, so the program
 * also runs on other allocators. */
#define HAKMEM_POLICY_NOTE(text)                                                                   \
    __attribute__((section(".note.hakmem"), used, aligned(4))) static const struct {               \
        uint32_t owner_size, text_size, type;                                                      \
        char owner[8], policy[sizeof "hakmem policy 1\n" text];                                    \
    } hakmem_policy_note = {7, sizeof "hakmem policy 1\n" text, 1, "hakmem",                       \
                            "hakmem policy 1\n" text};

#ifdef __cplusplus
}
#endif

#endif
