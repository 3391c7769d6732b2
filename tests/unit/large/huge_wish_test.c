/* large/huge.h: what the code that asked for a block wishes for it, and how that changes what is
 * kept of it after its free. */
#include "large/huge.h"

#include "unit/huge_blocks.h"

fresh_test(a_block_that_wishes_so_goes_back_when_it_is_freed)
{
    initialise();
    char *block = alloc(5 * MIB);
    huge_wish(block, HUGE_WISH_RETURN);
    check(huge_free(block, 1));
    check_eq(huge_statistics().cached_bytes, 0);
    check_is(block, HUGE_NONE, 0);
}

fresh_test(a_block_that_wishes_so_is_kept_for_longer)
{
    initialise();
    options.bigcache_max_mb = 10;
    char *kept = alloc(9 * MIB);
    char *more = alloc(8 * MIB);
    char *other = alloc(2 * MIB);
    huge_wish(kept, HUGE_WISH_KEEP);
    huge_wish(more, HUGE_WISH_KEEP);
    check(huge_free(kept, 1) && huge_free(more, 1));
    check_eq(huge_statistics().cached_bytes, 17 * MIB);
    check(huge_free(other, 2)); /* they take no room from it */
    check_is(other, HUGE_CACHED, 2 * MIB);
    check_eq(huge_give_back(SITE_KEPT_MS, SIZE_MAX / 2, SITE_KEPT_MS), 2 * MIB);
    check(alloc(9 * MIB) == kept); /* and has no wish any more */
    check(huge_free(kept, 5));
    check_eq(huge_give_back(SITE_KEPT_MS, SIZE_MAX / 2, SITE_KEPT_MS), 9 * MIB);
    check_eq(huge_give_back(SITE_KEPT_MS + 1, SIZE_MAX / 2, SITE_KEPT_MS + 1), 8 * MIB);
}

fresh_test(a_younger_block_does_not_wait_for_those_that_are_kept)
{
    initialise();
    char *kept[20];
    for (unsigned index = 0; index < 20; index++) {
        kept[index] = alloc(1 * MIB);
        huge_wish(kept[index], HUGE_WISH_KEEP);
    }
    char *other = alloc(6 * MIB);
    for (unsigned index = 0; index < 20; index++)
        check(huge_free(kept[index], 1));
    check(huge_free(other, 2));
    check_eq(huge_give_back(1, SIZE_MAX / 2, 1), 0);
    check_eq(huge_give_back(2, SIZE_MAX / 2, 2), 6 * MIB);
    check_is(kept[0], HUGE_CACHED, 1 * MIB);
    check_eq(huge_release_cached(), 20 * MIB);
}

fresh_test(a_block_with_huge_pages_stands_apart_from_its_neighbours)
{
    initialise();
    char *blocks[3] = {alloc(4 * MIB), alloc(4 * MIB), alloc(4 * MIB)};
    for (unsigned turn = 0; turn < 3; turn++) /* the second time they have them already */
        for (unsigned index = 0; index < 3; index++)
            huge_wish(blocks[index], HUGE_WISH_PAGES);
    for (unsigned index = 0; index < 3; index++)
        check(huge_free(blocks[index], 1));
    check_eq(huge_release_cached(), 12 * MIB);
    check_eq(huge_statistics().mapped_bytes, 0);
}

check_main()
