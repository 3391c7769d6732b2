/* Programs that have freed 200 MiB and then confine themselves, drop rights, or are confined. Each
   test does what a program of one thread may do with the C library's malloc. */
#include "sandboxed.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { NOBODY = 65534, KEPT_KIB = 48 * 1024, SECONDS_MOST = 60 };

/* Of the kernel's interface, for headers older than these. */
enum { NEW_TIME_NAMESPACE = 0x80, UNSHARE_RANGE = 2, READ_FILE = 1 << 2 };
enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, CLOSE_RANGE = 436, CLONE3 = 435 };

static void be_alone(void) { check_eq(visit_tasks("self", NULL), 1); }

test(a_program_stays_alone)
{
    be_alone();
    use_much();
    be_alone();
    use_much();
    be_alone();
}

static unsigned clone_events(pid_t child)
{
    unsigned count = 0;
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL), 0);
    while (WIFSTOPPED(status)) {
        count += status >> 16 == PTRACE_EVENT_CLONE;
        check_eq(ptrace(PTRACE_CONT, child, NULL, 0), 0);
        check(waitpid(-1, &status, __WALL) > 0);
    }
    check_eq(status, 0);
    return count;
}

test(a_debugger_sees_no_clone)
{
    pid_t child = fork();
    if (child == 0) {
        check_eq(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
        check_eq(raise(SIGSTOP), 0);
        use_much();
        _exit(0);
    }
    check_eq(clone_events(child), 0);
}

/* ---- namespaces ---- */

test(a_user_namespace_is_made)
{
    use_much();
    check_eq(unshare(CLONE_NEWUSER), 0);
    be_alone();
}

test(what_threads_share_is_unshared)
{
    use_much();
    check_eq(unshare(CLONE_THREAD), 0);
    check_eq(unshare(CLONE_SIGHAND), 0);
    check_eq(unshare(CLONE_VM), 0);
}

/* Enters a namespace that a child has made. */
static void enter(int kind, const char *name)
{
    int ready[2];
    char path[64];
    char byte = 0;
    check_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        check_eq(unshare(kind), 0);
        check_eq(write(ready[1], &byte, 1), 1);
        (void)pause();
    }
    (void)close(ready[1]);
    check_eq(read(ready[0], &byte, 1), 1);
    (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)child, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    check(file >= 0);
    use_much();
    check_eq(setns(file, kind), 0);
    check_eq(kill(child, SIGKILL), 0);
}

test(a_user_namespace_is_entered) { enter(CLONE_NEWUSER, "user"); }
test(a_mount_namespace_is_entered) { enter(CLONE_NEWNS, "mnt"); }
test(a_time_namespace_is_entered) { enter(NEW_TIME_NAMESPACE, "time_for_children"); }

test(a_file_system_that_was_left_is_unmounted)
{
    check_eq(unshare(CLONE_NEWNS), 0);
    check_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    check_eq(mkdir("mounted", 0700), 0);
    check_eq(mount("none", "mounted", "tmpfs", 0, NULL), 0);
    check_eq(chdir("mounted"), 0);
    use_much();
    check_eq(unshare(CLONE_FS), 0);
    check_eq(chdir(".."), 0);
    check_eq(umount("mounted"), 0);
}

/* ---- open files ---- */

/* The reader of a pipe sees its end at once when the last writer has closed it. */
static void end_pipe(bool by_range)
{
    int ends[2];
    char byte;
    check_eq(pipe2(ends, O_NONBLOCK), 0);
    use_much();
    if (by_range) {
        check_eq(syscall(CLOSE_RANGE, ends[1], ends[1], UNSHARE_RANGE), 0);
    } else {
        check_eq(unshare(CLONE_FILES), 0);
        check_eq(close(ends[1]), 0);
    }
    check_eq(read(ends[0], &byte, 1), 0);
}

test(a_pipe_ends_where_files_are_unshared) { end_pipe(false); }
test(a_pipe_ends_where_a_range_is_closed) { end_pipe(true); }

/* ---- the end of the only thread, and limits ---- */

test(a_process_ends_with_its_only_thread)
{
    char self[16];
    pid_t child = fork();
    if (child == 0) {
        use_much();
        (void)syscall(SYS_exit, 0);
    }
    (void)snprintf(self, sizeof self, "%d", (int)child);
    while (status_field(self, self, "State")[0] != 'Z') (void)usleep(100);
    check_eq(waitpid(child, NULL, WNOHANG), child);
}

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

/* ---- rights ---- */

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

test(no_task_keeps_the_user_that_a_bare_call_changes)
{
    use_much();
    check_eq(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
    check_eq(visit_tasks("self", have_no_rights), 1);
}

static void have_no_capability(const char *process, const char *task)
{
    check_eq(strcmp(status_field(process, task, "CapPrm"), "0000000000000000\n"), 0);
    check_eq(strcmp(status_field(process, task, "CapEff"), "0000000000000000\n"), 0);
}

test(no_task_keeps_a_capability)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {0};
    use_much();
    check_eq(syscall(SYS_capset, &head, none), 0);
    check_eq(visit_tasks("self", have_no_capability), 1);
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

/* From now on the calls get `listed`, and all others `others`. */
static void filter(const int *calls, unsigned short count, uint32_t listed, uint32_t others)
{
    struct sock_filter code[64];
    unsigned short at = 0;
    check(count < 60);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                              offsetof(struct seccomp_data, nr));
    for (unsigned short call = 0; call < count; call++)
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                  (uint32_t)calls[call],
                                                  (unsigned char)(count - call), 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    struct sock_fprog program = {at, code};
    check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    check_eq(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
}

/* What starts threads and waits, which no program of one thread does by malloc. */
static void forbid_threads(void)
{
    static const int calls[] = {SYS_clone, CLONE3, SYS_nanosleep, SYS_clock_nanosleep,
                                SYS_membarrier, SYS_rt_sigprocmask, SYS_kill};
    filter(calls, sizeof calls / sizeof *calls, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
}

test(a_filter_against_threads_kills_nobody)
{
    forbid_threads();
    use_much();
    use_much();
}

/* What the C library's malloc calls, and the two calls that end such a program. */
test(a_filter_for_malloc_alone_kills_nobody)
{
    static const int calls[] = {SYS_write, SYS_exit_group, SYS_mmap,     SYS_munmap,
                                SYS_mremap, SYS_madvise,   SYS_brk,      SYS_futex,
                                SYS_mprotect, SYS_clock_gettime};
    (void)printf("standard output has its buffer\n");
    free(malloc(1));
    filter(calls, sizeof calls / sizeof *calls, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
    use_much();
    use_much();
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
    filter(calls, 1, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
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

check_main()
