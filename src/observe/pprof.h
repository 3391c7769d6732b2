/* The samples as a profile in the format of pprof (profile.proto), which pprof, speedscope,
 * Pyroscope and Parca read.
 *
 * Six values for each call stack, blocks and bytes each: allocated, in use, freed by another
 * thread than had allocated them; behind them the lifetimes of freed blocks, added up, and the
 * bytes of blocks that are not freed, whether realloc has moved them or not. Code is named by
 * mapping and build ID; the reader of the profile finds the names of functions. */
#ifndef HAKMEM_OBSERVE_PPROF_H
#define HAKMEM_OBSERVE_PPROF_H

#include "base/types.h"

/* Takes the next bytes of the profile. False: no more is wanted. */
typedef bool (*pprof_sink_t)(const void *bytes, size_t length, void *context);

typedef struct pprof_facts {
    uint64_t written_ns;  /* since 1970 */
    uint64_t duration_ns; /* that was profiled */
    uint64_t mean;        /* bytes between samples */
    uint64_t left_out;    /* samples without room */
    bool goes_on;         /* the program had not ended yet */
} pprof_facts_t;

typedef enum pprof_result { PPROF_DONE, PPROF_NO_MEMORY, PPROF_REFUSED } pprof_result_t;

/* Maps what writing takes, so that a profile can be written when memory has run out. */
void pprof_prepare(void);

/* Writes all samples. Holds their lock while the sink is called, and allocates nothing. */
pprof_result_t pprof_write(const pprof_facts_t *facts, pprof_sink_t sink, void *context);

#endif
