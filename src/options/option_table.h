/* THE table of options. One row each:
 *
 *   OPTION(name, unit, min, max, balanced, minimal, checked, debug, sentence)
 *
 * `name` is what hakmem_option_get takes and, in capitals behind HAKMEM_, the environment variable.
 * Words that stand for a value are in option_words.h. A row's default stands in the column of the
 * mode and nowhere else; docs/options.md is made from this file. Included several times with
 * different meanings of OPTION, hence no include guard. The first mode is the default. */

OPTION(tiny_fast_cap, BLOCKS, 1, 124, 124, 124, 124, 124,
       "most blocks that one bin of a thread holds")
OPTION(bigcache, SWITCH, 0, 1, 1, 1, 1, 0,
       "keep freed blocks that have a mapping of their own mapped for a while")
OPTION(bigcache_max_mb, MEBIBYTES, 0, 65536, 64, 64, 64, 0,
       "most memory that such freed blocks may hold")
OPTION(purge_delay_ms, MS, 0, 3600000, 500, 500, 500, 500,
       "how long free pages stay that nobody needs, before the kernel gets them back; where it is "
       "not set, price says it")
OPTION(free_policy, POLICY, 0, 2, 2, 1, 2, 2,
       "keep: free pages go back on demand or near a limit only; batch: once nobody needed them "
       "for purge_delay_ms, and at once what is more than is in use and 64 MiB; adaptive: as they "
       "are freed, but for a sixteenth of what is in use, 16 MiB, and what the program is known "
       "to want again within purge_delay_ms. Who sets that, and neither this nor the mode, gets "
       "batch")
OPTION(price, PRICE, 1, 1000000, 700, 700, 700, 700,
       "what it is worth to hold a GiB less for a second; sets purge_delay_ms, where that is not "
       "set, to the time after which page faults are cheaper")
OPTION(background, SWITCH, 0, 1, 0, 0, 0, 0,
       "have a thread that gives idle memory back while the program makes no calls; off: its calls "
       "do that, and the library has no thread")
OPTION(fit_classes, SWITCH, 0, 1, 1, 1, 1, 1,
       "make size classes that fit the sizes which the program has many blocks of, while it runs")
OPTION(processor_groups, GROUPS, 0, 16, 0, 0, 0, 0,
       "so many groups of processors have central lists and depots of their own, from the start; "
       "0: a group for eight cores with one last-level cache, once there are four threads")
OPTION(limit_mb, MEBIBYTES, 0, 1048576, 0, 0, 0, 0,
       "soft limit: near and above it nothing free is kept; no request fails for it; 0: none")
OPTION(watch_limits, SWITCH, 0, 1, 1, 1, 1, 1,
       "keep less where the control group, RLIMIT_AS or RLIMIT_DATA leaves little room; off: no "
       "file of /proc or /sys is opened")
OPTION(thp_min_heap_mb, HEAP_SIZE, 0, 1048576, 8, 8, 8, 1048576,
       "size of the page heap, or of a growing block, that gets huge pages where it is filled; 0: "
       "from the start, filled or not; off: no huge pages")
OPTION(thp_adaptive, SWITCH, 0, 1, 1, 1, 1, 0,
       "measure what first touches of pages cost, and leave huge pages out while they cost more "
       "than they bring")
OPTION(junk, SWITCH, 0, 1, 0, 0, 0, 1,
       "fill memory with 0xa5 when allocated and 0xdf when freed, but not by hakmem_heap_destroy; "
       "every call takes the slow path")
OPTION(size_check, SWITCH, 0, 1, 0, 0, 1, 1,
       "stop when free_sized or a sized delete names more bytes than the block has; with "
       "check_frees any other size than was asked for; without it every call takes the slow path")
OPTION(check_frees, SWITCH, 0, 1, 0, 0, 1, 1,
       "stop every bad free, realloc or sized delete at once; off: some only later, or never")
OPTION(leak_report, LEAKS, 0, 2, 0, 0, 0, 1,
       "tell at exit how many blocks were never freed, and of which ten sizes most bytes; stacks: "
       "also which code has allocated them, in the mode debug only, where it takes time")
OPTION(profile_mean_kb, KIBIBYTES, 1, 1048576, 512, 512, 512, 512,
       "bytes that are allocated from one sample of a profile to the next, in the mean")
OPTION(report_fd, DESCRIPTOR, 0, 2147483647, 2, 2, 2, 2,
       "where warnings and reports are written; nothing is written if that file is not open")
OPTION(deepbind, SWITCH, 0, 1, 0, 0, 0, 0,
       "leave RTLD_DEEPBIND to dlopen; off: it is taken away, since it would split the heap in two")
OPTION(ld_safe, SWITCH, 0, 1, 0, 0, 0, 0,
       "serve everything from the C library's own malloc, but for hakmem_heap_new")
OPTION(free_route_trace, SWITCH, 0, 1, 0, 0, 0, 0,
       "print at exit which route served the calls; only a diagnostic build counts them")
