/* The span cache: large blocks freed a moment ago, whole and in their place, for the next request
 * of the same length. Neither split nor joined, their map entries untouched: taking one back is a
 * list operation, and the pages that a program touches of it (its two ends, say) are the ones that
 * are there. After a wait (keep.h), or when the cache holds too much, spans go on to the page heap.
 * Each thread has its shard of it, shared with every eighth; what one lacks is looked for in the
 * others. Any thread. */
#ifndef HAKMEM_HEAP_SPAN_CACHE_H
#define HAKMEM_HEAP_SPAN_CACHE_H

#include "base/types.h"
#include "os/lock.h"
#include "os/shared_total.h"
#include "options/tuning.h"
#include "heap/span.h"

/* Bytes of the longest span that it keeps. */
#define SPAN_CACHED_MAX ((size_t)SPAN_LENGTH_COUNT << UNIT_SHIFT)

void span_cache_create(void);

/* A LARGE span of `unit_count` units (1 to SPAN_LENGTH_COUNT), or above 64 KiB of up to a quarter
 * more, at a multiple of `alignment`, a power of two: the last one freed of the shortest length
 * there is; or NULL. Its contents are what they were. */
span_t *span_cache_take(size_t unit_count, size_t alignment);

/* Keeps a LARGE span that is free now; false: it is too long. */
bool span_cache_give(span_t *span, uint64_t now_ms);

/* Frees a LARGE span that its block has outgrown into the page heap: no request may ever have that
 * length again, and joined with its neighbours it is room to grow. */
void span_cache_bypass(span_t *span, uint64_t now_ms);

/* The same after its pages have gone back to the kernel: they are not worth keeping. The caller
 * holds no lock. */
void span_cache_bypass_purged(span_t *span, uint64_t now_ms);

/* Hands the spans freed before `before_ms` on to the page heap, where they count as freed then, or
 * now if that is earlier. */
void span_cache_trim(uint64_t before_ms, uint64_t now_ms);

/* Hands old spans on to the page heap, some `unit_count` units of them, for a request that
 * found none of its length: joined they may serve it, and no fresh memory is touched. Returns the
 * number of spans. */
size_t span_cache_evict(size_t unit_count, uint64_t now_ms);

/* Does so if no free span of the page heap that holds memory is so long; to be called before the
 * page heap is asked. How much is free in all does not decide: in pieces it serves nobody. */
void span_cache_evict_for(size_t unit_count);

extern HIDDEN shared_total_t span_cache_total;

/* What it holds; a guess while other threads run. */
size_t span_cache_units(void);
size_t span_cache_count(void);

/* The law: lists, bits and counts agree. Takes the locks. */
bool span_cache_is_valid(void);

void span_cache_at_fork(fork_phase_t phase);

#endif
