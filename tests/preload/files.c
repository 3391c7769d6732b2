/* Does to its files and its rights what programs do, for the tests of the files that options ask
   for. The first argument says what, the second names a file or a folder: the functions below. */
#include "check.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define NOBODY 65534
#define FIRST_OF_OURS 100

static const char *volatile path;

/* Calls that miss, for longer than statistics wait. */
static void miss_for_a_while(void)
{
    for (unsigned turn = 0; turn < 25; turn++) {
        for (unsigned call = 0; call < 100; call++) free(malloc(200000));
        usleep(100000);
    }
}

static void leak(void)
{
    static void *volatile kept;
    kept = malloc(1000);
}

/* Opens the file as programs do, and it gets the lowest number that is free. */
static void open_data(int wanted, int flags)
{
    int file = open(path, O_RDWR | O_CREAT | flags, 0600);
    check_eq(file, wanted);
    check_eq(write(file, "data", 4), 4);
}

static void close_standard_files(void)
{
    check_eq(close(0) | close(1) | close(2), 0);
    check_eq(open("/dev/null", O_RDWR), 0);
    check_eq(open("/dev/null", O_RDWR), 1);
}

/* A data file becomes number 2. */
static void take_standard_error(void)
{
    leak();
    close_standard_files();
    open_data(2, 0);
    miss_for_a_while();
}

/* The program was started without the files 0 to 2. */
static void have_no_standard_error(void)
{
    leak();
    check_eq(open("/dev/null", O_RDWR), 0);
    check_eq(open("/dev/null", O_RDWR), 1);
    open_data(2, 0);
}

/* Data files get all numbers that a file of ours may have. */
static void take_every_number(void)
{
    leak();
    for (int file = 3; file < FIRST_OF_OURS + 20; file++) (void)close(file);
    open_data(3, 0);
    for (int file = 4; file < FIRST_OF_OURS + 20; file++) check_eq(dup2(3, file), file);
    miss_for_a_while();
}

/* The file of ours is deleted, and a data file may get its inode, and gets its number. */
static void take_the_inode(void)
{
    struct stat ours, heir;
    leak();
    check_eq(fstat(FIRST_OF_OURS, &ours) | unlink("ours") | close(FIRST_OF_OURS), 0);
    open_data(3, 0);
    check_eq(dup2(3, FIRST_OF_OURS), FIRST_OF_OURS);
    check_eq(fstat(FIRST_OF_OURS, &heir), 0);
    (void)puts(heir.st_ino == ours.st_ino ? "the same" : "another");
}

static void close_every_number(void)
{
    for (int file = 3; file < FIRST_OF_OURS + 20; file++) (void)close(file);
    miss_for_a_while();
}

static void free_twice(void)
{
    char *volatile block = malloc(100);
    free(block);
    free(block);
}

static void misuse_with_data(void)
{
    close_standard_files();
    open_data(2, 0);
    free_twice();
}

static void misuse_with_log(void)
{
    check_eq(close(2), 0);
    open_data(2, O_APPEND);
    free_twice();
}

static void misuse_with_pipe(void)
{
    check_eq(dup2(STDOUT_FILENO, STDERR_FILENO), STDERR_FILENO);
    free_twice();
}

static void drop_rights(void)
{
    check_eq(setgroups(0, NULL), 0);
    check_eq(setgid(NOBODY) | setuid(NOBODY), 0);
}

/* Rights are dropped in a folder of one's own; then an unprivileged user puts a link where the file
   was, and the program goes on. */
static void drop_in_a_jail(void)
{
    check_eq(chroot(path) | chdir("/"), 0);
    drop_rights();
    (void)unlink("/out/file");
    check_eq(symlink("/secret", "/out/file"), 0);
    miss_for_a_while();
}

/* The parent keeps its rights, and its child has a file of its own before it drops them. */
static void drop_in_a_child(void)
{
    leak();
    pid_t child = fork();
    if (child == 0) {
        drop_rights();
        leak();
        exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
}

/* Children that are made with other rights, or in another root, get none. */
static void fork_after_dropping(void)
{
    drop_rights();
    pid_t child = fork();
    if (child == 0) {
        leak();
        exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
}

static void fork_in_a_jail(void)
{
    check_eq(chroot(path) | chdir("/"), 0);
    pid_t child = fork();
    if (child == 0) {
        leak();
        exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
}

/* The child of a fork in another folder, as daemons make it. */
static void fork_elsewhere(void)
{
    check_eq(chdir(path), 0);
    pid_t child = fork();
    if (child == 0) exit(0);
    check_eq(waitpid(child, NULL, 0), child);
}

/* A child that is made past the C library ends as programs do, and its parent goes on. */
static void exit_in_a_bare_child(void)
{
    leak();
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        leak();
        exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
    leak();
}

static void leave(int signal_number)
{
    (void)signal_number;
    exit(0);
}

static void *allocate(void *unused)
{
    for (size_t size = 16;; size = size % 200000 + 333) free(malloc(size));
    return unused;
}

/* A handler ends the process while its thread is in the allocator, and others are. */
static void exit_in_a_handler(void)
{
    const struct itimerval once = {.it_value.tv_usec = 30000};
    pthread_t thread;
    (void)alarm(20); /* a hang becomes a failure */
    check(signal(SIGPROF, leave) != SIG_ERR);
    for (int i = 0; i < 3; i++) check_eq(pthread_create(&thread, NULL, allocate, NULL), 0);
    check_eq(setitimer(ITIMER_PROF, &once, NULL), 0);
    (void)allocate(NULL);
}

/* Prints the numbers that are open. */
static void show_numbers(void)
{
    leak();
    for (int file = 3; file < 1000; file++)
        if (fcntl(file, F_GETFD) >= 0) (void)printf("%d %d\n", file, fcntl(file, F_GETFD));
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"leak", leak},
        {"take_standard_error", take_standard_error},
        {"have_no_standard_error", have_no_standard_error},
        {"take_every_number", take_every_number},
        {"take_the_inode", take_the_inode},
        {"close_every_number", close_every_number},
        {"free_twice", free_twice},
        {"misuse_with_data", misuse_with_data},
        {"misuse_with_log", misuse_with_log},
        {"misuse_with_pipe", misuse_with_pipe},
        {"drop_in_a_jail", drop_in_a_jail},
        {"drop_in_a_child", drop_in_a_child},
        {"fork_after_dropping", fork_after_dropping},
        {"fork_in_a_jail", fork_in_a_jail},
        {"fork_elsewhere", fork_elsewhere},
        {"exit_in_a_bare_child", exit_in_a_bare_child},
        {"exit_in_a_handler", exit_in_a_handler},
        {"show_numbers", show_numbers},
    };
    check(argc > 1);
    path = argv[2];
    for (size_t row = 0; row < sizeof all / sizeof *all; row++)
        if (strcmp(argv[1], all[row].name) == 0) {
            all[row].run();
            return 0;
        }
    return 1;
}
