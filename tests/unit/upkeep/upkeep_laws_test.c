/* upkeep/upkeep.h in a checked build: the laws of the structures are checked. */
#include "upkeep/upkeep.h"

#include "unit/fresh.h"

static void look_after_a_broken_heap(void)
{
    initialise();
    page_heap.used_units++;
    upkeep(5000);
}

test(a_heap_that_does_not_add_up_is_found_out)
{
    char words[256];
    check_eq(fresh_status(look_after_a_broken_heap, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "hakmem: broken law at ") == words);
}

check_main()
