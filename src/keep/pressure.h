/* Pressure: how near the process is to a limit of memory, and what that means for memory that is
 * free. Upkeep looks; the parts that keep free memory ask here how much and how long.
 *
 *   limits of the control group and those around it ─┐
 *   RLIMIT_AS, RLIMIT_DATA ──────────────────────────┼─▶ headroom ─▶ how much may be kept,
 *   HAKMEM_LIMIT_MB ─────────────────────────────────┤               how long it may wait,
 *   waits for memory (PSI) ──────────────────────────┘               when to look again
 *
 * Files are read within calls of the program only, never by a thread of ours: a program that closes
 * a file and opens another gets the number that it expects. */
#ifndef HAKMEM_KEEP_PRESSURE_H
#define HAKMEM_KEEP_PRESSURE_H

#include "base/bits.h"
#include "base/count.h"
#include "base/types.h"
#include "os/threads.h"

/* What parts that keep free memory read inline. */
typedef struct pressure_figures {
    size_t kept_units;    /* most that free memory of a kind may hold; pressure_look alone writes */
    uint64_t look_at;     /* fresh units from which on a look is due; pressure_look alone writes */
    /* Units handed out without memory behind them, since the start. Any thread adds and reads, with
     * counter_add and counter_read; so they have a line of their own. */
    uint64_t fresh_units __attribute__((aligned(CACHE_LINE)));
} pressure_figures_t;

extern HIDDEN pressure_figures_t pressure_figures;

/* Notes that units without memory behind them are handed out, which may be touched now. */
static inline void pressure_note_fresh(size_t unit_count)
{
    counter_add(&pressure_figures.fresh_units, unit_count);
}

/* Has so much fresh memory been handed out that little room may be left below a limit? */
static inline bool pressure_wants_look(void)
{
    return UNLIKELY(counter_read(&pressure_figures.fresh_units) >=
                    counter_read(&pressure_figures.look_at));
}

/* The most of `units` that may be kept: all of them where the limits leave room. */
static inline size_t pressure_cap(size_t units)
{
    return smaller_of(units, count_read(&pressure_figures.kept_units));
}

/* Milliseconds that free memory may wait where the options say `delay_ms`. */
uint64_t pressure_wait_ms(uint64_t delay_ms);

/* Is a limit near, or memory scarce? */
bool pressure_is_near(void);

/* Is a limit all but reached, so that nothing is to be kept? */
bool pressure_is_full(void);

/* Does a limit of the process count what is mapped (RLIMIT_AS, RLIMIT_DATA), as far as is known?
 * Any thread. */
bool pressure_counts_addresses(void);

/* Address space in bytes to be given up so that the program can map; 0: there is enough, or the
 * last look did not check it. */
size_t pressure_missing_addresses(void);

/* Looks at the limits whose time has come. `mapped_bytes`: of the heap and of huge blocks;
 * `held_bytes`: blocks in use, touched or not, and free memory that holds pages. The caller holds
 * the lock of upkeep. */
void pressure_look(size_t mapped_bytes, size_t held_bytes, uint64_t now_ms);

#endif
