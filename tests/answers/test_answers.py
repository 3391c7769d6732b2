"""Each tool on programs with one known problem each: does its first screen name the cause and the
next step? With ANSWERS=FILE the answers are written there (tools/tables.py shows them)."""
import contextlib
import csv
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
pytest.importorskip("elftools")
from hakmem import command, foreign, statistics, why  # noqa: E402

SCREEN = 25, 100  # lines and columns of a terminal
FLAGS = ["-O1", "-g", "-D_GNU_SOURCE", "-fno-builtin", f"-I{ROOT}/tests"]
LANGUAGES = {
    "C": ["cc", "-std=c17", *FLAGS, "-pthread", "causes.c"],
    "C++": ["c++", "-std=c++17", *FLAGS, "-pthread", "causes.cc"],
    "Rust": ["rustc", "-O", "-g", "--edition=2021", "causes.rs"],
    "Python": [sys.executable, "-S", "causes.py"],
}
CAUSES = ("leak", "fragmentation", "parked", "same", "more", "array")
STRIPPED, WHOLE = "stripped", "with symbols"
BUILDS = [(language, symbols) for language in LANGUAGES for symbols in (WHOLE, STRIPPED)
          if (language, symbols) != ("Python", STRIPPED)]  # The interpreter is as it is.
NOTHING_LEAKS = ("nothing leaks: every block was freed|that is little",
                 "hakmem profile PROGRAM.*hakmem why")
KEEPS = "HAKMEM_FREE_POLICY=keep HAKMEM_BIGCACHE_MAX_MB=1024"
AT = r"(::\{\{closure\}\})? at causes\.(c|cc|rs):\d+"

# tool, cause: what the first screen says of the cause, and of the next step.
EXPECTED = {
    ("why", "leak"): (r"grows by [\d.]+ \w+ a second, which may be a leak", "hakmem leaks PROGRAM"),
    ("why", "fragmentation"): ("A few long-lived blocks hold many pages", "hakmem learn PROGRAM"),
    ("why", "parked"): (r"caches of \d+ threads", r"hakmem_idle\(\)"),
    ("why", "same"): ("Huge blocks come and go", KEEPS),
    ("why", "more"): ("Huge blocks come and go", KEEPS),
    ("why", "array"): ("an array or a buffer that grows", "hakmem profile PROGRAM"),
    ("profile", "leak"): (rf"keep_request{AT}", "hakmem leaks PROGRAM"),
    ("profile", "fragmentation"): (rf"make_index_entry{AT}", "hakmem learn PROGRAM"),
    ("profile", "parked"): (rf"fill_caches{AT}", "hakmem why"),
    ("profile", "same"): (rf"render_page{AT}", rf"one buffer again.*{KEEPS}"),
    ("profile", "more"): (rf"render_page{AT}", rf"one buffer again.*{KEEPS}"),
    ("profile", "array"): (rf"append_rows{AT}", "give an array its last size at once"),
    ("leaks", "leak"): (rf"keep_request{AT}", AT),
    ("leaks", "fragmentation"): (rf"make_index_entry{AT}", AT),
    ("leaks", "parked"): NOTHING_LEAKS,
    ("leaks", "same"): NOTHING_LEAKS,
    ("leaks", "more"): NOTHING_LEAKS,
    ("leaks", "array"): NOTHING_LEAKS,
}
# Where a program has no names for its functions, the next step is to build it with them. What a
# tool says in words it says of such programs too.
UNNAMED = r"stripped has no symbols: names need a build with -g"
NO_NAMES = r"stripped\+0x[0-9a-f]+"
# The blocks of Python's objects are allocated by functions of the interpreter.
MEMRAY = r"memray run app\.py"
OF_PYTHON = {
    ("why", "leak"): (EXPECTED["why", "leak"][0], MEMRAY),
    ("why", "fragmentation"): (EXPECTED["why", "fragmentation"][0], MEMRAY),
    ("why", "array"): (EXPECTED["why", "array"][0], MEMRAY),
    **{(tool, cause): (r"Py\w+", MEMRAY) for tool in ("profile", "leaks") for cause in CAUSES},
}
# What is named where that is not the cause itself.
KINDS = [("address", NO_NAMES), ("interpreter", OF_PYTHON["leaks", "leak"][0]),
         ("no leak", NOTHING_LEAKS[0])]


def expected(tool, cause, language, symbols):
    named = OF_PYTHON if language == "Python" else {}
    words = named.get((tool, cause), EXPECTED[tool, cause])
    if symbols == STRIPPED and AT in words[0]:
        return NO_NAMES, UNNAMED
    return words


@pytest.fixture(scope="module")
def library():
    if not os.environ.get("TESTED_LIBRARY"):
        pytest.skip("TESTED_LIBRARY is not set")
    return Path(os.environ["TESTED_LIBRARY"]).resolve()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """program(language, symbols): the words that start it."""
    place, made = tmp_path_factory.mktemp("answers"), {}

    def build(language, symbols):
        compiler, *words = LANGUAGES[language]
        words[-1] = Path(__file__).with_name(words[-1])
        if language == "Python":
            return [compiler, *map(str, words)]
        if not shutil.which(compiler) or not shutil.which("strip"):
            pytest.skip(f"no {compiler} or no strip")
        if language not in made:
            made[language] = place / f"{Path(words[-1]).suffix[1:]}-causes"
            subprocess.run([compiler, *words, "-o", made[language]], check=True)
            subprocess.run(["strip", made[language], "-o", f"{made[language]}-{STRIPPED}"],
                           check=True)
        return [f"{made[language]}{f'-{STRIPPED}' * (symbols == STRIPPED)}"]

    return build


@pytest.fixture(scope="module")
def noted():
    """The answers, which are written where ANSWERS says."""
    rows = []
    yield rows
    if os.environ.get("ANSWERS"):
        with open(os.environ["ANSWERS"], "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["cause", "tool", "language", "symbols", "names", "next", "says"])
            writer.writerows(sorted(rows))


def first_screen(text):
    """What a terminal shows first of what a tool has said, as one line for each of the tool's."""
    lines, room = [], SCREEN[0]
    for line in text.split("\n"):
        rows = textwrap.wrap(line, SCREEN[1]) or [""]
        lines.append(" ".join(rows[:room]))
        room -= len(rows)
        if room <= 0:
            break
    return "\n".join(lines)


def judged(noted, tool, cause, language, symbols, text):
    """Notes what is named, and fails where it is not what was expected."""
    screen = first_screen(text)
    named, step = (re.search(each, screen, re.DOTALL)
                   for each in expected(tool, cause, language, symbols))
    kind = next((kind for kind, text in KINDS if named and re.fullmatch(text, named[0])),
                "cause" if named else "no")
    noted.append([cause, tool, language, symbols, kind, "step" if step else "no",
                  named[0] if named else ""])
    assert named and step, screen


@contextlib.contextmanager
def without_input():
    """A program that is started meanwhile finds the end of its input at once."""
    saved, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(nothing)


@pytest.mark.parametrize(("language", "symbols"), BUILDS)
@pytest.mark.parametrize("tool", ["profile", "leaks"])
@pytest.mark.parametrize("cause", CAUSES)
def test_who_sees_the_first_screen_knows_what_to_do(
        library, program, noted, monkeypatch, capfd, tmp_path, cause, tool, language, symbols):
    words = program(language, symbols)
    monkeypatch.setenv("LIBHAKMEM", str(library))
    monkeypatch.chdir(tmp_path)
    with without_input():
        with pytest.raises(SystemExit) as end:
            command.obey([tool, "--", *words, cause])
    output = "".join(capfd.readouterr())
    assert end.value.code == 0, output
    judged(noted, tool, cause, language, symbols, output)


def told(process, folder, cause):
    """What `hakmem why` says of a process that has gone on for a while. A look amid a copy of an
    array sees both copies, and a block more than the look before: one of three looks counts."""
    assert process.stdout.readline() == b"ready\n"
    file, ready_ms, end = folder / f"{process.pid}.json", time.time() * 1000, time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, KeyError):
            now = foreign.parsed_json(file.read_bytes())
            if now["written_ms"] > ready_ms + 1000 and now["running_ms"] > why.STARTING_MS:
                break
        time.sleep(0.1)
    for _ in range(3 if cause == "array" else 1):
        text = why.text_of(*statistics.looks_at(str(process.pid), 3)[::-1])
        if re.search(EXPECTED["why", cause][0], first_screen(text), re.DOTALL):
            break
    return text


@pytest.fixture(scope="module")
def running(library, program, tmp_path_factory):
    """running(language): what `hakmem why` says of its programs, which run side by side."""
    found = {}

    def look(language):
        if language in found:
            return found[language]
        folder = tmp_path_factory.mktemp("statistics")
        environment = {**os.environ, "LD_PRELOAD": str(library),
                       "HAKMEM_STATS": str(folder / "%p.json")}
        names = [(symbols, cause) for spoken, symbols in BUILDS if spoken == language
                 for cause in CAUSES] + [(KEEPS, "more")] * (language == "C")
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(names)) as pool:
            processes = [stack.enter_context(subprocess.Popen(
                [*program(language, symbols), cause],
                env=environment | dict(re.findall(r"(\w+)=(\w+)", symbols)),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)) for symbols, cause in names]
            texts = list(pool.map(lambda process, name: told(process, folder, name[1]),
                                  processes, names))
            for process in processes:
                process.stdin.close()
        found[language] = dict(zip(names, texts))
        return found[language]

    return look


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(("language", "symbols"), BUILDS)
def test_why_names_the_cause_of_a_running_program(running, noted, cause, language, symbols):
    judged(noted, "why", cause, language, symbols, running(language)[symbols, cause])


def test_the_options_that_are_named_for_huge_blocks_help(running):
    text = running("C")[KEEPS, "more"]
    assert "MiB" in text and "come and go" not in text, text
