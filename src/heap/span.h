/* A span: a run of units, described out of line.
 *
 *                           page_heap_alloc_slab
 *   PURGING ◀─────▶ FREE ─────────────────────────▶ SLAB (cut into equal blocks)
 *   (dirty pages    ▲ │ ▲       page_heap_free          │
 *   of it are on    │ │ └───────────────────────────────┘
 *   their way to    │ │ page_heap_alloc
 *   the kernel)     │ └──────────────▶ LARGE (one block: the span)
 *                   │                  ▲   │ span_cache_give
 *                   │                  │   ▼
 *                   └──────────────── CACHED (freed, kept whole for a while)
 *
 * A LARGE span that is not worth caching becomes FREE at once, and so do units cut off its end.
 *
 * Free spans are joined with their free neighbours at once: two adjacent spans are never both free.
 * The page heap owns every field while the span is FREE or PURGING; afterwards its new owner. */
#ifndef HAKMEM_HEAP_SPAN_H
#define HAKMEM_HEAP_SPAN_H

#include "base/list.h"
#include "base/types.h"
#include "heap/page_map.h"

typedef enum span_state {
    SPAN_FREE,
    SPAN_PURGING,
    SPAN_CACHED,
    SPAN_LARGE,
    SPAN_SLAB
} span_state_t;

typedef struct span {
    list_node_t bin_node; /* FREE: among those of similar length; CACHED: of the same */
    list_node_t age_node; /* FREE and dirty: oldest last; LARGE: in its private heap */
    size_t first_unit;
    size_t unit_count;
    uint64_t freed_ms; /* CACHED, or FREE and dirty: since when the oldest part of it is free */
    uint8_t state;     /* span_state_t; read and written by the two functions below */
    uint8_t sample;    /* LARGE: a block that a profile has sampled; span_sample_t, or its class */
    uint16_t heap;     /* LARGE, SLAB: number of its heap (slab/private_heap.h) */
    union {
        uint32_t leaving; /* SLAB: a bit for each page that is on its way to the kernel */
        struct {
            uint16_t moves; /* LARGE: how often realloc has moved it since its growth began */
            bool is_zeroed; /* LARGE: its pages came from the kernel, as its owner wanted zeros */
        };
    };
    size_t dirty_count; /* FREE: units that may not read as zero */
    union {
        size_t
            clean_head; /* FREE: units from the first on of which it is known that none is dirty */
        size_t asked_units; /* LARGE and moved: units that were asked for last; the rest is room */
    };
} span_t;

/* What `sample` says. A sampled small block is a span, and its size class stands there. */
typedef enum span_sample { SAMPLE_NONE = 0, SAMPLE_LARGE = 255 } span_sample_t;

/* Room that every descriptor has, so that a span can become a slab without moving. */
#define SPAN_DESCRIPTOR_SIZE ((size_t)128)

/* Relaxed: who holds a span may change its state while the page heap looks at a neighbour, which
 * only wants to know whether it is FREE; that changes under the lock of the page heap. */
static inline span_state_t span_state(const span_t *span)
{
    return (span_state_t)__atomic_load_n(&span->state, __ATOMIC_RELAXED);
}

static inline void span_set_state(span_t *span, span_state_t state)
{
    __atomic_store_n(&span->state, (uint8_t)state, __ATOMIC_RELAXED);
}

static inline char *span_start(const span_t *span)
{
    return unit_address(span->first_unit);
}

static inline size_t span_size(const span_t *span)
{
    return span->unit_count << UNIT_SHIFT;
}

/* The span that the map names where `ptr` lies, whatever its state, or NULL; for any value. */
static inline span_t *span_at(const void *ptr)
{
    size_t unit = unit_of(ptr);
    /* acquire: pairs with the release in page_map_grow */
    if (UNLIKELY(unit >= __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE)))
        return NULL;
    return window_spans[unit];
}

/* The LARGE, SLAB or CACHED span that `ptr` lies in, or NULL; safe for any value whatever. */
static inline span_t *span_of(const void *ptr)
{
    span_t *span = span_at(ptr);
    span_state_t state = UNLIKELY(span == NULL) ? SPAN_FREE : span_state(span);
    return state == SPAN_FREE || state == SPAN_PURGING ? NULL : span;
}

#endif
