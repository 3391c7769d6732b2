/* Programs that have freed 200 MiB and then confine themselves, drop rights, or are confined. Each
   test does what a program of one thread may do with the C library's malloc. */
#include "filter.h"
#include "stress/resident.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

enum { NOBODY = 65534, KEPT_KIB = 48 * 1024, SECONDS_MOST = 60 };

/* Of the kernel's interface, for headers older than these. */
enum { READ_FILE = 1 << 2, CREATE_RULESET = 444, RESTRICT_SELF = 446, CLONE3 = 435 };

enum { MEBIBYTE = 1 << 20, USED_BYTES = 200 * MEBIBYTE, BLOCKS_MOST = 25000 };

static char *blocks[BLOCKS_MOST];

static void fill(size_t size)
{
    for (size_t at = 0; at < USED_BYTES / size; at++) {
        blocks[at] = (char *)malloc(size);
        check(blocks[at] != NULL);
        memset(blocks[at], 1, size);
    }
}

static void free_backwards(size_t size)
{
    for (size_t at = USED_BYTES / size; at-- > 0;) free(blocks[at]);
}

/* Fills and frees 200 MiB, four times: blocks of slabs, of pages, and some with mappings. */
static void use_much(void)
{
    static const size_t sizes[] = {10000, 60000, 1000000, 50 * MEBIBYTE};
    for (unsigned which = 0; which < 4; which++) {
        fill(sizes[which]);
        free_backwards(sizes[which]);
    }
}

/* A field of a task's file `status`, as text without the name; "" when there is none. */
static const char *status_field(const char *process, const char *task, const char *name)
{
    static char line[300];
    char path[100];
    (void)snprintf(path, sizeof path, "/proc/%s/task/%s/status", process, task);
    FILE *file = fopen(path, "re");
    if (file == NULL) return "";
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
            (void)fclose(file);
            return line + strlen(name) + 2;
        }
    (void)fclose(file);
    return "";
}

/* Calls `visit` (or nothing) with each task of the process, and returns how many there are. */
static unsigned visit_tasks(const char *process, void (*visit)(const char *, const char *))
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%s/task", process);
    DIR *folder = opendir(path);
    if (folder == NULL) return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        if (visit != NULL) visit(process, entry->d_name);
        count++;
    }
    (void)closedir(folder);
    return count;
}

static void be_alone(void) { check_eq(visit_tasks("self", NULL), 1); }

test(a_program_stays_alone)
{
    be_alone();
    use_much();
    be_alone();
    use_much();
    be_alone();
}

enum { NEW_TASKS = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK };

/* So no test has to look for what another task would share or keep: files, folders, namespaces,
   rights and capabilities. */
test(a_debugger_sees_no_task_made)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        check_eq(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
        check_eq(raise(SIGSTOP), 0);
        use_much();
        _exit(0);
    }
    check_eq(waitpid(child, &status, 0), child);
    check_eq(ptrace(PTRACE_SETOPTIONS, child, NULL, NEW_TASKS | PTRACE_O_EXITKILL), 0);
    while (WIFSTOPPED(status)) {
        check_eq(status >> 16, 0);
        check_eq(ptrace(PTRACE_CONT, child, NULL, 0), 0);
        check(waitpid(-1, &status, __WALL) > 0);
    }
    check_eq(status, 0);
}

test(a_user_namespace_is_made)
{
    use_much();
    check_eq(unshare(CLONE_NEWUSER), 0);
    be_alone();
}

/* ---- rights ---- */

static void become(uid_t user)
{
    check_eq(setgroups(0, NULL), 0);
    check_eq(setresgid(user, user, user), 0);
    check_eq(setresuid(user, user, user), 0);
}

test(a_user_who_may_have_two_tasks_forks)
{
    struct rlimit two = {2, 2};
    int status;
    become((uid_t)(1000000 + getpid())); /* of whom nothing else runs */
    check_eq(setrlimit(RLIMIT_NPROC, &two), 0);
    use_much();
    pid_t child = fork();
    if (child == 0) _exit(0);
    check(child > 0);
    check(waitpid(child, &status, 0) == child && status == 0);
}

static void have_no_rights(const char *process, const char *task)
{
    check_eq(strcmp(status_field(process, task, "Uid"), "65534\t65534\t65534\t65534\n"), 0);
    check_eq(strcmp(status_field(process, task, "CapPrm"), "0000000000000000\n"), 0);
    check_eq(strcmp(status_field(process, task, "CapEff"), "0000000000000000\n"), 0);
}

test(no_task_keeps_the_rights_that_the_library_drops)
{
    use_much();
    become(NOBODY);
    check_eq(visit_tasks("self", have_no_rights), 1);
    use_much();
    check_eq(visit_tasks("self", have_no_rights), 1);
}

static void *fail_to_open(void *unused)
{
    check_eq(open("/etc/passwd", O_RDONLY | O_CLOEXEC), -1);
    check_eq(errno, EACCES);
    return unused;
}

test(landlock_binds_every_thread)
{
    uint64_t handled = READ_FILE;
    pthread_t thread;
    use_much();
    int rules = (int)syscall(CREATE_RULESET, &handled, sizeof handled, 0);
    check(rules >= 0);
    check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    check_eq(syscall(RESTRICT_SELF, rules, 0), 0);
    be_alone();
    (void)fail_to_open(NULL);
    check_eq(pthread_create(&thread, NULL, fail_to_open, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
    use_much();
}

/* As servers do: fork, a root folder of its own, no rights; then it works. */
static void serve(void)
{
    check(setsid() > 0);
    use_much();
    fill(10000);
    check_eq(chroot("."), 0);
    check_eq(chdir("/"), 0);
    become(NOBODY);
    free_backwards(10000);
    use_much();
    check_eq(raise(SIGSTOP), 0);
    _exit(0);
}

test(a_daemon_in_a_jail_has_no_rights)
{
    char name[16];
    int status;
    use_much();
    pid_t child = fork();
    if (child == 0) serve();
    check(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    (void)snprintf(name, sizeof name, "%d", (int)child);
    check_eq(visit_tasks(name, have_no_rights), 1);
    check_eq(kill(child, SIGCONT), 0);
    check(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- filters of system calls ---- */

/* What starts threads and waits, which no program of one thread does by malloc. */
static void forbid_threads(void)
{
    static const int calls[] = {SYS_clone, CLONE3, SYS_nanosleep, SYS_clock_nanosleep,
                                SYS_membarrier, SYS_rt_sigprocmask, SYS_kill};
    check(filter(calls, sizeof calls / sizeof *calls, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW));
}

test(a_filter_against_threads_kills_nobody)
{
    forbid_threads();
    use_much();
    use_much();
}

/* What the C library's malloc calls, and the calls that end such a program. */
static void leave_malloc_alone(void)
{
    static const int calls[] = {SYS_write, SYS_exit_group, SYS_exit, SYS_mmap, SYS_munmap,
                                SYS_mremap, SYS_brk, SYS_futex, SYS_mprotect};
    (void)printf("standard output has its buffer\n");
    check(filter(calls, sizeof calls / sizeof *calls, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS));
}

test(a_filter_for_malloc_alone_kills_nobody)
{
    leave_malloc_alone();
    use_much();
    use_much();
}

/* The rounds before leave memory behind that goes back under the filter. */
test(a_filter_for_malloc_alone_kills_nobody_late)
{
    use_much();
    leave_malloc_alone();
    use_much();
    use_much();
}

static pthread_barrier_t all;

static void *use_some_under_a_filter(void *unused)
{
    static _Thread_local void *some[2000];
    (void)pthread_barrier_wait(&all);
    for (size_t at = 0; at < 4000; at++) {
        free(some[at % 2000]);
        memset(some[at % 2000] = malloc(at * 20 + 1), 1, at * 20 + 1);
    }
    for (size_t at = 0; at < 2000; at++) free(some[at]);
    (void)pthread_barrier_wait(&all);
    for (;;) (void)pthread_barrier_wait(&all); /* the process ends first */
    return unused;
}

/* Each thread allocates for the first time under the filter. The C library's malloc itself calls
   madvise and sched_getaffinity in such threads. */
test(a_filter_for_malloc_alone_kills_no_thread)
{
    static const int calls[] = {SYS_mincore, SYS_sysinfo, SYS_getpid};
    pthread_t thread;
    check_eq(pthread_barrier_init(&all, NULL, 9), 0);
    check(filter(calls, sizeof calls / sizeof *calls, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW));
    for (unsigned at = 0; at < 8; at++)
        check_eq(pthread_create(&thread, NULL, use_some_under_a_filter, NULL), 0);
    (void)pthread_barrier_wait(&all);
    (void)pthread_barrier_wait(&all);
}

static int nowhere;
static volatile sig_atomic_t trapped;

static void write_when_trapped(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
#ifdef __x86_64__
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
#endif
    if (write(nowhere, "trapped\n", 8) == 8) trapped++;
    errno = 0;
}

test(a_handler_of_trapped_calls_writes)
{
    static const int calls[] = {SYS_madvise};
    struct sigaction action = {.sa_sigaction = write_when_trapped, .sa_flags = SA_SIGINFO};
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    check_eq(sigaction(SIGSYS, &action, NULL), 0);
    use_much();
    check(filter(calls, 1, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW));
    use_much();
    be_alone();
}

/* ---- children of a bare clone ---- */

static pid_t bare_clone(void)
{
    (void)fflush(stdout);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) (void)alarm(SECONDS_MOST); /* the end of one that hangs */
    return child;
}

static void end_well(pid_t child)
{
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

static void allocate_many_sizes(void)
{
    static void *volatile block;
    for (size_t size = 16; size < 4 * MEBIBYTE; size += size / 2) {
        block = malloc(size);
        check(block != NULL);
        free(block);
    }
}

test(no_child_of_a_bare_clone_hangs)
{
    use_much();
    for (unsigned turn = 0; turn < 600; turn++) {
        for (size_t at = 0; at < 400; at++) memset(blocks[at] = malloc(60000), 1, 60000);
        for (size_t at = 400; at-- > 200;) free(blocks[at]);
        pid_t child = bare_clone();
        if (child == 0) {
            allocate_many_sizes();
            _exit(0);
        }
        for (size_t at = 200; at-- > 0;) free(blocks[at]);
        end_well(child);
    }
}

test(a_child_of_a_bare_clone_gives_back_what_it_frees)
{
    size_t half = USED_BYTES / 10000 / 2;
    fill(10000);
    for (size_t at = 2 * half; at-- > half;) free(blocks[at]);
    pid_t child = bare_clone();
    if (child == 0) {
        while (half-- > 0) free(blocks[half]);
        check(resident_kib() < KEPT_KIB);
        _exit(0);
    }
    end_well(child);
}

/* Rounds within the delay are kept: the child goes on, and gives that back. */
test(a_child_of_a_bare_clone_gives_back_what_its_parent_kept)
{
    for (unsigned round = 0; round < 4; round++) {
        fill(60000);
        free_backwards(60000);
    }
    pid_t child = bare_clone();
    if (child == 0) {
        while (resident_kib() >= KEPT_KIB) {
            allocate_many_sizes();
            (void)usleep(20000);
        }
        _exit(0);
    }
    end_well(child);
}

/* ---- time namespaces ---- */

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* The child's clock says that the machine has just started. */
test(a_child_whose_clock_is_earlier_gives_back_what_it_frees)
{
    char text[64];
    struct timespec now;
    check_eq(unshare(CLONE_NEWTIME | (geteuid() != 0 ? CLONE_NEWUSER : 0)), 0);
    check_eq(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    int length = snprintf(text, sizeof text, "monotonic -%jd 0\n", (intmax_t)now.tv_sec - 1);
    check(file >= 0 && write(file, text, (size_t)length) == length);
    use_much();
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(SECONDS_MOST); /* the end of one that keeps it for ever */
        use_much();
        while (resident_kib() >= KEPT_KIB) {
            allocate_many_sizes();
            (void)usleep(20000);
        }
        _exit(0);
    }
    end_well(child);
}

check_main()
