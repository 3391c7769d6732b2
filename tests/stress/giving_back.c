/* Freed memory goes back to the system when it is asked for, whatever size it was served in. */
#include "api/heap.h"
#include "check.h"
#include "stress/resident.h"

enum { TOTAL_BYTES = 96 << 20, COUNT_MAX = TOTAL_BYTES / 48 };
static char *blocks[COUNT_MAX];

static void fill_and_drain(size_t size, size_t kept_every)
{
    const size_t count = TOTAL_BYTES / size;
    const size_t before = resident_kib();
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hidden(malloc(size));
        check(blocks[i] != NULL);
        memset(blocks[i], 1, size);
    }
    check(resident_kib() >= before + TOTAL_BYTES / 1024 / 8 * 7);
    for (size_t i = 0; i < count; i++) {
        if (kept_every == 0 || i % kept_every != 0) free(blocks[i]);
    }
    (void)malloc_trim(0);
    resident_must_not_exceed("after a drain", resident_kib(), before + TOTAL_BYTES / 1024 / 8);
    for (size_t i = 0; kept_every != 0 && i < count; i += kept_every) {
        check_eq(blocks[i][size - 1], 1);
        free(blocks[i]);
    }
}

test(all_freed_small_blocks_come_back)
{
    memset(blocks, 1, sizeof blocks); /* Its own pages are resident before we count. */
    fill_and_drain(48, 0);
    fill_and_drain(1000, 0);
}

test(all_freed_mid_blocks_come_back)
{
    memset(blocks, 1, sizeof blocks);
    fill_and_drain(3000, 0);
    fill_and_drain(30000, 0);
}

test(all_freed_large_and_huge_blocks_come_back)
{
    memset(blocks, 1, sizeof blocks);
    fill_and_drain(100000, 0);
    fill_and_drain((size_t)1 << 20, 0);
    fill_and_drain((size_t)8 << 20, 0);
}

test(one_block_in_thousands_does_not_hold_the_rest)
{
    memset(blocks, 1, sizeof blocks);
    fill_and_drain(64, 20000);
    fill_and_drain(100000, 200);
}

check_main()
