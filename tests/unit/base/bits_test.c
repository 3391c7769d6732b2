/* base/bits.h against definitions that need no thought. */
#include "base/bits.h"

#include "check.h"

test(powers_of_two_are_known)
{
    check(!is_power_of_two(0));
    for (unsigned power = 0; power < 64; power++) {
        size_t value = (size_t)1 << power;
        check(is_power_of_two(value));
        check(power < 2 || !is_power_of_two(value - 1));
        check(power < 1 || power == 63 || !is_power_of_two(value + 1 + (power == 0)));
    }
}

test(a_value_is_aligned_to_the_nearest_multiple)
{
    for (size_t alignment = 1; alignment <= 64; alignment *= 2)
        for (size_t value = 0; value <= 300; value++) {
            size_t down = value / alignment * alignment;
            check_eq(align_down(value, alignment), down);
            check_eq(align_up(value, alignment), down == value ? value : down + alignment);
            check_eq(is_aligned((void *)value, alignment), down == value);
        }
    check_eq(align_down(SIZE_MAX, 2 * MIB), SIZE_MAX - 2 * MIB + 1);
}

test(the_lowest_and_the_highest_bit_are_found)
{
    for (unsigned low = 0; low < 64; low++)
        for (unsigned high = low; high < 64; high++) {
            uint64_t value = (uint64_t)1 << low | (uint64_t)1 << high;
            check_eq(lowest_bit(value), low);
            check_eq(highest_bit(value), high);
            check_eq(count_bits(value), low == high ? 1 : 2);
        }
    check_eq(count_bits(0), 0);
    check_eq(count_bits(UINT64_MAX), 64);
}

test(low_bits_has_exactly_so_many)
{
    for (unsigned count = 0; count <= 64; count++) {
        check_eq(count_bits(low_bits(count)), count);
        check(count == 64 || low_bits(count) >> count == 0);
    }
}

test(the_power_of_two_is_the_smallest_that_fits)
{
    check_eq(power_of_two_at_least(0), 1);
    for (size_t value = 1; value <= 5000; value++) {
        size_t naive = 1;
        while (naive < value)
            naive *= 2;
        check_eq(power_of_two_at_least(value), naive);
    }
    check_eq(power_of_two_at_least(((size_t)1 << 63) - 5), (size_t)1 << 63);
    check_eq(power_of_two_at_least((size_t)1 << 63), (size_t)1 << 63);
}

test(smaller_and_larger_choose)
{
    check_eq(smaller_of(3, 5), 3);
    check_eq(smaller_of(5, 3), 3);
    check_eq(larger_of(3, 5), 5);
    check_eq(larger_of(SIZE_MAX, 0), SIZE_MAX);
}

check_main()
