"""Each option, set alone, does something; and what is said about options says who says it.

The options come from src/options/option_table.h, so a new one without a test here fails.
"""
import pathlib
import re
import signal

import pytest

from conftest import TESTS, succeeds, succeeds_or_skips

TABLE = pathlib.Path(__file__).parents[2] / "src/options/option_table.h"

# option: value, what is measured (with an argument), and how it compares with the default.
EFFECTS = {
    "tiny_fast_cap": (1, ["cached"], lambda ours, usual: ours < usual / 4),
    "bigcache": (0, ["huge_cached"], lambda ours, usual: ours == 0 < usual),
    "bigcache_max_mb": (4, ["huge_cached"], lambda ours, usual: ours == 0 < usual),
    "price": (1, ["purged"], lambda ours, usual: (ours, usual) == (0, 1)),
    "free_policy": ("keep", ["purged"], lambda ours, usual: (ours, usual) == (0, 1)),
    "background": (1, ["threads"], lambda ours, usual: (ours, usual) == (2, 1)),
    "thp_adaptive": (0, ["faults_untouched"], lambda ours, usual: ours + 10 < usual),
    "ld_safe": (1, ["is_ours"], lambda ours, usual: (ours, usual) == (0, 1)),
}
# Those with a test of their own below.
OTHERS = {"purge_delay_ms", "limit_mb", "watch_limits", "thp_min_heap_mb", "junk",
          "size_check", "check_frees", "leak_report", "report_fd", "deepbind", "free_route_trace",
          "plain_syscalls",  # the latter in test_system_calls.py
          "profile_mean_kb"}  # in test_profile.py


def test_every_option_has_a_test():
    names = re.findall(r"^OPTION\((\w+)", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(names) == set(EFFECTS) | OTHERS


def measure(run, build, what, **settings):
    told = succeeds_or_skips(run(build("option_effects.c"), *what, **settings))
    return int(told.split()[0])


@pytest.mark.parametrize("option", EFFECTS)
def test_an_option_set_alone_acts(build, run, option):
    value, what, holds = EFFECTS[option]
    ours = measure(run, build, what, **{f"HAKMEM_{option.upper()}": value})
    usual = measure(run, build, what)
    assert holds(ours, usual), (ours, usual)


@pytest.mark.parametrize("settings,expected", [
    ({}, 1), ({"HAKMEM_PURGE_DELAY_MS": 0}, 1),
    ({"HAKMEM_PURGE_DELAY_MS": 3600000, "HAKMEM_FREE_POLICY": "batch"}, 0),
    ({"HAKMEM_FREE_POLICY": "batch"}, 1), ({"HAKMEM_PRICE": "lean"}, 1),
    ({"HAKMEM_MODE": "minimal"}, 1)])
def test_pages_go_back_when_settings_say_so(build, run, settings, expected):
    assert measure(run, build, ["purged"], **settings) == expected


def test_the_soft_limit_leaves_nothing_that_is_free(build, run):
    """It is below what the program has; without it, what is free would stay for an hour."""
    usual, ours = (measure(run, build, ["kept"], HAKMEM_LIMIT_MB=limit,
                           HAKMEM_PURGE_DELAY_MS=3600000, HAKMEM_FREE_POLICY="batch")
                   for limit in (0, 8))
    assert ours < 2 << 20 and usual >= 20 << 20, (ours, usual)


@pytest.mark.parametrize("watched,expected", [(0, 0), (1, 1)])
def test_watch_limits_opens_files(build, run, watched, expected):
    """What it is for is tested in test_limits.py, in control groups."""
    if not pathlib.Path("/proc/self/cgroup").exists():
        pytest.skip("no control groups here")
    assert measure(run, build, ["reads_files"], HAKMEM_WATCH_LIMITS=watched) == expected


@pytest.mark.parametrize("least,expected", [(0, 1), (1048576, 0)])
def test_thp_min_heap_says_who_gets_huge_pages(build, run, least, expected):
    if not pathlib.Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("this kernel has no huge pages to ask for")
    # Adaptive, it would begin with small ones where a host takes free memory back.
    assert measure(run, build, ["huge_pages"], HAKMEM_THP_MIN_HEAP_MB=least,
                   HAKMEM_THP_ADAPTIVE=0) == expected


@pytest.mark.parametrize("deepbind,expected", [(0, 1), (1, 0)])
def test_deepbind_leaves_the_flag_to_dlopen(build, run, plugin, deepbind, expected):
    assert measure(run, build, ["plugin_is_served", plugin], HAKMEM_DEEPBIND=deepbind) == expected


@pytest.mark.parametrize("settings", [{"HAKMEM_JUNK": 1}, {"HAKMEM_MODE": "debug"}])
def test_junk_fills_memory(build, run, settings):
    succeeds(run(build("junk.c"), **settings))


def test_size_check_alone_stops_a_wrong_size(build, run):
    program = build("misuse/misuse.c", TESTS / "misuse/frees.c")
    assert run(program, "free_sized_wrong").returncode == 0
    result = run(program, "free_sized_wrong", HAKMEM_SIZE_CHECK=1)
    assert result.returncode == -signal.SIGABRT
    assert re.fullmatch(r"hakmem: free of 0x\w+ with size \d+, which is a block of \d+ bytes\n",
                        result.stderr), result


def test_check_frees_alone_stops_a_delayed_double_free_at_once(build, run):
    program = build("misuse/misuse.c", TESTS / "misuse/frees.c")
    assert "survived" in run(program, "double_free_later").stdout
    result = run(program, "double_free_later", HAKMEM_CHECK_FREES=1)
    assert result.returncode == -signal.SIGABRT and "survived" not in result.stdout


def test_free_route_trace_counts_or_says_why_not(build, run):
    result = run(build("option_effects.c"), "is_ours", HAKMEM_FREE_ROUTE_TRACE=1)
    assert result.returncode == 0
    assert "]: route malloc" in result.stderr or "needs a diagnostic build" in result.stderr


# ---- who says it, and where ----

WARNING = re.compile(r"hakmem\[(\d+) (.+?)\]: (.*)\n")


def test_a_warning_names_the_program_and_the_process(build, run):
    result = run(build("option_effects.c"), "is_ours", HAKMEM_JUNK="7")
    number, name, text = WARNING.fullmatch(result.stderr).groups()
    assert name == "option_effects" and int(number) > 1
    assert text == "HAKMEM_JUNK=7 is ignored: expected on or off"


def test_a_program_that_never_allocates_is_warned_too(run):
    assert "HAKMEM_NONE is not an option" in run("true", HAKMEM_NONE=1).stderr


def test_reports_go_to_the_file_that_report_fd_names(build, run, tmp_path):
    program = build("option_effects.c")
    said = tmp_path / "said"
    command = f'exec "{program}" leak 5 7>{said}'
    succeeds(run("/bin/sh", "-c", command, HAKMEM_LEAK_REPORT=1, HAKMEM_REPORT_FD=7, HAKMEM_NONE=1))
    lines = WARNING.findall(said.read_text(encoding="utf-8"))
    assert "not an option" in lines[0][2] and "not freed: 5 blocks" in lines[1][2]
    # A file that is not open: silence.
    succeeds(run(program, "leak", 5, HAKMEM_LEAK_REPORT=1, HAKMEM_REPORT_FD=7))


# ---- the leak report ----


def leaks(run, *command, **settings):
    """Name, number of blocks and bytes of the first line, and the other lines."""
    result = run(*command, HAKMEM_LEAK_REPORT=1, **settings)
    assert result.returncode == 0
    lines = WARNING.findall(result.stderr)
    assert len(lines) == result.stderr.count("\n")
    if not lines:
        return None
    count, size = re.fullmatch(r"not freed: (\d+) blocks? in all, (\d+) bytes",
                               lines[0][2]).groups()
    assert len({line[:2] for line in lines}) == 1
    return lines[0][1], int(count), int(size), [line[2] for line in lines[1:]]


def test_a_leak_is_told_with_its_size(build, run):
    program = build("option_effects.c")
    assert leaks(run, program, "leak", 2) == ("option_effects", 2, 112 + 208, [
        "not freed: 1 block of 208 bytes, 208 bytes",
        "not freed: 1 block of 112 bytes, 112 bytes"])


@pytest.mark.parametrize("size,told", [
    (10, "not freed: 1 block of 16 bytes, 16 bytes"),
    (32 << 10, "not freed: 1 block of 32768 bytes, 32768 bytes"),
    (100_000, "not freed: 1 block above 32 KiB, 106496 bytes"),
    (64 << 20, "not freed: 1 block with mappings of their own, 67108864 bytes"),
])
def test_a_leak_of_every_kind_is_told(build, run, size, told):
    assert leaks(run, build("option_effects.c"), "usable", size)[3] == [told]


def test_blocks_of_a_heap_of_the_programs_own_are_told(build, run):
    assert leaks(run, build("option_effects.c"), "leak_in_heap", 1000)[1:] == (
        1000, 112000, ["not freed: 1000 blocks of 112 bytes, 112000 bytes"])


@pytest.mark.parametrize("size", [100, 100_000])
def test_what_a_heap_had_goes_back_without_a_call(build, run, size):
    assert measure(run, build, ["rest_after_heap", size]) < 20 << 10


def test_at_most_ten_sizes_are_told(build, run):
    name, count, _, lines = leaks(run, build("option_effects.c"), "leak", 2000)
    assert (name, count, len(lines)) == ("option_effects", 2000, 10)
    sizes = [int(re.search(r", (\d+) bytes$", line).group(1)) for line in lines]
    assert sizes == sorted(sizes, reverse=True)


def test_the_child_of_a_fork_tells_nothing(build, run):
    """It has its parent's blocks, whose report comes from the parent."""
    result = run("sh", "-c", "(exit 0) & (exit 3) & wait; :", HAKMEM_LEAK_REPORT=1)
    tellers = {line.split("]")[0] for line in result.stderr.splitlines()}
    assert len(tellers) <= 1, result


@pytest.mark.parametrize("what", ["leak", "open_streams"])
def test_nothing_is_told_when_nothing_leaks(build, run, what):
    """Though stdout has a buffer."""
    assert leaks(run, build("option_effects.c"), what, 0) is None


def test_streams_are_told_and_not_their_buffers(build, run):
    _, count, _, lines = leaks(run, build("option_effects.c"), "open_streams", 3)
    assert (count, len(lines)) == (3, 1)


def test_the_pool_of_the_cxx_runtime_is_no_leak(build, run):
    assert leaks(run, build("thrower.cc")) is None
    late = leaks(run, build("host.c"), "runtime", build("late_plugin.cc", "-shared", "-fPIC"))
    assert late is None or late[2] < 60000, late
