"""`hakmem why`, `stat` and `profile`: programs with one known cause, and texts that are made up."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest
from conftest import clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
pytest.importorskip("rich")
pytest.importorskip("click")
from click.testing import CliRunner  # noqa: E402
from hakmem import command, elf, flame, pprof, profile, statistics, symbols, why  # noqa: E402
from hakmem.errors import UserError  # noqa: E402
from hakmem.statistics import Kernel, Picture  # noqa: E402
from hakmem.symbols import Name  # noqa: E402

MIB = 1 << 20
THP = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")


def made_up(kernel=None, **changes):
    told = {"program": "made up", "process": 7, "written_ms": 1000, "thread_caches": 1,
            "statistics": dict.fromkeys(
                ("mapped", "used", "slab_ends", "cached_threads", "cached_depots", "free_in_slabs",
                 "free_pages", "huge_used", "huge_cached", "clean_pages", "purged_in_slabs",
                 "metadata", "resident", "purge_bytes", "purge_calls", "purge_us"), 0),
            "blocks": {"large": 0, "huge": 0}, "small_blocks": {},
            "options": {"purge_delay_ms": 500, "free_policy": 1, "background": 0},
            "system_calls": {"mmap": {"calls": 1, "bytes": 4096, "us": 1}}}
    for name, value in changes.items():
        place = told["statistics"] if name in told["statistics"] else told
        place[name] = value
    return Picture(told, kernel)


def causes(*pictures):
    return [each.cause for each in why.reasons(*pictures)]


def test_the_largest_part_comes_first_and_crumbs_are_left_out():
    now = made_up(resident=100 * MIB, used=60 * MIB, free_pages=30 * MIB, cached_threads=6 * MIB,
                  metadata=2 * MIB)
    assert causes(now) == ["in use", "free pages", "thread caches"]


def test_what_grows_may_leak():
    before = made_up(resident=100 * MIB, used=60 * MIB)
    now = made_up(resident=110 * MIB, used=70 * MIB, written_ms=3000)
    assert causes(now, before) == ["leak"]
    assert "grows by 5.0 MiB a second" in why.text_of(now, before)
    assert causes(now, now) == ["in use"]


def test_purged_pages_of_slabs_are_no_fragmentation():
    now = made_up(resident=40 * MIB, used=20 * MIB, free_in_slabs=50 * MIB,
                  purged_in_slabs=30 * MIB, small_blocks={"64": {"used": 20 * MIB // 64}})
    assert set(causes(now)) == {"in use", "fragmentation"}
    assert "50 % of the slabs" in why.text_of(now)


@pytest.mark.parametrize(("kernel", "cause"), [
    (Kernel(rss=100 * MIB, huge=80 * MIB, heap_rss=90 * MIB, heap_huge=80 * MIB, zero=0.5),
     "huge pages"),
    (Kernel(rss=100 * MIB, huge=80 * MIB, heap_rss=60 * MIB, heap_huge=60 * MIB), "not malloc"),
    (Kernel(rss=100 * MIB, huge=0), "not malloc")])
def test_what_the_kernel_counts_more_has_a_cause(kernel, cause):
    assert cause in causes(made_up(kernel, resident=60 * MIB, used=60 * MIB))


def test_no_part_is_larger_than_what_is_resident():
    now = made_up(Kernel(rss=30 * MIB, huge=0, heap_rss=20 * MIB), resident=400 * MIB,
                  used=100 * MIB, free_in_slabs=200 * MIB, free_pages=100 * MIB)
    assert all(each.size <= 20 * MIB for each in why.reasons(now))
    assert "100 MiB of addresses; not all of it was written" in why.text_of(now)


def test_old_figures_are_said_to_be_old():
    now = Picture(made_up(used=MIB).told, None, 61.0)
    assert "60 s old" in why.text_of(now) and "may be missing" in why.text_of(now)
    now = Picture(now.told, Kernel(rss=100 * MIB, huge=0), 61.0)
    assert "or what was allocated since" in why.text_of(now)
    assert "old" not in why.text_of(made_up(used=MIB))


def test_a_program_that_starts_does_not_leak():
    before = made_up(used=MIB, running_ms=900)
    assert causes(made_up(used=70 * MIB, resident=70 * MIB, written_ms=3000), before) == ["in use"]


def test_options_are_taken_into_account():
    now = made_up(resident=100 * MIB, free_pages=90 * MIB)
    assert "until nobody needs them for 500 ms" in why.text_of(now)
    assert "They go when calls are made." in why.text_of(now)
    assert "HAKMEM_BACKGROUND=1 lets a thread do it" in why.text_of(now)
    now.told["options"].update(background=1)
    assert "A thread gives them back then." in why.text_of(now)
    assert "HAKMEM_BACKGROUND" not in why.text_of(now)
    now.told["options"].update(free_policy=0)
    assert "for ever, as free_policy=keep says" in why.text_of(now)


def test_more_than_always_stays_was_wanted_again():
    for size, policy, is_said in ((12, 2, False), (90, 2, True), (90, 1, False)):
        now = made_up(resident=size * MIB, free_pages=size * MIB)
        now.told["options"].update(free_policy=policy)
        assert ("wanted as much again" in why.text_of(now)) == is_said


def test_slabs_that_caches_hold_are_not_blamed_on_blocks_that_live_long():
    now = made_up(resident=100 * MIB, free_in_slabs=60 * MIB, cached_threads=30 * MIB)
    assert "The caches hold more of the other blocks" in why.text_of(now)
    now.told["small_blocks"] = {"64": {"used": 40 * MIB // 64}}
    assert "Few blocks that live long" in why.text_of(now)


# ---- programs that run ----

@pytest.fixture
def started(library, build, tmp_path):
    """started(words, …) starts causes.c; its statistics are there. It ends with the test."""
    running = []

    def start(*words, **settings):
        environment = clean_environment(LD_PRELOAD=library, **{
            "HAKMEM_STATS": tmp_path / "%p.json", **settings})
        process = subprocess.Popen([build("causes.c"), *words], env=environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(3.5)  # statistics of the state now: it has missed a second after its work
        return process

    yield start
    for process in running:
        process.communicate()


@pytest.mark.parametrize(("words", "settings", "cause"), [
    (["leak"], {}, "in use"),
    (["leak", "busy"], {}, "in use"),
    (["leak", "on"], {}, "leak"),
    (["spike", "busy"], {"HAKMEM_PURGE_DELAY_MS": 60000}, "free pages"),
    (["spike"], {"HAKMEM_PURGE_DELAY_MS": 60000}, "free pages"),
    (["rounds"], {}, "free pages"),
    (["fragmentation"], {}, "fragmentation"),
    (["fragmentation", "busy"], {}, "fragmentation"),
    (["parked"], {}, "thread caches"),
])
def test_the_known_cause_is_named(started, words, settings, cause):
    process = started(*words, **settings)
    before = statistics.picture_of(str(process.pid))
    time.sleep(1.5)
    found = why.reasons(statistics.picture_of(str(process.pid)), before)
    assert found[0].cause == cause, found


def test_huge_pages_of_which_little_is_written_are_named(started):
    if "[madvise]" not in THP.read_text() if THP.exists() else True:
        pytest.skip("no huge pages are given to those who ask, or everybody has them")
    process = started("slack")
    found = {each.cause: each for each in why.reasons(statistics.picture_of(str(process.pid)))}
    if found["in use"].size < 100 * MIB:
        pytest.skip("the kernel had no huge pages at hand")
    assert found["huge pages"].size > 60 * MIB, found
    other = started("slack", HAKMEM_THP_MIN_HEAP_MB=1048576)
    now = statistics.picture_of(str(other.pid))
    # The option that is named helps. 16 MiB of what was written before may have stayed.
    assert now.kernel.heap_rss < (10 + 16) * MIB, now.kernel
    assert "huge pages" not in causes(now)


def test_the_commands_show_a_running_process(started):
    process = started("leak")
    said = CliRunner().invoke(command.hakmem, ["stat", str(process.pid)])
    assert said.exit_code == 0 and "mapped for blocks" in said.output and "208" in said.output
    said = CliRunner().invoke(command.hakmem, ["top", str(process.pid)])  # no terminal: once
    assert said.exit_code == 0 and said.output.count("mapped for blocks") == 1
    said = CliRunner().invoke(command.hakmem, ["why", "--over", "0", str(process.pid)])
    assert said.exit_code == 0 and "blocks that the program has" in said.output


@pytest.mark.parametrize("name", ["of/%p.json", "../start/of/%p.json"])
def test_a_relative_name_is_of_the_folder_of_the_start(library, tmp_path, name):
    (tmp_path / "start/of").mkdir(parents=True)
    others = {each: tmp_path / "%p.json" for each in ("HAKMEM_PROFILE", "HAKMEM_TRACE")}
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_STATS=name, **others)
    with subprocess.Popen(["sh", "-c", "cd / && echo ready && read line"], env=environment,
                          cwd=tmp_path / "start", stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        found = statistics.file_of(process.pid)
        assert found == tmp_path / f"start/of/{process.pid}.json"
        process.stdin.close()
    assert statistics.picture_of(str(found)).told["process"] == process.pid
    assert f"TUNE(OUTPUT_NUMBER, {statistics.FIRST_NUMBER}, " in \
        (ROOT / "src/options/tuning.h").read_text(encoding="utf-8")


def test_what_cannot_be_looked_at_is_told_in_one_line(tmp_path):
    for what, line in (("999999999", "there is no process 999999999"),
                       (str(os.getpid()), "writes no statistics: start it with"),
                       (str(tmp_path / "none"), "there is no such process or file")):
        with pytest.raises(UserError, match=line):
            statistics.picture_of(what)
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"a": 1}))
    with pytest.raises(UserError, match="has no statistics of HAKMEM"):
        statistics.picture_of(str(other))


# ---- profiles ----

def test_a_program_is_profiled_in_one_command(library, build, tmp_path):
    program = build("profiled.c", "-no-pie", "-fomit-frame-pointer",
                    "-fno-optimize-sibling-calls")
    done = subprocess.run([sys.executable, "-m", "hakmem.command", "profile", "--mean", "64",
                           "--out", tmp_path / "out", program, "known"], capture_output=True,
                          text=True, check=False, cwd=tmp_path,
                          env=clean_environment(LIBHAKMEM=library, PYTHONPATH=ROOT / "python"))
    assert done.returncode == 0, done.stderr
    for name in ("leak_large", "leak_small", "leak_zeroed", "leak_aligned"):
        place = r"at profiled\.c:\d+"
        assert re.search(rf"{name} {place}  <- run_known {place}", done.stderr)
    page, = (tmp_path / "out").glob("*.html")
    assert "run_known" in page.read_text() and "<script>" in page.read_text()
    kept, = (tmp_path / "out").glob("*.pb")
    held = pprof.read(kept).total("inuse_space") / 1e6
    assert abs(held - 82.4) < 12  # six standard deviations of what 64 KiB a sample estimate


def test_the_program_s_status_is_kept(library, tmp_path):
    done = subprocess.run([sys.executable, "-m", "hakmem.command", "profile", "--out",
                           tmp_path / "out", "sh", "-c", "exit 5"], capture_output=True, text=True,
                          check=False, cwd=tmp_path,
                          env=clean_environment(LIBHAKMEM=library, PYTHONPATH=ROOT / "python"))
    assert done.returncode == 5 and "nothing was sampled" in done.stderr


def test_the_file_of_a_process_that_has_written_none_is_left_out(library, tmp_path, monkeypatch):
    """Files are made at the start; a child may end by _exit."""
    monkeypatch.setenv("LIBHAKMEM", str(library))
    made = ["sh", "-c", "touch ${HAKMEM_PROFILE%/*}/7.pb"]
    found = profile.run(made, 512, tmp_path)
    assert (tmp_path / "7.pb").exists() and tmp_path / "7.pb" not in found.profiles
    assert found.ending.status == 0


def test_a_file_that_is_no_profile_is_refused(tmp_path):
    for content in (b"", b"text", b"\x0a\xff\xff\xff\xff", bytes(range(256))):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(UserError, match="is no heap profile of HAKMEM"):
            pprof.read(tmp_path / "file")


def test_a_flame_graph_adds_up():
    root = flame.tree([(["main", "a"], 60), (["main", "b"], 30), (["main", "a", "c"], 10)], "all")
    assert root.value == 100 and root.children["main"].children["a"].value == 70
    page = flame.page(root)
    assert page.count("<g ") == 5 and "c: 10 bytes, 10.0 %" in page


def test_the_table_names_who_allocates_and_for_whom():
    main, f, g = Name("main"), Name("f", "a.c:3"), Name("g", "a.c:1")
    rows = profile.leaves([profile.Stack([main, f, g], 5, 1.0), profile.Stack([main, f, g], 6, 3.0),
                           profile.Stack([g], 1, 0.0)])
    assert rows == [("g at a.c:1", "f at a.c:3", profile.Leaf(11, 4.0)),
                    ("g at a.c:1", "", profile.Leaf(1, 0.0))]


def test_the_table_says_how_exact_it_is():
    """100 samples of small blocks are known to a tenth; blocks far above the mean, exactly."""
    def stack(size, blocks):
        sample = pprof.Sample([0], {"inuse_space": size, "inuse_objects": blocks})
        return profile.named_stacks(pprof.Profile([sample], period=1 << 16), "inuse_space")
    assert "± 10 %" in profile.text_of("held", stack(100 << 16, 100 << 12), 5)
    assert "± 0 %" in profile.text_of("held", stack(100 << 26, 100), 5)


@pytest.mark.skipif(not shutil.which("addr2line"), reason="needs addr2line (binutils)")
def test_code_without_a_symbol_is_not_called_by_its_neighbour(tmp_path):
    """A stripped library names exported functions; others lie between them."""
    (tmp_path / "two.c").write_text("static __attribute__((noinline)) int hidden(int a)"
                                    " { __asm__(\"\"); return a * 3; }\n"
                                    "int shown(int a) { return hidden(a) + 1; }\n")
    library = tmp_path / "libtwo.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "two.c"], check=True)
    told = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    places = {line.split()[2]: int(line.split()[0], 16) for line in told.splitlines()
              if line.split()[-1] in ("hidden", "shown")}
    subprocess.run(["strip", library], check=True)
    code = next(each for each in elf.load_segments(library)
                if 0 <= places["shown"] - each.address < each.length)
    offset = code.offset - code.address
    mapping = pprof.Mapping(0, 1 << 20, 0, str(library), "")
    found = symbols.names_of(pprof.Profile(
        [pprof.Sample([place + offset for place in places.values()], {})], [mapping]))
    assert found[places["shown"] + offset] == [Name("shown")]
    assert found[places["hidden"] + offset] == [Name(f"libtwo.so+{places['hidden'] + offset:#x}")]
