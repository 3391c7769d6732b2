/* Size classes that fit what the program asks for, made while it runs.
 *
 * A fixed class serves up to an eighth more bytes than were asked for. Where a program has many
 * blocks of one size, a class of just that size saves the difference. What it would have saved is
 * counted before it is made; no choice is tried on the program:
 *
 *   observed   requests for which blocks were taken from slabs, by their size (class_fit_note)
 *   proposed   once the blocks in use waste as much as a slab of their own costs
 *   canary     the class serves; it gets the share of requests that was predicted, or is withdrawn
 *   frozen     it did; withdrawn only once next to nothing is asked for in it
 *   withdrawn  its requests go where they went before; its blocks live on
 *
 * (Scoring all choices from one record of demand: Mattson et al., 1970, for caches.) */
#ifndef HAKMEM_SLAB_CLASS_FIT_H
#define HAKMEM_SLAB_CLASS_FIT_H

#include "base/types.h"
#include "slab/size_class.h"

typedef enum fit_state { FIT_CANARY, FIT_FROZEN, FIT_WITHDRAWN } fit_state_t;

/* A fitted class, and why it was made. */
typedef struct fit {
    uint32_t size;
    uint32_t fixed_size; /* of the class that served it before */
    fit_state_t state;
    uint32_t share;           /* of the blocks of both classes that it was to get, by 1024 */
    uint32_t counted;         /* that it got, when that was last counted */
    uint64_t predicted_bytes; /* that it would have saved of what was in use */
} fit_t;

/* For `size` bytes, `count` blocks of `class` were taken from slabs: this much more is in use. Any
 * thread; no lock of a central list is held. */
void class_fit_note(size_t size, unsigned class, unsigned count);

/* Copies the fitted classes, in the order in which they were made; returns how many there are. */
unsigned class_fit_list(fit_t fits[FITTED_CLASSES_MOST]);

/* Closes the hit path for the requests of a fixed class, for good. No class is fitted to them any
 * more: the fixed one serves them all. Any thread. */
void class_fit_close(unsigned fixed);

/* ---- the arithmetic, for tests ---- */

/* The counted requests for the sizes of one fixed class. */
typedef struct fit_demand {
    size_t first;           /* granule */
    size_t length;          /* granules */
    const uint32_t *counts; /* blocks, by granule from the first on */
    const uint8_t *numbers; /* classes that serve them; those of others than `fixed` are left out */
    unsigned fixed;
} fit_demand_t;

typedef struct fit_proposal {
    size_t size;    /* 0: nothing is saved */
    uint64_t saved; /* bytes, of `total` blocks */
    uint64_t share; /* of `total` blocks, those that would have the new class */
    uint64_t total;
} fit_proposal_t;

/* The one size that would save most. */
fit_proposal_t fit_propose(const fit_demand_t *demand);

#endif
