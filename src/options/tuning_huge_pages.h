/* The rows of the tuning table (options/tuning.h) that are about huge pages. */
#ifndef HAKMEM_OPTIONS_TUNING_HUGE_PAGES_H
#define HAKMEM_OPTIONS_TUNING_HUGE_PAGES_H

#include "base/types.h"
#include "options/tuning_range.h"

/* ---- huge pages ---- */

/* Eighths of a chunk that hold memory where a program fills what it allocates.
 * Origin: guess; what it left out costs less than hundreds of page faults. */
#define DENSE_EIGHTHS 7
TUNING_RANGE(DENSE_EIGHTHS, 1, 8);

/* Per cent of the cost of as many small pages that a huge page may take to be touched first.
 * Origin: guess; it saves misses of the address cache, which no clock of ours sees. */
#define HUGE_PAGE_WORTH 125
TUNING_RANGE(HUGE_PAGE_WORTH, 10, 1000);

/* Times the cost of as many small pages that one huge page counts at most.
 * Origin: guess; two slow ones of a few decide, one does not. */
#define HUGE_PAGE_WORST 4
TUNING_RANGE(HUGE_PAGE_WORST, 2, 64);

/* A first touch weighs 1 / 2^this in the mean.
 * Origin: guess; a heap of 40 MiB has had some. */
#define HUGE_PAGE_FADING 2
TUNING_RANGE(HUGE_PAGE_FADING, 1, 6);

/* Chunks of small pages before a huge page is tried, again or in doubt; twice as many after each
 * that fails.
 * Origin: guess; a trial that fails costs as much as some chunks of small pages. */
#define HUGE_PAGE_REST 8
TUNING_RANGE(HUGE_PAGE_REST, 1, 1024);

/* What that grows to.
 * Origin: guess; such a trial costs a hundredth. */
#define HUGE_PAGE_MOST_REST 128
TUNING_RANGE(HUGE_PAGE_MOST_REST, HUGE_PAGE_REST, 65536);

/* Chunks that are told to have no huge page because they have lost pages, at most.
 * Origin: with two more mappings for each it is a quarter of vm.max_map_count (65530). */
#define SPARSE_CHUNKS_MOST 8192
TUNING_RANGE(SPARSE_CHUNKS_MOST, 0, 16384);

#endif
