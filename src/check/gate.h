/* The gate: from a pointer that the program hands in to the block that begins there, or to what is
 * wrong with it. Every entry point that takes a pointer asks here once its short way has failed:
 * free, realloc, malloc_usable_size, sized delete. Any value may be asked about; nothing changes.
 */
#ifndef HAKMEM_CHECK_GATE_H
#define HAKMEM_CHECK_GATE_H

#include "base/types.h"
#include "heap/span.h"

typedef enum verdict {
    VERDICT_SMALL,       /* a block of a slab, in use as far as is known */
    VERDICT_LARGE,       /* a large block in use */
    VERDICT_HUGE,        /* a huge block in use */
    VERDICT_EMPTY,       /* a block of no bytes in use (check/zero_blocks.h) */
    VERDICT_FREED,       /* a block that was freed already, or never handed out */
    VERDICT_INSIDE,      /* inside a block, not its beginning */
    VERDICT_FREE_MEMORY, /* memory of the heap that is in no block */
    VERDICT_FOREIGN      /* no address of this heap */
} verdict_t;

typedef struct gate {
    verdict_t verdict;
    unsigned class; /* of the slab that the pointer lies in, else 0 */
    size_t size;    /* bytes of the block, where there is one */
    span_t *span;   /* LARGE; SMALL: its slab */
} gate_t;

/* Where frees are checked the answer is exact. Else a small block counts as in use until it is back
 * in its slab. Takes the lock of the huge blocks for pointers outside the window. */
gate_t gate_look(const void *ptr);

/* Ends the program with the line that the verdict, which names no block in use, asks for. `verb`:
 * what the program called. */
_Noreturn void gate_refuse(const gate_t *gate, const void *ptr, const char *verb);

#endif
