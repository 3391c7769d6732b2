/* Huge blocks: a mapping of their own each, so that they can be remapped and returned one by one.
 * A recently freed one is kept for a while (the big cache), until fresh memory is wanted: then as
 * much of it goes back. Where the kernel's table of mappings has no room for a hole, a freed one
 * gives back its memory and keeps its addresses, for a later request. One lock; any thread. */
#ifndef HAKMEM_LARGE_HUGE_H
#define HAKMEM_LARGE_HUGE_H

#include "base/types.h"
#include "os/lock.h"
#include "large/huge_kept.h"

typedef struct huge_statistics {
    size_t live_bytes;
    size_t live_count;
    size_t cached_bytes; /* that kept blocks hold */
    size_t mapped_bytes; /* of all blocks, with the addresses of kept ones */
} huge_statistics_t;

/* A block of at least `size` bytes (at most PTRDIFF_MAX) at a multiple of `alignment`. *is_zero
 * says whether it surely reads as zero. NULL: no memory. */
void *huge_alloc(size_t size, size_t alignment, bool *is_zero);

/* The same for a block whose owner wants zeros. */
void *huge_alloc_zeroed(size_t size, size_t alignment, bool *is_zero);

/* The same for a block that grows, at any alignment: where a kept block holds more, its start alone
 * is taken. NULL: no memory. */
void *huge_alloc_growing(size_t size);

/* Would the kernel map so many bytes now? The kernel is asked, and has them back at once. Where
 * there is no memory to describe them it would not. */
bool huge_could_map(size_t size);

/* A cached block of at least `size` bytes, however long; its contents are what they were. NULL:
 * there is none. For when the kernel refuses. */
void *huge_from_cache(size_t size, size_t alignment);

/* What `ptr` is to us, and the length of the block (*size) when it is LIVE or CACHED. */
huge_state_t huge_find(const void *ptr, size_t *size);

/* Takes back the LIVE block at `ptr`. False when there is none. */
bool huge_free(void *ptr, uint64_t now_ms);

/* Changes the length of the LIVE block, moving it if need be. NULL: refused, nothing changed. */
void *huge_resize(void *ptr, size_t new_size);

/* Bytes of addresses that cached blocks have. */
size_t huge_cached_size(void);

/* Gives back some `most_bytes` of what kept blocks hold that were freed before `before_ms`, the
 * oldest first, and their addresses where the kernel's table of mappings allows. Returns bytes of
 * memory. The caller of this and of the next two holds no lock: the program may have put hooks into
 * munmap and madvise. */
size_t huge_give_back(uint64_t before_ms, size_t most_bytes, uint64_t now_ms);

/* Gives back all of it, and the addresses of idle blocks as far as the kernel's table allows. */
size_t huge_release_cached(void);

/* Tries to give back addresses of some idle blocks: a hole may have come up to them meanwhile. */
void huge_release_some_idle(void);

/* Units that live blocks have; read without a lock. */
size_t huge_live_units(void);

huge_statistics_t huge_statistics(void);

void huge_create(void);
void huge_at_fork(fork_phase_t phase);

#endif
