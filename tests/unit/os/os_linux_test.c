/* os/os.h on the real kernel: what it promises, and that no function of it touches errno. */
#include "os/os.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

enum { UNTOUCHED = 77 };
#define SIZE ((size_t)1 << 20)

static char *mapped(size_t size)
{
    char *start = os_map(size, os_page_size());
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
    check(os_map(SIZE_MAX / 2, os_page_size()) == NULL);
    check(os_reserve(SIZE_MAX / 2) == NULL);
    check(os_remap(hole, SIZE, 2 * SIZE) == NULL);
    check(!os_commit(hole, SIZE));
    (void)os_purge(hole, SIZE); /* ENOMEM, which some emulators hide */
    check(!os_release(hole + 1, SIZE));
    check(!os_is_mapped(hole));
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

test(memory_is_aligned_zero_and_writable)
{
    for (size_t alignment = os_page_size(); alignment <= 64 * SIZE; alignment *= 2) {
        char *start = os_map(SIZE, alignment);
        check(start != NULL && (uintptr_t)start % alignment == 0);
        check_eq(start[0] | start[SIZE - 1], 0);
        memset(start, 1, SIZE);
        check(os_release(start, SIZE));
        check(!os_is_mapped(start));
    }
}

test(purged_memory_reads_as_zero_and_stays_mapped)
{
    char *start = mapped(SIZE);
    memset(start, 1, SIZE);
    check(os_purge(start + os_page_size(), SIZE - os_page_size()));
    check_eq(start[0], 1);
    check_eq(start[os_page_size()] | start[SIZE - 1], 0);
    check(os_is_mapped(start + SIZE - 1));
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

test(the_clock_counts_milliseconds_of_the_machine_s_time)
{
    struct timespec before, after;
    check(clock_gettime(CLOCK_MONOTONIC_COARSE, &before) == 0);
    const uint64_t now_ms = os_clock_ms();
    check(clock_gettime(CLOCK_MONOTONIC_COARSE, &after) == 0);
    check(now_ms >= (uint64_t)before.tv_sec * 1000 + (uint64_t)before.tv_nsec / 1000000);
    check(now_ms <= (uint64_t)after.tv_sec * 1000 + (uint64_t)after.tv_nsec / 1000000);
}

test(every_call_is_counted_once)
{
    const uint32_t word = 1;
    const os_calls_t before = os_calls();
    char *start = os_reserve(SIZE);
    check(start != NULL && os_commit(start, SIZE));
    check(os_purge(start, SIZE));
    start = os_remap(start, SIZE, 2 * SIZE);
    check(start != NULL && os_release(start, 2 * SIZE));
    os_wait(&word, 2);
    const os_calls_t after = os_calls();
    check_eq(after.map, before.map + 1);
    check_eq(after.protect, before.protect + 1);
    check_eq(after.advise, before.advise + 1);
    check_eq(after.remap, before.remap + 1);
    check_eq(after.unmap, before.unmap + 1);
    check_eq(after.wait, before.wait + 1);
}

check_main()
