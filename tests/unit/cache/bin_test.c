/* cache/bin.h: the ends of a bin are values, and a thread without a cache has nothing but ends. */
#include "cache/bin.h"

#include "unit/fresh.h"

static magazine_t magazine __attribute__((aligned(MAGAZINE_SIZE)));
static bin_t bin;
static char memory[MAGAZINE_SLOTS + 1];

/* An empty bin with room for `capacity` blocks. */
static void prepare(size_t capacity)
{
    memset(&magazine, 0, sizeof magazine);
    bin_end_at(&magazine.slots[capacity]);
    bin.top = magazine.slots;
}

test(a_magazine_is_found_from_every_top)
{
    check_eq(sizeof(magazine_t), MAGAZINE_SIZE);
    check_eq(sizeof magazine.slots / sizeof magazine.slots[0], MAGAZINE_SLOTS + 1);
    check((void **)&magazine.bottom == magazine.slots - 1);
    for (size_t count = 0; count <= MAGAZINE_SLOTS; count++) {
        bin.top = magazine.slots + count;
        check(bin_magazine(&bin) == &magazine);
        check_eq(bin_count(&bin), count);
    }
}

test(a_bin_gives_back_what_was_pushed_last)
{
    for (size_t capacity = 1; capacity <= MAGAZINE_SLOTS; capacity++) {
        prepare(capacity);
        for (size_t index = 0; index < capacity; index++) {
            check_eq(bin_count(&bin), index);
            check(bin_push(&bin, &memory[index]));
        }
        for (size_t index = capacity; index-- > 0;)
            check(bin_pop(&bin) == &memory[index]);
        check(bin_pop(&bin) == NULL);
        check_eq(bin_count(&bin), 0);
    }
}

test(a_full_bin_refuses_and_stays_as_it_is)
{
    prepare(3);
    for (size_t index = 0; index < 3; index++)
        check(bin_push(&bin, &memory[index]));
    check(!bin_push(&bin, &memory[3]));
    check_eq(bin_count(&bin), 3);
    check(magazine.slots[3] == (void *)&magazine.slots[3]);
    check(bin_pop(&bin) == &memory[2]);
}

test(a_block_is_not_pushed_twice_in_a_row)
{
    prepare(8);
    check(bin_push(&bin, &memory[0]));
    check(!bin_push(&bin, &memory[0]));
    check_eq(bin_count(&bin), 1);
}

test(a_block_is_not_pushed_again_after_one_other)
{
    prepare(8);
    check(bin_push(&bin, &memory[0]) && bin_push(&bin, &memory[1]));
    check(!bin_push(&bin, &memory[0]) && !bin_push(&bin, &memory[1]));
    check(bin_push(&bin, &memory[2]));
    check(!bin_push(&bin, &memory[1]));
    check(bin_push(&bin, &memory[0])); /* that far down nobody looks */
    check_eq(bin_count(&bin), 4);
}

test(what_was_popped_may_be_pushed_again_at_once)
{
    prepare(8);
    for (size_t index = 0; index < 3; index++)
        check(bin_push(&bin, &memory[index]));
    for (size_t index = 3; index-- > 0;)
        check(bin_pop(&bin) == &memory[index]);
    for (size_t index = 0; index < 3; index++)
        check(bin_push(&bin, &memory[index]));
}

test(the_ends_of_a_bin_are_its_first_block_and_the_last_two)
{
    prepare(8);
    check(!bin_has_at_an_end(&bin, &memory[0]));
    for (size_t count = 1; count <= 8; count++) {
        check(bin_push(&bin, &memory[count - 1]));
        for (size_t index = 0; index < 9; index++)
            check_eq(bin_has_at_an_end(&bin, &memory[index]),
                     index < count && (index == 0 || index + 2 >= count));
    }
    while (bin_pop(&bin) != NULL) {
    }
    for (size_t index = 0; index < 9; index++) /* the slots are stale */
        check(!bin_has_at_an_end(&bin, &memory[index]));
}

static void check_without_bins(void)
{
    const thread_cache_t *cache = thread_cache_own;
    check(thread_cache_is_empty_cache(cache));
    for (unsigned class = 0; class < FIXED_CLASS_COUNT; class++) {
        check(bin_pop(&thread_bins[class]) == NULL);
        check(!bin_push(&thread_bins[class], memory));
        check_eq(bin_count(&thread_bins[class]), 0);
        check(cache->spares[class] == NULL);
        check_eq(cache->capacity[class], 0);
    }
}

fresh_test(every_bin_of_a_thread_without_a_cache_is_both_empty_and_full)
{
    check_without_bins();
    initialise();
    check_without_bins();
}

/* As in the hit paths. */
lawful_test(an_offset_means_the_bin_of_its_class_in_every_thread)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        prepare(8);
        thread_bins[class].top = magazine.slots;
        class_offset_t offset = offset_of_class(class);
        check(offset != 0 && class_of_offset(offset) == class);
        check(thread_bin_push(thread_bin(offset), &memory[class]));
        check(!thread_bin_push(thread_bin(offset), &memory[class]));
        check(magazine.slots[0] == &memory[class] && bin_count(&thread_bins[class]) == 1);
        check(thread_bin_pop(thread_bin(offset)) == &memory[class]);
        check(thread_bin_pop(thread_bin(offset)) == NULL);
    }
}

static void *push_where_no_slab_is(void *unused)
{
    check(offset_of_class(0) == 0 && class_of_offset(0) == 0);
    check(!thread_bin_push(thread_bin(0), memory));
    return unused;
}

fresh_test(offset_0_is_always_full)
{
    (void)push_where_no_slab_is(NULL);
    initialise();
    (void)push_where_no_slab_is(NULL);
    check(thread_cache_provide() == thread_cache_own);
    (void)push_where_no_slab_is(NULL);
    run_threads(2, push_where_no_slab_is);
}

check_main()
