"""Memory that is refused, system calls that fail, and what an idle program may cost."""
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys

import pytest

from conftest import address_space, clean_environment, succeeds, succeeds_or_skips

MIB = 1 << 20

# What the library may ask the kernel for, as its documentation lists it.
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "architecture.md"
SECTION = PAGE.read_text(encoding="utf-8").split("## System calls")[1].split("##")[0]
DOCUMENTED_CALLS = set(re.findall(r"`([a-z0-9_]+)`", SECTION))
DOCUMENTED_FILES = set(re.findall(r"`([a-z0-9_/]*[./][a-z0-9_/.]+)`", SECTION))


@pytest.mark.parametrize("mebibytes", [390, 976, 3900, 19500])
def test_python_runs_in_a_narrow_address_space(run, mebibytes):
    code = ("import json, threading, re\n"
            "data = [{'n': i, 't': 'x' * (i % 500)} for i in range(20000)]\n"
            "assert json.loads(json.dumps(data)) == data\n"
            "parts = [threading.Thread(target=lambda: json.dumps(data)) for _ in range(3)]\n"
            "[part.start() for part in parts]; [part.join() for part in parts]\n"
            "print(len(data))\n")
    assert succeeds(run("python3", "-c", code, before=address_space(mebibytes))) == "20000\n"


@pytest.mark.parametrize("size", [64, 1000, 4096, 30000, 100000, 1 * MIB, 6 * MIB])
@pytest.mark.parametrize("way", ["as", "data", "late"])
def test_a_heap_at_its_limit_recovers(build, run, way, size):
    succeeds(run(build("limits.c"), way, size))


@pytest.mark.parametrize("size", [64, 4096, 100000, 6 * MIB])
def test_a_limit_set_before_the_start_is_felt(build, run, size):
    succeeds(run(build("limits.c"), "given", size, before=address_space(200)))


@pytest.mark.parametrize("plain", [0, 1])
def test_memory_goes_back_where_no_address_is_left(build, run, plain):
    result = run(build("at_limit.c"), HAKMEM_PLAIN_SYSCALLS=plain)
    full, rest = map(int, succeeds(result).split())
    assert rest < full / 4


@pytest.mark.parametrize("case", [
    "huge_inside",  # huge blocks among the addresses of the heap stay what they are
    "sparse",  # large blocks that nobody writes to leave addresses for small ones
    "impossible",  # what cannot be had costs no cache
])
def test_addresses_and_caches_are_not_used_up(build, run, case):
    succeeds_or_skips(run(build(f"{case}.c")))


@pytest.mark.parametrize("setting", ["legacy layout", "unlimited stack"])
@pytest.mark.parametrize("threads", [0, 4])
def test_mappings_from_below_do_no_harm(build, run, setting, threads):
    """Both make the kernel choose addresses from the middle of the address space upwards."""
    program = build("churn.c")
    expected = succeeds(run(program, threads, preload=None))
    if setting == "legacy layout":
        result = run("setarch", "-L", program, threads)
    else:
        endless = (resource.RLIM_INFINITY,) * 2
        result = run(program, threads,
                     before=lambda: resource.setrlimit(resource.RLIMIT_STACK, endless))
    if "failed to set personality" in result.stderr:
        pytest.skip("no setarch here")
    assert succeeds(result) == expected


@pytest.mark.parametrize("pattern,first,second", [
    ("alternate", 300000, second) for second in (100, 3000, 20000, 300000)
] + [
    ("alternate", 100000, second) for second in (3000, 20000, 100000)
] + [("older", first, second) for first in (100, 300000, 10000000)
     for second in (100, 20000, 300000, 10000000)])
@pytest.mark.parametrize("way", ["as", "data"])
def test_what_one_size_has_left_serves_another(build, run, way, pattern, first, second):
    succeeds(run(build("halves.c"), way, pattern, first, second))


@pytest.mark.parametrize("first", [33000, 40000, 100000, 300000, 1000000, 3000000])
@pytest.mark.parametrize("way", ["as", "data"])
def test_holes_of_any_length_serve_small_blocks(build, run, way, first):
    served = succeeds(run(build("halves.c"), way, "alternate", first, 100)).split("then ")[1]
    assert int(served.split()[0]) >= 100


@pytest.mark.parametrize("size,blocks", [(3000, 96000), (20000, 14600), (33000, 7400),
                                         (40000, 7400), (48000, 6150), (60000, 4600)])
@pytest.mark.parametrize("when", [[], ["late"]], ids=["first", "late"])
@pytest.mark.parametrize("plain", [0, 1])
def test_a_limit_holds_little_else_than_blocks(build, run, size, blocks, when, plain):
    done = run(build("full.c"), size, *when, HAKMEM_PLAIN_SYSCALLS=plain)
    assert int(succeeds(done)) >= blocks


@pytest.mark.parametrize("mode", ["balanced", "checked"])
def test_a_first_block_needs_little_room(build, run, mode):
    """And no block of 40,000 bytes can be had where one of 8 cannot."""
    succeeds(run(build("little_room.c"), 512, HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT=0))


@pytest.mark.parametrize("size", [16, 3000, 20000, 100000, 3000000, 10000000])
def test_what_is_mapped_serves_when_nothing_can_be_mapped(build, run, size):
    succeeds_or_skips(run(build("denied.c"), size))


def test_phases_of_different_sizes_fit_into_a_control_group(build, run, memory_group):
    """No phase holds more than 60 MiB; what lies idle meanwhile must not get the process killed."""
    assert succeeds(run(build("phases.c"), before=memory_group(512 * MIB))).endswith("ok\n")


@pytest.mark.parametrize("size", [100, 5000, 40 * MIB, 180 * MIB, 0])
def test_idle_memory_goes_before_a_control_group_is_full(build, run, memory_group, size):
    result = run(build("near_limit.c"), size, before=memory_group(512 * MIB),
                 HAKMEM_PURGE_DELAY_MS=3600000, HAKMEM_FREE_POLICY="batch")
    assert succeeds(result) == "ok\n"


@pytest.mark.parametrize("call,error", [
    ("mmap", "ENOMEM"), ("mmap", "EAGAIN"), ("munmap", "ENOMEM"), ("munmap", "EINVAL"),
    ("mremap", "ENOMEM"), ("mremap", "ENOSYS"), ("mprotect", "ENOMEM"), ("madvise", "EINVAL"),
    ("madvise", "ENOMEM"), ("madvise", "EAGAIN"), ("getrandom", "ENOSYS"), ("sysinfo", "EPERM"),
    ("sched_yield", "ENOSYS"),
])
def test_a_failing_call_costs_null_at_most(build, run, call, error):
    program = build("faults.c", f"-DCALL=SYS_{call}", f"-DERROR={error}", name=f"{call}_{error}")
    assert succeeds_or_skips(run(program)).endswith("ok\n")


@pytest.mark.parametrize("call", ["madvise", "getrandom", "sysinfo", "mremap"])
def test_a_call_forbidden_from_the_start_is_done_without(build, run, library, call):
    """As under old kernels, emulators and strict sandboxes."""
    program = build("churn.c")
    expected = succeeds(run(program, 2, preload=None))
    forbids = build("faults.c", f"-DCALL=SYS_{call}", "-DERROR=ENOSYS", name=f"without_{call}")
    result = run(forbids, "/usr/bin/env", f"LD_PRELOAD={library}", program, 2, preload=None)
    assert succeeds_or_skips(result) == expected


def test_the_last_processor_alone_is_enough(build, run):
    last = {max(os.sched_getaffinity(0))}
    result = run(build("stress/handoff.c"), 4, 20000, 1,
                 before=lambda: os.sched_setaffinity(0, last))
    assert succeeds(result).endswith("ok\n")


def test_a_small_program_holds_little_more_than_with_the_c_library(shipped):
    """Medians in KiB of what `cat` holds: anonymous memory in all, and pages of the library's file.
    Linux counts them exactly only in this file: peaks are sums of counters of each processor, each
    up to 32 pages or more behind (Linux 6.2). Pages of the C library's file are not compared:
    Linux maps what is cached around each fault, and that differs between machines."""
    def held(**setting):
        runs = []
        for _ in range(31):
            maps = subprocess.run(["/bin/cat", "/proc/self/smaps"], env={"LANG": "C", **setting},
                                  check=True, capture_output=True, text=True).stdout
            areas = [(text.splitlines()[0], {name: int(kib) for name, kib in
                      re.findall(r"^(\w+): +(\d+) kB$", text, re.MULTILINE)})
                     for text in re.split(r"\n(?=[0-9a-f]+-)", maps)]
            runs.append((sum(sizes["Anonymous"] for _, sizes in areas),
                         sum(sizes["Rss"] - sizes["Anonymous"] for first, sizes in areas
                             if first.endswith(str(shipped)))))
        return [statistics.median(column) for column in zip(*runs, strict=True)]
    theirs, ours = held(), held(LD_PRELOAD=str(shipped))
    print(f"anonymous and library: {ours} KiB, with the C library {theirs} KiB")
    assert theirs[0] < ours[0] <= theirs[0] + 112
    assert theirs[1] == 0 < ours[1] <= 288 # Code and constants, shared by all processes.


@pytest.mark.parametrize("sizes", [1, 20, 60])
def test_threads_that_have_ended_leave_little_more_than_with_the_c_library(build, run, sizes):
    theirs, ours = ([int(word) for word in succeeds_or_skips(
        run(build("crowd.c"), 8000, sizes, **where)).split()] for where in ({"preload": None}, {}))
    print(f"KiB after the joins, then trimmed: {ours}, with the C library {theirs}")
    assert all(mine <= its + 16 * 1024 for mine, its in zip(ours, theirs, strict=True))


def traced(folder, library, *command, **settings):
    """The lines of strace."""
    if not shutil.which("strace"):
        pytest.skip("no strace here")
    log = folder / "calls"
    result = subprocess.run(["strace", "-f", "-qq", "-o", log, "-E", f"LD_PRELOAD={library}",
                             *map(str, command)], env=clean_environment(**settings), check=False,
                            capture_output=True, text=True, timeout=120)
    if "PTRACE" in result.stderr or "ptrace" in result.stderr:
        pytest.skip("no ptrace here")
    assert result.returncode == 0, result
    return log.read_text()


def system_calls(*what):
    return set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)", traced(*what), re.MULTILINE))


@pytest.mark.parametrize("threads", [0, 4])
def test_only_documented_system_calls_are_made(build, plugin, library, tmp_path, threads):
    """Compared with a run that preloads a library which does nothing."""
    program = build("churn.c")
    before = system_calls(tmp_path, plugin, program, threads)
    after = system_calls(tmp_path, library, program, threads)
    assert after - before <= DOCUMENTED_CALLS
    assert "brk" in before and "mmap" in after


@pytest.fixture
def opened_files(plugin, library, tmp_path):
    """What a command opens with the library and not with one that does nothing."""
    def opened(*command, **settings):
        names = []
        for preload in (plugin, library):
            log = traced(tmp_path, preload, *command, **settings)
            found = re.findall(r'\bopen(?:at)?\((?:AT_FDCWD, )?"([^"]*)"', log)
            names.append({name for name in found if name != str(preload)})
        return names[1] - names[0]

    return opened


POLICY_FILE = re.compile(r"/etc/hakmem/policies/[0-9a-f]+\.policy")


def test_a_program_that_uses_little_looks_for_its_policy_alone(opened_files):
    """So does one that forks and starts others."""
    command = ("/bin/sh", "-c", "true; /bin/true | cat")
    opened = opened_files(*command)
    assert all(POLICY_FILE.fullmatch(path) for path in opened), opened
    assert not opened_files(*command, HAKMEM_POLICY="none")


def test_only_documented_files_are_opened(build, opened_files):
    """They say how much memory the process may have. A sandbox that forbids open() must not notice
    us where limits are not watched."""
    opened = opened_files(build("churn.c"), 2)
    assert opened
    for path in opened:
        name = path.rpartition("/")[2] if path.startswith("/sys/fs/cgroup/") else path
        assert name in DOCUMENTED_FILES or POLICY_FILE.fullmatch(path), path
    assert not opened_files(build("churn.c"), 2, HAKMEM_WATCH_LIMITS=0, HAKMEM_POLICY="none")


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_a_program_may_lower_its_own_limit_in_every_mode(run, mode):
    """What the modes keep of blocks is mapped as the heap grows, not reserved."""
    code = ("import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
            "x = ['a' * i for i in range(5000)]; print(len(x))")
    result = run(sys.executable, "-c", code, HAKMEM_MODE=mode)
    assert (result.returncode, result.stdout) == (0, "5000\n"), result
