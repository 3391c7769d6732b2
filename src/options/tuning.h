/* Every number that is a choice, with the range in which it makes sense and where it comes from.
 *
 * A row is a comment, a definition and its range. Sizes are in bytes, times in milliseconds;
 * numbers without a unit are counts. The comment says what the number decides. Behind "Origin:" it
 * says why it is that number: a limit of the kernel or the hardware, another program, a measurement
 * (docs/design.md names its rows), or a guess, which a measurement may replace.
 *
 * What follows from the layout of memory is no choice and stands with the layout: units, chunks and
 * granules in heap/page_map.h, size classes in slab/size_class.h, the magazine in cache/bin.h. What
 * a user may set is an option (option_table.h). tools/tuning_doc.py makes a page of the table. */
#ifndef HAKMEM_OPTIONS_TUNING_H
#define HAKMEM_OPTIONS_TUNING_H

#include "base/types.h"
#include "options/tuning_huge_pages.h"
#include "options/tuning_observe.h"
#include "options/tuning_processors.h"
#include "options/tuning_range.h"

/* Bytes by which a total over thread caches, depots, classes or shards may differ from what they
 * have. Each of them may make up its share of the difference.
 * Origin: half of KEEP_LEAST; threads seldom write the line of a total then. */
#define SHARED_TOTAL_STALE (8 * MIB)
TUNING_RANGE(SHARED_TOTAL_STALE, 0, GIB);

/* ---- thread caches ---- */

/* Room for blocks that a bin starts with. It doubles when the bin is full or filled from slabs.
 * Origin: guess; a class of which a program has three blocks costs it next to nothing. */
#define FIRST_CAPACITY 8
TUNING_RANGE(FIRST_CAPACITY, 1, 124);

/* Bytes of blocks that a bin starts with at most, if they are fewer.
 * Origin: guess; a page. */
#define FIRST_BYTES (4 * KIB)
TUNING_RANGE(FIRST_BYTES, 16, 64 * KIB);

/* Room for blocks that a bin starts with at least, however long they are.
 * Origin: the double-free check compares two blocks. */
#define FIRST_LEAST 2
TUNING_RANGE(FIRST_LEAST, 1, 8);

/* Bytes of blocks that a bin may grow to.
 * Origin: guess; what a second-level cache holds of a few classes. */
#define BIN_BYTES (64 * KIB)
TUNING_RANGE(BIN_BYTES, 4 * KIB, MIB);

/* Blocks that a bin may grow to at least, however long they are.
 * Origin: guess; a lock for every eight blocks. */
#define BIN_LEAST 8
TUNING_RANGE(BIN_LEAST, 2, 124);

/* Bytes that all thread caches together may hold, magazines counted in. A cache that held more when
 * others began may keep it.
 * Origin: tcmalloc's default for its thread caches. */
#define THREAD_CACHES_MOST (32 * MIB)
TUNING_RANGE(THREAD_CACHES_MOST, MIB, GIB);

/* Bytes that one thread cache may hold at least, however many there are.
 * Origin: guess; some twenty classes at their first capacity. */
#define THREAD_CACHE_LEAST (128 * KIB)
TUNING_RANGE(THREAD_CACHE_LEAST, 4 * KIB, 2 * MIB);

/* Bytes that one thread cache may hold at most.
 * Origin: measured; with less, blocks of 8 to 32 KiB pass through depots (design.md). */
#define THREAD_CACHE_MOST (8 * MIB)
TUNING_RANGE(THREAD_CACHE_MOST, THREAD_CACHE_LEAST, THREAD_CACHES_MOST);

/* Bytes in the cache of an idle thread from which on they are taken out of it.
 * Origin: guess; less is not worth a look at seventy bins and three system calls. */
#define IDLE_CACHE_WORTH_IT (64 * KIB)
TUNING_RANGE(IDLE_CACHE_WORTH_IT, 4 * KIB, MIB);

/* Caches of ended threads that are kept for new ones, until the next trim.
 * Origin: measured; a thread of a millisecond spent a tenth of it on filling bins (design.md). */
#define ORPHANS_MOST 4
TUNING_RANGE(ORPHANS_MOST, 0, 64);

/* ---- depots ---- */

/* Bytes of blocks that a depot may hold.
 * Origin: guess; sixteen threads' worth of full bins. */
#define DEPOT_BYTES MIB
TUNING_RANGE(DEPOT_BYTES, 64 * KIB, 64 * MIB);

/* Magazines that a depot may hold at most.
 * Origin: guess; 1 MiB of blocks of 128 bytes. */
#define DEPOT_MOST 64
TUNING_RANGE(DEPOT_MOST, 2, 4096);

/* Magazines that a depot may hold at least, however long their blocks are.
 * Origin: a producer and a consumer pass one while the other is filled. */
#define DEPOT_LEAST 2
TUNING_RANGE(DEPOT_LEAST, 1, DEPOT_MOST);

/* A magazine whose blocks lie in no order finds room in 1 / this of a depot.
 * Origin: measured; trees that are built and freed in rounds keep their order from 32 KiB on. */
#define DEPOT_SCATTERED_SHARE 32
TUNING_RANGE(DEPOT_SCATTERED_SHARE, 1, 4096);

/* Of the pairs of neighbours in a magazine, one in this many is looked at.
 * Origin: measured; to look at all took 6 % where one class is allocated and freed in loops. */
#define ORDER_STEP 4
TUNING_RANGE(ORDER_STEP, 1, 32);

/* Pairs of those that may lie apart in a magazine in order.
 * Origin: two bins that are half full become one magazine, with a break in it. */
#define ORDER_BREAKS 1
TUNING_RANGE(ORDER_BREAKS, 0, 32);

/* Empty magazines that a depot keeps for those who bring full ones.
 * Origin: guess; as many as threads meet there. */
#define EMPTIES_KEPT 4
TUNING_RANGE(EMPTIES_KEPT, 0, 64);

/* ---- slabs ---- */

/* Length of the longest slab.
 * Origin: measured; twice that held more (design.md, large-memory rows). */
#define SLAB_LONGEST (128 * KIB)
TUNING_RANGE(SLAB_LONGEST, 64 * KIB, MIB);

/* Length of the shortest slab.
 * Origin: the tail wastes 1.5 % at most of slabs of tiny blocks. */
#define SLAB_SHORTEST (64 * KIB)
TUNING_RANGE(SLAB_SHORTEST, 32 * KIB, SLAB_LONGEST);

/* Idle memory of a class below which its pages stay.
 * Origin: measured; with a sixteenth of it programs hold no less, and huge pages are split. */
#define PAGES_WORTH_IT MIB
TUNING_RANGE(PAGES_WORTH_IT, 4 * KIB, GIB);

/* The same where more is free than may stay.
 * Origin: guess; seventy classes may have as much each. */
#define PAGES_LEAST (64 * KIB)
TUNING_RANGE(PAGES_LEAST, 4 * KIB, PAGES_WORTH_IT);

/* Free memory of a class from which on it may count as sparse: bins are emptied then, so that new
 * blocks come from the fullest slabs.
 * Origin: guess; the longest slab, which any class may have. */
#define SPARSE_CLASS_LEAST (128 * KIB)
TUNING_RANGE(SPARSE_CLASS_LEAST, 4 * KIB, GIB);

/* Steps of fullness by which slabs are sorted when their pages are looked at.
 * Origin: guess; the order within a step matters little. */
#define FULLNESS_STEPS 8
TUNING_RANGE(FULLNESS_STEPS, 1, 64);

/* Runs of pages of slabs that go each time the lock of a class is taken.
 * Origin: 2 KiB of stack describe them. */
#define RUNS_AT_ONCE 64
TUNING_RANGE(RUNS_AT_ONCE, 1, 256);

/* Slabs that are looked at for those, the emptiest last filled first.
 * Origin: guess; a tenth of a millisecond. */
#define SLABS_LOOKED_AT_ONCE 512
TUNING_RANGE(SLABS_LOOKED_AT_ONCE, 1, 1048576);

/* Pages of the shortest run that goes at once where more is free than may stay.
 * Origin: measured; what is freed at random goes as whole slabs soon, at less cost. */
#define RUN_LEAST 4
TUNING_RANGE(RUN_LEAST, 1, 4);

/* Slabs that are looked at for each run that is found: where it takes more, the class is left alone
 * until blocks have come or gone.
 * Origin: measured; a look costs a hundredth of a system call (memory workload phases). */
#define LOOKS_FOR_RUN 16
TUNING_RANGE(LOOKS_FOR_RUN, 1, 1024);

/* ---- private heaps ---- */

/* Heaps that a program may have beside that of malloc.
 * Origin: 16 bits number them; the table is a page for each 512 that there were at once. */
#define PRIVATE_HEAPS_MOST 65535
TUNING_RANGE(PRIVATE_HEAPS_MOST, 1, 65535);

/* Locks that private heaps share.
 * Origin: guess; as many threads as use heaps of their own at a time on a small server. */
#define PRIVATE_HEAP_LOCKS 16
TUNING_RANGE(PRIVATE_HEAP_LOCKS, 1, 1024);

/* ---- the span cache ---- */

/* Lengths of spans, in units, that the cache keeps: each has a list.
 * Origin: 4 MiB; longer blocks are few, and joined they serve any length. */
#define SPAN_LENGTH_COUNT 256
TUNING_RANGE(SPAN_LENGTH_COUNT, 64, 1024);

/* Shards of the cache, handed to threads in turn.
 * Origin: measured (design.md, shards rows). */
#define SHARD_COUNT 8
TUNING_RANGE(SHARD_COUNT, 1, 64);

/* Lengths in turn of which the oldest spans are compared; the oldest of them leaves.
 * Origin: guess; Redis evicts so, with five. */
#define SPAN_CACHE_LOOKS 8
TUNING_RANGE(SPAN_CACHE_LOOKS, 1, SPAN_LENGTH_COUNT);

/* ---- the page heap ---- */

/* The page heap grows by this part of itself.
 * Origin: guess; a shell maps 2 MiB, and what is mapped too much stays untouched. */
#define GROWTH_DIVISOR 8
TUNING_RANGE(GROWTH_DIVISOR, 1, 64);

/* Bytes that the page heap grows by at most, if no more are asked for.
 * Origin: guess; a program of gigabytes makes a system call for each of these. */
#define LARGEST_GROWTH (64 * MIB)
TUNING_RANGE(LARGEST_GROWTH, 2 * MIB, GIB);

/* Spans of the one bin that may be too short that are looked at before the next bin.
 * Origin: guess; the cost of a search stays bounded. */
#define SPAN_LOOKS 8
TUNING_RANGE(SPAN_LOOKS, 1, 1024);

/* ---- the purge ---- */

/* Processor time that the page faults for a GiB take, in milliseconds: what the option price is
 * weighed against.
 * Origin: four reports of 1.0 to 1.5 microseconds for a page of 4 KiB (docs/design.md). */
#define REFAULT_GIB_MS 350
TUNING_RANGE(REFAULT_GIB_MS, 10, 10000);

/* Slots of the ring that knows the low water; all but one of them make a delay.
 * Origin: idle memory goes after 1 to 1.2 delays. */
#define BUDGET_SLOTS 10
TUNING_RANGE(BUDGET_SLOTS, 2, 64);

/* Runs of pages that go each time the lock of a heap is taken.
 * Origin: 2 KiB of stack describe them. */
#define PIECE_RUNS 64
TUNING_RANGE(PIECE_RUNS, 1, 256);

/* Bytes between the first and the last of these.
 * Origin: guess; ten milliseconds of the kernel's time, in which nobody else can have them. */
#define PIECE_MOST (64 * MIB)
TUNING_RANGE(PIECE_MOST, 4 * MIB, GIB);

/* Bytes that free memory of a kind may hold beside as much as is in use of it, wherever it is kept.
 * Origin: measured for large blocks, page faults counted in short runs (design.md). */
#define KEEP_ALWAYS (64 * MIB)
TUNING_RANGE(KEEP_ALWAYS, 0, GIB);

/* The longest pause after the kernel has refused to take pages back.
 * Origin: guess; rare enough to cost nothing, and soon enough after an munlock. */
#define LONGEST_PAUSE_MS 60000
TUNING_RANGE(LONGEST_PAUSE_MS, 1000, 3600000);

/* The shortest such pause; the first is the purge delay, if that is longer. It doubles each time.
 * Origin: the period of upkeep. */
#define LEAST_PAUSE_MS 100
TUNING_RANGE(LEAST_PAUSE_MS, 10, LONGEST_PAUSE_MS);

/* ---- upkeep ---- */

/* Period in which the purge looks for work.
 * Origin: guess; ten looks of a few microseconds in a second. */
#define PURGE_PERIOD_MS 100
TUNING_RANGE(PURGE_PERIOD_MS, 10, 10000);

/* Period in which thread caches, depots and central lists give up what nobody wanted.
 * Origin: guess; the purge delay. */
#define TRIM_PERIOD_MS 500
TUNING_RANGE(TRIM_PERIOD_MS, PURGE_PERIOD_MS, 60000);

/* Misses of a thread, served by the depot, between two looks at the clock.
 * Origin: measured by callgrind; the clock is a good part of what such a miss costs. */
#define MISSES_BETWEEN_LOOKS 8
TUNING_RANGE(MISSES_BETWEEN_LOOKS, 1, 1024);

/* Free bytes that may stay when a program makes no further call, beside a share of what is in use.
 * Origin: guess; of what a program frees and leaves, less than a tenth stays. */
#define KEEP_LEAST (16 * MIB)
TUNING_RANGE(KEEP_LEAST, MIB, GIB);

/* That share is 1 / this of what is in use.
 * Origin: guess; likewise. */
#define KEEP_SHARE 16
TUNING_RANGE(KEEP_SHARE, 1, 1024);

/* Beside free memory that is known to be wanted again 1 / this of it stays.
 * Origin: guess; what serves a round lies in other places each time. */
#define KEEP_ROOM_SHARE 8
TUNING_RANGE(KEEP_ROOM_SHARE, 1, 1024);

/* Bytes that any call may give back; one that frees more may give back twice as much as it frees.
 * Origin: some ten microseconds in the kernel. */
#define GIVE_BACK_LEAST (256 * KIB)
TUNING_RANGE(GIVE_BACK_LEAST, 64 * KIB, 64 * MIB);

/* Bytes in all thread caches from which on those of idle threads are looked for.
 * Origin: guess; half of what may always stay. */
#define IDLE_CACHES_WORTH_IT (8 * MIB)
TUNING_RANGE(IDLE_CACHES_WORTH_IT, 0, GIB);

/* A program gives up most of what it had while it uses less than 1 / this of the most.
 * Origin: guess; most is more than half. */
#define DRAIN_PEAK_SHARE 2
TUNING_RANGE(DRAIN_PEAK_SHARE, 1, 64);

/* Then caches keep little if more than 1 / this of what is in use is free inside slabs and caches.
 * Origin: measured; a spree of all sizes at random (tests/stress/idle_return.c). */
#define DRAIN_INSIDE_SHARE 4
TUNING_RANGE(DRAIN_INSIDE_SHARE, 1, 64);

/* The most memory that was in use counts 1 / this less after each look.
 * Origin: guess; half of it is forgotten after a purge delay. */
#define PEAK_FADING 8
TUNING_RANGE(PEAK_FADING, 2, 1024);

/* Caches of idle threads that one look takes blocks out of.
 * Origin: guess; three barriers each, of some microseconds. */
#define IDLE_CACHES_AT_ONCE 8
TUNING_RANGE(IDLE_CACHES_AT_ONCE, 1, 1024);

/* ---- limits of memory ---- */

/* Bytes that a process has mapped before it opens a file to learn of limits.
 * Origin: guess; groups are seldom given less than twice that, which a smaller process cannot fill.
 * Programs that start and end soon are mostly below. */
#define LIMITS_LEAST_MAPPED (32 * MIB)
TUNING_RANGE(LIMITS_LEAST_MAPPED, 0, GIB);

/* Period in which the group and its limits are looked up; they may change.
 * Origin: guess. */
#define LIMITS_SCAN_PERIOD_MS 10000
TUNING_RANGE(LIMITS_SCAN_PERIOD_MS, PURGE_PERIOD_MS, 3600000);

/* Period in which what counts against limits is read while none is near; else PURGE_PERIOD_MS.
 * Origin: guess; half of the room handed out makes it earlier. */
#define LIMITS_USE_PERIOD_MS 1000
TUNING_RANGE(LIMITS_USE_PERIOD_MS, PURGE_PERIOD_MS, 60000);

/* Period in which waits for memory are read.
 * Origin: the kernel changes their averages every two seconds (PSI_FREQ in linux/psi_types.h). */
#define LIMITS_STALL_PERIOD_MS 2000
TUNING_RANGE(LIMITS_STALL_PERIOD_MS, PURGE_PERIOD_MS, 60000);

/* Fresh bytes that make the next look due at the earliest.
 * Origin: guess; filling them costs far more than a look. */
#define LIMITS_LEAST_GROWTH MIB
TUNING_RANGE(LIMITS_LEAST_GROWTH, 64 * KIB, 64 * MIB);

/* A limit is near when less than this part of it is left.
 * Origin: guess. */
#define LIMITS_NEAR_SHARE 8
TUNING_RANGE(LIMITS_NEAR_SHARE, 2, 64);

/* It is all but reached at this part of that room; and near it this part may be kept of what else
 * may be.
 * Origin: guess. */
#define LIMITS_FULL_SHARE 4
TUNING_RANGE(LIMITS_FULL_SHARE, 2, 64);

/* Bytes that are room enough, however great the limit is.
 * Origin: guess; no program fills them within a tenth of a second. */
#define LIMITS_NEAR_MOST GIB
TUNING_RANGE(LIMITS_NEAR_MOST, 64 * MIB, 64 * GIB);

/* Hundredths of a percent of the time in which tasks wait for memory: from here on it is scarce.
 * Origin: half of what systemd takes for pressure (DefaultMemoryPressureThresholdSec). */
#define LIMITS_STALL_MUCH 500
TUNING_RANGE(LIMITS_STALL_MUCH, 1, 10000);

/* Free memory of a kind may hold this part of the limit.
 * Origin: guess. */
#define LIMITS_KEPT_SHARE 4
TUNING_RANGE(LIMITS_KEPT_SHARE, 1, 64);

/* Bytes that it may hold at most where a limit is near or memory scarce.
 * Origin: guess; as much as may always wait. */
#define LIMITS_KEPT_NEAR (64 * MIB)
TUNING_RANGE(LIMITS_KEPT_NEAR, MIB, GIB);

/* Bytes that it may hold at most where a limit is all but reached.
 * Origin: guess; a quarter of what may always stay. */
#define LIMITS_KEPT_FULL (4 * MIB)
TUNING_RANGE(LIMITS_KEPT_FULL, 0, LIMITS_KEPT_NEAR);

/* Near a limit free memory waits this part of the purge delay.
 * Origin: one slot of the budget (keep/budget.h). */
#define LIMITS_DELAY_SHARE 10
TUNING_RANGE(LIMITS_DELAY_SHARE, 1, 100);

/* Levels of control groups that are looked at, beside the root of the mount.
 * Origin: services of a user are five deep, containers of a cluster four. */
#define LIMITS_LEVELS 8
TUNING_RANGE(LIMITS_LEVELS, 1, 64);

/* ---- huge blocks ---- */

/* Length from which on realloc gives a block a mapping of its own when it makes it longer.
 * Origin: it may grow again, and moving page tables beats copying (design.md). */
#define HUGE_GROWN_MIN (4 * MIB)
TUNING_RANGE(HUGE_GROWN_MIN, 128 * KIB, GIB);

/* The same for a block that is new.
 * Origin: glibc's threshold at its highest (DEFAULT_MMAP_THRESHOLD_MAX). */
#define HUGE_MIN (32 * MIB)
TUNING_RANGE(HUGE_MIN, HUGE_GROWN_MIN, GIB);

/* Length down to which realloc leaves a block its mapping.
 * Origin: half of HUGE_GROWN_MIN, or a length that goes up and down around it would be copied. */
#define HUGE_KEPT_MIN (HUGE_GROWN_MIN / 2)
TUNING_RANGE(HUGE_KEPT_MIN, 64 * KIB, HUGE_GROWN_MIN);

/* Entries of the kernel's table of mappings that huge blocks may fill.
 * Origin: half of vm.max_map_count (DEFAULT_MAX_MAP_COUNT in linux/mm.h), the rest is the
 * program's: with the table full no thread starts and no library loads. */
#define MOST_RUNS (65530 / 2)
TUNING_RANGE(MOST_RUNS, 64, 65530);

/* Kept blocks of a bin that are looked at for the best; a request may look into three bins.
 * Origin: as many as there are blocks of 4 MiB in the 64 MiB that may be kept by default. */
#define HUGE_LOOKS 16
TUNING_RANGE(HUGE_LOOKS, 1, 1024);

/* Idle blocks that are tried again at each look of upkeep.
 * Origin: guess; some hundred microseconds of system calls. */
#define IDLE_LOOKS 64
TUNING_RANGE(IDLE_LOOKS, 1, 4096);

/* Long blocks freed lately of which a second free is still called one.
 * Origin: guess at what a program frees between the two. */
#define HUGE_NOTES 64
TUNING_RANGE(HUGE_NOTES, 1, 4096);

/* ---- addresses, and memory for our own structures ---- */

/* Gibibytes of the largest window.
 * Origin: an eighth of a 47-bit address space. */
#define LARGEST_WINDOW_GIB 16384
TUNING_RANGE(LARGEST_WINDOW_GIB, 32, 65536);

/* Gibibytes of the smallest window.
 * Origin: its tables cost 25 MiB of addresses, of which what maps used memory is touched. */
#define SMALLEST_WINDOW_GIB 32
TUNING_RANGE(SMALLEST_WINDOW_GIB, 1, LARGEST_WINDOW_GIB);

/* Bytes for our own structures that may lie idle beside as many as are in use.
 * Origin: guess; the structures of forty threads, which may come and go without a system call. */
#define META_IDLE MIB
TUNING_RANGE(META_IDLE, 0, GIB);

/* Free bytes that become memory for our own structures where the kernel gives none.
 * Origin: they describe 64 to 128 MiB of slabs; less will do where there is less. */
#define META_FED (256 * KIB)
TUNING_RANGE(META_FED, 64 * KIB, 16 * MIB);

/* Blocks of no bytes that may live at once in debug mode at addresses of their own.
 * Origin: 1 MiB of addresses and 8 KiB of bits; programs keep few such blocks. */
#define ZERO_BLOCK_COUNT 65536
TUNING_RANGE(ZERO_BLOCK_COUNT, 64, 1048576);

/* ---- waiting ---- */

/* Pauses that a lock spins before it sleeps.
 * Origin: 4 microseconds on the machines we know, longer than a critical section without a system
 * call and shorter than a sleep and wake-up. */
#define SPIN_LIMIT 100
TUNING_RANGE(SPIN_LIMIT, 0, 10000);

#endif
