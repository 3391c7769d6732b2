/* check/gate.h: what each kind of pointer is taken for, with and without records of the blocks. */
#include "check/gate.h"

#include "slab/block_record.h"
#include "check/zero_blocks.h"
#include "large/huge.h"
#include "large/large.h"
#include "unit/fresh.h"

enum { CLASS = 5, SIZE = 80 };

static void initialise_checked(void)
{
    fake_os_set_environment((char *[]){"HAKMEM_MODE=checked", NULL});
    initialise();
    zero_blocks_create();
}

static char *take_block(void)
{
    void *block;
    check_eq(central_list_take(CLASS, &block + 1, 1), 1);
    return block;
}

static verdict_t verdict_of(const void *ptr)
{
    return gate_look(ptr).verdict;
}

lawful_test(a_small_block_is_known_with_its_class_and_size)
{
    char *block = take_block();
    gate_t gate = gate_look(block);
    check_eq(gate.verdict, VERDICT_SMALL);
    check_eq(gate.class, CLASS);
    check_eq(gate.size, SIZE);
    for (unsigned offset = 1; offset < SIZE; offset++)
        check_eq(verdict_of(block + offset), VERDICT_INSIDE);
    check_eq(verdict_of(block + SIZE), VERDICT_FREED);
}

lawful_test(without_records_a_block_out_of_its_slab_counts_as_in_use)
{
    check(!frees_are_checked());
    void *block = take_block();
    check_eq(verdict_of(block), VERDICT_SMALL);
    central_list_give(CLASS, &block, 1);
    check_eq(verdict_of(block), VERDICT_FREED);
}

fresh_test(with_records_it_does_only_while_its_record_says_so)
{
    initialise_checked();
    check(frees_are_checked());
    check_eq(window_open_granules, 0);
    char *block = take_block();
    check_eq(verdict_of(block), VERDICT_FREED);
    record_set(block_record(block), CLASS, 70);
    check_eq(verdict_of(block), VERDICT_SMALL);
    record_clear(block_record(block));
    check_eq(verdict_of(block), VERDICT_FREED);
}

lawful_test(large_blocks_and_the_pages_around_them)
{
    bool is_zero;
    char *block = large_alloc(200 * KIB + 1, BLOCK_ALIGNMENT, &is_zero);
    gate_t gate = gate_look(block);
    check_eq(gate.verdict, VERDICT_LARGE);
    check_eq(gate.size, 208 * KIB);
    check(gate.span == span_of(block));
    check_eq(verdict_of(block + 8), VERDICT_INSIDE);
    check_eq(verdict_of(block + UNIT_SIZE), VERDICT_INSIDE);
    check_eq(verdict_of(block + 208 * KIB), VERDICT_FREE_MEMORY);
    large_free(gate.span, 1);
    check_eq(verdict_of(block), VERDICT_FREED);
}

lawful_test(huge_blocks)
{
    bool is_zero;
    char *block = large_alloc(40 * MIB, BLOCK_ALIGNMENT, &is_zero);
    check_eq(verdict_of(block), VERDICT_HUGE);
    check_eq(gate_look(block).size, 40 * MIB);
    check_eq(verdict_of(block + 16), VERDICT_INSIDE);
    check(huge_free(block, 1));
    check_eq(verdict_of(block), VERDICT_FREED);
}

lawful_test(what_is_not_of_the_heap)
{
    int local;
    (void)take_block();
    check_eq(verdict_of(&local), VERDICT_FOREIGN);
    check_eq(verdict_of(&options), VERDICT_FOREIGN);
    check_eq(verdict_of((void *)16), VERDICT_FOREIGN);
    check_eq(verdict_of((void *)UINTPTR_MAX), VERDICT_FOREIGN);
}

fresh_test(blocks_of_no_bytes)
{
    initialise_checked();
    char *block = zero_block_alloc();
    check_eq(verdict_of(block), VERDICT_EMPTY);
    check_eq(gate_look(block).size, 0);
    check_eq(verdict_of(block + 1), VERDICT_FREED);
    check_eq(verdict_of(block + 16), VERDICT_FREED);
    check(zero_block_free(block) && !zero_block_free(block));
    check_eq(verdict_of(block), VERDICT_FREED);
}

check_main()
