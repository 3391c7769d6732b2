/* Rows of the tuning table (options/tuning.h) that are about looking on: profiles, statistics in
 * files, policies. */
#ifndef HAKMEM_OPTIONS_TUNING_OBSERVE_H
#define HAKMEM_OPTIONS_TUNING_OBSERVE_H

#include "base/types.h"
#include "options/tuning_range.h"

/* ---- the profile ---- */

/* Return addresses that a sample keeps at most, the innermost.
 * Origin: gperftools keeps 64. */
#define PROFILE_DEPTH 64
TUNING_RANGE(PROFILE_DEPTH, 4, 256);

/* Different call stacks that a profile has room for; a quarter of the places stays free.
 * Origin: guess; 5 MiB of addresses, of which what is used is touched. */
#define PROFILE_SITES 65536
TUNING_RANGE(PROFILE_SITES, 64, 4194304);

/* Return addresses of all of them together.
 * Origin: guess; 32 for each, 12 MiB of addresses. */
#define PROFILE_FRAMES (PROFILE_SITES * 3 / 4 * 32)
TUNING_RANGE(PROFILE_FRAMES, 64, 134217728);

/* Sampled blocks in use at a time.
 * Origin: guess; 128 GiB in use at the default mean. */
#define PROFILE_SAMPLES 262144
TUNING_RANGE(PROFILE_SAMPLES, 64, 16777216);

/* The same where every block is a sample, for a leak report by call stacks.
 * Origin: guess; 208 MiB of addresses, of which what is used is touched. */
#define LEAK_BLOCKS 4194304
TUNING_RANGE(LEAK_BLOCKS, 64, 1073741824);

/* Freed blocks of which such a run knows who has freed them: places, one for each hash.
 * Origin: guess; 1 MiB of addresses, of which what is used is touched. */
#define FREED_STACKS 65536
TUNING_RANGE(FREED_STACKS, 64, 16777216);

/* Bytes of an allocation trace that are written at a time.
 * Origin: guess; some ten thousand records. */
#define TRACE_BUFFER (64 * KIB)
TUNING_RANGE(TRACE_BUFFER, 64 * KIB, 64 * MIB);

/* Statistics are written to a file again after this time.
 * Origin: what people look at changes once a second. */
#define STATS_PERIOD_MS 1000
TUNING_RANGE(STATS_PERIOD_MS, 100, 3600000);

/* Milliseconds that the end of the process waits for a thread which is writing statistics, and for
 * a lock.
 * Origin: guess; a file that takes longer lies on another machine. */
#define LAST_WAIT_MS 1000
TUNING_RANGE(LAST_WAIT_MS, 0, 60000);

/* Number that a file gets which is written later, if it is free; else the next one that is, or the
 * highest that the limit allows.
 * Origin: programs take the lowest free number, and few open a hundred at once. */
#define OUTPUT_NUMBER 100
TUNING_RANGE(OUTPUT_NUMBER, 3, 1048576);

/* Pieces of code, as of shared libraries, that a profile names.
 * Origin: guess; large programs load some hundred libraries. */
#define PROFILE_CODE_MOST 1024
TUNING_RANGE(PROFILE_CODE_MOST, 1, 65536);

/* ---- policies ---- */

/* Bytes that a policy file may have.
 * Origin: guess; SITE_RULES_MOST sites with as long comments. */
#define POLICY_FILE_MOST (64 * KIB)
TUNING_RANGE(POLICY_FILE_MOST, KIB, MIB);

/* Options that a policy may set.
 * Origin: more than there are. */
#define POLICY_OPTIONS_MOST 64
TUNING_RANGE(POLICY_OPTIONS_MOST, 1, 1024);

/* Sites that a policy may name.
 * Origin: guess; a few sites hold most of what lives long. */
#define SITE_RULES_MOST 64
TUNING_RANGE(SITE_RULES_MOST, 1, 1024);

/* Bytes of the longest blocks that may be in groups.
 * Origin: the longest size class (slab/size_class.h). */
#define SITE_SIZE_MOST 32768
TUNING_RANGE(SITE_SIZE_MOST, 16, 32768);

/* Groups that they may be in.
 * Origin: guess; each has slabs of its own for each class, which are never full. */
#define SITE_GROUPS 15
TUNING_RANGE(SITE_GROUPS, 1, 15);

/* Bytes from which on a rule for large blocks holds: each has a mapping of its own then.
 * Origin: guess; two system calls cost less than a hundredth of writing as much. */
#define SITE_LARGE_LEAST (256 * KIB)
TUNING_RANGE(SITE_LARGE_LEAST, 64 * KIB, GIB);

/* Milliseconds that a freed block waits longer where a rule says `keep`.
 * Origin: guess; eight purge delays. */
#define SITE_KEPT_MS 4000
TUNING_RANGE(SITE_KEPT_MS, 0, 60000);

/* Times bigcache_max_mb up to which such blocks are kept, beside all others.
 * Origin: guess; a wrong policy holds some hundred MiB at worst. */
#define SITE_KEPT_TIMES 4
TUNING_RANGE(SITE_KEPT_TIMES, 1, 64);

/* Per cent more than realloc was asked for that a rule may give at most.
 * Origin: a block that is less than half full moves when it is resized (entry/realloc.c), and
 * classes round up by an eighth. */
#define SITE_ROOM_MOST 75
TUNING_RANGE(SITE_ROOM_MOST, 1, 100);

#endif
