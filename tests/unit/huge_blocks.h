/* Huge blocks, allocated and looked at: for tests of large/huge.h. Included by one program each,
 * so the bodies are here. */
#ifndef HAKMEM_TESTS_HUGE_BLOCKS_H
#define HAKMEM_TESTS_HUGE_BLOCKS_H

#include "large/huge.h"
#include "unit/fresh.h"

/* What the last alloc said. */
static bool is_zero;

__attribute__((unused)) static char *alloc(size_t size)
{
    char *block = huge_alloc(size, 16, &is_zero);
    check(block != NULL);
    return block;
}

__attribute__((unused)) static void check_is(const void *ptr, huge_state_t state, size_t size)
{
    size_t found = 0;
    check_eq(huge_find(ptr, &found), state);
    check_eq(found, size);
}

#endif
