"""The thread that HAKMEM_BACKGROUND=1 allows, and that there is none without it."""
import os
import pathlib
import re
import shutil
import signal
import time

import pytest

# Of 64 signals: none can block 9 and 19, and the C library keeps 32 and 33 for itself.
BLOCKED = sum(1 << number - 1 for number in range(1, 65) if number not in (9, 19, 32, 33))
KEPT_KIB = 64 * 1024
SECONDS_MOST = 20


@pytest.fixture
def resting(started, build):
    """resting(HAKMEM_BACKGROUND=1) is the program after its rounds."""
    def start(*command, **settings):
        process = started(*command, build("rounds.c"), **settings)
        process.number = int(process.said)
        return process

    return start


def ask(process, letter):
    process.stdin.write(letter.encode())
    return int(process.stdout.readline())


def tasks(number):
    """The fields of each task, the first thread of the program first."""
    texts = [(pathlib.Path(path) / "status").read_text()
             for path in sorted(pathlib.Path(f"/proc/{number}/task").iterdir(),
                                key=lambda path: int(path.name))]
    return [dict(re.findall(r"^(\w+):\t *(.*)$", text, re.MULTILINE)) for text in texts]


def resident_kib(number):
    return int(tasks(number)[0]["VmRSS"].split()[0])


def waits_until(holds):
    """The limit of time only turns what never comes into a failure."""
    for _ in range(SECONDS_MOST * 20):
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_without_the_option_there_is_one_task_and_what_rounds_need_stays(resting):
    process = resting()
    assert resident_kib(process.number) > 2 * KEPT_KIB
    assert not [each for each in range(30) if time.sleep(0.05) or len(tasks(process.number)) != 1]
    assert resident_kib(process.number) > 2 * KEPT_KIB


def test_memory_goes_back_without_a_call(resting):
    process = resting(HAKMEM_BACKGROUND=1)
    assert waits_until(lambda: resident_kib(process.number) < KEPT_KIB)
    assert len(tasks(process.number)) == 2


def test_the_thread_blocks_every_signal(resting):
    process = resting(HAKMEM_BACKGROUND=1)
    first, second = tasks(process.number)
    assert (int(first["SigBlk"], 16), int(second["SigBlk"], 16)) == (0, BLOCKED)
    for count in range(1, 101):
        os.kill(process.number, signal.SIGUSR1)
        assert waits_until(lambda count=count: ask(process, "s") == count)


def test_a_child_of_fork_has_a_thread_from_its_first_look(resting):
    process = resting(HAKMEM_BACKGROUND=1)
    idle, busy = (ask(process, letter) for letter in "fg")
    assert [len(tasks(number)) for number in (process.number, idle, busy)] == [2, 1, 2]
    assert waits_until(lambda: resident_kib(busy) < KEPT_KIB)


@pytest.mark.parametrize("leaves, workers, last", [
    ("pthread_exit", 0, "return"), ("pthread_exit", 3, "return"), ("pthread_exit", 3, "exit"),
    ("SYS_exit", 0, "return"), ("SYS_exit", 3, "return"), ("SYS_exit", 3, "exit"),
    ("pause", 3, "exit")])
def test_a_program_ends_as_without_the_thread(run, build, leaves, workers, last):
    words = build("ends.c"), leaves, workers, last
    theirs = run(*words, 1, preload=None)
    ours = run(*words, 2, HAKMEM_BACKGROUND=1)
    assert (ours.returncode, ours.stdout, ours.stderr) == \
        (theirs.returncode, theirs.stdout, theirs.stderr)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its user")
def test_the_c_library_takes_the_rights_of_the_thread_too(resting):
    process = resting(HAKMEM_BACKGROUND=1)
    assert ask(process, "u") == 0
    assert [each["Uid"] for each in tasks(process.number)] == ["\t".join(["65534"] * 4)] * 2


def test_the_thread_opens_nothing(resting, tmp_path):
    """Under a limit, which it would have to read about."""
    if not shutil.which("strace"):
        pytest.skip("no strace here")
    log = tmp_path / "calls"
    process = resting("strace", "-f", "-qq", "-o", log, "prlimit", f"--as={8 << 30}",
                      HAKMEM_BACKGROUND=1)
    assert waits_until(lambda: resident_kib(process.number) < KEPT_KIB)
    calls = {call for number, call in re.findall(r"^(\d+) +(\w+)\(", log.read_text(), re.MULTILINE)
             if int(number) != process.number}
    assert "clock_nanosleep" in calls and "madvise" in calls
    assert calls <= {"clock_nanosleep", "clock_gettime", "madvise", "munmap", "futex", "readlinkat",
                     "set_robust_list", "rseq", "rt_sigprocmask"}
