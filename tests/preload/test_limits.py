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

from conftest import clean_environment, succeeds

MIB = 1 << 20

# What the library may ask the kernel for, as its documentation lists it.
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "architecture.md"
SECTION = PAGE.read_text(encoding="utf-8").split("## System calls")[1].split("##")[0]
DOCUMENTED_CALLS = set(re.findall(r"`([a-z0-9_]+)`", SECTION))
DOCUMENTED_FILES = set(re.findall(r"`([a-z0-9_/]*[./][a-z0-9_/.]+)`", SECTION))


def address_space(mebibytes):
    """To be called in the child: a limit that is there before the program starts."""
    size = mebibytes * MIB
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


@pytest.mark.parametrize("kibibytes", [400000, 1000000, 4000000, 20000000])
def test_python_runs_in_a_narrow_address_space(run, kibibytes):
    code = ("import json, threading, re\n"
            "data = [{'n': i, 't': 'x' * (i % 500)} for i in range(20000)]\n"
            "assert json.loads(json.dumps(data)) == data\n"
            "parts = [threading.Thread(target=lambda: json.dumps(data)) for _ in range(3)]\n"
            "[part.start() for part in parts]; [part.join() for part in parts]\n"
            "print(len(data))\n")
    limit = (kibibytes * 1024,) * 2
    result = run("python3", "-c", code,
                 before=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    assert succeeds(result) == "20000\n"


@pytest.mark.parametrize("size", [64, 1000, 4096, 30000, 100000, 1 * MIB, 6 * MIB])
@pytest.mark.parametrize("way", ["as", "data", "late"])
def test_a_heap_at_its_limit_recovers(build, run, way, size):
    succeeds(run(build("limits.c"), way, size))


@pytest.mark.parametrize("size", [64, 4096, 100000, 6 * MIB])
def test_a_limit_set_before_the_start_is_felt(build, run, size):
    succeeds(run(build("limits.c"), "given", size, before=address_space(200)))


def test_huge_blocks_among_the_addresses_of_the_heap_stay_what_they_are(build, run):
    result = run(build("huge_inside.c"))
    if result.returncode == 77:
        pytest.skip(result.stdout)
    succeeds(result)


def test_sparse_large_blocks_leave_addresses_for_small_ones(build, run):
    result = run(build("sparse.c"))
    if result.returncode == 77:
        pytest.skip(result.stdout)
    succeeds(result)


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


@pytest.mark.parametrize("mode", ["balanced", "checked"])
def test_a_first_block_needs_little_room(build, run, mode):
    """And no block of 40,000 bytes can be had where one of 8 cannot."""
    succeeds(run(build("little_room.c"), 512, HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT=0))


@pytest.mark.parametrize("size", [16, 3000, 20000, 100000, 3000000, 10000000])
def test_what_is_mapped_serves_when_nothing_can_be_mapped(build, run, size):
    result = run(build("denied.c"), size)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    succeeds(result)


def test_what_cannot_be_had_costs_no_cache(build, run):
    result = run(build("impossible.c"))
    if result.returncode == 77:
        pytest.skip(result.stdout)
    succeeds(result)


@pytest.fixture
def memory_group():
    """A control group that may hold 512 MiB, as the function by which a child enters it."""
    for parent, name in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/unified", "memory.max"),
                         ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        group = pathlib.Path(parent) / f"hakmem-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / name).exists():
                (group / name).write_text(str(512 * MIB))
                yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
                return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("no control group for memory can be made here")


def test_phases_of_different_sizes_fit_into_a_control_group(build, run, memory_group):
    """No phase holds more than 60 MiB; what lies idle meanwhile must not get the process killed."""
    assert succeeds(run(build("phases.c"), before=memory_group)).endswith("ok\n")


@pytest.mark.parametrize("size", [100, 5000, 40 * MIB, 180 * MIB, 0])
def test_idle_memory_goes_before_a_control_group_is_full(build, run, memory_group, size):
    result = run(build("near_limit.c"), size, before=memory_group, HAKMEM_PURGE_DELAY_MS=3600000)
    assert succeeds(result) == "ok\n"


@pytest.mark.parametrize("call,error", [
    ("mmap", "ENOMEM"), ("mmap", "EAGAIN"), ("munmap", "ENOMEM"), ("munmap", "EINVAL"),
    ("mremap", "ENOMEM"), ("mremap", "ENOSYS"), ("mprotect", "ENOMEM"), ("madvise", "EINVAL"),
    ("madvise", "ENOMEM"), ("madvise", "EAGAIN"), ("getrandom", "ENOSYS"), ("sysinfo", "EPERM"),
    ("membarrier", "ENOSYS"), ("sched_yield", "ENOSYS"),
])
def test_a_failing_call_costs_null_at_most(build, run, call, error):
    result = run(build("faults.c"), call, error)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    assert succeeds(result).endswith("ok\n")


@pytest.mark.parametrize("call", ["madvise", "getrandom", "sysinfo", "membarrier", "mremap"])
def test_a_call_forbidden_from_the_start_is_done_without(build, run, library, call):
    """As under old kernels, emulators and strict sandboxes."""
    program = build("churn.c")
    expected = succeeds(run(program, 2, preload=None))
    result = run(build("faults.c"), "exec", call, "ENOSYS", "/usr/bin/env",
                 f"LD_PRELOAD={library}", program, 2, preload=None)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    assert succeeds(result) == expected


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
    results = [run(build("crowd.c"), 8000, sizes, **where) for where in ({"preload": None}, {})]
    if any(result.returncode == 77 for result in results):
        pytest.skip(results[0].stdout)
    theirs, ours = ([int(word) for word in succeeds(result).split()] for result in results)
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
def test_only_documented_system_calls_are_made(build, library, tmp_path, threads):
    """Compared with a run that preloads a library which does nothing."""
    plugin = build("plugin.c", "-shared", "-fPIC")
    program = build("churn.c")
    before = system_calls(tmp_path, plugin, program, threads)
    after = system_calls(tmp_path, library, program, threads)
    assert after - before <= DOCUMENTED_CALLS
    assert "brk" in before and "mmap" in after


def opened_files(build, library, folder, *command, **settings):
    """What is opened with the library and not with one that does nothing."""
    names = []
    for preload in (build("plugin.c", "-shared", "-fPIC"), library):
        log = traced(folder, preload, *command, **settings)
        opened = re.findall(r'\bopen(?:at)?\((?:AT_FDCWD, )?"([^"]*)"', log)
        names.append({name for name in opened if name != str(preload)})
    return names[1] - names[0]


POLICY_FILE = re.compile(r"/etc/hakmem/policies/[0-9a-f]+\.policy")


def test_a_program_that_uses_little_looks_for_its_policy_alone(build, library, tmp_path):
    """So does one that forks and starts others."""
    command = ("/bin/sh", "-c", "true; /bin/true | cat")
    opened = opened_files(build, library, tmp_path, *command)
    assert all(POLICY_FILE.fullmatch(path) for path in opened), opened
    assert not opened_files(build, library, tmp_path, *command, HAKMEM_POLICY="none")


def test_only_documented_files_are_opened(build, library, tmp_path):
    """They say how much memory the process may have."""
    opened = opened_files(build, library, tmp_path, build("churn.c"), 2)
    assert opened
    for path in opened:
        name = path.rpartition("/")[2] if path.startswith("/sys/fs/cgroup/") else path
        assert name in DOCUMENTED_FILES or POLICY_FILE.fullmatch(path), path


def test_no_file_is_opened_where_limits_are_not_watched(build, library, tmp_path):
    """A sandbox that forbids open() must not notice us."""
    assert not opened_files(build, library, tmp_path, build("churn.c"), 2, HAKMEM_WATCH_LIMITS=0,
                            HAKMEM_POLICY="none")


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_a_program_may_lower_its_own_limit_in_every_mode(run, mode):
    """What the modes keep of blocks is mapped as the heap grows, not reserved."""
    code = ("import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
            "x = ['a' * i for i in range(5000)]; print(len(x))")
    result = run(sys.executable, "-c", code, HAKMEM_MODE=mode)
    assert (result.returncode, result.stdout) == (0, "5000\n"), result
