/* How much stack the calls take, with every report on: at most 4 KiB below the program's frame, and
   none overflows a stack of 16 KiB. Each call is made again and again in a thread whose stack is
   painted before; the deepest byte that lost its paint tells.

   Some calls end their process. The program therefore starts itself again for each setting, and
   reads from shared memory how deep the other was. There a clock that runs ahead with every look at
   it makes whatever happens now and then (upkeep, the file of statistics, the profile) happen in
   nearly every call that misses. */
#include "every_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum {
    DEPTH_MOST = 4096,
    EXIT_MOST = 8192, /* the report of leaks asks the loader for the C++ runtime */
    SHORT_STACK = 16 * 1024, /* PTHREAD_STACK_MIN of most processors, some want more */
    LONG_STACK = 256 * 1024, /* so that a failure has a number */
    PAINTED = 32 * 1024,
    CALLS_MOST = 64,
    TICK_MS = 1100, /* more than the period of every report */
    PAINT = 0x5a,
    KNOWN_BYTES = 512 /* what may be in use below the frame from which the stack is painted */
};

/* Shared between the two processes. */
typedef struct findings {
    size_t depths[CALLS_MOST];
    size_t clock_looks;
    ptrdiff_t base; /* where the call began, in the stack */
} findings_t;

static findings_t *findings;
static char *stack; /* LONG_STACK bytes */
static const char *program;

/* ---- the clock ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static uint64_t ms;
    const long result = syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME || findings == NULL) return (int)result;
    const uint64_t now = __atomic_add_fetch(&ms, TICK_MS, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&findings->clock_looks, 1, __ATOMIC_RELAXED);
    time->tv_sec += (time_t)(now / 1000);
    return (int)result;
}

/* ---- the calls ---- */

static void call_in_child(void); /* below */

typedef struct call {
    const char *name;
    void (*run)(void);
    const char *message; /* of a call that ends the process; NULL: another call */
} call_t;

static const call_t calls[] = {
    {"malloc", call_malloc, NULL},
    {"calloc", call_calloc, NULL},
    {"realloc", call_realloc, NULL},
    {"reallocarray", call_reallocarray, NULL},
    {"aligned_alloc", call_aligned_alloc, NULL},
    {"memalign", call_memalign, NULL},
    {"valloc", call_valloc, NULL},
    {"posix_memalign", call_posix_memalign, NULL},
    {"free_sized", call_free_sized, NULL},
    {"malloc_usable_size, hakmem_owns", call_malloc_usable_size, NULL},
    {"malloc_trim", call_malloc_trim, NULL},
    {"hakmem_malloc_group", call_malloc_group, NULL},
    {"hakmem_aligned_alloc_group", call_aligned_group, NULL},
    {"operator new", call_new, NULL},
    {"operator new, aligned", call_new_aligned, NULL},
    {"hakmem_heap_…", call_heap, NULL},
    {"hakmem_get_statistics", call_get_statistics, NULL},
    {"hakmem_purge", call_purge, NULL},
    {"hakmem_idle, hakmem_check", call_idle, NULL},
    {"hakmem_profile_…", call_profile, NULL},
    {"malloc in the child of a fork", call_in_child, NULL},
#ifdef __GLIBC__
    {"mallinfo", call_mallinfo, NULL},
    {"pvalloc", call_pvalloc, NULL},
    {"malloc_stats", call_malloc_stats, NULL},
    {"malloc_info", call_malloc_info, NULL},
#endif
    {"exit", end_by_exit, ""},
    {"double free", end_by_double_free, "hakmem: double free of "},
    {"free inside a block", end_by_free_inside, "which points inside a block"},
    {"free of another address", end_by_free_of_stack, "which is not an address of this heap"},
    {"exit after a double free", end_by_exit_after_double_free, "hakmem: double free of "},
};
enum { CALL_COUNT = sizeof calls / sizeof calls[0] };

/* ---- the process that is measured ---- */

/* 0: nothing was painted. */
static size_t depth_below(ptrdiff_t start)
{
    const char *base = stack + start;
    if (start == 0) return 0;
    const char *deepest = base - PAINTED;
    while (deepest < base && *deepest == PAINT) deepest++;
    return (size_t)(base - deepest);
}

/* In the thread. */
static __attribute__((noinline)) void *measured(void *call)
{
    char *base = __builtin_frame_address(0);
    findings->base = base - stack;
    for (volatile char *at = base - PAINTED; at < base - KNOWN_BYTES; at++) *at = PAINT;
    ((const call_t *)call)->run();
    return NULL;
}

/* In one whose stack is short: what lies below may not be touched. */
static void *unmeasured(void *call)
{
    ((const call_t *)call)->run();
    return NULL;
}

static void run(const call_t *call, size_t size)
{
    pthread_attr_t attributes;
    pthread_t thread;
    char *start = stack + LONG_STACK - size;
    check_eq(pthread_attr_init(&attributes), 0);
    check_eq(pthread_attr_setstack(&attributes, start, size), 0);
    check_eq(mprotect(stack, LONG_STACK - size, PROT_NONE), 0);
    check_eq(pthread_create(&thread, &attributes, size == LONG_STACK ? measured : unmeasured,
                            (void *)(uintptr_t)call), 0);
    check_eq(pthread_join(thread, NULL), 0);
    if (size == LONG_STACK) {
        const size_t depth = depth_below(findings->base);
        if (depth > findings->depths[call - calls]) findings->depths[call - calls] = depth;
    }
}

/* The child's stack is a copy, which the child has to look at itself. */
static void call_in_child(void)
{
    int status;
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        call_malloc();
        const size_t depth = depth_below(findings->base);
        for (const call_t *call = calls; call < calls + CALL_COUNT; call++)
            if (call->run == call_in_child) findings->depths[call - calls] = depth;
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child && status == 0);
}

static size_t stack_size(bool is_short)
{
    if (!is_short) return LONG_STACK;
    const size_t least = (size_t)PTHREAD_STACK_MIN;
    return least > SHORT_STACK ? least : SHORT_STACK;
}

/* `which`: the number of a call that ends the process; CALLS_MOST: all others. */
static int run_in(unsigned which, bool is_short)
{
    void *sink = hidden(malloc(100)); /* not freed: for the report of leaks */
    check(sink != NULL);
    stream = fopen("/dev/null", "w");
    check(stream != NULL);
    if (which != CALLS_MOST) {
        run(&calls[which], stack_size(is_short));
        return 0; /* a wrong free may be found at exit only */
    }
    for (const call_t *call = calls; call < calls + CALL_COUNT; call++)
        if (call->message == NULL) run(call, stack_size(is_short));
    return 0;
}

/* ---- the process that measures ---- */

static void *share(int file, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    check(memory != MAP_FAILED);
    return memory;
}

static int new_file(const char *name, size_t size)
{
    const int file = (int)syscall(SYS_memfd_create, name, 0);
    check(file >= 0 && ftruncate(file, (off_t)size) == 0);
    return file;
}

/* Starts the program again, and returns its wait status. */
static int start_with(const char *const *settings, unsigned which, bool is_short, int memory,
                      int errors)
{
    int status;
    char text[3][64];
    (void)snprintf(text[0], sizeof text[0], "%u", which);
    (void)snprintf(text[1], sizeof text[1], "%d", is_short);
    (void)snprintf(text[2], sizeof text[2], "%d", memory);
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        char setting[256];
        check(setenv("LD_BIND_NOW", "1", 1) == 0); /* else the loader works on the stack as well */
        for (; *settings != NULL; settings++) {
            (void)snprintf(setting, sizeof setting, *settings, folder);
            char *value = strchr(setting, '=');
            *value = '\0';
            check(setenv(setting, value + 1, 1) == 0);
        }
        check(dup2(errors, STDERR_FILENO) == STDERR_FILENO);
        (void)execl(program, program, "--in", text[0], text[1], text[2], folder, NULL);
        _exit(CHECK_SKIPPED); /* an emulator does not start itself again */
    }
    check(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIPPED)
        check_skip("the program cannot start itself");
    return status;
}

static unsigned too_deep;

static void judge(const char *setting, const call_t *call, size_t depth)
{
    const size_t most = call->run == end_by_exit ? EXIT_MOST : DEPTH_MOST;
    if (getenv("SHOW_DEPTHS") != NULL || depth > most)
        (void)printf("%zu bytes: %s (%s)\n", depth, call->name, setting);
    check(depth != 0);
    too_deep += depth > most;
}

static void measure(const char *title, const char *const *settings, unsigned which, bool is_short)
{
    const size_t page = (size_t)getpagesize();
    const int memory = new_file("depths", page + LONG_STACK);
    const int errors = new_file("errors", 0);
    findings_t *seen = share(memory, page + LONG_STACK);
    char said[16384] = "";
    const int status = start_with(settings, which, is_short, memory, errors);
    check(pread(errors, said, sizeof said - 1, 0) >= 0);
    const bool is_end = which != CALLS_MOST && calls[which].message[0] != '\0';
    const bool is_abort = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    const bool is_good = is_end ? is_abort : status == 0;
    if (!is_good || (is_end && strstr(said, calls[which].message) == NULL)) {
        (void)printf("%s, %s, %s stack: status 0x%x, and it says:\n%s\n", title,
                     which == CALLS_MOST ? "all calls" : calls[which].name,
                     is_short ? "short" : "long", (unsigned)status, said);
        too_deep++;
    }
    check(seen->clock_looks != 0 || which != CALLS_MOST);
    if (!is_short && which == CALLS_MOST) {
        for (unsigned number = 0; number < CALL_COUNT && is_good; number++)
            if (calls[number].message == NULL) judge(title, &calls[number], seen->depths[number]);
    } else if (!is_short) {
        stack = (char *)seen + page;
        judge(title, &calls[which], depth_below(seen->base));
    }
    check(munmap(seen, page + LONG_STACK) == 0 && close(memory) == 0 && close(errors) == 0);
}

/* Removes the files, and returns how many there were with something in them. */
static unsigned take_files(void)
{
    unsigned count = 0;
    char path[512];
    DIR *files = opendir(folder);
    check(files != NULL);
    for (const struct dirent *file; (file = readdir(files)) != NULL;) {
        if (file->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        const int number = open(path, O_RDONLY);
        check(number >= 0);
        count += lseek(number, 0, SEEK_END) > 0;
        check(close(number) == 0 && unlink(path) == 0);
    }
    check_eq(closedir(files), 0);
    return count;
}

static void measure_all(const char *title, const char *const *settings, unsigned files)
{
    char made[] = "/tmp/hakmem_stack_XXXXXX";
    folder = mkdtemp(made);
    check(folder != NULL);
    too_deep = 0;
    for (unsigned is_short = 0; is_short < 2; is_short++) {
        measure(title, settings, CALLS_MOST, is_short != 0);
        check_eq(take_files(), files); /* every one that was asked for */
        for (unsigned number = 0; number < CALL_COUNT; number++)
            if (calls[number].message != NULL) measure(title, settings, number, is_short != 0);
    }
    (void)take_files();
    check_eq(rmdir(folder), 0);
    check_eq(too_deep, 0);
}

#define FILES "HAKMEM_STATS=%s/stats", "HAKMEM_PROFILE=%s/profile", "HAKMEM_PROFILE_MEAN_KB=1"

test(with_a_file_of_statistics)
{
    static const char *const settings[] = {"HAKMEM_STATS=%s/stats", NULL};
    measure_all("statistics", settings, 2);
}

test(with_every_file_and_a_report_of_leaks)
{
    static const char *const settings[] = {FILES, "HAKMEM_LEAK_REPORT=1", NULL};
    measure_all("all files", settings, 3);
}

test(in_the_checked_mode)
{
    static const char *const settings[] = {FILES, "HAKMEM_LEAK_REPORT=1", "HAKMEM_MODE=checked",
                                           "HAKMEM_FREE_ROUTE_TRACE=1", NULL};
    measure_all("checked", settings, 3);
}

test(in_the_debug_mode_with_stacks)
{
    static const char *const settings[] = {FILES, "HAKMEM_LEAK_REPORT=stacks", "HAKMEM_MODE=debug",
                                           NULL};
    measure_all("debug", settings, 3);
}

test(near_a_limit)
{
    static const char *const settings[] = {"HAKMEM_STATS=exit", "HAKMEM_LIMIT_MB=32",
                                           "HAKMEM_MODE=minimal", NULL};
    measure_all("near a limit", settings, 1);
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem()) check_skip("of HAKMEM alone");
    program = argv[0];
    if (argc != 6 || strcmp(argv[1], "--in") != 0) return check_run(argc, argv);
    const unsigned which = (unsigned)strtoul(argv[2], NULL, 10);
    char *memory = share((int)strtol(argv[4], NULL, 10), (size_t)getpagesize() + LONG_STACK);
    stack = memory + getpagesize();
    if (which == CALLS_MOST) /* a child of it has a stack of its own */
        check(mmap(stack, LONG_STACK, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == stack);
    folder = argv[5];
    findings = (findings_t *)(void *)memory;
    return run_in(which, argv[3][0] == '1');
}
