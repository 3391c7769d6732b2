/* os/os.h on the real kernel: what it promises, and that no function of it touches errno. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "check.h"

enum { UNTOUCHED = 77 };
#define SIZE ((size_t)1 << 20)

/* The kernel's clock, but so many seconds back. */
static time_t seconds_back;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC_COARSE) now->tv_sec -= seconds_back;
    return result;
}

static char *mapped(size_t size)
{
    char *start = os_map(size);
    check(start != NULL);
    return start;
}

test(what_the_kernel_refuses_leaves_errno_alone)
{
    const uint32_t word = 1;
    char *hole = mapped(SIZE);
    check(os_release(hole, SIZE));
    errno = UNTOUCHED;
    os_wait(&word, 2); /* EAGAIN: a lock does this whenever its holder was quicker */
    check_eq(errno, UNTOUCHED);
    os_wake_one((const uint32_t *)(const void *)&((const char *)&word)[1]); /* EINVAL */
    check_eq(errno, UNTOUCHED);
    check(os_map(SIZE_MAX / 2) == NULL);
    check(os_reserve(SIZE_MAX / 2) == NULL);
    check(os_remap(hole, SIZE, 2 * SIZE) == NULL);
    check(!os_commit(hole, SIZE));
    (void)os_purge(hole, SIZE); /* ENOMEM, which some emulators hide */
    check(!os_release(hole + 1, SIZE));
    check(!os_is_readable(hole));
    os_advise_huge_pages(hole, SIZE, true);
    check_eq(errno, UNTOUCHED);
}

test(a_range_that_somebody_has_is_occupied)
{
    char *start = mapped(2 * SIZE);
    start[SIZE] = 5;
    errno = UNTOUCHED;
    check_eq(os_map_at(start, 2 * SIZE), OS_OCCUPIED);
    check_eq(start[SIZE], 5);
    check(os_release(start, SIZE));
    check_eq(os_map_at(start, 2 * SIZE), OS_OCCUPIED);
    check_eq(os_map_at(start, SIZE), OS_DONE);
    check(os_map_at((void *)(UINTPTR_MAX - 2 * SIZE + 1), SIZE) != OS_DONE);
    check_eq(errno, UNTOUCHED);
    check_eq(start[0], 0);
    check(os_release(start, 2 * SIZE));
}

static size_t address_space_pages(void)
{
    char text[32] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    check(file >= 0 && read(file, text, sizeof text - 1) > 0);
    (void)close(file);
    return strtoul(text, NULL, 10);
}

test(at_a_limit_pages_of_ours_are_mapped_anew)
{
    char *start = mapped(2 * SIZE);
    memset(start, 1, 2 * SIZE);
    const struct rlimit limit = {address_space_pages() * os_page_size(), RLIM_INFINITY};
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    check_eq(setrlimit(RLIMIT_AS, &limit), 0);
    errno = UNTOUCHED;
    void *more = os_map(os_page_size());
    check(more == NULL || os_release(more, os_page_size())); /* some emulators know no limits */
    bool was_mapped = os_map_over(start + SIZE, SIZE);
    check_eq(errno, UNTOUCHED);
    check_eq(setrlimit(RLIMIT_AS, &none), 0);
    check(was_mapped);
    check_eq(start[SIZE - 1], 1);
    check_eq(start[SIZE] | start[2 * SIZE - 1], 0);
    start[SIZE] = 1;
    check(os_release(start, 2 * SIZE));
}

test(memory_is_zero_and_writable)
{
    char *start = os_map(SIZE);
    check(start != NULL && (uintptr_t)start % os_page_size() == 0);
    check_eq(start[0] | start[SIZE - 1], 0);
    memset(start, 1, SIZE);
    check(os_release(start, SIZE));
    check(!os_is_readable(start));
}

test(purged_memory_reads_as_zero_and_stays_mapped)
{
    char *start = mapped(SIZE);
    memset(start, 1, SIZE);
    check(os_purge(start + os_page_size(), SIZE - os_page_size()));
    check_eq(start[0], 1);
    check_eq(start[os_page_size()] | start[SIZE - 1], 0);
    check(os_is_readable(start + SIZE - 1));
    check(os_release(start, SIZE));
}

test(reserved_memory_is_usable_once_committed)
{
    char *start = os_reserve(SIZE);
    check(start != NULL);
    check(os_commit(start, SIZE));
    memset(start, 1, SIZE);
    check(os_release(start, SIZE));
}

test(remapped_memory_keeps_its_bytes)
{
    char *start = mapped(SIZE);
    memset(start, 3, SIZE);
    char *longer = os_remap(start, SIZE, 4 * SIZE);
    check(longer != NULL);
    check_eq(longer[0] & longer[SIZE - 1], 3);
    check_eq(longer[SIZE] | longer[4 * SIZE - 1], 0);
    check(os_release(longer, 4 * SIZE));
}

test(what_the_machine_is_makes_sense)
{
    check(os_page_size() >= 4096 && (os_page_size() & (os_page_size() - 1)) == 0);
    check(os_physical_memory() > SIZE);
    check(os_address_space_limit() > SIZE);
    check(os_random() == os_random());
    const uint64_t before = os_clock_ms();
    check(before > 0 && os_clock_ms() >= before);
    check(os_environment() != NULL);
}

test(the_process_knows_its_name_and_number)
{
    check_eq(os_process_id(), getpid());
    const char *name = os_program_name();
    check(name[0] != '\0' && strchr(name, '/') == NULL);
    if (strstr(name, "qemu") == NULL) check(strcmp(name, "unit_os_os_linux_test") == 0);
}

test(what_is_written_arrives_and_a_closed_file_is_no_trouble)
{
    int ends[2];
    char text[8] = "";
    check_eq(pipe(ends), 0);
    os_write(ends[1], "words", 5);
    os_write(ends[1], ".", 1);
    check_eq(read(ends[0], text, sizeof text), 6);
    check(strcmp(text, "words.") == 0);
    check_eq(close(ends[0]) | close(ends[1]), 0);
    errno = UNTOUCHED;
    os_write(ends[1], "words", 5);
    os_write(INT32_MAX, "words", 5);
    check_eq(errno, UNTOUCHED);
}

test(a_pipe_that_nobody_reads_raises_no_signal)
{
    int ends[2];
    check_eq(pipe(ends) | close(ends[0]), 0);
    check(!os_write_file(ends[1], "words", 5));
    os_write(ends[1], "words", 5);
    check_eq(close(ends[1]), 0);
}

/* A file by its name and by a number is the same; a pipe is not, and takes lines. */
test(files_are_known_again)
{
    char path[] = "/tmp/hakmem-XXXXXX";
    int ends[2];
    int file = mkstemp(path);
    check(file >= 0 && pipe(ends) == 0);
    int again = open(path, O_WRONLY | O_APPEND);
    check(os_write_file(file, "words", 5));
    os_file_t first = os_look_at(file);
    check(first.is_regular && !first.is_stream);
    check(os_is_same_file(first, os_look_at(again)));
    check(!os_is_same_file(first, os_look_at(ends[0])) && os_look_at(ends[0]).is_stream);
    check(os_appends(again) && !os_appends(file));
    check_eq(close(ends[0]) | close(ends[1]) | close(again) | close(file) | unlink(path), 0);
    check(!os_look_at(file).is_open && !os_is_same_file(os_look_at(file), os_look_at(file)));
    (void)usleep(20000); /* the clock of the file system is coarse */
    file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK, 0600);
    os_file_t heir = os_look_at(file); /* where the file system gives the inode again */
    check(heir.is_open && !os_is_same_file(first, heir) && os_is_output(file));
    check_eq(close(file) | unlink(path), 0);
}

typedef struct visited {
    const void *wanted;
    unsigned count;
} visited_t;

static void note_buffer(const void *buffer, void *context)
{
    visited_t *visited = context;
    visited->count += buffer == visited->wanted;
}

test(buffers_of_streams_are_visited_but_for_the_programs_own)
{
    static char own[100];
    FILE *stream = fopen("/dev/null", "w");
    FILE *with_own = fopen("/dev/null", "w");
    check(stream != NULL && with_own != NULL);
    check_eq(setvbuf(with_own, own, _IOFBF, sizeof own), 0);
    check(fputs("text", stream) >= 0 && fputs("text", with_own) >= 0);
    visited_t theirs = {.wanted = stream->_IO_buf_base};
    visited_t ours = {.wanted = own};
    os_visit_stream_buffers(note_buffer, &theirs);
    os_visit_stream_buffers(note_buffer, &ours);
    check(theirs.wanted != NULL);
    check_eq(theirs.count, 1);
    check_eq(ours.count, 0);
    check_eq(fclose(stream) | fclose(with_own), 0);
}

/* It is recursive, as fork needs it, and another thread's flush of everything waits for it. */
test(the_lock_of_the_streams_opens_again)
{
    os_lock_streams();
    os_lock_streams();
    check_eq(fflush(NULL), 0);
    os_unlock_streams();
    os_unlock_streams();
    os_lock_streams();
    os_reset_streams();
    check_eq(fflush(NULL), 0);
}

test(the_clock_counts_milliseconds_of_the_machine_s_time)
{
    struct timespec before, after;
    check(clock_gettime(CLOCK_MONOTONIC_COARSE, &before) == 0);
    const uint64_t now_ms = os_clock_ms();
    check(clock_gettime(CLOCK_MONOTONIC_COARSE, &after) == 0);
    check(now_ms >= (uint64_t)before.tv_sec * 1000 + (uint64_t)before.tv_nsec / 1000000);
    check(now_ms <= (uint64_t)after.tv_sec * 1000 + (uint64_t)after.tv_nsec / 1000000);
}

/* As in a new time namespace, where the clock may even begin anew. */
test(a_clock_that_goes_back_goes_on_from_the_latest_time)
{
    uint64_t before = os_clock_ms();
    for (unsigned turn = 0; turn < 3; turn++) {
        seconds_back += 7 << turn;
        const uint64_t after = os_clock_ms();
        check(after >= before && after - before < 5000);
        (void)usleep(20000); /* the clock is coarse */
        before = os_clock_ms();
        check(before > after);
    }
    seconds_back = 0;
    check(os_clock_ms() > before);
}

test(a_file_is_read_up_to_the_room_there_is)
{
    char text[64];
    char first[9];
    errno = UNTOUCHED;
    const size_t length = os_read_file("/proc/self/statm", text, sizeof text);
    check(length > 10 && length < sizeof text && text[length] == '\0' && text[length - 1] == '\n');
    check_eq(os_read_file("/proc/self/statm", first, sizeof first), 8);
    check_eq(strlen(first), 8);
    check_eq(errno, UNTOUCHED);
}

test(a_file_that_cannot_be_read_is_empty)
{
    char text[8] = "before";
    errno = UNTOUCHED;
    check_eq(os_read_file("/proc/self/no such file", text, sizeof text), 0);
    check_eq(text[0], '\0');
    check_eq(os_read_file("/proc/self", text, sizeof text), 0); /* a folder */
    check_eq(os_read_file("/dev/null", text, sizeof text), 0);
    check_eq(errno, UNTOUCHED);
}

test(reading_a_file_leaves_none_open)
{
    char text[8];
    const int before = open("/dev/null", O_RDONLY);
    check(before >= 0 && close(before) == 0);
    check(os_read_file("/proc/self/statm", text, sizeof text) != 0);
    check_eq(os_read_file("/proc/self", text, sizeof text), 0);
    const int after = open("/dev/null", O_RDONLY);
    check_eq(after, before);
    check_eq(close(after), 0);
}

test(the_limits_of_the_process_are_told)
{
    const struct rlimit no_limit = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit before;
    check_eq(getrlimit(RLIMIT_DATA, &before), 0);
    struct rlimit limit = {(rlim_t)3 << 30, before.rlim_max};
    check_eq(setrlimit(RLIMIT_DATA, &limit), 0);
    struct rlimit now;
    check_eq(getrlimit(RLIMIT_DATA, &now), 0);
    if (now.rlim_cur == limit.rlim_cur) /* QEMU sets no limit that would hold for itself */
        check_eq(os_data_limit(), (size_t)3 << 30);
    check_eq(setrlimit(RLIMIT_DATA, &before), 0);
    if (before.rlim_cur == no_limit.rlim_cur) check_eq(os_data_limit(), SIZE_MAX);
}

test(every_call_is_counted_once)
{
    const uint32_t word = 1;
    const os_calls_t before = os_calls();
    char *start = os_reserve(SIZE);
    check(start != NULL && os_commit(start, SIZE));
    check(os_purge(start, SIZE));
    os_advise_huge_pages(start, SIZE, true);
    start = os_remap(start, SIZE, 2 * SIZE);
    check(start != NULL && os_release(start, 2 * SIZE));
    os_wait(&word, 2);
    const os_calls_t after = os_calls();
    check_eq(after.map.count, before.map.count + 1);
    check_eq(after.protect.count, before.protect.count + 1);
    check_eq(after.advise.count, before.advise.count + 1);
    check_eq(after.purge.count, before.purge.count + 1);
    check_eq(after.map.bytes, before.map.bytes + SIZE);
    check_eq(after.purge.bytes, before.purge.bytes + SIZE);
    check_eq(after.remap.bytes, before.remap.bytes + 2 * SIZE);
    check_eq(after.unmap.bytes, before.unmap.bytes + 2 * SIZE);
    check_eq(after.wait.bytes, before.wait.bytes);
    check(after.purge.ns > before.purge.ns && after.purge.ns - before.purge.ns < 10000000000);
    check(!os_release((void *)1, SIZE)); /* no page begins there */
    check_eq(os_calls().unmap.bytes, after.unmap.bytes);
    check_eq(after.remap.count, before.remap.count + 1);
    check_eq(after.unmap.count, before.unmap.count + 1);
    check_eq(after.wait.count, before.wait.count + 1);
}

check_main()
