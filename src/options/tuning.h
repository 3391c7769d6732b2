/* Every number that is a choice, with the range in which it makes sense and where it comes from.
 *
 * A row is a comment and TUNE with the name, the value, the least and the most. Sizes are in bytes,
 * times in milliseconds; numbers without a unit are counts. The comment says what the number
 * decides. Behind "Origin:" it says why it is that number: a limit of the kernel or the hardware,
 * another program or row, a measurement (docs/design.md names its rows), or a guess, which a
 * measurement may replace. tests/tidy.py bounds the number of guesses.
 *
 * What follows from the layout of memory is no choice and stands with the layout: units in
 * base/types.h, chunks and granules in heap/page_map.h, size classes in slab/size_class.h, the
 * magazine in cache/bin.h. What a user may set is an option (option_table.h). */
#ifndef HAKMEM_OPTIONS_TUNING_H
#define HAKMEM_OPTIONS_TUNING_H

#include "base/types.h"

/* An enumerator has a name in the debugger. */
#define TUNE(name, value, least, most)                                                             \
    enum { name = (value) };                                                                       \
    _Static_assert(+(value) >= (least) && +(value) <= (most), #name " is out of its range")

/* ---- free memory that stays ---- */

/* Free bytes that may stay when a program makes no further call, beside a share of what is in use.
 * Origin: guess; of what a program frees and leaves, less than a tenth stays. */
TUNE(KEEP_LEAST, 16 * MIB, MIB, GIB);

/* The share beside KEEP_LEAST is 1 / this of what is in use.
 * Origin: guess; likewise. */
TUNE(KEEP_SHARE, 16, 1, 1024);

/* Free memory and memory in use are together at most 1 / this, and KEEP_ALWAYS, above the most that
 * ever was in use; and no more than that share of it, and KEEP_SMALL, stays at rest.
 * Origin: measured; with KEEP_LEAST in place of KEEP_ALWAYS columns of which one doubles fault 2.7
 * times the pages, and layers of tensors hold 10 MiB less at their peak. */
TUNE(KEEP_PEAK_SHARE, 8, 1, 1024);

/* Free bytes that may stay of a program however little it uses.
 * Origin: measured; the peaks of gawk, perl, jq and Python programs stay within a tenth and 3 MiB
 * of glibc's. */
TUNE(KEEP_SMALL, 2 * MIB, 64 * KIB, KEEP_LEAST);

/* Bytes that free memory of a kind may hold beside as much as is in use of it, wherever it is kept.
 * Origin: measured for large blocks, page faults counted in short runs (design.md). */
TUNE(KEEP_ALWAYS, 64 * MIB, 0, GIB);

/* Times the amount by which memory in use goes up and down that may be kept because it was wanted
 * again.
 * Origin: measured; eight buffers that grow side by side fault an eighth of the pages with it, and
 * with 4 programs hold more. */
TUNE(KEEP_SWINGS, 2, 1, 64);

/* Bytes by which a total over thread caches, depots, classes or shards may differ from what they
 * have. Each of them may make up its share of the difference.
 * Origin: half of what may always stay; threads seldom write the line of a total then. */
TUNE(SHARED_TOTAL_STALE, KEEP_LEAST / 2, 0, GIB);

/* ---- thread caches ---- */

/* Room for blocks that a bin starts with. The room doubles when the bin is full or is filled from
 * slabs.
 * Origin: guess; a class of which a program has three blocks costs it next to nothing. */
TUNE(FIRST_CAPACITY, 8, 1, 124);

/* Bytes of blocks that a bin starts with at most, if they are fewer.
 * Origin: the smallest page; one more block would touch another one. */
TUNE(FIRST_BYTES, 4 * KIB, 16, 64 * KIB);

/* Room for blocks that a bin starts with at least, however long they are.
 * Origin: the double-free check compares two blocks. */
TUNE(FIRST_LEAST, 2, 1, 8);

/* Bytes of blocks that a bin may grow to.
 * Origin: guess; what a second-level cache holds of a few classes. */
TUNE(BIN_BYTES, 64 * KIB, 4 * KIB, MIB);

/* Blocks that a bin may grow to at least, however long they are.
 * Origin: what a bin starts with; a lock for every eight blocks. */
TUNE(BIN_LEAST, FIRST_CAPACITY, 2, 124);

/* Bytes that all thread caches together may hold, magazines counted in. A cache that held more when
 * others began may keep it, even if its thread waits from then on.
 * Origin: what may stay when a program makes no further call; tests/stress/idle_return.c has 200
 * threads that wait. */
TUNE(THREAD_CACHES_MOST, KEEP_LEAST, MIB, GIB);

/* Bytes that one thread cache may hold at least, however many there are.
 * Origin: two bins as long as they may be: one class is allocated, another is freed. */
TUNE(THREAD_CACHE_LEAST, 2 * BIN_BYTES, 4 * KIB, 2 * MIB);

/* Bytes that one thread cache may hold at most.
 * Origin: measured; with less, blocks of 8 to 32 KiB pass through depots (design.md). */
TUNE(THREAD_CACHE_MOST, 8 * MIB, THREAD_CACHE_LEAST, THREAD_CACHES_MOST);

/* Caches of ended threads that are kept for new ones, until the next trim.
 * Origin: measured; a thread of a millisecond spent a tenth of it on filling bins (design.md). */
TUNE(ORPHANS_MOST, 4, 0, 64);

/* ---- depots ---- */

/* Bytes of blocks that a depot may hold.
 * Origin: guess; sixteen threads' worth of full bins. */
TUNE(DEPOT_BYTES, MIB, 64 * KIB, 64 * MIB);

/* Magazines that a depot may hold at most.
 * Origin: guess; 1 MiB of blocks of 128 bytes. */
TUNE(DEPOT_MOST, 64, 2, 4096);

/* Magazines that a depot may hold at least, however long their blocks are.
 * Origin: a producer and a consumer pass one while the other is filled. */
TUNE(DEPOT_LEAST, 2, 1, DEPOT_MOST);

/* A magazine whose blocks lie in no order finds room in 1 / this of a depot.
 * Origin: measured; trees that are built and freed in rounds keep their order from 32 KiB on. */
TUNE(DEPOT_SCATTERED_SHARE, 32, 1, 4096);

/* Of the pairs of neighbours in a magazine, one in this many is looked at.
 * Origin: measured; to look at all took 6 % where one class is allocated and freed in loops. */
TUNE(ORDER_STEP, 4, 1, 32);

/* Of the pairs that are looked at, as many may lie apart in a magazine that is in order.
 * Origin: two bins that are half full become one magazine, with a break in it. */
TUNE(ORDER_BREAKS, 1, 0, 32);

/* Empty magazines that a depot keeps for those who bring full ones.
 * Origin: of eight threads, half fill what the other half empties. */
TUNE(EMPTIES_KEPT, 4, 0, 64);

/* ---- slabs and private heaps ---- */

/* Length of the longest slab.
 * Origin: measured; twice that held more (design.md, large-memory rows). */
TUNE(SLAB_LONGEST, 128 * KIB, 64 * KIB, MIB);

/* Length of the shortest slab.
 * Origin: the tail wastes 1.5 % at most of slabs of tiny blocks. */
TUNE(SLAB_SHORTEST, 64 * KIB, 32 * KIB, SLAB_LONGEST);

/* What the lengths of slabs are multiples of.
 * Origin: the lengths that were measured are (design.md, large-memory rows). */
TUNE(SLAB_STEP, 16 * KIB, UNIT_SIZE, SLAB_SHORTEST);

/* The largest alignment of blocks in slabs, a power of two. Slabs of blocks that are multiples of
 * it begin at multiples of it.
 * Origin: a pair of aligned calls takes a third of the instructions that it takes as a large block
 * (tests/shape/instructions.py). */
TUNE(SLAB_ALIGNMENT, 16 * KIB, UNIT_SIZE, 64 * KIB);

/* Idle memory of a class below which its pages stay.
 * Origin: measured; with a sixteenth of it programs hold no less, and huge pages are split. */
TUNE(PAGES_WORTH_IT, MIB, 4 * KIB, GIB);

/* The same where more is free than may stay.
 * Origin: the shortest slab. */
TUNE(PAGES_LEAST, SLAB_SHORTEST, 4 * KIB, PAGES_WORTH_IT);

/* Free memory of a class from which on it may count as sparse: bins are emptied then, so that new
 * blocks come from the fullest slabs.
 * Origin: the longest slab, which any class may have. */
TUNE(SPARSE_CLASS_LEAST, SLAB_LONGEST, 4 * KIB, GIB);

/* Steps of fullness by which slabs are sorted when their pages are looked at.
 * Origin: guess; the order within a step matters little. */
TUNE(FULLNESS_STEPS, 8, 1, 64);

/* Runs of pages that go to the kernel each time a lock is taken, of a class or of the page heap.
 * Each look of upkeep tries as many idle huge blocks again.
 * Origin: 2 KiB of stack describe them. */
TUNE(RUNS_AT_ONCE, 64, 1, 256);

/* Pages of the shortest run that goes at once where more is free than may stay.
 * Origin: measured; what is freed at random goes as whole slabs soon, at less cost. */
TUNE(RUN_LEAST, 4, 1, 4);

/* Slabs that are looked at for each run that is found: where it takes more, the class is left alone
 * until blocks have come or gone.
 * Origin: measured; a look costs a hundredth of a system call (memory workload phases). */
TUNE(LOOKS_FOR_RUN, 16, 1, 1024);

/* Slabs that are looked at each time the lock of a class is taken.
 * Origin: half of those after which it is left alone; the lock is held for some 0.1 ms. */
TUNE(SLABS_LOOKED_AT_ONCE, RUNS_AT_ONCE *LOOKS_FOR_RUN / 2, 1, 1048576);

/* Heaps that a program may have beside that of malloc.
 * Origin: 16 bits number them; the table is a page for each 512 that there were at once. */
TUNE(PRIVATE_HEAPS_MOST, 65535, 1, 65535);

/* Locks that private heaps share.
 * Origin: guess; more threads seldom make or end heaps at once. */
TUNE(PRIVATE_HEAP_LOCKS, 16, 1, 1024);

/* ---- the span cache ---- */

/* Lengths of spans, in units, that the cache keeps: each has a list.
 * Origin: 4 MiB; longer blocks are few, and joined they serve any length. */
TUNE(SPAN_LENGTH_COUNT, 512, 64, 1024);

/* Shards of the cache, handed to threads in turn.
 * Origin: measured (design.md, shards rows). */
TUNE(SHARD_COUNT, 8, 1, 64);

/* ---- the page heap ---- */

/* The page heap grows by this part of itself.
 * Origin: guess; a shell maps 2 MiB, and what is mapped too much stays untouched. */
TUNE(GROWTH_DIVISOR, 8, 1, 64);

/* Bytes that the page heap grows by at most, if no more are asked for.
 * Origin: guess; a program of gigabytes makes a system call for each of these. */
TUNE(LARGEST_GROWTH, 64 * MIB, 2 * MIB, GIB);

/* Spans that are looked at before the best of them is taken: those of the one bin that may be
 * too short, and the oldest of as many lengths of the span cache.
 * Origin: guess; the cost of a search stays bounded. Redis evicts likewise, with five. */
TUNE(SPAN_LOOKS, 8, 1, 1024);

/* ---- the purge ---- */

/* Period in which the purge looks for work.
 * Origin: guess; ten looks of a few microseconds in a second. */
TUNE(PURGE_PERIOD_MS, 100, 10, 10000);

/* Period in which what seldom changes outside is looked at again: the control group and its limits;
 * pages that the kernel has refused to take back.
 * Origin: guess; rare enough to cost nothing, and soon enough after an munlock. */
TUNE(SELDOM_PERIOD_MS, 10000, PURGE_PERIOD_MS, 3600000);

/* Processor time that the page faults for a GiB take, in milliseconds: what the option price is
 * weighed against.
 * Origin: four reports of 1.0 to 1.5 microseconds for a page of 4 KiB (docs/design.md). */
TUNE(REFAULT_GIB_MS, 350, 10, 10000);

/* Rounds of use that are remembered.
 * Origin: they take 2 KiB; a program that makes more in ROUND_PAY_SLOTS is judged by the last. */
TUNE(ROUNDS_KNOWN, 64, 4, 1024);

/* Bytes by which use has to move at least, up or down, to count as moved.
 * Origin: what may stay of any program is worth no question. */
TUNE(ROUND_LEAST, KEEP_SMALL, 64 * KIB, GIB);

/* And 1 / this of the most that was in use.
 * Origin: measured; with 2 MiB alone 16 threads whose use sank slowly made 1,600 rounds of it. */
TUNE(ROUND_STEP_SHARE, 16, 2, 1024);

/* And 1 / this of what is kept. Nothing is asked where less than this share of what is in use is
 * kept.
 * Origin: measured; four threads with blocks of 8 to 32 KiB gave 5 MiB up again and again. */
TUNE(ROUND_KEPT_SHARE, 4, 1, 1024);

/* A round came back from the use of now if that is above its low, or below by 1 / this of the depth
 * of the fall.
 * Origin: as KEEP_PEAK_SHARE, what counts as nearly as much. */
TUNE(ROUND_NEAR_SHARE, 8, 1, 1024);

/* What is kept is worth it if the page faults without it would take so many hundredths of the
 * processor time of the process.
 * Origin: measured; 10 and 20 gave the same of seven programs, with 5 a backend of PostgreSQL kept
 * 75 MiB for nothing. */
TUNE(PAY_PER_CENT, 10, 1, 100);

/* From so many kept bytes on PAY_PER_CENT is asked for in full; of less, proportionally less.
 * Origin: measured (2026-11-29-rounds); an index by three threads takes significantly less
 * processor time than if all of the share is asked for any amount, and a fifth of the faults. */
TUNE(PAY_WHOLE, KEEP_ALWAYS, MIB, GIB);

/* Slots (as BUDGET_SLOTS) for which a round counts as one of those that pay.
 * Origin: four purge delays; a few rounds of a program that makes two in a second. */
TUNE(ROUND_PAY_SLOTS, 36, 1, 10000);

/* Slots for which it is remembered from how low a use a round came back.
 * Origin: twenty purge delays; longer than any pause after which memory is kept for rounds. */
TUNE(ROUND_END_SLOTS, 180, ROUND_PAY_SLOTS, 10000);

/* Slots of the ring that knows the low water; all but one of them make a delay.
 * Origin: idle memory goes after 1 to 1.2 delays. */
TUNE(BUDGET_SLOTS, 10, 2, 64);

/* Bytes between the first and the last of the runs of the page heap.
 * Origin: what the page heap grows by at most. */
TUNE(PIECE_MOST, LARGEST_GROWTH, 4 * MIB, GIB);

/* ---- upkeep ---- */

/* Period in which thread caches, depots and central lists give up what nobody wanted.
 * Origin: the default of purge_delay_ms (option_table.h). */
TUNE(TRIM_PERIOD_MS, 500, PURGE_PERIOD_MS, 60000);

/* Misses of a thread, served by the depot, between two looks at the clock.
 * Origin: measured by callgrind; the clock is a good part of what such a miss costs. */
TUNE(MISSES_BETWEEN_LOOKS, 8, 1, 1024);

/* Beside free memory that is known to be wanted again 1 / this of it stays.
 * Origin: as the page heap grows: room beside what is known to be needed. */
TUNE(KEEP_ROOM_SHARE, GROWTH_DIVISOR, 1, 1024);

/* Bytes that any call may give back; one that frees more may give back twice as much as it frees.
 * Origin: some ten microseconds in the kernel. */
TUNE(GIVE_BACK_LEAST, 256 * KIB, 64 * KIB, 64 * MIB);

/* Bytes that go at a time, between two looks at a fine clock; and that any call may give back after
 * a phase of the program has ended.
 * Origin: some 50 microseconds in the kernel. */
TUNE(GIVE_BACK_PIECE, MIB, 64 * KIB, 64 * MIB);

/* Microseconds that a call spends on giving back at most. One call in each PURGE_PERIOD_MS may give
 * back as much as it finds in that time.
 * Origin: measured; a hundredth of the time mended an editor that held 130 MiB, and the longest
 * call of a game's frames should stay within 2 milliseconds. */
TUNE(GIVE_BACK_MOST_US, 1000, 10, 100000);

/* Calls of a thread that would hit, but are watched, between two looks at the clock, unless they
 * are rare.
 * Origin: twice as many as misses; a program that makes one in PURGE_PERIOD_MS after a busy phase
 * is seen within 1.6 seconds. */
TUNE(WATCHED_BETWEEN_LOOKS, 2 * MISSES_BETWEEN_LOOKS, 1, 1024);

/* Calls are watched until 1 / this of what may stay at rest is left.
 * Origin: measured; an editor that had held 230 MiB rests at 3 (tests/stress/rare_calls.c). */
TUNE(WATCH_ENDS_SHARE, 4, 1, 64);

/* Milliseconds for which calls are watched at most, counted from the last one that missed by itself
 * or gave memory back. Twice the wait of free memory comes on top.
 * Origin: twice the two TRIM_PERIOD_MS after which what caches hold is free pages. */
TUNE(WATCH_MOST_MS, 4 * TRIM_PERIOD_MS, PURGE_PERIOD_MS, 3600000);

/* Bytes by which use falls at most while a program is settled. Until it has been for a while, calls
 * are watched though what is free seemed to be stuck beside blocks in use.
 * Origin: half a slab; where a page has one block of 16 bytes, so many bytes of them free 8 MiB. Of
 * six redis servers on two busy processors one or two held 50 MiB after FLUSHALL, for the last walk
 * through their slabs came before the last frees. */
TUNE(SETTLED_MOST, 32 * KIB, 0, MIB);

/* A program gives up most of what it had while it uses less than 1 / this of the most.
 * Origin: most is more than half. */
TUNE(DRAIN_PEAK_SHARE, 2, 1, 64);

/* Then caches keep little if more than 1 / this of what is in use is free inside slabs and caches.
 * Origin: measured; a spree of all sizes at random (tests/stress/idle_return.c). */
TUNE(DRAIN_INSIDE_SHARE, 4, 1, 64);

/* The most memory that was in use counts 1 / this less after each look.
 * Origin: half of it is forgotten after five looks, the default of purge_delay_ms: (7 / 8) ^ 5. */
TUNE(PEAK_FADING, 8, 2, 1024);

/* ---- limits of memory ---- */

/* Bytes that a process has mapped before it opens a file to learn of limits.
 * Origin: a process that has less keeps at most twice what may always stay. Programs that start
 * and end soon are mostly below. */
TUNE(LIMITS_LEAST_MAPPED, 2 * KEEP_LEAST, 0, GIB);

/* Period in which waits for memory are read, and what counts against limits while none is near.
 * Near one, that is read each PURGE_PERIOD_MS. Half of the room handed out makes it due earlier.
 * Origin: the kernel changes the averages of waits every two seconds (PSI_FREQ in
 * linux/psi_types.h); a change is seen within half of that time. */
TUNE(LIMITS_PERIOD_MS, 1000, PURGE_PERIOD_MS, 60000);

/* Fresh bytes that make the next look due at the earliest.
 * Origin: as for the idle memory of a class: less is not worth a look. */
TUNE(LIMITS_LEAST_GROWTH, PAGES_WORTH_IT, 64 * KIB, 64 * MIB);

/* A limit is near when less than this part of it is left.
 * Origin: guess. */
TUNE(LIMITS_NEAR_SHARE, 8, 2, 64);

/* A limit is all but reached at 1 / this of that room; and near the limit 1 / this may be kept of
 * what else may be.
 * Origin: guess. */
TUNE(LIMITS_FULL_SHARE, 4, 2, 64);

/* Bytes that are room enough, however great the limit is.
 * Origin: the page faults for a GiB take one thread REFAULT_GIB_MS, and a look is due within
 * PURGE_PERIOD_MS near a limit. */
TUNE(LIMITS_NEAR_MOST, GIB, 64 * MIB, 64 * GIB);

/* Hundredths of a percent of the time in which tasks wait for memory: from here on it is scarce.
 * Origin: half of what systemd takes for pressure (DefaultMemoryPressureThresholdSec). */
TUNE(LIMITS_STALL_MUCH, 500, 1, 10000);

/* Free memory of a kind may hold this part of the limit.
 * Origin: the same quarter as near a limit. */
TUNE(LIMITS_KEPT_SHARE, LIMITS_FULL_SHARE, 1, 64);

/* Bytes that it may hold at most where a limit is near or memory scarce.
 * Origin: as much as free memory of a kind may always hold. */
TUNE(LIMITS_KEPT_NEAR, KEEP_ALWAYS, MIB, GIB);

/* Bytes that it may hold at most where a limit is all but reached.
 * Origin: a quarter of what may always stay. */
TUNE(LIMITS_KEPT_FULL, KEEP_LEAST / LIMITS_FULL_SHARE, 0, LIMITS_KEPT_NEAR);

/* Near a limit free memory waits this part of the purge delay.
 * Origin: one slot of the budget (keep/budget.h). */
TUNE(LIMITS_DELAY_SHARE, 10, 1, 100);

/* Levels of control groups that are looked at, beside the root of the mount.
 * Origin: services of a user are five deep, containers of a cluster four. */
TUNE(LIMITS_LEVELS, 8, 1, 64);

/* ---- size classes that are made while the program runs ---- */

/* Such classes, for groups, at most. Each takes 8 bytes of static TLS.
 * Origin: the sizes that `hakmem learn` names at most (python/hakmem/policy.py). With the fixed
 * classes, a record of a block in use has numbers for 39 (block_record.h). */
TUNE(MADE_CLASSES_MOST, 32, 8, 39);

/* ---- huge blocks ---- */

/* Length from which on realloc gives a block a mapping of its own when it makes it longer.
 * Origin: measured; arrays that grow by small steps, against 1 and 2 MiB: fresh pages cost more
 * than copies into memory that is there. */
TUNE(HUGE_GROWN_MIN, 4 * MIB, 128 * KIB, GIB);

/* The same where it becomes longer by more than GROWTH_STEP_SHARE allows.
 * Origin: measured; a buffer that doubles from 4 KiB to 8 or to 64 MiB, against 2 and 4 MiB. */
TUNE(HUGE_DOUBLED_MIN, MIB, 128 * KIB, HUGE_GROWN_MIN);

/* The same for a block that is new.
 * Origin: glibc's threshold at its highest (DEFAULT_MMAP_THRESHOLD_MAX). */
TUNE(HUGE_MIN, 32 * MIB, HUGE_GROWN_MIN, GIB);

/* Length down to which realloc leaves a block its mapping.
 * Origin: half of HUGE_DOUBLED_MIN, or a length that goes up and down around it would be copied. */
TUNE(HUGE_KEPT_MIN, HUGE_DOUBLED_MIN / 2, 64 * KIB, HUGE_GROWN_MIN);

/* A step of growth is small if it is this part of the new length or less. A large block that is
 * moved for one gets room to grow if it was moved before.
 * Origin: where steps are longer, the size classes below are no coarser. */
TUNE(GROWTH_STEP_SHARE, 8, 1, 1024);

/* The room is this part of the length for each such move.
 * Origin: measured; arrays that grow by small steps. */
TUNE(GROWTH_ROOM_SHARE, 16, 1, 1024);

/* Moves of a block beyond this number do not count.
 * Origin: measured, likewise. */
TUNE(GROWTH_MOVES_MOST, 4, 1, 255);

/* A huge block that grows by 1 / this of its length or more is copied to kept memory where there
 * is some, and else made longer.
 * Origin: measured; a page is copied in less than half of the time of a page fault. */
TUNE(HUGE_COPY_SHARE, 2, 1, 1024);

/* Bytes of a zeroed block from which on it is asked how densely such blocks are written.
 * Origin: as for the idle memory of a class: less is not worth a look. */
TUNE(ZEROED_LEAST, PAGES_WORTH_IT, 64 * KIB, GIB);

/* They are written sparsely if less than 1 / this of their pages is touched.
 * Origin: measured; to clear a page that is there takes a quarter to an eighth of a page fault. */
TUNE(ZEROED_SPARSE_SHARE, 8, 2, 64);

/* A freed one weighs 1 / this in the mean.
 * Origin: with one dense block in four the mean never says that they are sparse. */
TUNE(ZEROED_FADING, 8, 1, 64);

/* Places of a block that are looked at when it is freed.
 * Origin: a look at 2 MiB takes as long as two page faults. */
TUNE(ZEROED_LOOKS, 16, 1, 1024);

/* Kept blocks of a bin that are looked at for the best; a request may look into three bins.
 * Origin: as many blocks of 4 MiB as bigcache_max_mb holds by default. */
TUNE(HUGE_LOOKS, 16, 1, 1024);

/* Long blocks freed lately of which a second free is still called one.
 * Origin: guess at what a program frees between the two. */
TUNE(HUGE_NOTES, 64, 1, 4096);

/* ---- addresses, memory for our own structures, locks ---- */

/* Gibibytes of the largest window.
 * Origin: an eighth of a 47-bit address space. */
TUNE(LARGEST_WINDOW_GIB, 16384, 32, 65536);

/* The window has this many times the limit of addresses at most, where the process may raise it.
 * Origin: its tables take a twentieth of the limit, at 12.1 bytes for each unit of 8 KiB. */
TUNE(WINDOW_TIMES_SOFT_LIMIT, 32, 1, 64);

/* The same where only root may.
 * Origin: slabs have half of the window, and what others mapped in it is stepped over. */
TUNE(WINDOW_TIMES_HARD_LIMIT, 8, 1, WINDOW_TIMES_SOFT_LIMIT);

/* Gibibytes of the smallest window.
 * Origin: its tables cost 49 MiB of addresses, of which what maps used memory is touched. */
TUNE(SMALLEST_WINDOW_GIB, 32, 1, LARGEST_WINDOW_GIB);

/* Gibibytes of a window where nobody says how much memory the machine has (plain_syscalls).
 * Origin: its tables cost 194 MiB of addresses; few programs of one machine use more. */
TUNE(UNKNOWN_WINDOW_GIB, 128, SMALLEST_WINDOW_GIB, LARGEST_WINDOW_GIB);

/* Bytes for our own structures that may lie idle beside as many as are in use.
 * Origin: as for the idle memory of a class; the structures of forty threads. */
TUNE(META_IDLE, PAGES_WORTH_IT, 0, GIB);

/* Free bytes that become memory for our own structures where the kernel gives none.
 * Origin: they describe 64 to 128 MiB of slabs; less will do where there is less. */
TUNE(META_FED, 256 * KIB, 64 * KIB, 16 * MIB);

/* Blocks of no bytes that may live at once at addresses of their own, where frees are checked.
 * Origin: 1 MiB of addresses and 8 KiB of bits; programs keep few such blocks. */
TUNE(ZERO_BLOCK_COUNT, 65536, 64, 1048576);

/* Pauses that a lock spins before it sleeps.
 * Origin: 4 microseconds on the machines we know, longer than a critical section without a system
 * call and shorter than a sleep and wake-up. */
TUNE(SPIN_LIMIT, 100, 0, 10000);

/* ---- huge pages ---- */

/* Eighths of a chunk that hold memory where a program fills what it allocates.
 * Origin: guess; what it left out costs less than hundreds of page faults. */
TUNE(DENSE_EIGHTHS, 7, 1, 8);

/* Per cent of the cost of as many small pages that a huge page may take to be touched first.
 * Origin: guess; it saves misses of the address cache, which no clock of ours sees. */
TUNE(HUGE_PAGE_WORTH, 125, 10, 1000);

/* A first touch weighs 1 / 2^this in the mean.
 * Origin: guess; a heap of 40 MiB has had some. */
TUNE(HUGE_PAGE_FADING, 2, 1, 6);

/* Times the cost of as many small pages that one huge page counts at most.
 * Origin: one slow page then moves the mean by the cost of as many small pages at most. */
TUNE(HUGE_PAGE_WORST, 1 << HUGE_PAGE_FADING, 2, 64);

/* Chunks of small pages before a huge page is tried, again or in doubt; twice as many after each
 * that fails.
 * Origin: guess; a trial that fails costs as much as some chunks of small pages. */
TUNE(HUGE_PAGE_REST, 8, 1, 1024);

/* What that grows to.
 * Origin: guess; a huge page at twice the cost of small ones costs less than a hundredth then. */
TUNE(HUGE_PAGE_MOST_REST, 128, HUGE_PAGE_REST, 65536);

/* Chunks that are told to have no huge page because they have lost pages, at most.
 * Origin: with two more mappings for each it is a quarter of vm.max_map_count (65530). */
TUNE(SPARSE_CHUNKS_MOST, 8192, 0, 16384);

/* ---- the profile ---- */

/* Return addresses that a sample keeps at most, the innermost.
 * Origin: gperftools keeps 64. */
TUNE(PROFILE_DEPTH, 64, 4, 256);

/* Call stacks in a profile, and places for freed blocks where every block is a sample.
 * Origin: guess; 8 MiB and 1 MiB of addresses, of which what is used is touched. */
TUNE(PROFILE_SITES, 65536, 64, 4194304);

/* Return addresses of all of them together.
 * Origin: half of PROFILE_DEPTH for each; 16 MiB of addresses. */
TUNE(PROFILE_FRAMES, PROFILE_SITES * PROFILE_DEPTH / 2, 64, 134217728);

/* Sampled blocks in use at a time.
 * Origin: guess; 128 GiB in use at the default mean. */
TUNE(PROFILE_SAMPLES, 262144, 64, 16777216);

/* While the program runs, its profile is written again after this time, so that one is there when
 * the program is killed.
 * Origin: as often as upkeep looks at the clock. */
TUNE(PROFILE_PERIOD_MS, PURGE_PERIOD_MS, 1, 3600000);

/* And after so many times what the last writing took.
 * Origin: half a per cent of the time, what a profile may cost in all. */
TUNE(PROFILE_PERIOD_RATIO, 200, 1, 1000000);

/* The same where every block is a sample, for a leak report by call stacks.
 * Origin: guess; 208 MiB of addresses, of which what is used is touched. */
TUNE(LEAK_BLOCKS, 4194304, 64, 1073741824);

/* Statistics are written to a file again after this time.
 * Origin: what people look at changes once a second. */
TUNE(STATS_PERIOD_MS, 1000, 100, 3600000);

/* Milliseconds that the end of the process waits for a thread which is writing statistics, and for
 * a lock.
 * Origin: a period of statistics: a file that takes longer lies on another machine. */
TUNE(LAST_WAIT_MS, STATS_PERIOD_MS, 0, 60000);

/* Number that a file gets which is written later, if it is free; else the next one that is, or the
 * highest that the limit allows.
 * Origin: programs take the lowest free number, and few open a hundred at once. */
TUNE(OUTPUT_NUMBER, 100, 3, 1048576);

/* Samples of a block that follow it when realloc moves it: of where it was allocated first, and of
 * sampled moves since.
 * Origin: guess; a block that grows from 16 bytes to 32 KiB is sampled less often at most means. */
TUNE(FOLLOWED_MOST, 16, 1, 1024);

/* Pieces of code, as of shared libraries, that a profile names.
 * Origin: guess; large programs load some hundred libraries. */
TUNE(PROFILE_CODE_MOST, 1024, 1, 65536);

/* ---- policies ---- */

/* Options that a policy may set.
 * Origin: more than there are. */
TUNE(POLICY_OPTIONS_MOST, 64, 1, 1024);

/* Sites that a policy may name.
 * Origin: guess; a function whose blocks have all sizes takes 72. */
TUNE(SITE_RULES_MOST, 128, 1, 1024);

/* Return addresses that name a site: its own, and those of its callers.
 * Origin: bench/lifetimes.csv; in no recorded program do more than two functions stand between
 * malloc and the code that knows how long a block lives. */
TUNE(SITE_FRAMES_MOST, 3, 1, 3);

/* Bytes of stack within which these return addresses stand.
 * Origin: guess; the frames of functions that only pass a request on have less than a hundred. */
TUNE(SITE_SLOT_MOST, 1024, 8, 32768);

/* Bytes that a policy file may have.
 * Origin: 1 KiB for each site, with its comments. */
TUNE(POLICY_FILE_MOST, SITE_RULES_MOST *KIB, KIB, MIB);

/* Bytes of the longest blocks that may be in groups.
 * Origin: the longest size class (slab/size_class.h). */
TUNE(SITE_SIZE_MOST, 32768, 16, 32768);

/* Groups that they may be in.
 * Origin: guess; each has slabs of its own for each class, which are never full. */
TUNE(SITE_GROUPS, 15, 1, 15);

#endif
