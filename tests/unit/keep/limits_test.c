/* keep/limits.h: what the kernel's files mean, malformed ones too, and when a limit is near. */
#include "keep/limits.h"

#include "check.h"

#define MANY ((uint64_t)123456789)

static uint64_t number_in(const char *text)
{
    uint64_t number = 7;
    return limits_parse_number(&text, &number) ? number : MANY;
}

test(a_number_is_read_up_to_what_follows_it)
{
    check_eq(number_in("0\n"), 0);
    check_eq(number_in("67108864\n"), 67108864);
    check_eq(number_in("  12 34"), 12);
    check_eq(number_in("5"), 5);
    const char *text = "12 34\n";
    uint64_t number;
    check(limits_parse_number(&text, &number) && limits_parse_number(&text, &number));
    check_eq(number, 34);
    check(!limits_parse_number(&text, &number));
}

test(no_limit_is_said_in_three_ways)
{
    check_eq(number_in("max\n"), LIMIT_NONE);
    check_eq(number_in("9223372036854771712\n"), LIMIT_NONE);
    check_eq(number_in("99999999999999999999999999\n"), LIMIT_NONE);
    check_eq(number_in("18446744073709551615\n"), LIMIT_NONE);
}

test(what_is_no_number_is_none)
{
    static const char *const texts[] = {"", "\n", "-1\n", "ma\n", "x12\n", "+3", "\t4"};
    for (unsigned index = 0; index < sizeof texts / sizeof *texts; index++)
        check_eq(number_in(texts[index]), MANY);
}

static void check_group(const char *text, const char *path, bool is_v1)
{
    group_name_t name;
    check(limits_parse_group(text, &name));
    check_eq(name.length, strlen(path));
    check(strncmp(name.path, path, name.length) == 0);
    check_eq(name.is_v1, is_v1);
}

test(the_group_of_the_new_kind_is_found)
{
    check_group("0::/\n", "/", false);
    check_group("0::/user.slice/user-1000.slice\n", "/user.slice/user-1000.slice", false);
    check_group("1:name=systemd:/a\n0::/b:c\n", "/b:c", false);
}

test(the_old_group_that_counts_memory_comes_first)
{
    check_group("4:memory:/docker/12\n3:cpu:/\n0::/x\n", "/docker/12", true);
    check_group("0::/x\n11:cpuset,memory:/\n", "/", true);
    check_group("2:memory,hugetlb:/a b\n", "/a b", true);
}

test(what_names_no_group_has_none)
{
    static const char *const texts[] = {
        "",      "\n",          "0::",    "0::/cut in the midd", "0:/\n", "memory:/\n",
        "0::\n", "5:memor:/\n", "::/\n", "5:memory:relative\n", "5:mymemory:/\n",
        "5:memory2:/\n", "5:cpu:memory:/\n",
    };
    group_name_t name;
    for (unsigned index = 0; index < sizeof texts / sizeof *texts; index++)
        check(!limits_parse_group(texts[index], &name));
}

test(files_in_memory_are_added_up)
{
    static const char text[] = "cache 9\ninactive_anon 100\nactive_anon 200\ninactive_file 30\n"
                               "active_file 4\nunevictable 5\ntotal_inactive_file 3000\n"
                               "total_active_file 400\n";
    check_eq(limits_parse_file_bytes(text, false), 34);
    check_eq(limits_parse_file_bytes(text, true), 3400);
    check_eq(limits_parse_file_bytes("", false), 0);
    check_eq(limits_parse_file_bytes("inactive_file \nactive_file max\n", false), 0);
}

test(waits_for_memory_are_read_in_hundredths_of_a_percent)
{
    check_eq(limits_parse_stall("some avg10=1.53 avg60=0.87 avg300=0.20 total=5\nfull avg10=9"),
             153);
    check_eq(limits_parse_stall("some avg10=100.00 avg60=0.00\n"), 10000);
    check_eq(limits_parse_stall("some avg10=0.07 "), 7);
    check_eq(limits_parse_stall("some avg10=12"), 1200);
    check_eq(limits_parse_stall("full avg10=9.00\n"), 0);
    check_eq(limits_parse_stall("some avg10=\n"), 0);
    check_eq(limits_parse_stall("some avg10=7777777.00"), 0);
    check_eq(limits_parse_stall(""), 0);
}

test(statm_tells_addresses_and_data)
{
    uint64_t total;
    uint64_t data;
    check(limits_parse_statm("1000 300 200 10 0 456 0\n", &total, &data));
    check_eq(total, 1000);
    check_eq(data, 456);
    check(!limits_parse_statm("1000 300 200 10\n", &total, &data));
    check(!limits_parse_statm("", &total, &data));
}

static pressure_t pressure_at(uint64_t limit, uint64_t used)
{
    headroom_t headroom = headroom_unlimited();
    headroom_add(&headroom, limit, used);
    return headroom.pressure;
}

test(an_eighth_of_the_limit_is_near_and_a_thirtysecond_all_but_there)
{
    check_eq(pressure_at(512 * MIB, 0), PRESSURE_NONE);
    check_eq(pressure_at(512 * MIB, 448 * MIB), PRESSURE_NONE);
    check_eq(pressure_at(512 * MIB, 448 * MIB + 1), PRESSURE_NEAR);
    check_eq(pressure_at(512 * MIB, 496 * MIB), PRESSURE_NEAR);
    check_eq(pressure_at(512 * MIB, 496 * MIB + 1), PRESSURE_FULL);
    check_eq(pressure_at(512 * MIB, 512 * MIB), PRESSURE_FULL);
    check_eq(pressure_at(512 * MIB, 600 * MIB), PRESSURE_FULL);
    check_eq(pressure_at(0, 0), PRESSURE_FULL);
    check_eq(pressure_at(1, 1), PRESSURE_FULL);
}

test(near_a_great_limit_is_a_gib)
{
    check_eq(pressure_at(512 * GIB, 511 * GIB), PRESSURE_NONE);
    check_eq(pressure_at(512 * GIB, 511 * GIB + 1), PRESSURE_NEAR);
    check_eq(pressure_at(512 * GIB, 512 * GIB - 256 * MIB + 1), PRESSURE_FULL);
}

test(without_a_limit_there_is_no_pressure)
{
    check_eq(pressure_at(LIMIT_NONE, LIMIT_NONE), PRESSURE_NONE);
    headroom_t headroom = headroom_unlimited();
    check_eq(headroom_kept_bytes(&headroom), SIZE_MAX);
}

test(of_several_limits_the_tightest_counts_in_each_respect)
{
    headroom_t headroom = headroom_unlimited();
    headroom_add(&headroom, 100 * MIB, 10 * MIB);
    headroom_add(&headroom, 400 * MIB, 360 * MIB);
    check_eq(headroom.pressure, PRESSURE_NEAR);
    check_eq(headroom.limit, 100 * MIB);
    check_eq(headroom.room, 40 * MIB);
    headroom_add(&headroom, GIB, 0);
    headroom_t other = headroom_unlimited();
    headroom_join(&headroom, &other);
    check_eq(headroom.pressure, PRESSURE_NEAR);
    check_eq(headroom.room, 40 * MIB);
}

test(long_waits_are_pressure)
{
    headroom_t headroom = headroom_unlimited();
    headroom_add_stall(&headroom, 499);
    check_eq(headroom.pressure, PRESSURE_NONE);
    headroom_add_stall(&headroom, 500);
    check_eq(headroom.pressure, PRESSURE_NEAR);
    check_eq(headroom_kept_bytes(&headroom), 64 * MIB);
    headroom_add(&headroom, MIB, MIB);
    headroom_add_stall(&headroom, 10000);
    check_eq(headroom.pressure, PRESSURE_FULL);
}

test(at_a_limit_what_is_missing_leaves_half_of_what_is_near)
{
    headroom_t headroom = headroom_unlimited();
    check_eq(headroom_missing(&headroom), 0);
    headroom_add(&headroom, 320 * MIB, 309 * MIB);
    check_eq(headroom_missing(&headroom), 0);
    headroom_add(&headroom, 320 * MIB, 312 * MIB);
    check_eq(headroom_missing(&headroom), 12 * MIB);
    headroom_add(&headroom, 320 * MIB, 400 * MIB);
    check_eq(headroom_missing(&headroom), 20 * MIB);
}

static size_t kept_at(uint64_t limit, uint64_t used)
{
    headroom_t headroom = headroom_unlimited();
    headroom_add(&headroom, limit, used);
    return headroom_kept_bytes(&headroom);
}

test(what_may_be_kept_falls_with_the_limit_and_the_room)
{
    check_eq(kept_at(512 * MIB, 100 * MIB), 128 * MIB);
    check_eq(kept_at(512 * MIB, 460 * MIB), 32 * MIB);
    check_eq(kept_at(512 * MIB, 510 * MIB), 4 * MIB);
    check_eq(kept_at(64 * GIB, 64 * GIB - 900 * MIB), 64 * MIB);
    check_eq(kept_at(8 * MIB, 8 * MIB), 2 * MIB);
    check_eq(kept_at(0, 0), 0);
}

test(memory_waits_less_long_where_there_is_little_room)
{
    check_eq(pressure_delay_ms(PRESSURE_NONE, 1000), 1000);
    check_eq(pressure_delay_ms(PRESSURE_NEAR, 1000), 100);
    check_eq(pressure_delay_ms(PRESSURE_FULL, 1000), 0);
}

check_main()
