"""How programs are started, watched and ended: no process survives, and none is overlooked."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import broken
import pytest
from hakmem_lab import LabError, ROOT
from hakmem_lab.commands import compare
from hakmem_lab.measure import allocators, execution, launcher, rounds
from hakmem_lab.measure.ledger import Ledger, Row
from hakmem_lab.measure.plan import Plan
from hakmem_lab.measure.subject import Cell, Subject, find_program

READY = "echo ready; exec sleep 60"


def run(*words: str, **details: object) -> execution.Measurement:
    subject = Subject(words, **details)  # type: ignore[arg-type]
    return execution.run(subject, allocators.hakmem())


def status_of(folder: Path, *words: str, **details: object) -> str:
    """Of the row that a command becomes on HAKMEM."""
    cell = Cell("it", "own", Subject(words, **details))  # type: ignore[arg-type]
    ledger = Ledger(folder / "results")
    rounds.CellRounds(cell, [allocators.hakmem()], ledger, Plan(seed=1)).measure()
    return ledger.rows[0].status


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


def test_a_program_that_signals_its_process_group_ends_alone(tmp_path: Path) -> None:
    assert status_of(tmp_path, "sh", "-c", "kill -9 0; sleep 9") == "died of SIGKILL"


def test_a_launcher_without_a_report_is_a_failed_row(tmp_path: Path) -> None:
    assert "ended without a report" in status_of(tmp_path, "sh", "-c", "kill -9 $PPID; sleep 9")


@pytest.mark.parametrize("command", ["sleep 61 &", "setsid sleep 61 & sleep 0.1",
                                     "(sleep 61 > /dev/null & sleep 0.05) &"])
def test_a_command_that_goes_on_in_the_background_is_a_failed_row(tmp_path: Path,
                                                                  command: str) -> None:
    said = status_of(tmp_path, "sh", "-c", f"echo $$; {command}")
    assert said.startswith("sh left ") and "in the background" in said


def test_what_ends_a_moment_later_is_not_left_behind() -> None:
    """Its use of the processor counts."""
    busy = f"{sys.executable} -c 'sum(range(3 * 10 ** 6))'"
    measured = run("sh", "-c", f"( ({busy}; echo) & ) | read ended; sleep 0.03 &")
    assert measured.left_behind == 0 and measured.cpu_s > 0.02


@pytest.mark.parametrize(("until", "command"), [
    ("log:ready", "sleep 62 & echo ready"), ("log:never", "setsid sleep 62 &")])
def test_a_server_that_goes_into_the_background_is_refused(until: str, command: str) -> None:
    with pytest.raises(LabError, match="sh went into the background; start it in the foreground"):
        run("sh", "-c", command, until=until, load=("sleep", "1"))


def test_a_server_that_dies_under_its_load_is_no_measurement() -> None:
    with pytest.raises(LabError, match="sh ended under its load: gone"):
        run("sh", "-c", "echo ready; sleep 0.3; echo gone", until="log:ready",
            load=("sleep", "30"))


def test_a_taken_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        with pytest.raises(LabError, match=f"port {port} is taken"):
            run("sh", "-c", READY, until=f"port:{port}", load=("true",))


def test_a_server_that_does_not_stop_is_killed_and_its_figures_are_kept() -> None:
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    measured = run("sh", "-c", deaf, until="log:ready", load=("sleep", "0.1"), limit_s=1)
    assert measured.was_killed and measured.status == 0 and measured.wall_s > 0.1
    assert min(measured.cpu_s, measured.minor_faults, measured.major_faults) >= 0


def test_the_limit_is_the_loads_and_the_probes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "PROBE_LIMIT_S", 0.1)
    with pytest.raises(LabError, match="sleep was not done in 0.5 s and was stopped"):
        run("sh", "-c", READY, until="log:ready", load=("sleep", "60"), limit_s=0.5)
    with pytest.raises(LabError, match="not ready .* in 0.5 s"):
        run("sh", "-c", READY, until="cmd:sleep 60", load=("true",), limit_s=0.5)


def test_the_load_gets_neither_the_allocator_nor_its_settings() -> None:
    ours = allocators.hakmem().with_settings("x", {"HAKMEM_PURGE_DELAY_MS": "7"})
    told = 'test -z "$LD_PRELOAD$HAKMEM_PURGE_DELAY_MS$MALLOC_WITNESS" && test "$LC_ALL" = C'
    subject = Subject(("sh", "-c", READY), until="log:ready", load=("sh", "-c", told),
                      settings={"LC_ALL": "C"})
    assert execution.run(subject, ours).status == 0


def test_settings_of_the_users_environment_stay_with_the_user(
        monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HAKMEM_MODE", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "MIMALLOC_VERBOSE"):
        monkeypatch.setenv(name, "nonsense")
    monkeypatch.setenv("LD_PRELOAD", "/no/such.so")
    monkeypatch.setenv("KEPT", "1")
    said = run("sh", "-c", "env").output
    assert "nonsense" not in said and "/no/such.so" not in said and "KEPT=1" in said


@pytest.mark.parametrize(("details", "said"), [
    ({}, "{port} {folder} {root}"), ({"placeholders": ()}, "{port} {folder} {root}")])
def test_placeholders_are_replaced_where_they_are_meant(details: dict[str, tuple[str, ...]],
                                                        said: str) -> None:
    output = run("echo", "{port} {folder} {root}", **details).output.strip()
    assert (output == said) == bool(details)


def own_cell(*words: str, load: str | None = None, until: str = "") -> Cell:
    return compare._cell(words, compare.Wish(None, 1, load, until, 600, None))


def test_a_users_words_are_kept_unless_it_is_a_server() -> None:
    assert own_cell("awk", "{port}").subject.placeholders == ()
    assert "port" in own_cell("sh", "{port}", load="true").subject.placeholders


@pytest.mark.parametrize(("until", "said"), [
    ("", "no word of the server contains {port}"), ("port:{port}", "no word of the server"),
    ("port:no", "cmd:COMMAND, not 'port:no'"), ("port:70000", "not 'port:70000'"),
    ("log:", "not 'log:'"),
    ("cmd:'", "--until cmd: No closing"), ("cmd:nonesuch-x", "no such program"),
    ("soon", "--until is port:PORT")])
def test_a_server_that_could_never_be_ready_is_refused(until: str, said: str) -> None:
    with pytest.raises(LabError) as refused:
        own_cell("sleep", "60", load="true", until=until)
    assert said in str(refused.value)


def test_a_fixed_port_needs_no_placeholder() -> None:
    assert own_cell("sleep", "60", load="true", until="port:6379").subject.until == "port:6379"


STATIC = "#include <unistd.h>\nint main(void) { usleep(150000); return 0; }\n"


def test_a_child_without_the_preload_is_a_stranger(tmp_path: Path) -> None:
    broken.compiled(tmp_path, "fixed", STATIC, "-static")
    for command, said in (("env -u LD_PRELOAD sleep 0.15; true",
                           "was not engaged in 1 of 3 programs: sleep (was started without"),
                          (f"{tmp_path}/fixed; true",
                           "was not engaged in 1 of 2 programs: fixed (is statically linked)")):
        for allocator in (allocators.hakmem(), allocators.system()):
            with pytest.raises(LabError) as refused:
                execution.run(Subject(("sh", "-c", command)), allocator)
            assert said in str(refused.value)


def test_ordinary_pipelines_and_compilers_raise_no_alarm(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("#include <stdlib.h>\nint main(void) { return !malloc(3); }\n")
    pipeline = "for i in 1 2 3 4 5 6; do ls / | sort | head -2 | (cat; sleep 0.002); done"
    for _ in range(10):
        for allocator in (allocators.hakmem(), allocators.system()):
            measured = execution.run(Subject(("bash", "-c", pipeline)), allocator)
            assert measured.proof.strangers == () and measured.left_behind == 0
    compiled = run("cc", "-pipe", "-o", "/dev/null", str(tmp_path / "a.c"))
    assert compiled.proof.strangers == () and compiled.proof.processes >= 4


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    word = os.fsdecode(b"\xff\n\xfe")
    said = status_of(tmp_path, "sh", "-c", 'printf "\\377\\0\\n%s" "$1"; exit 0', "sh", word)
    assert said == "ok"
    row: Row = Ledger(tmp_path / "results").rows[0]
    assert "\N{REPLACEMENT CHARACTER}" in row.command


@pytest.mark.parametrize(("number", "status"), [
    (signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGHUP, 130), (signal.SIGKILL, -9)])
def test_nothing_survives_the_laboratory(tmp_path: Path, number: signal.Signals,
                                         status: int) -> None:
    note = tmp_path / "pid"
    command = [sys.executable, "-m", "hakmem_lab", "compare", "--allocators", "hakmem", "--out",
               str(tmp_path / "r"), "--", "sh", "-c", f"echo $$ > {note}; sleep 63; true"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as laboratory:
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
        laboratory.send_signal(number)
        _, said = laboratory.communicate(timeout=30)
    assert ends(int(note.read_text()))
    assert (laboratory.returncode, said.count(b"\n")) == (status, status > 0)


def test_a_program_gets_the_users_environment() -> None:
    users = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    users |= {"PYTHONPATH": "/users/own", "HAKMEM_PURGE_DELAY_MS": "3"}
    told = "command -v python3; echo $PATH $PYTHONPATH $HAKMEM_PURGE_DELAY_MS $PYTHONSAFEPATH"
    alone = subprocess.run(["sh", "-c", told], env=users, capture_output=True, check=True)
    done = subprocess.run([ROOT / "hakmem", "run", "--", "sh", "-c", told], env=users,
                          capture_output=True, check=True)
    assert done.stdout == alone.stdout


def test_run_hands_over_the_users_preload_and_signals() -> None:
    own = str(allocators.WITNESS)
    told = "grep SigIgn /proc/self/status; echo $LD_PRELOAD"
    alone = subprocess.run(["sh", "-c", told], text=True, capture_output=True, check=True).stdout
    for words in ((), ("--stats",)):
        done = subprocess.run([sys.executable, "-m", "hakmem_lab", "run", *words, "--", "sh", "-c",
                               told], env=os.environ | {"LD_PRELOAD": own}, text=True,
                              capture_output=True, check=True)
        ignored, preload = done.stdout.splitlines()[:2]
        assert ignored == alone.splitlines()[0]
        assert "libhakmem.so" in preload and preload.endswith(own)


def test_each_run_reads_the_users_file_from_its_beginning(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    numbers.write_text("3\n1\n2\n")
    command = [sys.executable, "-m", "hakmem_lab", "compare", "-n", "2", "--allocators", "hakmem",
               "--out", str(tmp_path / "r"), "--", "wc", "-l"]
    with numbers.open() as stdin:
        subprocess.run(command, cwd=ROOT, stdin=stdin, capture_output=True, check=True)
    log, = (tmp_path / "r/raw").iterdir()
    assert [line for line in log.read_text().splitlines() if line.isdecimal()] == ["3", "3"]
    assert run("wc", "-l").output.strip() == "0"


def test_a_flood_of_words_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "OUTPUT_LIMIT", 2 << 20)
    with pytest.raises(LabError, match="yes printed more than 2 MiB and was stopped"):
        run("yes")


def test_no_room_for_what_programs_print_is_a_failure(monkeypatch: pytest.MonkeyPatch,
                                                      tmp_path: Path) -> None:
    monkeypatch.setattr(execution, "LEAST_ROOM", 1 << 62)
    assert "is full: no room for what programs print" in status_of(tmp_path, "true")


def test_what_is_no_program_is_called_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "text", "is not executable"),
                       (tmp_path / "none", "no such program")):
        with pytest.raises(LabError, match=said):
            find_program(str(path))


def lab(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "hakmem_lab", *words], cwd=ROOT, text=True,
                          capture_output=True, check=False)


def own(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    return lab("compare", "-n", "1", "--allocators", "hakmem,system", "--out",
               str(folder / "r"), "--", "sh", "-c", command)


def test_a_program_that_dies_everywhere_is_named(tmp_path: Path) -> None:
    done = own(tmp_path, "kill -SEGV $$")
    assert done.returncode == 1
    assert done.stderr == "hakmem: sh failed on all of hakmem, system: died of SIGSEGV\n"


def test_a_crash_on_one_allocator_is_told_by_the_status(tmp_path: Path) -> None:
    done = own(tmp_path, 'case "$LD_PRELOAD" in *libhakmem*) kill -SEGV $$;; esac')
    assert done.returncode == 1 and "died of SIGSEGV" in done.stdout


def test_compare_tells_how_many_processes_there_were(tmp_path: Path) -> None:
    done = own(tmp_path, "/bin/true; /bin/true; :")
    assert done.returncode == 0 and "sh started 3 processes;" in done.stdout


def test_run_names_the_children_that_were_not_served() -> None:
    done = lab("run", "--stats", "--", "sh", "-c", "env -u LD_PRELOAD sleep 0.3; exit 3")
    assert done.returncode == 3
    assert "not served by HAKMEM: sleep (was started without LD_PRELOAD)" in done.stdout


def test_a_cell_that_fails_everywhere_is_told_by_the_status(tmp_path: Path) -> None:
    nothing = f"nothing={broken.absent(tmp_path).owner}"
    for names, status in ((nothing, 1), (f"{nothing},system", 0)):
        done = lab("bench", "-n", "1", "--busy-ok", "--allocators", names, "--out",
                   str(tmp_path / names[-6:]), "--cells", "hand-over, ring of 2")
        assert done.returncode == status, done.stderr
        assert "nothing was not engaged" in done.stdout
