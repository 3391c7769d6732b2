"""One run: its memory, its processes, servers under load. No time is asserted."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.measure import allocators, execution, memory
from hakmem_lab.measure.subject import Subject

HOLDS_20_MIB = "import time; held = b'1' * (20 << 20); time.sleep(0.1)"
FORKS_3 = """
import os, time
held = b'1' * (40 << 20)
for _ in range(3):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for _ in range(3):
    os.wait()
"""
SERVER = """
import http.server, sys
held = b'1' * (10 << 20)
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])),
                       http.server.SimpleHTTPRequestHandler).serve_forever()
"""
FETCH = "import sys, urllib.request as u; u.urlopen(f'http://127.0.0.1:{sys.argv[1]}/').read()"


def run(*words: str, **details: object) -> execution.Measurement:
    subject = Subject(words, **details)  # type: ignore[arg-type]
    return execution.run(subject, allocators.hakmem())


def test_the_peak_is_the_programs_own() -> None:
    """The parent's own peak, which the kernel lets a child inherit, is larger."""
    parent = b"1" * (128 << 20)
    measured = run(sys.executable, "-c", HOLDS_20_MIB)
    assert len(parent) > measured.peak_rss_bytes > 20 << 20
    assert run("true").peak_rss_bytes < 8 << 20


def test_memory_is_a_curve() -> None:
    measured = run(sys.executable, "-c", HOLDS_20_MIB)
    seconds, sizes = zip(*measured.curve)
    assert list(seconds) == sorted(seconds) and max(sizes) > 20 << 20
    assert measured.mean_rss_bytes <= measured.peak_rss_bytes
    assert 0 < measured.rss_byte_seconds <= measured.peak_rss_bytes * measured.wall_s * 1.1


def test_children_are_seen_and_counted() -> None:
    """A child that holds memory while its parent, a shell, holds none."""
    measured = run("sh", "-c", f'{sys.executable} -c "{HOLDS_20_MIB}"; true')
    assert measured.peak_rss_bytes > 20 << 20
    assert measured.proof.processes >= 2 and measured.proof.owner.endswith("libhakmem.so")


def test_pages_that_processes_share_count_once() -> None:
    """The copies would be 160 MiB."""
    measured = run(sys.executable, "-c", FORKS_3)
    assert 40 << 20 < measured.peak_rss_bytes < 80 << 20
    assert 10 << 20 < measured.mean_rss_bytes < 80 << 20  # slow starts of a busy machine count


def test_all_processes_of_a_tree_are_counted() -> None:
    """Three that hold 20 MiB each at the same time; the kernel's own peak is that of one."""
    held = f'{sys.executable} -c "{HOLDS_20_MIB.replace("0.1", "0.6")}" & '
    measured = run("sh", "-c", f"{held * 3} wait")
    assert measured.peak_rss_bytes > 60 << 20


def test_the_use_of_the_processor_is_finer_than_a_tick() -> None:
    busy = "import time; print(sum(range(10 ** 6)), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        ticks = memory.tree_usage(os.getpid())[0] * memory.TICKS
        process.kill()
    assert abs(ticks - round(ticks)) > 1e-6
    alone = memory._own_cpu_s(os.getpid())
    assert 0 < alone <= memory._own_cpu_s(os.getpid()) <= time.process_time()


def test_a_server_is_started_loaded_and_stopped(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    measured = run(sys.executable, str(tmp_path / "server.py"), "{port}",
                   load=(sys.executable, "-c", FETCH, "{port}"))
    assert measured.status == 0
    assert measured.peak_rss_bytes > 10 << 20
    assert measured.proof.owner.endswith("libhakmem.so")


@pytest.mark.parametrize("until", ["log:ready now", "cmd:test -e {folder}/ready"])
def test_a_server_is_ready_when_it_says_so(until: str) -> None:
    command = "echo ready now; touch {folder}/ready; exec sleep 60"
    assert run("sh", "-c", command, until=until, load=("true",)).status == 0


@pytest.mark.parametrize(("command", "load", "said"), [
    (("sh", "-c", "echo no such port; exit 1"), ("true",),
     "sh ended before it was ready: no such port"),
    (("sh", "-c", "echo ready; exec sleep 60"), ("sh", "-c", "echo refused; exit 7"),
     "the load sh ended with 7: refused"),
])
def test_a_server_that_fails_says_why(command: tuple[str, ...], load: tuple[str, ...],
                                      said: str) -> None:
    with pytest.raises(LabError, match=said):
        run(*command, until="log:ready", load=load)


def test_nothing_of_a_server_survives() -> None:
    """Not even what it started and left behind."""
    measured = run("sh", "-c", "sleep 4242 & echo $!; echo ready; exec sleep 4243",
                   until="log:ready", load=("true",))
    child = Path(f"/proc/{measured.output.split()[0]}")
    assert not child.exists() or "sleep" not in (child / "cmdline").read_text()
