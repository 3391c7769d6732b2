/* THE table of options. One row each:
 *
 *   OPTION(name, unit, min, max, balanced, minimal, checked, debug, sentence)
 *
 * `name` is what hakmem_option_get takes and, in capitals behind HAKMEM_, the environment variable.
 * Words that stand for a value are in option_words.h. A row's default stands in the column of the
 * mode and nowhere else; docs/options.md is made from this file. Included several times with
 * different meanings of OPTION, hence no include guard. The first mode is the default. */

OPTION(tiny_fast_cap, BLOCKS, 1, 124, 124, 124, 124, 124,
       "most free blocks of one size that a bin of a thread holds")
OPTION(bigcache, SWITCH, 0, 1, 1, 1, 1, 0,
       "keep freed blocks that have a mapping of their own for a while")
OPTION(bigcache_max_mb, MEBIBYTES, 0, 65536, 64, 64, 64, 0,
       "most memory that such kept blocks may hold")
OPTION(purge_delay_ms, MS, 0, 3600000, 500, 500, 500, 500,
       "how long unneeded free pages are kept before they go back to the kernel; if not set, "
       "price decides")
OPTION(free_policy, POLICY, 0, 2, 2, 1, 2, 2,
       "when free pages go back. keep: on demand or near a limit only; batch: pages that nobody "
       "needed for purge_delay_ms, and at once what exceeds the memory in use plus 64 MiB; "
       "adaptive: when freed, except for a sixteenth of the memory in use, up to 16 MiB, and what "
       "the program is known to need again within purge_delay_ms")
OPTION(price, PRICE, 1, 1000000, 700, 700, 700, 700,
       "processor time that may be spent to hold one GiB less for one second. If purge_delay_ms is "
       "not set, it becomes the time after which keeping a page costs more than its page fault")
OPTION(background, SWITCH, 0, 1, 0, 0, 0, 0,
       "start a thread that gives idle memory back while the program makes no calls; off: only "
       "calls of the program do so, and the library has no thread")
OPTION(limit_mb, MEBIBYTES, 0, 1048576, 0, 0, 0, 0,
       "soft limit: near and above it nothing free is kept; it makes no request fail; 0: none")
OPTION(watch_limits, SWITCH, 0, 1, 1, 1, 1, 1,
       "keep less when the control group, RLIMIT_AS or RLIMIT_DATA leaves little room; off: no "
       "file of /proc or /sys is opened")
OPTION(plain_syscalls, SWITCH, 0, 1, 0, 0, 0, 0,
       "make only the system calls that the malloc of glibc makes, for programs that a seccomp "
       "filter ends at others; turns watch_limits, background, thp_adaptive and huge pages off")
OPTION(thp_min_heap_mb, HEAP_SIZE, 0, 1048576, 8, 8, 8, 1048576,
       "size from which the page heap, or a growing block, gets huge pages where it is filled; 0: "
       "from the start, filled or not; off: it asks for none")
OPTION(thp_adaptive, SWITCH, 0, 1, 1, 1, 1, 0,
       "measure the cost of first touches of pages, and ask for no huge pages while they cost more "
       "than they save")
OPTION(junk, SWITCH, 0, 1, 0, 0, 0, 1,
       "fill memory with 0xa5 when allocated and 0xdf when freed, except by hakmem_heap_destroy; "
       "every call takes the slow path")
OPTION(size_check, SWITCH, 0, 1, 0, 0, 1, 1,
       "end the program if free_sized or a sized delete names more bytes than the block has; with "
       "check_frees any size but the requested one; without it every call takes the slow path")
OPTION(check_frees, SWITCH, 0, 1, 0, 0, 1, 1,
       "end the program at once at every invalid free, realloc or sized delete; off: at some "
       "later, at some never")
OPTION(leak_report, LEAKS, 0, 2, 0, 0, 0, 1,
       "report at exit how many blocks were never freed, with the ten sizes of most bytes; stacks: "
       "also the code that allocated them, in the mode debug only, which takes time")
OPTION(profile_mean_kb, KIBIBYTES, 1, 1048576, 512, 512, 512, 512,
       "bytes that are allocated from one sample of a profile to the next, on average")
OPTION(report_fd, DESCRIPTOR, 0, 2147483647, 2, 2, 2, 2,
       "where warnings and reports are written; nothing is written if that file is not open")
OPTION(deepbind, SWITCH, 0, 1, 0, 0, 0, 0,
       "let dlopen use RTLD_DEEPBIND; off: the flag is removed, since it would split the heap")
OPTION(ld_safe, SWITCH, 0, 1, 0, 0, 0, 0,
       "serve everything from the C library's own malloc, except private heaps")
OPTION(free_route_trace, SWITCH, 0, 1, 0, 0, 0, 0,
       "print at exit which route served the calls; only a diagnostic build counts them")
