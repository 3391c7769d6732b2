"""The command line as a user meets it: what it shows, and the one line when it cannot."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from hakmem_lab import LabError, ROOT
from hakmem_lab.commands import bench, cli, options
from hakmem_lab.measure import ledger, matrix, peers, places
from hakmem_lab.commands.cli import CONSOLE


def hakmem(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hakmem_lab", *arguments], cwd=cwd,
                          env=os.environ | {"COLUMNS": "80"}, capture_output=True, text=True,
                          check=False, timeout=120)


def compare(folder: Path, *words: str, runs: int = 1) -> subprocess.CompletedProcess[str]:
    return hakmem("compare", "-n", str(runs), "--allocators", "hakmem,glibc", "--out",
                  str(folder), *words)


def test_compare_shows_time_memory_and_the_winner(tmp_path: Path) -> None:
    done = compare(tmp_path / "r", "--", sys.executable, "-c", "print('[/] is no markup')")
    assert done.returncode == 0, done.stderr
    for words in ("[/] is no markup", "time", "CPU", "peak", "mean", "faults", "On python3 ",
                  "has the lowest CPU time", "has the lowest peak memory"):
        assert words in done.stdout
    assert {row.allocator for row in ledger.read_folder(tmp_path / "r")} == {"hakmem", "system"}
    assert "<svg" in (tmp_path / "r/report.html").read_text()


def test_compare_prints_json_alone_on_stdout(tmp_path: Path) -> None:
    """The script stands for a wrapper, whose processes are in the figures."""
    done = compare(tmp_path / "r", "--json", "--", "sh", "-c", "cat /dev/null; true")
    told = json.loads(done.stdout)
    assert told["program"] == "sh" and Path(told["folder"]) == tmp_path / "r"
    assert {each["name"] for each in told["allocators"]} == {"hakmem", "system"}
    assert "sh started 2 processes; they are in the figures" in done.stderr


def test_the_page_is_shown_in_a_browser_on_demand(tmp_path: Path) -> None:
    assert compare(tmp_path / "r", "--", "true").returncode == 0
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/shown\n")
    browser.chmod(0o755)
    page = tmp_path / "r/report.html"
    subprocess.run([sys.executable, "-m", "hakmem_lab", "report", "--open", str(tmp_path / "r")],
                   env=os.environ | {"BROWSER": f"{browser} %s"}, check=True, timeout=120)
    assert (tmp_path / "shown").read_text() == f"{page.as_uri()}\n"


@pytest.mark.parametrize(("words", "said"), [
    (["compare", "--allocators", "glibc", "--", "no-such-program"],
     "no-such-program: there is no such program"),
    (["compare", "--allocators", "nonesuch", "--", "true"], "no allocator 'nonesuch' here"),
    (["compare", "--allocators", "x=/no/such.so", "--", "true"], "/no/such.so: no such library"),
    (["compare", "--until", "port:1", "--allocators", "glibc", "--", "true"],
     "--until needs --load"),
    (["compare", "-n", "0", "--", "true"], "'-n'"),
    (["compare", "--nonesuch", "--", "true"], "No such option"),
    (["run", "--set", "purge=1", "--", "true"], "no option 'purge'"),
    (["run", "--mode", "fast", "--", "true"], "no mode 'fast'"),
    (["run", "--", "no-such-program"], "no-such-program: there is no such program"),
    (["bench", "--cells", "nonesuch"], "no cell is called 'nonesuch'"),
    (["bench", "--cells", ""], "an empty word names nothing"),
    (["bench", "--out", ""], "an empty word names nothing"),
    (["resume", "/no/such/folder"], "holds no run that could be resumed"),
    (["ab", "nonesuch=0,1"], "no option 'nonesuch'"),
    (["ab", "purge_delay_ms=0,1", "--", "no-such-program"], "no such program"),
    (["history", "nonesuch..HEAD"], "no commit 'nonesuch' here"),
    (["bisect", "A..B"], "Missing option '--cell'"),
    (["report", "/no/such/folder"], "no such file"),
    (["nonesuch"], "No such command 'nonesuch'"),
])
def test_a_mistake_is_answered_before_peers_are_built(words: list[str], said: str,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise AssertionError("peers are built")

    monkeypatch.setattr(peers, "build", refuses)
    with pytest.raises((LabError, click.ClickException)) as caught:
        cli.hakmem.main(words, prog_name="hakmem", standalone_mode=False)
    error = caught.value
    line = error.format_message() if isinstance(error, click.ClickException) else str(error)
    assert said in line and "\n" not in line


@pytest.mark.parametrize(("words", "status", "line"), [
    (["ab", "nonesuch"], 1, "hakmem: 'nonesuch' is not OPTION=VALUE,VALUE\n"),
    (["ab"], 2, "hakmem: Missing argument 'SWEEP'. (`hakmem ab --help` lists what it takes)\n"),
    (["run", "-"], 2, "hakmem: there is no option -: --help lists them\n"),
    (["ab", "\x1b[31m\nnone"], 1, "hakmem: '\ufffd[31m none' is not OPTION=VALUE,VALUE\n"),
])
def test_the_answer_is_one_line(words: list[str], status: int, line: str) -> None:
    done = hakmem(*words)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", line)


def test_help_is_told_whole_and_before_anything_is_installed(tmp_path: Path) -> None:
    told = hakmem()
    assert told.returncode == 0 and "..." not in told.stdout.partition("\n")[2]
    for name, command in cli.hakmem.commands.items():
        assert f"  {name:8} {str(command.help).splitlines()[0]}\n" in told.stdout
    bare = {"PATH": str(tmp_path)}  # a machine without Python, but for the shell's own tools
    for tool in ("bash", "dirname", "readlink", "cat", "sed"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    for words in ([], ["-h"], ["--help"]):
        assert hakmem(*words).stdout == told.stdout
        others = (ROOT / "python/help.txt").read_text()
        assert subprocess.check_output([ROOT / "hakmem", *words], env=bare, text=True) \
            == told.stdout + others, "lab/help.txt is what python3 -m hakmem_lab prints"
    version = subprocess.check_output([ROOT / "hakmem", "--version"], env=bare, text=True)
    assert version == hakmem("--version").stdout == f"hakmem {cli.VERSION}\n"
    assert f"VERSION {cli.VERSION} " in (ROOT / "CMakeLists.txt").read_text()


def test_a_static_program_is_refused(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", program, source], check=True)
    for words in (["run"], ["compare", "--allocators", "glibc"]):
        assert "statically linked" in hakmem(*words, "--", str(program)).stderr


def test_an_allocator_of_its_own_is_told_first(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text("void *je_malloc(unsigned long s) { return (void *)s; }\n"
                      "int main(int n, char **w) { (void)w; return je_malloc(0) == &n; }\n")
    subprocess.run(["cc", "-o", program, source], check=True)
    line = "preloading HAKMEM does little for a, which has jemalloc of its own; to switch: "
    assert hakmem("run", "--", str(program)).stderr.startswith(f"hakmem: {line}")
    assert compare(tmp_path / "out", "--", str(program)).stdout.startswith(line)


def test_results_are_not_overwritten(tmp_path: Path) -> None:
    assert compare(tmp_path, "--", "true").returncode == 0
    assert "holds results already" in compare(tmp_path, "--", "true").stderr


def test_run_hands_over_options_output_and_status() -> None:
    code = "import os, sys; print(os.environ['HAKMEM_PURGE_DELAY_MS']); sys.exit(5)"
    done = hakmem("run", "--set", "purge_delay_ms=7", "--", sys.executable, "-c", code)
    assert (done.stdout, done.returncode) == ("7\n", 5)


def test_run_takes_options_and_has_statuses_as_the_installed_command(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    ended = hakmem("run", f"stats={file}", "mode=checked", "--", "sh", "-c", "exit 5")
    assert ended.returncode == 5
    assert '"statistics"' in file.read_text()
    (tmp_path / "text").write_text("text\n")
    for words, status in ((["no-such-program"], 127), ([str(tmp_path / "text")], 126),
                          (["mode=checked"], 2), (["--nonesuch", "true"], 2)):
        assert hakmem("run", *words).returncode == status, words
    assert hakmem("compare", "--", "no-such-program").returncode == 127


def test_run_tells_where_the_memory_was() -> None:
    done = hakmem("run", "--stats", "--", sys.executable, "-c", "print('own words')")
    assert done.returncode == 0, done.stderr
    assert "own words" in done.stdout and "system calls" in done.stdout


def test_a_sweep_compares_the_values_with_the_first(tmp_path: Path) -> None:
    done = hakmem("ab", "-n", "1", "--out", str(tmp_path), "purge_delay_ms=0,1000", "--", "true")
    assert done.returncode == 0, done.stderr
    assert "CPU time" in done.stdout.replace("\n", " ") and "MiB" in done.stdout
    rows = ledger.read_folder(tmp_path)
    assert [row.settings for row in rows] == [
        {"HAKMEM_POLICY": "none", "HAKMEM_PURGE_DELAY_MS": each} for each in ("0", "1000")]
    assert json.loads((tmp_path / "environment.json").read_text())["base"] == "purge_delay_ms=0"


def interrupted(folder: Path) -> subprocess.CompletedProcess[str]:
    """A benchmark that gets a Ctrl-C when its first round is on the disk."""
    command = [sys.executable, "-m", "hakmem_lab", "bench", "-n", "20", "--allocators", "hakmem",
               "--no-programs", "--cells", "hand-over, ring of 2", "--busy-ok", "--out",
               str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        deadline = time.monotonic() + 60
        while not (folder / "results.csv").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def test_what_was_measured_before_ctrl_c_is_kept_and_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    done = interrupted(folder)
    assert "Traceback" not in done.stderr
    kept = ledger.read_folder(folder)
    assert 1 <= len(kept) < 20 and f"resume {folder}" in done.stdout
    assert hakmem("resume", str(folder)).returncode == 0
    rows = ledger.read_folder(folder)
    assert rows[:len(kept)] == kept
    assert sorted((row.round, row.allocator) for row in rows) == [
        (number, "hakmem") for number in range(20)]


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    os.symlink("/dev/full", tmp_path / "environment.json")
    done = compare(tmp_path, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "the disk is full; rows written so far are kept" in done.stderr


def test_a_round_is_written_whole_or_not_at_all(tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ledger.Ledger(tmp_path)
    row = ledger.Row("t", "c", "f", "x", "hakmem", 0, "ok", cost_ns=1.0)
    kept.append([row])

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(LabError, match="the disk is full"):
        patched.setattr(csv.DictWriter, "writerows", fails)
        kept.append([row])
    assert ledger.read_folder(tmp_path) == [row]


def test_a_damaged_ledger_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    with pytest.raises(LabError, match="not a ledger of this laboratory"):
        ledger.read_folder(tmp_path)


def test_every_option_of_the_table_can_be_set() -> None:
    page = (ROOT / "docs/options.md").read_text()
    rows = [row.split(" | ") for row in re.findall(r"^\| `HAKMEM_\w+` .*$", page, re.M)]
    assert list(options.names()) == [row[0][10:-1].lower() for row in rows if row[2] != "text"]
    assert options.setting("mode", "Checked") == ("HAKMEM_MODE", "checked")
    assert options.environment_of(["PURGE-DELAY-MS=3", "HAKMEM_JUNK=on"]) == {
        "HAKMEM_PURGE_DELAY_MS": "3", "HAKMEM_JUNK": "on"}


def test_the_names_of_all_cells_differ() -> None:
    cells = bench.cells_of(bench.Wish(), CONSOLE)
    assert len({cell.name for cell in cells}) == len(cells) > 50


def test_cells_are_cold_or_say_how_long_they_are() -> None:
    for cell in matrix.families():
        assert cell.title.endswith("."), cell.name
        if cell.name.endswith("cold"):
            assert "cold, " in cell.title and "million" not in cell.title, cell.name


def test_the_list_of_cells_says_what_each_does() -> None:
    done = hakmem("bench", "--list", "--no-programs")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        "random mixed, 256 slots, cold",
        "    One thread frees or allocates in a slot drawn at random, 16 to 1,024 B in 256 slots; "
        "cold, 100,000 operations."]


def test_allocators_are_listed_by_name_at_any_width() -> None:
    done = hakmem("peers", "--list")
    assert done.returncode == 0, done.stderr
    assert "hakmem             this checkout; HAKMEM_POLICY=none\n" in done.stdout


def test_a_command_line_names_no_path_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    said = places.command_line(["ab", "a=1,2", "--out", f"{ROOT}/results/x", "--",
                                "/home/me/bin/program", f"--root={ROOT}", "two words"])
    assert said == "hakmem ab a=1,2 --out results/x -- ~/bin/program --root=. 'two words'"
