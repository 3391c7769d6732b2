/* check/zero_blocks.h: blocks of no bytes. */
#include "check/zero_blocks.h"

#include "unit/fresh.h"

enum { ALL = 65536 };

fresh_test(each_has_an_address_of_its_own_until_none_is_left)
{
    zero_blocks_create();
    char *first = zero_block_alloc();
    for (unsigned index = 1; index < ALL; index++)
        check(zero_block_alloc() == first + (size_t)index * 16);
    check(zero_block_alloc() == NULL);
    check(zero_block_free(first + 160));
    check(zero_block_alloc() == first + 160);
    check(zero_blocks_have(first) && zero_blocks_have(first + ALL * 16 - 1));
    check(!zero_blocks_have(first - 1) && !zero_blocks_have(first + ALL * 16));
}

fresh_test(a_freed_one_is_handed_out_again_late)
{
    zero_blocks_create();
    char *first = zero_block_alloc();
    check(zero_block_free(first));
    check(zero_block_alloc() != first);
    check(!zero_block_is_used(first) && !zero_block_free(first) && !zero_block_free(first + 17));
}

fresh_test(before_they_exist_nothing_is_one)
{
    check(zero_block_alloc() == NULL);
    check(!zero_blocks_have(NULL) && !zero_blocks_have((void *)16));
}

check_main()
