/* The rows of the tuning table (policy/tuning.h) that are about learning within one run: what may
 * be tried, how costs are counted, and when a trial is decided. */
#ifndef HAKMEM_POLICY_TUNING_LEARN_H
#define HAKMEM_POLICY_TUNING_LEARN_H

#include "base/types.h"
#include "policy/tuning_range.h"

/* ---- learning within one run: what is tried ---- */

/* Doublings by which the room of bins may differ from what it is without learning, either way.
 * Origin: guess; a bin of 16 KiB has a lock for few blocks, one of 256 KiB fills a second-level
 * cache. */
#define LEARN_BINS_STEPS 2
TUNING_RANGE(LEARN_BINS_STEPS, 0, 4);

/* The same for the room of depots.
 * Origin: guess; 256 KiB to 4 MiB of blocks of a class. */
#define LEARN_DEPOTS_STEPS 2
TUNING_RANGE(LEARN_DEPOTS_STEPS, 0, 4);

/* Halvings of the time that free memory waits.
 * Origin: the wait of a slot of ten is the shortest that the budget knows. */
#define LEARN_WAIT_SHORTER 3
TUNING_RANGE(LEARN_WAIT_SHORTER, 0, 6);

/* Doublings of it; it never exceeds the purge delay.
 * Origin: guess; undoes one step of what the policy adaptive has shortened. */
#define LEARN_WAIT_LONGER 1
TUNING_RANGE(LEARN_WAIT_LONGER, 0, 3);

/* Strategies that are known at a time.
 * Origin: the default, the best, and the six that differ from it by one step of one value. */
#define LEARN_STRATEGIES 8
TUNING_RANGE(LEARN_STRATEGIES, 8, 64);

/* ---- learning within one run: what an epoch costs ---- */

/* An epoch lasts so many milliseconds at least, and the purge delay.
 * Origin: the period of upkeep. */
#define LEARN_EPOCH_MS 100
TUNING_RANGE(LEARN_EPOCH_MS, 10, 60000);

/* Misses in an epoch at least.
 * Origin: mimalloc looks after its heaps once in 1000 generic calls, jemalloc in 1000 ticks. */
#define LEARN_EPOCH_MISSES 1000
TUNING_RANGE(LEARN_EPOCH_MISSES, 1, 1000000);

/* An epoch that is not over after so many milliseconds says nothing and is forgotten.
 * Origin: guess; a program with so few misses gains nothing by fewer. */
#define LEARN_EPOCH_MOST_MS 10000
TUNING_RANGE(LEARN_EPOCH_MOST_MS, LEARN_EPOCH_MS, 3600000);

/* The longest that a purge delay makes an epoch, and the time before it that does not count.
 * Origin: guess; four usual delays. */
#define LEARN_SETTLE_MOST_MS 2000
TUNING_RANGE(LEARN_SETTLE_MOST_MS, LEARN_EPOCH_MS, LEARN_EPOCH_MOST_MS);

/* Nanoseconds of a miss.
 * Origin: guess; some hundred instructions, and a lock where a depot serves it. */
#define LEARN_MISS_NS 50
TUNING_RANGE(LEARN_MISS_NS, 1, 10000);

/* Nanoseconds more of a miss that slabs serve, beside what each block costs in any case.
 * Origin: guess; two locks, and bitmaps that are in no cache. */
#define LEARN_SLAB_NS 200
TUNING_RANGE(LEARN_SLAB_NS, 0, 100000);

/* ---- learning within one run: how a match is decided ---- */

/* Per cent by which costs must differ.
 * Origin: what the laboratory calls level. */
#define LEARN_MARGIN_PERCENT 3
TUNING_RANGE(LEARN_MARGIN_PERCENT, 0, 50);

/* Nanoseconds in a second by which they must differ, too.
 * Origin: a ten-thousandth of a processor; less is not worth a change. */
#define LEARN_WORTH_NS 100000
TUNING_RANGE(LEARN_WORTH_NS, 0, 1000000000);

/* Logarithm, in hundredths, of how much likelier a won round is if the challenger wins nine in ten
 * than if it wins every other; added for each.
 * Origin: ln(0.9 / 0.5); sequential test of Wald (Sequential Analysis, 1947). */
#define LEARN_ROUND_WON 59
TUNING_RANGE(LEARN_ROUND_WON, 1, 1000);

/* The same of a lost round, subtracted.
 * Origin: ln(0.5 / 0.1). */
#define LEARN_ROUND_LOST 161
TUNING_RANGE(LEARN_ROUND_LOST, 1, 1000);

/* The same of a round within the margin, subtracted.
 * Origin: the mean of both: a draw. */
#define LEARN_ROUND_LEVEL 51
TUNING_RANGE(LEARN_ROUND_LEVEL, 0, 1000);

/* The sum with which a match is won.
 * Origin: ln(0.9 / 0.01): one in a hundred that are not better wins, nine in ten that are. */
#define LEARN_MATCH_WON 450
TUNING_RANGE(LEARN_MATCH_WON, 1, 10000);

/* The sum below nothing with which it is lost.
 * Origin: ln(0.99 / 0.1). */
#define LEARN_MATCH_LOST 229
TUNING_RANGE(LEARN_MATCH_LOST, 1, 10000);

/* Rounds of a match at most; undecided then, the incumbent stays.
 * Origin: guess; twice as many as win it without a loss. */
#define LEARN_ROUNDS_MOST 16
TUNING_RANGE(LEARN_ROUNDS_MOST, 8, 1024);

/* The rating of who has played no match.
 * Origin: usual in chess; differences count alone. */
#define LEARN_RATING 1500
TUNING_RANGE(LEARN_RATING, 400, 10000);

/* The most that a match changes a rating, times two.
 * Origin: the factor K of chess federations for players of few matches (FIDE: 40 to 20). */
#define LEARN_RATING_STEP 32
TUNING_RANGE(LEARN_RATING_STEP, 2, 200);

/* ---- learning within one run: how a strategy is watched ---- */

/* Epochs in which a winner runs alone before it replaces the incumbent.
 * Origin: guess; four times as many as a round gives it. */
#define LEARN_CANARY_EPOCHS 8
TUNING_RANGE(LEARN_CANARY_EPOCHS, 1, 1024);

/* Epochs of the default alone before a match, at the start and after a drift.
 * Origin: guess; as many as a canary has. */
#define LEARN_REST_EPOCHS 8
TUNING_RANGE(LEARN_REST_EPOCHS, 1, 1024);

/* Doublings of that at most, one for each drift.
 * Origin: guess; who drifts all the time runs the default most of the time. */
#define LEARN_REST_DOUBLINGS 6
TUNING_RANGE(LEARN_REST_DOUBLINGS, 0, 16);

/* Per cent above what was promised from which on an epoch counts as drift.
 * Origin: guess; noise of a tenth is no drift. */
#define LEARN_DRIFT_PERCENT 25
TUNING_RANGE(LEARN_DRIFT_PERCENT, 1, 1000);

/* Such epochs in a row that are one.
 * Origin: guess; a burst of a few seconds is none. */
#define LEARN_DRIFT_EPOCHS 8
TUNING_RANGE(LEARN_DRIFT_EPOCHS, 1, 1024);

/* Epochs without a trial for a strategy that was rolled back; each time twice as many.
 * Origin: guess; about what a match takes. */
#define LEARN_QUARANTINE_EPOCHS 8
TUNING_RANGE(LEARN_QUARANTINE_EPOCHS, 1, 1024);

/* Doublings of that at most.
 * Origin: guess; thousands of epochs are a day of little use. */
#define LEARN_QUARANTINE_DOUBLINGS 8
TUNING_RANGE(LEARN_QUARANTINE_DOUBLINGS, 0, 32);

/* Per cent of what the heap held under the incumbent that a challenger may hold more.
 * Origin: guess. */
#define LEARN_GUARD_PERCENT 10
TUNING_RANGE(LEARN_GUARD_PERCENT, 0, 1000);

/* Bytes beside that, and of fresh pages in an epoch beside twice as many.
 * Origin: guess; what may always stay free. */
#define LEARN_GUARD_BYTES (16 * MIB)
TUNING_RANGE(LEARN_GUARD_BYTES, 0, GIB);

/* Times the fresh pages, and the cost, of the incumbent that are too much.
 * Origin: guess; one step of a value changes no cost more than that. */
#define LEARN_GUARD_TIMES 2
TUNING_RANGE(LEARN_GUARD_TIMES, 2, 64);

/* Nanoseconds in a second beside that, of the cost.
 * Origin: a thousandth of a processor, the most that learning may cost. */
#define LEARN_GUARD_NS 1000000
TUNING_RANGE(LEARN_GUARD_NS, 0, 1000000000);

/* Decisions that are remembered.
 * Origin: guess; the matches of some minutes. */
#define LEARN_RECORDS 64
TUNING_RANGE(LEARN_RECORDS, 1, 1024);

#endif
