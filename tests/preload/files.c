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

test(leak)
{
    static void *volatile kept;
    kept = malloc(1000);
}

/* Waits for a child that does this and ends as programs do; `child` is 0 in it. */
static void end_child(pid_t child, void (*deed)(void))
{
    if (child == 0) {
        deed();
        exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
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
test(take_standard_error)
{
    leak();
    close_standard_files();
    open_data(2, 0);
    miss_for_a_while();
}

/* The program was started without the files 0 to 2. */
test(have_no_standard_error)
{
    leak();
    check_eq(open("/dev/null", O_RDWR), 0);
    check_eq(open("/dev/null", O_RDWR), 1);
    open_data(2, 0);
}

/* Data files get all numbers that a file of ours may have. */
test(take_every_number)
{
    leak();
    for (int file = 3; file < FIRST_OF_OURS + 20; file++) (void)close(file);
    open_data(3, 0);
    for (int file = 4; file < FIRST_OF_OURS + 20; file++) check_eq(dup2(3, file), file);
    miss_for_a_while();
}

/* The file of ours is deleted, and a data file may get its inode, and gets its number. */
test(take_the_inode)
{
    struct stat ours, heir;
    leak();
    check_eq(fstat(FIRST_OF_OURS, &ours) | unlink("ours") | close(FIRST_OF_OURS), 0);
    open_data(3, 0);
    check_eq(dup2(3, FIRST_OF_OURS), FIRST_OF_OURS);
    check_eq(fstat(FIRST_OF_OURS, &heir), 0);
    (void)puts(heir.st_ino == ours.st_ino ? "the same" : "another");
}

test(close_every_number)
{
    for (int file = 3; file < FIRST_OF_OURS + 20; file++) (void)close(file);
    miss_for_a_while();
}

test(free_twice)
{
    char *volatile block = malloc(100);
    free(block);
    free(block);
}

test(misuse_with_data)
{
    close_standard_files();
    open_data(2, 0);
    free_twice();
}

test(misuse_with_log)
{
    check_eq(close(2), 0);
    open_data(2, O_APPEND);
    free_twice();
}

test(misuse_with_pipe)
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
test(drop_in_a_jail)
{
    check_eq(chroot(path) | chdir("/"), 0);
    drop_rights();
    (void)unlink("/out/file");
    check_eq(symlink("/secret", "/out/file"), 0);
    miss_for_a_while();
}

static void drop_and_leak(void)
{
    drop_rights();
    leak();
}

/* The parent keeps its rights, and its child has a file of its own before it drops them. */
test(drop_in_a_child)
{
    leak();
    end_child(fork(), drop_and_leak);
}

/* Children that are made with other rights, or in another root, get none. */
test(fork_after_dropping)
{
    drop_rights();
    end_child(fork(), leak);
}

test(fork_in_a_jail)
{
    check_eq(chroot(path) | chdir("/"), 0);
    end_child(fork(), leak);
}

/* The child of a fork in another folder, as daemons make it. */
test(fork_elsewhere)
{
    check_eq(chdir(path), 0);
    end_child(fork(), leak);
}

/* A child that is made past the C library ends as programs do, and its parent goes on. */
test(exit_in_a_bare_child)
{
    leak();
    end_child((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), leak);
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
test(exit_in_a_handler)
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
test(show_numbers)
{
    leak();
    for (int file = 3; file < 1000; file++)
        if (fcntl(file, F_GETFD) >= 0) (void)printf("%d %d\n", file, fcntl(file, F_GETFD));
}

int main(int argc, char **argv)
{
    check(argc > 1);
    path = argv[2];
    return check_run(2, argv);
}
