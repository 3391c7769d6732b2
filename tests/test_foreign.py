"""Files and names that others made do the tools no harm: each is read, or refused in a line."""
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
for needed in ("elftools", "google.protobuf"):
    pytest.importorskip(needed)
import made_files  # noqa: E402
from hakmem import (  # noqa: E402
    command, elf, flame, foreign, kernel, learn, policy, pprof, processes, symbols)
from hakmem.errors import UserError  # noqa: E402

MOST_BYTES = 1 << 30  # of addresses, for a command
HOSTILE = "a\nb\x1b[31m\r\x9b2J\u202e[/red]<script>&\"'\x00:smile:"


@pytest.fixture
def compiled(hakmem, tmp_path):
    """What is shown of the policy that a made profile becomes: compiled(path, …)."""
    def compile_profile(*path, **more):
        (tmp_path / "file").write_bytes(made_files.profile(*path, **more))
        done = hakmem("policy", "compile", "file")
        assert is_shown(done) and not policy.parse(done.stdout).options, done
        return done.stdout

    return compile_profile


@pytest.fixture
def hakmem(tmp_path):
    """Runs the command in a child and in the folder of the test. A hang ends by SIGALRM."""

    def run(*words):
        with (tmp_path / "stdout").open("wb+") as out, (tmp_path / "stderr").open("wb+") as err:
            child = os.fork()
            if child == 0:
                os._exit(status_of(words, tmp_path, out.fileno(), err.fileno()))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            texts = [(file.seek(0), file.read().decode())[1] for file in (out, err)]
        return subprocess.CompletedProcess(words, status, *texts)

    return run


def status_of(words, folder, out, err):
    signal.alarm(100)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    os.chdir(folder)
    for file, number in ((os.open("/dev/null", os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(file, number)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False)
                              for number in (1, 2))
    sys.argv = ["hakmem", *words]
    os.environ["COLUMNS"] = "200"
    try:
        command.main()
    except SystemExit as end:
        return end.code or 0
    except BaseException:
        traceback.print_exc()
        return 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def is_refused(done):
    """In one line, in which nothing stands that a terminal obeys."""
    lines = done.stderr.splitlines()
    return (done.returncode, done.stdout, len(lines)) == (1, "", 1) and \
        lines[0].startswith("hakmem: ") and lines[0].isprintable()


def is_shown(done):
    """Well, and with nothing that a terminal obeys."""
    return (done.returncode, done.stderr) == (0, "") and \
        all(line.isprintable() for line in done.stdout.split("\n"))


# ---- files that are none ----

READERS = [("stat",), ("why",), ("policy", "show"), ("policy", "check"), ("policy", "compile"),
           ("policy", "diff", "none"), ("policy", "merge", "none")]


@pytest.mark.parametrize("words", READERS)
def test_what_is_no_file_or_has_no_end_is_not_read(hakmem, tmp_path, words):
    (tmp_path / "none").write_text(f"{policy.HEAD}\n")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("fifo", "/dev/zero", "/dev/tty", "folder", "large"):
        done = hakmem(*words, name)
        said = "are read" if name == "large" else "this is not a regular file"
        assert is_refused(done) and said in done.stderr, (name, done)


def test_a_process_may_name_any_file_for_its_statistics(hakmem, tmp_path):
    """As one that another user has started."""
    os.mkfifo(tmp_path / "fifo")
    for name in ("/dev/zero", "fifo", "\x1b[31mnone"):
        process = subprocess.Popen(["sleep", "100"], cwd=tmp_path,
                                   env={**os.environ, "HAKMEM_STATS": name})
        try:
            assert is_refused(hakmem("stat", str(process.pid))), name
        finally:
            process.kill()
            process.wait()


def test_a_number_that_no_process_has_is_a_name(hakmem):
    assert is_refused(hakmem("stat", "9" * 5000))
    assert is_refused(hakmem("stat", "x" * 5000))


# ---- statistics ----

def test_a_file_of_statistics_is_shown(hakmem, tmp_path):
    (tmp_path / "file").write_bytes(made_files.statistics())
    for name in ("stat", "why"):
        done = hakmem(name, "file")
        assert is_shown(done) and "made up (7)" in done.stdout, done


@pytest.mark.parametrize("name", ["stat", "why"])
def test_markup_and_escape_codes_of_statistics_are_text(hakmem, tmp_path, name):
    told = json.loads(made_files.statistics())
    told["system_calls"] = {HOSTILE: told["system_calls"]["mmap"]}
    (tmp_path / "file").write_text(json.dumps(told | {"program": HOSTILE}))
    done = hakmem(name, "file")
    assert is_shown(done) and foreign.plain(HOSTILE) in done.stdout, done


def places_of(value, place=()):
    yield place
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places_of(inner, (*place, name))


@pytest.mark.parametrize("other", [None, [], {}, "1", -1, 1.5, 1 << 70, True])
def test_a_value_of_another_type_is_named(tmp_path, other):
    """A value that has the type is shown; of any other the place is told."""
    from hakmem import statistics, tables, why
    told = json.loads(made_files.statistics())
    for *names, last in filter(None, places_of(told)):
        changed = json.loads(made_files.statistics())
        inner = changed
        for name in names:
            inner = inner[name]
        inner[last] = other
        (tmp_path / "file").write_text(json.dumps(changed))
        try:
            picture = statistics.picture_of(str(tmp_path / "file"))
            assert why.text_of(picture) and tables.everything(picture)
        except UserError as error:
            assert ".".join([*names, last]) in str(error) or "no statistics" in str(error)


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b'{"statistics": [[[',
                                  b"9" * 100_000, b'"\\"' * 100_000, b"\xff", b"",
                                  made_files.statistics(a=None).replace(
                                      b"null", b"[" * 300 + b"]" * 300)])
def test_text_that_is_no_statistics_is_refused(hakmem, tmp_path, text):
    (tmp_path / "file").write_bytes(text)
    assert is_refused(hakmem("stat", "file"))


# ---- profiles ----

def test_a_profile_becomes_a_policy(compiled):
    assert f"site {made_files.ID} 202 48 group 1" in compiled()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/a\0b", "/proc/kmsg", "fifo",
                                  "/" + "x" * 100_000])
def test_code_that_lies_in_no_program_has_no_names(compiled, tmp_path, path):
    os.mkfifo(tmp_path / "fifo")
    assert "group 1" in compiled(str(tmp_path / path) if path == "fifo" else path)


def test_a_library_does_not_set_options_by_its_name(compiled):
    assert r"x\noption mode debug" in compiled("/x\noption mode debug\n#\x1b[31m")


IDS = ["../../../tmp/x", "/etc/passwd", "", "ab" * 3, "AB" * 20, "ab" * 20 + "\n", "ab" * 100,
       "ab" * 19 + "\noption mode debug", "ab" * 19 + "\0\0"]


@pytest.mark.parametrize("build_id", IDS)
def test_what_is_no_build_id_names_no_program(tmp_path, build_id):
    (tmp_path / "file").write_bytes(made_files.profile(build_id=build_id))
    found = pprof.read(tmp_path / "file")
    assert learn.program_of(found) == "" and not learn.policy_of([found]).groups


def test_a_program_does_not_choose_where_its_policy_goes(hakmem, tmp_path, monkeypatch):
    """Its profile has another's build ID; one that is a path leads nowhere."""
    monkeypatch.setenv("LIBHAKMEM", shutil.which("true"))  # no library: nothing else is written
    (tmp_path / "file").write_bytes(made_files.profile("/x\x1b[31m", "../escaped"))
    done = hakmem("learn", "--minutes", "0", "--out", "out", "sh", "-c",
                  "cp file ${HAKMEM_PROFILE%/*}/1.pb")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr and not list(tmp_path.glob("**/escaped*"))


def test_a_bomb_is_not_unpacked(hakmem, tmp_path):
    (tmp_path / "file").write_bytes(gzip.compress(bytes(256 << 20), 9))
    assert (tmp_path / "file").stat().st_size < 300 << 10
    assert is_refused(hakmem("policy", "compile", "file"))


def test_a_profile_of_many_empty_rows_is_refused(hakmem, tmp_path):
    """Each takes two bytes of the file, and a hundred of the reader."""
    (tmp_path / "file").write_bytes(made_files.profile() + b"\x12\x00" * (2 << 20))
    assert is_refused(hakmem("policy", "compile", "file"))


def test_a_stack_may_be_deeper_than_a_page_is_high():
    page = flame.page(flame.tree([(["f"] * 100_000, 5)], "deep"))
    assert page.count("<g ") == flame.MOST_ROWS + 1


def test_names_stay_text_in_pages():
    page = flame.page(flame.tree([([HOSTILE], 5)], HOSTILE))
    assert "<script>&" not in page and "\x1b" not in page and "\u202e" not in page
    assert page.count("\n") == flame.page(flame.tree([(["f"], 5)], "all")).count("\n")


# ---- names of symbols ----

@pytest.fixture
def named(tmp_path):
    """Builds a library whose only function has a name; (its path, the place of the function)."""
    if not all(map(shutil.which, ("cc", "objcopy", "addr2line", "nm"))):
        pytest.skip("no compiler, or no binutils")

    def build(name):
        (tmp_path / "named.c").write_text("int function(int a) { return a * 3; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-g0", "-Wl,-z,noseparate-code", "-nostdlib",
                        "-o", "named.so", "named.c"], cwd=tmp_path, check=True)
        table = subprocess.run(["nm", "-D", "named.so"], cwd=tmp_path, check=True, text=True,
                               capture_output=True).stdout
        subprocess.run(["objcopy", f"--redefine-sym=function={name}", "named.so"], cwd=tmp_path,
                       check=True)
        return tmp_path / "named.so", int(table.split()[0], 16)

    return build


@pytest.mark.parametrize("name", ["0x12", "0x", "0xzz", "0x" + "0" * 16, "\x1b[31mred",
                                  "a\noption mode debug", "[/red]", "??"])
def test_a_symbol_may_have_any_name(compiled, named, name):
    path, place = named(name)
    assert "group 1" in compiled(str(path), place=place)


def doubled(levels):
    """A C++ symbol whose name, once it is demangled, is twice as long for each level."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "_Z1f1AIiiE" + "".join(f"S_I{f'S{digits[each]}_' * 2}E" for each in range(levels))


@pytest.mark.parametrize("levels", [17, 22])
def test_a_short_symbol_may_be_a_long_name(compiled, named, levels):
    """One of 140 MB is told as it stands in the file."""
    path, place = named(doubled(levels))
    shown = compiled(str(path), place=place)
    assert "group 1" in shown
    assert ("_Z1f1A" if levels > 20 else "f(A<int, int>, A<A<int, int>") in shown


def test_a_program_that_is_asked_has_bounds(tmp_path, monkeypatch):
    start = time.monotonic()
    assert foreign.said(["yes"], 100, 7) == ("y\ny\ny\n", False)
    assert foreign.said(["sh", "-c", "echo a; exec sleep 100"], 4) == ("a\n", False)
    assert foreign.said(["sh", "-c", "exec >&-; exec sleep 100"], 0.5) == ("", False)
    assert foreign.said(["echo", "a"], 100) == ("a\n", True)
    assert foreign.said(["nonesuch"], 100) == ("", False)
    monkeypatch.setattr(foreign, "MOST_MEMORY", 64 << 20)
    assert foreign.said([sys.executable, "-c", "print('a'); bytes(1 << 30)"], 100)[1] is False
    assert time.monotonic() - start < 100


def test_only_the_next_place_begins_an_answer():
    lines = ["0x0000000000000010", "0x99", "??:0", "0x0000000000000020", "0x0000000000000010",
             "a.c:7 (discriminator 2)", "??", "??:0", ""]
    assert symbols._answers([16, 32], lines) == {
        16: [symbols.Name("0x99")], 32: [symbols.Name("0x0000000000000010", "a.c:7", "a.c:7")]}
    assert symbols._answers([16], ["", "f", "g"]) == {}


# ---- ELF files ----

def test_counts_of_a_damaged_program_are_only_claims(tmp_path):
    """Sections without end, a table that is longer than the file, a table that names itself."""
    data = bytearray(Path(sys.executable).read_bytes()[:1 << 20])
    data[60:62] = bytes(2)  # The number of sections stands in the first one,
    data[40:48] = (len(data) // 2).to_bytes(8, "little")
    header = bytearray(64)
    header[4:8] = (2).to_bytes(4, "little")  # which is a table of symbols
    header[32:40] = ((1 << 64) - 1).to_bytes(8, "little")
    for place in range(len(data) // 2, len(data) - 63, 64):
        data[place:place + 64] = header
    (tmp_path / "file").write_bytes(data)
    assert elf.functions(tmp_path / "file") == []


# ---- policies ----

def test_comments_of_a_policy_are_shown_as_text(hakmem, tmp_path):
    text = HOSTILE.replace("\n", "")
    (tmp_path / "file").write_text(f"{policy.HEAD}\n# {text}\noption mode debug\n", newline="")
    for words in (("show", "file"), ("merge", "file", "file")):
        done = hakmem("policy", *words)
        assert is_shown(done) and foreign.plain(text) in done.stdout, done


def test_statements_that_are_none_are_refused_in_a_line(hakmem, tmp_path):
    for line in ("option mode \x1b[31m", "option \x1b[31m", f"site {made_files.ID} 1 {'9' * 9999} "
                 "group 1", "option mode debug\r", "\u2028"):
        (tmp_path / "file").write_text(f"{policy.HEAD}\n{line}\n", newline="")
        assert is_refused(hakmem("policy", "show", "file")), line


def test_many_long_names_leave_a_policy_that_the_library_reads():
    """It reads no more than 128 KiB."""
    callers = tuple(policy.Caller(slot, "f" * 40, (1 << 64) - 1) for slot in (1016, 1024))
    sites = [policy.Site(made_files.ID, place, 48, callers) for place in range(policy.MOST_RULES)]
    made = policy.Policy(groups=dict.fromkeys(sites, 1),
                         comments={site: ["\x1b" * 5000] for site in sites})
    assert len(made.text()) <= policy.MOST_BYTES
    assert policy.parse(made.text()).groups == made.groups


# ---- what the tools run on ----

def test_only_the_commands_that_need_a_library_ask_for_it(hakmem, tmp_path, monkeypatch):
    """A program that would run for hours is not started before."""
    (tmp_path / "file").write_bytes(made_files.statistics())
    for name in ("elftools.elf.elffile", "google.protobuf.descriptor_pb2"):
        monkeypatch.setitem(sys.modules, name, None)
    assert is_shown(hakmem("stat", "file")) and is_shown(hakmem("why", "file"))
    pprof.library.cache_clear()
    for words in (("leaks",), ("profile",), ("learn",), ("tune",)):
        done = hakmem(*words, "touch", "started")
        assert is_refused(done) and "pip install pyelftools" in done.stderr, done
    done = hakmem("policy", "compile", "file")
    assert is_refused(done) and "pip install protobuf" in done.stderr
    assert not (tmp_path / "started").exists()


# ---- what the kernel tells of names ----

@pytest.mark.parametrize("end", ["\r", "\x0c", "\x1c", "\x85", "\u2028"])
def test_names_do_not_add_lines_to_what_the_kernel_tells(monkeypatch, tmp_path, end):
    (tmp_path / "7").mkdir()
    line = f"1000-2000 r--p 0 0 0 /a{end}Rss: 999 kB\nRss: 4 kB\nRss: {'9' * 5000} kB\n"
    (tmp_path / "7/smaps").write_text(line, newline="")
    monkeypatch.setattr(kernel, "PROC", tmp_path)
    assert kernel.kernel_of(7).rss == 4096
    monkeypatch.setattr(processes, "Path", lambda _: tmp_path / "status")
    (tmp_path / "status").write_text(f"Name: a{end}VmHWM: 999 kB\nVmHWM: 4 kB\n", newline="")
    assert processes.status_bytes(7, "VmHWM:") == 4096
