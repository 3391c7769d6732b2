/* libhakmem_jemalloc keeps the contract of jemalloc's manual page, jemalloc(3), for the functions
 * and names that it has. */
#include "check.h"
#include "hakmem.h"
#include "hakmem_jemalloc.h"

#include <errno.h>
#include <malloc.h>

static bool is_zero(const char *block, size_t start, size_t end)
{
    while (start < end && block[start] == 0)
        start++;
    return start == end;
}

static const size_t sizes[] = {1, 8, 17, 100, 1000, 4096, 5000, 33000, 300000, 5000000};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

test(the_flags_are_those_of_jemalloc)
{
    check_eq(MALLOCX_ALIGN(64), 6);
    check_eq(MALLOCX_LG_ALIGN(12), 12);
    check_eq(MALLOCX_TCACHE_NONE, 0x100);
    check_eq(MALLOCX_TCACHE(3), 0x500);
    check_eq(MALLOCX_ARENA(2), 0x300000);
}

test(a_block_is_aligned_zeroed_and_as_large_as_nallocx_says)
{
    for (size_t index = 0; index < SIZES; index++)
        for (int lg = 0; lg <= 16; lg++) {
            const int flags = MALLOCX_LG_ALIGN(lg) | MALLOCX_ARENA(5) | MALLOCX_TCACHE_NONE;
            const size_t real = nallocx(sizes[index], flags);
            check(real >= sizes[index]);
            char *block = mallocx(sizes[index], flags);
            check(block != NULL && hakmem_owns(block));
            check_eq((uintptr_t)block & (((size_t)1 << lg) - 1), 0);
            check_eq(malloc_usable_size(block), real);
            memset(block, 0xa5, real); /* what comes next gets it again */
            sdallocx(block, lg % 2 ? real : sizes[index], flags);
            block = mallocx(sizes[index], flags | MALLOCX_ZERO);
            check(block != NULL && is_zero(block, 0, malloc_usable_size(block)));
            dallocx(block, flags);
        }
}

test(rallocx_keeps_contents_and_alignment_and_clears_the_rest)
{
    for (size_t from = 0; from < SIZES; from++)
        for (size_t to = 0; to < SIZES; to++)
            for (int lg = 0; lg <= 12; lg += 4) {
                const int flags = MALLOCX_LG_ALIGN(lg);
                char *block = mallocx(sizes[from], flags);
                const size_t old = malloc_usable_size(block);
                memset(block, 0x5a, old);
                block = rallocx(block, sizes[to], flags | MALLOCX_ZERO);
                check(block != NULL);
                check_eq((uintptr_t)block & (((size_t)1 << lg) - 1), 0);
                const size_t now = malloc_usable_size(block);
                check(now >= sizes[to]);
                const size_t kept = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
                for (size_t index = 0; index < kept; index++)
                    check_eq(block[index], 0x5a);
                check(is_zero(block, old, now > old ? now : old));
                dallocx(block, 0);
            }
}

test(what_is_too_large_is_refused_and_the_old_block_stays)
{
    const size_t most = SIZE_MAX / 2 + 1;
    check(mallocx(most, 0) == NULL && mallocx(SIZE_MAX, MALLOCX_ALIGN(64)) == NULL);
    check(mallocx(SIZE_MAX, MALLOCX_ZERO) == NULL);
    check_eq(nallocx(most, 0), 0);
    check_eq(nallocx(SIZE_MAX, MALLOCX_ALIGN(4096)), 0);
    for (int flags = 0; flags <= MALLOCX_ALIGN(64); flags += MALLOCX_ALIGN(64)) {
        char *block = mallocx(100, flags);
        memset(block, 7, 100);
        check(rallocx(block, most, flags) == NULL);
        check(block[0] == 7 && block[99] == 7);
        dallocx(block, flags);
    }
}

static size_t figure(const char *name)
{
    size_t value = 0, length = sizeof(value);
    check_eq(mallctl(name, &value, &length, NULL, 0), 0);
    check_eq(length, sizeof(value));
    return value;
}

test(figures_follow_what_is_allocated)
{
    const size_t before = figure("stats.allocated");
    void *block = mallocx(8 << 20, 0);
    memset(block, 1, 8 << 20);
    check(figure("stats.allocated") >= before + (8 << 20));
    check(figure("stats.mapped") >= figure("stats.allocated"));
    check(figure("stats.resident") >= 8 << 20);
    dallocx(block, 0);
    check_eq(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    check_eq(mallctl("arena.0.purge", NULL, NULL, NULL, 0), 0);
    check(figure("stats.allocated") < before + (8 << 20));
}

test(writing_the_epoch_advances_it)
{
    uint64_t first = 0, second = 0, any = 77;
    size_t length = sizeof(first);
    check_eq(mallctl("epoch", &first, &length, NULL, 0), 0);
    check_eq(mallctl("epoch", &second, &length, &any, sizeof(any)), 0);
    check_eq(second, first + 1);
    check_eq(mallctl("epoch", NULL, NULL, &any, sizeof(any)), 0);
    check_eq(mallctl("epoch", &second, &length, NULL, 0), 0);
    check_eq(second, first + 2);
}

test(names_become_identifiers)
{
    size_t mib[4] = {9, 9, 9, 9}, length = 4, value = 0, value_length = sizeof(value);
    check_eq(mallctlnametomib("stats.allocated", mib, &length), 0);
    check_eq(length, 2);
    check_eq(mallctlbymib(mib, length, &value, &value_length, NULL, 0), 0);
    check(value > 0);
    length = 3;
    check_eq(mallctlnametomib("arena.0.purge", mib, &length), 0);
    check_eq(length, 3);
    mib[1] = MALLCTL_ARENAS_ALL; /* as the manual page does with an index */
    check_eq(mallctlbymib(mib, length, NULL, NULL, NULL, 0), 0);
    check_eq(mallctlbymib(mib, 2, NULL, NULL, NULL, 0), ENOENT);
    mib[0] = 1000;
    check_eq(mallctlbymib(mib, length, NULL, NULL, NULL, 0), ENOENT);
    length = 1;
    check_eq(mallctlnametomib("stats.resident", mib, &length), 0); /* its beginning */
    check_eq(length, 1);
}

test(errors_are_those_of_jemalloc)
{
    static const char *const unknown[] = {"",
                                          "stats",
                                          "stats.allocated.",
                                          "epoch.1",
                                          "arena..purge",
                                          "arena.1.purges",
                                          "arena.x.purge",
                                          "thread.allocatedp"};
    uint64_t value = 0;
    size_t length = sizeof(value), mib[3];
    for (size_t index = 0; index < sizeof(unknown) / sizeof(*unknown); index++) {
        size_t count = 3;
        check_eq(mallctl(unknown[index], &value, &length, NULL, 0), ENOENT);
        check_eq(mallctlnametomib(unknown[index], mib, &count), ENOENT);
    }
    check_eq(mallctl("stats.allocated", NULL, NULL, &value, sizeof(value)), EPERM);
    check_eq(mallctl("arena.0.purge", &value, &length, NULL, 0), EPERM);
    check_eq(mallctl("arena.0.purge", NULL, NULL, &value, sizeof(value)), EPERM);
    check_eq(mallctl("epoch", NULL, NULL, &value, 4), EINVAL);
    uint32_t half[2] = {0, 0xffffffff};
    length = sizeof(half[0]); /* as much as there is room for is given */
    check_eq(mallctl("epoch", half, &length, NULL, 0), EINVAL);
    check(length == sizeof(half[0]) && half[0] > 0 && half[1] == 0xffffffff);
    uint64_t room[2];
    length = sizeof(room);
    check_eq(mallctl("epoch", room, &length, NULL, 0), EINVAL);
    check_eq(length, sizeof(room[0]));
}

check_main()
