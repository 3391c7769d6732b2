/* cache/bin.h: the two ends of a bin are values, and the empty cache has nothing but ends. */
#include "cache/bin.h"

#include "unit/fresh.h"

static magazine_t magazine __attribute__((aligned(MAGAZINE_SIZE)));
static bin_t bin;
static char memory[MAGAZINE_SLOTS + 1];

/* An empty bin with room for `capacity` blocks. */
static void prepare(size_t capacity)
{
    memset(&magazine, 0, sizeof magazine);
    magazine.slots[capacity] = BIN_FULL;
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
    check(magazine.slots[3] == BIN_FULL);
    check(bin_pop(&bin) == &memory[2]);
}

test(a_block_is_not_pushed_twice_in_a_row)
{
    prepare(8);
    check(bin_push(&bin, &memory[0]));
    check(!bin_push(&bin, &memory[0]));
    check_eq(bin_count(&bin), 1);
}

fresh_test(every_bin_of_the_empty_cache_is_both_empty_and_full)
{
    thread_cache_t *cache = thread_cache_current;
    check(thread_cache_is_empty_cache(cache));
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        check(thread_cache_bin(cache, (class_offset_t)(class << CLASS_OFFSET_SHIFT)) ==
              &cache->bins[class]);
        check(bin_pop(&cache->bins[class]) == NULL);
        check(!bin_push(&cache->bins[class], memory));
        check_eq(bin_count(&cache->bins[class]), 0);
        check(cache->spares[class] == NULL);
        check_eq(cache->capacity[class], 0);
    }
}

check_main()
