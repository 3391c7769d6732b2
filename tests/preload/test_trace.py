"""Allocation traces: what is in them, and what the recorder does for files and processes."""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import TESTS, address_space, output
from traces import BLOCK, FREED, GONE, HEAD, NEW, RESIZE, RESIZED, ZEROED, records

ROOT = TESTS.parent


@pytest.fixture(scope="session")
def program(build):
    return build("traced.c")


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_the_calls_of_a_program_are_in_its_trace(trace_of, program, mode):
    found = [each for each in trace_of(program, 2, HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT="off")
             if each.thread == 3]
    kinds = [(each.kind, each.size, each.shift) for each in found]
    unchanged = found[17].size  # of the block that could not be resized
    once = [(BLOCK, 100, 0), (RESIZE, 0, 0), (RESIZED, 50000, 0), (RESIZE, 0, 0), (RESIZED, 3, 0),
            (FREED, 0, 0), (ZEROED, 7000, 0), (FREED, 0, 0), (BLOCK, 8192, 12), (FREED, 0, 0),
            (BLOCK, 20 << 20, 0), (RESIZE, 0, 0), (RESIZED, 40 << 20, 0), (FREED, 0, 0),
            (BLOCK, 5, 0), (FREED, 0, 0), (RESIZE, 0, 0), (RESIZED, unchanged, 0)]
    assert kinds[:36] == once * 2 and unchanged >= 66
    assert found[16].address == found[17].address
    assert (BLOCK, 77, 0) in kinds[36:]


def test_every_block_is_known_and_no_address_is_given_twice(trace_of, program):
    live, threads = set(), set()
    for each in trace_of(program, 50):
        if each.kind in NEW:
            assert each.address not in live and each.frames
            live.add(each.address)
        if each.kind in GONE:
            live.remove(each.address)
        threads.add(each.thread)
    assert threads == {1, 2, 3, 4}
    assert len(live) <= 8  # what threads and streams of the C library hold to the end


def test_a_block_has_the_stack_of_its_callers_innermost_first(build, trace_of):
    """Only the second frame tells the callers of one function apart."""
    found = [each.frames for each in trace_of(build("traced_stacks.c")) if each.size == 3000]
    assert len(found) == 64 and {len(frames) for frames in found} == {4}
    assert len({frames[:1] for frames in found}) == 1
    assert found[0][:2] == found[2][:2] != found[1][:2] == found[3][:2]


def test_threads_at_work_at_once(build, trace_of):
    found = trace_of(build("stress/handoff.c"), 4, 3000, 1)
    live = set()
    for each in found:
        if each.kind in NEW:
            assert each.address not in live
            live.add(each.address)
        if each.kind in GONE:
            live.remove(each.address)
    assert len({each.thread for each in found}) >= 4


def test_the_command_makes_a_file_for_each_program(program, hakmem, tmp_path):
    """Also for two that are one process, one after the other; each as long as its records."""
    done = hakmem("trace", "--out", "here", "--", "sh", "-c",
                  f"cd /; {program}; exec {program} 2")
    told = re.findall(r"process ([-\d]+): .* in here/([-\d]+)\.trace", done.stderr)
    files = list((tmp_path / "here").iterdir())
    assert done.returncode == 0 and len(told) == len(files) >= 4, done  # each program forks
    assert any(name.endswith("-2") for name, _ in told)
    for process, name in told:
        path = tmp_path / f"here/{name}.trace"
        found = list(records(path))
        assert process == name and found and path.stat().st_mode & 0o777 == 0o600
        assert path.stat().st_size % 32 == 0 and path.stat().st_size < 128 * len(found) + 4096


def test_a_trace_of_a_process_that_goes_on_keeps_its_length(hakmem, tmp_path):
    """What it writes then must have a place in the file."""
    done = hakmem("trace", "--out", "here", "--", "sh", "-c",
                  "(sleep 3; exec ls /) > /dev/null 2>&1 & :")
    assert done.returncode == 0, done
    assert all(path.stat().st_size >= 1 << 20 for path in (tmp_path / "here").iterdir())


# ---- C++ ----

@pytest.mark.parametrize("behind", ["ours", "system"])
@pytest.mark.parametrize("kind", ["plain", "replaced"])
def test_each_operator_is_recorded_once_and_does_what_it_did(build, trace_of, library, behind,
                                                             kind):
    flags = ["-DREPLACED"] if kind == "replaced" else []
    program = build("traced_operators.cc", *flags, name=f"operators_{kind}")
    found = trace_of(program, behind=library if behind == "ours" else None)
    sizes = [each.size for each in found if each.kind == BLOCK and 1000 <= each.size < 1100]
    wanted = [1000, 1001, 1002, 1003, *([1004, 1005, 1006, 1007] if behind == "ours" else
                                        [1024] * 4)]  # the runtime asks for a multiple
    assert sizes == wanted[kind == "replaced":]
    live = set()
    for each in found:
        if each.kind in NEW:
            assert kind == "replaced" or each.address not in live
            live.add(each.address)
        if each.kind in GONE:
            live.discard(each.address)
    assert kind == "replaced" or len(live) <= 8


# ---- processes ----

def test_the_child_of_a_fork_has_a_file_of_its_own(run, recorded, build, tmp_path):
    """A bare clone has none, and what it does is not in that of its parent."""
    result = run(build("traced_forks.c"), preload=recorded, RECORDER_FILE=tmp_path / "%p.trace")
    assert (result.returncode, result.stderr) == (0, ""), result
    parent, child, cloned = result.stdout.split()
    assert {path.stem for path in tmp_path.glob("*.trace")} == {parent, child}
    for process, sizes in ((parent, {1001, 1004}), (child, {1002})):
        found = {each.size for each in records(tmp_path / f"{process}.trace")}
        assert found & {1001, 1002, 1003, 1004} == sizes
    assert cloned not in (parent, child)


def test_a_process_that_is_killed_leaves_all_that_it_did(started, recorded, program, tmp_path):
    process = started("sh", "-c", "echo begun; read line; exec true", LD_PRELOAD=recorded,
                      RECORDER_FILE=tmp_path / "a.trace")
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert len(list(records(tmp_path / "a.trace"))) > 5


# ---- files ----

def link_to(path):
    (path.parent / "target").write_text("before")
    path.symlink_to(path.parent / "target")


@pytest.mark.parametrize("there", [pathlib.Path.touch, pathlib.Path.mkdir, link_to, os.mkfifo])
def test_nothing_that_is_there_is_written(run, recorded, program, tmp_path, there):
    path = tmp_path / "a.trace"
    there(path)
    result = run(program, preload=recorded, RECORDER_FILE=path)
    assert result.returncode == 0
    assert result.stderr == f"recorder: nothing is recorded: File exists ({path})\n"
    assert not path.is_file() or path.read_text() in ("", "before")


def test_with_the_number_of_the_process_another_name_is_taken(run, recorded, tmp_path):
    result = run("sh", "-c", f"cd {tmp_path}; unset LD_PRELOAD; ln -s target $$.trace; echo $$; "
                 f"LD_PRELOAD='{recorded}' RECORDER_FILE=%p.trace exec ls /", preload=None)
    process = result.stdout.split()[0]
    assert (tmp_path / f"{process}.trace").is_symlink() and not (tmp_path / "target").exists()
    assert list(records(tmp_path / f"{process}-2.trace"))


@pytest.mark.parametrize("most,said", [(1 << 16, "no more is recorded: File too large"),
                                       (10, "nothing is recorded: File too large")])
def test_a_file_that_may_not_grow_ends_the_trace_and_not_the_program(run, recorded, program,
                                                                     tmp_path, most, said):
    path = tmp_path / "a.trace"
    result = run(program, 60, preload=recorded, RECORDER_FILE=path,
                 before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    assert result.returncode == 0
    assert result.stderr == f"recorder: {said} ({path})\n"
    assert path.exists() == (most > 10)
    assert most == 10 or len(list(records(path))) > 1500


def test_a_full_disk_ends_the_trace_and_not_the_program(run, recorded, program, tmp_path):
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80k", "none",
                                            tmp_path], check=False).returncode:
        pytest.skip("needs root to mount a small disk")
    try:
        result = run(program, 60, preload=recorded, RECORDER_FILE=tmp_path / "a.trace")
        assert result.returncode == 0
        assert "no more is recorded: No space left on device" in result.stderr
        assert len(list(records(tmp_path / "a.trace"))) > 1500
    finally:
        subprocess.run(["umount", tmp_path], check=True)


LOCKED = """
import ctypes, pathlib, re
assert ctypes.CDLL(None).mlockall(3) == 0
print(re.search(r"RssFile:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""


def test_a_program_that_locks_its_memory_does_not_lock_the_file(run, recorded, tmp_path):
    limit = 256 << 20
    if run(sys.executable, "-c", LOCKED).returncode:
        pytest.skip("may not lock all its memory")
    result = run(sys.executable, "-c", LOCKED, preload=recorded,
                 RECORDER_FILE=tmp_path / "a.trace",
                 before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert result.returncode == 0 and int(result.stdout) << 10 < limit // 2
    assert (tmp_path / "a.trace").stat().st_size == limit


def test_a_link_in_the_place_of_a_trace_is_not_followed(hakmem, tmp_path):
    """The program runs on; somebody who may write in the folder puts a link there."""
    target = tmp_path / "target"
    target.write_bytes(b"hakmem trace 2\n\0" + bytes(100))
    done = hakmem("trace", "--out", "here", "--", "sh", "-c",
                  f"rm {tmp_path}/here/*; ln -s {target} {tmp_path}/here/99999999.trace")
    assert done.returncode == 0 and target.stat().st_size == 116
    assert (tmp_path / "here/99999999.trace").is_symlink()


def test_a_trace_that_another_process_writes_keeps_its_length(hakmem, tmp_path):
    """Of two commands that use one folder. The one that is no longer there is cut."""
    made = HEAD + (1).to_bytes(8, "little") + bytes(8 + 32 + 4096)
    (tmp_path / "made").write_bytes(made)
    done = hakmem("trace", "--out", "here", "--", "sh", "-c",
                  f"cp made here/{os.getpid()}.trace; cp made here/99999999.trace")
    assert done.returncode == 0, done
    sizes = [(tmp_path / f"here/{name}.trace").stat().st_size for name in (os.getpid(), 99999999)]
    assert sizes == [len(made), 64]


def test_little_address_space_is_left_to_the_program(run, recorded, program, tmp_path):
    result = run(program, preload=recorded, RECORDER_FILE=tmp_path / "a.trace",
                 before=address_space(2048))
    assert (result.returncode, result.stderr) == (0, "")
    assert list(records(tmp_path / "a.trace"))
    assert (tmp_path / "a.trace").stat().st_size <= 512 << 20


def test_without_a_name_nothing_is_recorded(run, recorded, program):
    result = run(program, preload=recorded)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_names_of_the_c_library_and_the_allocator_are_all_recorded(library, recorder):
    """What replaces a function of the C library is recorded, or allocates and frees nothing."""
    def exported(file):
        return {row.split()[-1].partition("@")[0] for row in
                output("nm", "-D", "--defined-only", file).splitlines()}
    missing = {name for name in exported(library) - exported(recorder)
               if not name.startswith(("hakmem_", "HAKMEM_", "__libc_"))}
    assert missing <= {"dlopen", "cfree", "malloc_trim", "mallopt", "mallinfo", "mallinfo2",
                       "malloc_info", "malloc_stats"}


# ---- probes ----

def probes(library):
    return set(re.findall(r"Provider: hakmem\s+Name: (\w+)", output("readelf", "-n", library)))


@pytest.mark.skipif(not list(pathlib.Path("/usr/include").glob("**/sys/sdt.h")),
                    reason="no sys/sdt.h")
def test_the_probes_are_those_that_the_page_lists(shipped):
    page = (ROOT / "docs/trace.md").read_text().split("## Static probes")[1]
    assert probes(shipped) == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_a_probe_is_met(program, shipped):
    if not probes(shipped):
        pytest.skip("built without sys/sdt.h")
    done = subprocess.run(
        ["gdb", "-q", "-batch", "-ex", f"set environment LD_PRELOAD {shipped}", "-ex", "break main",
         "-ex", "run", "-ex", "break -probe-stap hakmem:out_of_memory", "-ex", "continue", "-ex",
         "backtrace", program], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=60)
    if "ptrace" in done.stderr:
        pytest.skip("the kernel lets nobody trace")
    assert re.search(r"#\d .*realloc", done.stdout), done
