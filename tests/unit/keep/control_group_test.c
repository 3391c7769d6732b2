/* keep/control_group.h: the limits are found wherever the kernel shows them. */
#include "keep/control_group.h"

#include "unit/fresh.h"

#define NEW "/sys/fs/cgroup"
#define OLD "/sys/fs/cgroup/memory"

static void in_group(const char *text)
{
    fake_os_set_file("/proc/self/cgroup", text);
}

static void check_headroom(uint64_t limit, uint64_t room)
{
    headroom_t headroom = control_group_headroom(0);
    check_eq(headroom.limit, limit);
    check_eq(headroom.room, room);
}

fresh_test(without_files_nothing_is_known)
{
    check_headroom(LIMIT_NONE, LIMIT_NONE);
    control_group_scan();
    check_headroom(LIMIT_NONE, LIMIT_NONE);
    check_eq(control_group_stall(), 0);
    in_group("nonsense");
    control_group_scan();
    check_headroom(LIMIT_NONE, LIMIT_NONE);
}

fresh_test(a_group_of_the_new_kind_has_a_hard_limit_and_one_that_throttles)
{
    in_group("0::/a/b\n");
    fake_os_set_file(NEW "/a/b/memory.max", "1000000\n");
    fake_os_set_file(NEW "/a/b/memory.high", "max\n");
    fake_os_set_file(NEW "/a/b/memory.current", "400000\n");
    control_group_scan();
    check_headroom(1000000, 600000);
    fake_os_set_file(NEW "/a/b/memory.high", "900000\n");
    control_group_scan();
    check_headroom(900000, 500000);
    check_eq(control_group_headroom(100000).room, 400000);
}

fresh_test(an_old_group_is_found_where_old_groups_are_mounted)
{
    in_group("7:memory:/a\n0::/b\n");
    fake_os_set_file(OLD "/a/memory.limit_in_bytes", "1000000\n");
    fake_os_set_file(OLD "/a/memory.usage_in_bytes", "100\n");
    fake_os_set_file(OLD "/memory.limit_in_bytes", "9223372036854771712\n");
    control_group_scan();
    check_headroom(1000000, 999900);
    check_eq(fake_os_reads_of(OLD "/memory.limit_in_bytes"), 1);
}

/* It sees the host's name of its group and, at the root of the mount, its own files. */
fresh_test(a_container_finds_its_group_at_the_root_of_the_mount)
{
    in_group("7:memory:/docker/0123\n");
    fake_os_set_file(OLD "/memory.limit_in_bytes", "5000\n");
    fake_os_set_file(OLD "/memory.usage_in_bytes", "1000\n");
    control_group_scan();
    check_headroom(5000, 4000);
    in_group("0::/\n");
    fake_os_set_file(NEW "/memory.max", "7000\n");
    fake_os_set_file(NEW "/memory.current", "1000\n");
    control_group_scan();
    check_headroom(7000, 6000);
    check_eq(fake_os_reads_of(NEW "/memory.max"), 1); /* the root is not read twice */
}

fresh_test(a_group_around_may_be_tighter)
{
    in_group("0::/pod/container\n");
    fake_os_set_file(NEW "/pod/container/memory.max", "8000\n");
    fake_os_set_file(NEW "/pod/container/memory.current", "1000\n");
    fake_os_set_file(NEW "/pod/memory.max", "9000\n");
    fake_os_set_file(NEW "/pod/memory.current", "6000\n");
    control_group_scan();
    check_headroom(8000, 3000);
}

fresh_test(a_very_deep_group_has_its_nearest_levels_and_the_root_looked_at)
{
    in_group("0::/1/2/3/4/5/6/7/8/9/10\n");
    fake_os_set_file(NEW "/1/2/memory.max", "10\n"); /* the ninth from below */
    fake_os_set_file(NEW "/1/2/memory.current", "10\n");
    fake_os_set_file(NEW "/1/2/3/memory.max", "500\n");
    fake_os_set_file(NEW "/1/2/3/memory.current", "100\n");
    fake_os_set_file(NEW "/memory.max", "900\n");
    fake_os_set_file(NEW "/memory.current", "600\n");
    control_group_scan();
    check_headroom(500, 300);
}

fresh_test(a_path_that_is_too_long_is_as_good_as_none)
{
    static char text[3000];
    (void)snprintf(text, sizeof text, "0::/%02500d\n", 1);
    in_group(text);
    fake_os_set_file(NEW "/memory.max", "900\n");
    fake_os_set_file(NEW "/memory.current", "600\n");
    control_group_scan();
    check_headroom(900, 300);
}

fresh_test(a_group_that_is_gone_limits_nothing)
{
    in_group("0::/a\n");
    fake_os_set_file(NEW "/a/memory.max", "900\n");
    control_group_scan();
    check_headroom(LIMIT_NONE, LIMIT_NONE);
    fake_os_set_file(NEW "/a/memory.current", "600\n");
    check_headroom(900, 300);
    in_group("0::/b\n");
    control_group_scan();
    check_headroom(LIMIT_NONE, LIMIT_NONE);
}

fresh_test(memory_that_holds_files_is_room)
{
    in_group("0::/a\n");
    fake_os_set_file(NEW "/a/memory.max", "8000\n");
    fake_os_set_file(NEW "/a/memory.current", "7900\n");
    fake_os_set_file(NEW "/a/memory.stat", "anon 900\ninactive_file 3000\nactive_file 2000\n");
    control_group_scan();
    check_headroom(8000, 5100);
    fake_os_set_file(NEW "/a/memory.stat", "inactive_file 9000\n");
    check_headroom(8000, 8000);
    fake_os_set_file(NEW "/a/memory.stat", NULL);
    check_headroom(8000, 100);
}

/* The kernel has some work with it. */
fresh_test(what_holds_files_is_only_asked_where_it_matters)
{
    in_group("3:memory:/a\n");
    fake_os_set_file(OLD "/a/memory.limit_in_bytes", "8000\n");
    fake_os_set_file(OLD "/a/memory.usage_in_bytes", "7000\n");
    fake_os_set_file(OLD "/a/memory.stat", "total_inactive_file 3000\n");
    control_group_scan();
    check_headroom(8000, 1000);
    check_eq(fake_os_reads_of(OLD "/a/memory.stat"), 0);
    check_eq(control_group_headroom(1).room, 3999);
    check_eq(fake_os_reads_of(OLD "/a/memory.stat"), 1);
}

fresh_test(waits_of_the_group_come_before_those_of_the_machine)
{
    fake_os_set_file("/proc/pressure/memory", "some avg10=1.00 ");
    check_eq(control_group_stall(), 100);
    in_group("0::/a/b\n");
    fake_os_set_file(NEW "/a/memory.pressure", "some avg10=3.00 ");
    fake_os_set_file(NEW "/memory.pressure", "some avg10=2.00 ");
    control_group_scan();
    check_eq(control_group_stall(), 300);
    fake_os_set_file(NEW "/a/b/memory.pressure", "some avg10=4.00 ");
    control_group_scan();
    check_eq(control_group_stall(), 400);
    in_group("5:memory:/a/b\n"); /* old groups do not say */
    control_group_scan();
    check_eq(control_group_stall(), 100);
}

check_main()
