/* The files of os.h on Linux, and the rights by which names are opened. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "os/kernel.h"
#include "os/os.h"
#include "options/tuning.h"

/* Of the kernel's interface (linux/capability.h), as in os_linux.c. */
enum { CAPABILITY_VERSION = 0x20080522 };

enum { OF_THE_NUMBER = 0x1000, CREATED = 0x800 }; /* AT_EMPTY_PATH, STATX_BTIME */

typedef struct more_status {
    uint32_t known;
    uint32_t other[19];
    int64_t created_s;
    uint32_t created_ns;
    uint32_t rest[41];
} more_status_t;

static long open_file(const char *path, int flags)
{
    flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    return kernel(SYS_openat, (uintptr_t)AT_FDCWD, (uintptr_t)path, (uintptr_t)flags, 0666, 0, 0);
}

static bool file_status(int number, struct stat *status)
{
    return kernel(SYS_fstat, (uintptr_t)number, (uintptr_t)status, 0, 0, 0, 0) == 0;
}

static bool file_status_by_name(const char *path, struct stat *status)
{
    return kernel(SYS_newfstatat, (uintptr_t)AT_FDCWD, (uintptr_t)path, (uintptr_t)status, 0, 0,
                  0) == 0;
}

size_t os_read_file(const char *path, char *text, size_t room)
{
    struct stat status;
    long length = 0;
    long file = open_file(path, O_RDONLY);
    if (file >= 0 && file_status((int)file, &status) && S_ISREG(status.st_mode))
        length = kernel(SYS_read, (uintptr_t)file, (uintptr_t)text, room - 1, 0, 0, 0);
    if (file >= 0)
        os_close_file((int)file);
    length = length < 0 ? 0 : length;
    text[length] = '\0';
    return (size_t)length;
}

bool os_is_folder(const char *path)
{
    long file = open_file(path, O_PATH | O_DIRECTORY);
    if (file >= 0)
        os_close_file((int)file);
    return file >= 0;
}

/* 0 where the file system or the kernel does not know. */
static uint64_t file_created_ns(int number)
{
    more_status_t more = {.known = 0};
    (void)kernel(SYS_statx, (uintptr_t)number, (uintptr_t)"", OF_THE_NUMBER, CREATED,
                 (uintptr_t)&more, 0);
    uint64_t ns = (uint64_t)more.created_s * 1000000000 + more.created_ns;
    return (more.known & CREATED) != 0 ? ns : 0;
}

os_file_t os_look_at(int number)
{
    struct stat status;
    if (!file_status(number, &status))
        return (os_file_t){.is_open = false};
    mode_t mode = status.st_mode;
    return (os_file_t){.device = status.st_dev,
                       .inode = status.st_ino,
                       .created_ns = S_ISREG(mode) ? file_created_ns(number) : 0,
                       .is_open = true,
                       .is_regular = S_ISREG(mode),
                       .is_stream = S_ISCHR(mode) || S_ISFIFO(mode) || S_ISSOCK(mode)};
}

static long file_flags(int number)
{
    return kernel(SYS_fcntl, (uintptr_t)number, F_GETFL, 0, 0, 0, 0);
}

bool os_appends(int number)
{
    long flags = file_flags(number);
    return flags >= 0 && (flags & O_APPEND) != 0;
}

bool os_is_output(int number)
{
    long flags = file_flags(number);
    return flags >= 0 && (flags & (O_ACCMODE | O_NONBLOCK)) == (O_WRONLY | O_NONBLOCK);
}

int os_create_file(const char *path)
{
    return (int)open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
}

/* The file under a high number, where one is to be had; else minus the error. */
static int file_move_up(long file)
{
    long moved = -EMFILE;
    for (uintptr_t number = OUTPUT_NUMBER; moved < 0 && number > OS_STANDARD_ERROR; number--)
        moved = kernel(SYS_fcntl, (uintptr_t)file, F_DUPFD_CLOEXEC, number, 0, 0, 0);
    os_close_file((int)file);
    return (int)moved;
}

int os_open_output(const char *path)
{
    struct stat status;
    long file = open_file(path, O_WRONLY | O_CREAT | O_NOFOLLOW);
    if (file == -ELOOP || file == -ENXIO || file == -EISDIR)
        return -OS_NOT_REGULAR;
    if (file < 0)
        return (int)file;
    bool serves = file_status((int)file, &status) &&
                  (S_ISREG(status.st_mode) ||
                   (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3))); /* /dev/null */
    if (serves)
        return file_move_up(file);
    os_close_file((int)file);
    return -OS_NOT_REGULAR;
}

/* Of the calling thread; `how` as in sigprocmask. Returns the mask before. */
static uint64_t change_signal_mask(int how, uint64_t signals)
{
    uint64_t before = 0;
    (void)kernel(SYS_rt_sigprocmask, (uintptr_t)how, (uintptr_t)&signals, (uintptr_t)&before,
                 sizeof signals, 0, 0);
    return before;
}

static bool write_all(int file, const void *bytes, size_t length)
{
    const char *rest = bytes;
    while (length > 0) {
        long written = kernel(SYS_write, (uintptr_t)file, (uintptr_t)rest, length, 0, 0, 0);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            return false;
        rest += written;
        length -= (size_t)written;
    }
    return true;
}

/* A pipe without a reader and a limit of file sizes raise a signal, which is none of the program's
 * business: it waits, and is taken back. */
bool os_write_file(int file, const void *bytes, size_t length)
{
    const uint64_t signals = (uint64_t)1 << (SIGPIPE - 1) | (uint64_t)1 << (SIGXFSZ - 1);
    const struct timespec at_once = {0};
    uint64_t pending = 0;
    uint64_t mask = change_signal_mask(SIG_BLOCK, signals);
    (void)kernel(SYS_rt_sigpending, (uintptr_t)&pending, sizeof pending, 0, 0, 0, 0);
    bool is_written = write_all(file, bytes, length);
    uint64_t ours = signals & ~pending;
    if (!is_written && ours != 0)
        (void)kernel(SYS_rt_sigtimedwait, (uintptr_t)&ours, 0, (uintptr_t)&at_once, sizeof ours, 0,
                     0);
    (void)change_signal_mask(SIG_SETMASK, mask);
    return is_written;
}

void os_write(int file, const char *text, size_t length)
{
    (void)os_write_file(file, text, length);
}

void os_rewind_file(int file)
{
    (void)kernel(SYS_lseek, (uintptr_t)file, 0, SEEK_SET, 0, 0, 0);
}

void os_cut_file(int file, uint64_t length)
{
    (void)kernel(SYS_ftruncate, (uintptr_t)file, length, 0, 0, 0, 0);
}

void os_close_file(int file)
{
    (void)kernel(SYS_close, (uintptr_t)file, 0, 0, 0, 0, 0);
}

os_rights_t os_rights(void)
{
    const struct {
        uint32_t version;
        uint32_t thread; /* 0: the calling one */
    } head = {CAPABILITY_VERSION, 0};
    os_rights_t rights = {.group_count = 0}; /* what a call leaves alone is 0 */
    uint32_t *user = rights.users;
    uint32_t *group = rights.groups;
    struct stat folder;
    if (file_status_by_name("/", &folder)) {
        rights.root_device = folder.st_dev;
        rights.root_inode = folder.st_ino;
    }
    if (file_status_by_name(".", &folder)) {
        rights.folder_device = folder.st_dev;
        rights.folder_inode = folder.st_ino;
    }
    (void)kernel_with(SYS_getresuid, user, (uintptr_t)(user + 1), (uintptr_t)(user + 2));
    (void)kernel_with(SYS_getresgid, group, (uintptr_t)(group + 1), (uintptr_t)(group + 2));
    (void)kernel_with(SYS_capget, &head, (uintptr_t)rights.capabilities, 0);
    rights.group_count = kernel(SYS_getgroups, 0, 0, 0, 0, 0, 0);
    (void)kernel(SYS_getgroups, OS_GROUPS_MOST, (uintptr_t)rights.more_groups, 0, 0, 0, 0);
    return rights;
}
