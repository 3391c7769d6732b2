/* large/huge.h: what counts as a mapping of its own. Where the table of mappings is half full, a
 * block between two others keeps its addresses. */
#include "large/huge.h"

#include "unit/huge_blocks.h"

/* 65,530 mappings are what the kernel allows; half of them are for the program. */
enum { LIMIT = 65530 / 2, LONG = 64 * KIB };

/* Three blocks that the kernel keeps as one mapping, from the top down or from the bottom up. */
static char *row[3];

static bool is_row(void)
{
    return row[1] - row[0] == row[2] - row[1] && labs(row[1] - row[0]) == LONG;
}

/* The first blocks may fill gaps between other mappings. */
static void begin(void)
{
    initialise();
    options.bigcache = 0;
    row[1] = alloc(LONG);
    row[2] = alloc(LONG);
    for (unsigned more = 0; !is_row(); more++) {
        check(more < 1000);
        row[0] = row[1];
        row[1] = row[2];
        row[2] = alloc(LONG);
    }
}

static void check_the_table_is_half_full(void)
{
    fake_os_forget_calls();
    check(huge_free(row[1], 1));
    check_eq(fake_os_count(FAKE_RELEASE), 0);
    check_eq(fake_os_count(FAKE_PURGE), 1);
    size_t size;
    check_eq(huge_find(row[1], &size), HUGE_CACHED);
}

/* The kernel joins it with no neighbour, though they may touch. */
fresh_test(each_block_that_was_moved_is_one)
{
    begin();
    for (unsigned index = 1; index < LIMIT; index++)
        check(huge_resize(alloc(LONG), 2 * LONG) != NULL);
    check_the_table_is_half_full();
}

fresh_test(each_block_that_shall_have_huge_pages_is_one)
{
    begin();
    options.thp_min_heap_mb = 0;
    fake_os_remap_in_place();
    for (unsigned index = 1; index < LIMIT; index++) {
        char *block = alloc(2 * LONG);
        check(huge_resize(block, LONG) == block);
        check(huge_resize(block, 2 * LONG) == block);
    }
    check_eq(fake_os_count(FAKE_ADVISE), LIMIT - 1);
    check_the_table_is_half_full();
}

fresh_test(blocks_that_touch_are_one_together)
{
    begin();
    for (unsigned index = 1; index < LIMIT; index++)
        alloc(LONG);
    fake_os_forget_calls();
    check(huge_free(row[1], 1));
    check_eq(fake_os_count(FAKE_RELEASE), 1);
}

check_main()
