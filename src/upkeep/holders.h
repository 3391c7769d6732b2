/* Holders of free memory: a row for each place where it lies. Upkeep (upkeep.h) alone decides
 * how much of it goes, and does so by these rows.
 *
 * Memory is free and dirty where it may still hold pages. Counts are guesses while other threads
 * run. The caller of what gives back holds no lock: the program may have put hooks into madvise. */
#ifndef HAKMEM_UPKEEP_HOLDERS_H
#define HAKMEM_UPKEEP_HOLDERS_H

#include "base/types.h"

typedef struct holder {
    /* What is free and dirty there, nearly: units, or more by the shift. */
    const size_t *held;
    unsigned held_shift;
    /* They count as used in the page heap: it has handed their spans out. */
    bool is_handed_out;
    /* They lie beside blocks in use, on the same pages maybe: other holders give first. */
    bool is_inside;
    /* Finds out what nobody has needed for as long as free memory waits. The callers come one at a
     * time. NULL: nothing is ever due. */
    void (*look)(uint64_t now_ms);
    /* Something is due where this is not 0. */
    const size_t *due;
    /* Gives back some `most` units of what is due. Returns units. NULL: nothing is ever due. */
    size_t (*give_due)(size_t most, uint64_t now_ms);
    /* Gives back some `most` units, wanted or not. Returns units, or 1 where free memory has only
     * changed its holder. NULL: another holder's row does it. */
    size_t (*give)(size_t most, uint64_t now_ms);
} holder_t;

enum { HOLDER_COUNT = 6 };

/* In the order in which they give. */
extern HIDDEN const holder_t holders[HOLDER_COUNT];

/* Units, nearly. */
typedef struct holdings {
    size_t used;   /* in blocks of the program */
    size_t pages;  /* free and dirty, in whole pages */
    size_t inside; /* free and dirty beside blocks in use */
    size_t free;   /* of both, without what was found to be stuck beside blocks in use (upkeep.c) */
} holdings_t;

holdings_t holders_count(void);

/* Is something due anywhere? */
bool holders_are_due(void);

/* Gives back some `most` units of what is due. Returns units. */
size_t holders_give_due(size_t most, uint64_t now_ms);

/* Gives back some `most` units, wanted or not: of those who hold whole pages, or of those who hold
 * what lies beside blocks in use. Returns units; 0: nothing has moved. */
size_t holders_give(bool is_inside, size_t most, uint64_t now_ms);

#endif
