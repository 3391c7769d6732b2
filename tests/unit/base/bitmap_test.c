/* base/bitmap.h against an array of bools: every range of four words. */
#include "base/bitmap.h"

#include "check.h"

enum { BITS = 256, WORDS = BITS / 64 };

static bool naive[BITS];

static void check_same(const uint64_t *words)
{
    for (size_t bit = 0; bit < BITS; bit++)
        check_eq(bitmap_has(words, bit), naive[bit]);
}

static void set_naive(size_t first, size_t count, bool value)
{
    for (size_t bit = first; bit < first + count; bit++)
        naive[bit] = value;
}

test(set_changes_its_range_and_nothing_else)
{
    for (size_t first = 0; first < BITS; first++)
        for (size_t count = 1; first + count <= BITS; count++) {
            uint64_t words[WORDS] = {0};
            bitmap_set(words, first, count);
            check_eq(bitmap_count(words, 0, BITS), count);
            check(bitmap_has(words, first) && bitmap_has(words, first + count - 1));
            check(first == 0 || !bitmap_has(words, first - 1));
            check(first + count == BITS || !bitmap_has(words, first + count));
        }
}

test(clear_changes_its_range_and_nothing_else)
{
    for (size_t first = 0; first < BITS; first++)
        for (size_t count = 1; first + count <= BITS; count++) {
            uint64_t words[WORDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
            bitmap_clear(words, first, count);
            check_eq(bitmap_count(words, 0, BITS), BITS - count);
            check_eq(bitmap_count(words, first, count), 0);
        }
}

test(find_gives_the_first_bit_of_the_value_or_the_end)
{
    uint64_t words[WORDS] = {0};
    bitmap_set(words, 60, 10);
    bitmap_set(words, 200, 1);
    memset(naive, 0, sizeof naive);
    set_naive(60, 10, true);
    set_naive(200, 1, true);
    for (size_t end = 0; end <= BITS; end++)
        for (size_t from = 0; from <= end; from++)
            for (unsigned value = 0; value < 2; value++) {
                size_t expected = from;
                while (expected < end && naive[expected] != (value == 1))
                    expected++;
                check_eq(bitmap_find(words, from, end, value == 1), expected);
            }
}

test(random_operations_agree_with_an_array)
{
    uint64_t words[WORDS] = {0};
    uint64_t state = check_seed(1);
    memset(naive, 0, sizeof naive);
    for (unsigned step = 0; step < 20000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t first = (state >> 33) % BITS;
        size_t count = 1 + (state >> 45) % (BITS - first);
        bool value = state >> 63;
        if (value)
            bitmap_set(words, first, count);
        else
            bitmap_clear(words, first, count);
        set_naive(first, count, value);
        check_same(words);
    }
}

check_main()
