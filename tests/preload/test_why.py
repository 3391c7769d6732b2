"""`hakmem why`, `stat` and `profile`: programs with one known cause, and texts that are made up."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest
from conftest import output

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]
import made_files  # noqa: E402
from hakmem import (  # noqa: E402
    command, elf, flame, frames, peaks, pprof, profile, statistics, symbols, why)
from hakmem.errors import UserError  # noqa: E402
from hakmem.frames import Name  # noqa: E402
from hakmem.statistics import Kernel, Picture  # noqa: E402

MIB = 1 << 20
HARDLY = r"(0 B|\d+ KiB)"  # one buffer of stdio may be a sample
THP = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")


def said_by(capsys, *words):
    """What the command prints."""
    command.obey([str(word) for word in words])
    return capsys.readouterr().out


def made_up(kernel=None, **changes):
    told = json.loads(made_files.statistics())
    told["statistics"] = dict.fromkeys(told["statistics"], 0)
    told |= {"blocks": {"large": 0, "huge": 0}, "small_blocks": {}}
    del told["running_ms"]
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
    assert "100 MiB of addresses; the program has not written all of it" in why.text_of(now)


def test_old_figures_are_said_to_be_old():
    now = Picture(made_up(used=MIB).told, None, 61.0)
    assert "60 s old" in why.text_of(now) and "may be missing" in why.text_of(now)
    now = Picture(now.told, Kernel(rss=100 * MIB, huge=0), 61.0)
    assert "or what was allocated since" in why.text_of(now)
    assert "old" not in why.text_of(made_up(used=MIB))


def test_a_program_that_starts_does_not_leak():
    before = made_up(used=MIB, running_ms=900)
    assert causes(made_up(used=70 * MIB, resident=70 * MIB, written_ms=3000), before) == ["in use"]


def test_what_came_after_the_figures_is_not_called_foreign():
    """A block that lives for a moment is resident now, and in no figure."""
    kernel = Kernel(rss=100 * MIB, huge=0, heap_rss=MIB)
    told = [dict(made_up(used=MIB).told, written_ms=written) for written in (1000, 2000)]
    pictures = [Picture(each, kernel, 2.5) for each in told]
    assert "are not in these figures, which are 0.5 s old" in why.text_of(pictures[1])
    assert "not from malloc" in why.text_of(pictures[1], pictures[0])  # at both looks
    other = Picture(told[0], Kernel(rss=4 * MIB, huge=0, heap_rss=MIB), 1.5)
    assert "or what was allocated since" in why.text_of(pictures[1], other)


def test_huge_blocks_that_come_and_go_are_named_with_what_helps():
    now = made_up(resident=2 * MIB, used=MIB, written_ms=11000, running_ms=10000,
                  system_calls={"munmap": {"calls": 40, "bytes": 40 * 96 * MIB, "us": 7}})
    assert causes(now)[0] == "huge blocks come and go"
    assert "come and go: 96.0 MiB in the mean go back to the kernel 4.0 times a second" in \
        why.text_of(now) and "HAKMEM_BIGCACHE_MAX_MB=1024" in why.text_of(now)
    assert "huge blocks come and go" not in causes(Picture(dict(now.told, written_ms=12000), None),
                                                   now)


def test_pages_that_are_purged_and_taken_again_come_and_go_as_well():
    def with_purged(calls, **changes):
        return made_up(used=MIB, system_calls={"madvise_purge": {
            "calls": calls, "bytes": calls * 20 * MIB, "us": 7}}, **changes)

    before = with_purged(1, resident=40 * MIB, written_ms=1000)
    now = with_purged(5, resident=30 * MIB, written_ms=3000)
    assert "huge blocks come and go" in causes(now, before)
    assert "20.0 MiB in the mean go back to the kernel 2.0 t" in why.text_of(now, before)
    before.told["statistics"]["resident"] = 110 * MIB  # it went for good
    assert "huge blocks come and go" not in causes(now, before)
    assert "huge blocks come and go" not in causes(now)


def test_an_array_that_grows_is_no_leak():
    before = made_up(resident=40 * MIB, used=40 * MIB, blocks={"large": 3, "huge": 1})
    now = made_up(resident=60 * MIB, used=60 * MIB, blocks={"large": 3, "huge": 1},
                  written_ms=3000)
    assert causes(now, before) == ["growing block"]
    assert "hakmem profile PROGRAM names the code" in why.text_of(now, before)
    now.told["blocks"] = {"large": 4, "huge": 1}
    assert causes(now, before) == ["leak"]
    now.told.update(blocks=before.told["blocks"],
                    small_blocks={"64": {"used": 20 * MIB // 64}})
    assert causes(now, before)[0] == "leak"


def test_of_python_the_next_step_names_its_lines():
    """One function of the interpreter allocates what stays and what passes: learn is of no use."""
    for program, is_python in (("python3.11", True), ("pythonic", False)):
        before = made_up(resident=60 * MIB, used=60 * MIB, program=program)
        now = made_up(Kernel(rss=200 * MIB, huge=0), resident=90 * MIB, used=70 * MIB,
                      free_in_slabs=60 * MIB, small_blocks={"640": {"used": 60000}},
                      written_ms=3000, program=program)
        for each in why.reasons(now, before):
            assert (frames.MEMRAY in each.remedy) == is_python, each
        assert ("PYTHONMALLOC=malloc" in why.text_of(now, before)) == is_python


def test_the_next_step_is_a_command():
    grows = [made_up(resident=used * MIB, used=used * MIB, written_ms=written)
             for used, written in ((60, 1000), (70, 3000))]
    assert "hakmem leaks PROGRAM" in why.text_of(grows[1], grows[0])
    assert "hakmem profile PROGRAM" in why.text_of(grows[1])
    now = made_up(resident=40 * MIB, free_in_slabs=30 * MIB, small_blocks={"64": {"used": 1 << 16}})
    assert "hakmem learn PROGRAM" in why.text_of(now)


def test_options_are_taken_into_account():
    now = made_up(resident=100 * MIB, free_pages=90 * MIB)
    assert "until nobody needs them for 500 ms" in why.text_of(now)
    assert "Then the program's calls give them back." in why.text_of(now)
    assert "HAKMEM_BACKGROUND=1 lets a thread do so" in why.text_of(now)
    now.told["options"].update(background=1)
    assert "Then a thread gives them back." in why.text_of(now)
    assert "HAKMEM_BACKGROUND" not in why.text_of(now)
    now.told["options"].update(free_policy=0)
    assert "for ever, because of free_policy=keep" in why.text_of(now)


def test_more_than_always_stays_was_wanted_again():
    for size, policy, is_said in ((12, 2, False), (90, 2, True), (90, 1, False)):
        now = made_up(resident=size * MIB, free_pages=size * MIB)
        now.told["options"].update(free_policy=policy)
        assert ("needed as many again" in why.text_of(now)) == is_said


def test_slabs_that_caches_hold_are_not_blamed_on_blocks_that_live_long():
    now = made_up(resident=100 * MIB, free_in_slabs=60 * MIB, cached_threads=30 * MIB)
    ended = Picture(now.told, None, has_ended=True)
    assert "the caches hold more than the program" in why.text_of(now)
    assert "  ->" not in why.text_of(ended)  # hakmem_purge is of no use
    now.told["small_blocks"] = {"64": {"used": 40 * MIB // 64}}
    assert "A few long-lived blocks" in why.text_of(now)
    assert "% of the slabs.\n  -> hakmem learn PROGRAM" in why.text_of(ended)


def test_what_a_short_program_has_left_is_told_as_of_its_end(hakmem, build, tmp_path):
    """The causes and remedies of a process that runs are of no use."""
    assert hakmem("run", f"stats={tmp_path}/%p.json", build("causes.c"), "rounds").returncode == 0
    file, = tmp_path.glob("*.json")
    said = hakmem("why", file).stdout
    assert re.search(r"causes \(\d+\) has ended, or runs elsewhere\. Its figures are those "
                     r"\d\.\d s after its start: ", said), said
    assert "are free pages that were in use before, as after a spike.\n" in said
    assert "The peak is not in these figures: hakmem profile PROGRAM" in said
    assert "hakmem tune PROGRAM" in said and "hakmem_purge" not in said
    assert json.loads(hakmem("why", "--json", file).stdout)["has_ended"]
    assert hakmem("run", f"stats={tmp_path}/little", "sh", "-c", "true").returncode == 0
    assert "Each part held less than 1.0 MiB.\n" in hakmem("why", "little").stdout


def test_a_process_that_ends_while_it_is_looked_at_leaves_its_file(started, build, tmp_path):
    process = started(build("causes.c"), "leak", HAKMEM_STATS=tmp_path / "%p.json")
    time.sleep(2.5)
    threading.Timer(0.5, process.stdin.close).start()
    last, = statistics.looks_at(str(process.pid), 3600)
    assert last.has_ended and last.told["process"] == process.pid
    assert last.told["blocks"]["large"] == 0 and sum(last.used_by_size.values()) >= 400000


def test_reports_are_json_on_demand(tmp_path, capsys):
    file = tmp_path / "s.json"
    file.write_text(json.dumps(made_up(resident=100 * MIB, used=60 * MIB).told))
    said = {name: json.loads(said_by(capsys, name, "--json", file)) for name in ("stat", "why")}
    assert said["why"]["reasons"][0]["cause"] == "in use"
    assert said["why"]["reasons"][0]["size"] == said["stat"]["figures"]["statistics"]["used"]
    assert said["stat"]["kernel"] is None


# ---- programs that run ----

@pytest.fixture
def with_cause(started, build, tmp_path):
    """with_cause(words, …) is causes.c after what the words say, and its statistics are there."""
    def start(*words, **settings):
        process = started(build("causes.c"), *words,
                          **{"HAKMEM_STATS": tmp_path / "%p.json"} | settings)
        assert process.said == "ready\n"
        time.sleep(3.5)  # statistics of the state now: it has missed a second after its work
        return process

    return start


BATCH = {"HAKMEM_FREE_POLICY": "batch", "HAKMEM_PURGE_DELAY_MS": 60000}


@pytest.mark.parametrize(("words", "settings", "cause"), [
    (["leak"], {}, "in use"), (["leak", "busy"], {}, "in use"), (["leak", "on"], {}, "leak"),
    (["spike", "busy"], BATCH, "free pages"),
    (["spike"], BATCH, "free pages"),
    (["rounds"], {}, "free pages"),
    (["fragmentation"], {}, "fragmentation"), (["fragmentation", "busy"], {}, "fragmentation"),
    (["parked"], {}, "thread caches"),
])
def test_the_known_cause_is_named(with_cause, words, settings, cause):
    process = with_cause(*words, **settings)
    before = statistics.picture_of(str(process.pid))
    time.sleep(1.5)
    found = why.reasons(statistics.picture_of(str(process.pid)), before)
    assert found[0].cause == cause, found


def test_huge_pages_of_which_little_is_written_are_named(with_cause):
    if "[madvise]" not in THP.read_text() if THP.exists() else True:
        pytest.skip("no huge pages are given to those who ask, or everybody has them")
    process = with_cause("slack")
    found = {each.cause: each for each in why.reasons(statistics.picture_of(str(process.pid)))}
    if found["in use"].size < 100 * MIB:
        pytest.skip("the kernel had no huge pages at hand")
    assert found["huge pages"].size > 60 * MIB, found
    other = with_cause("slack", HAKMEM_THP_MIN_HEAP_MB=1048576)
    now = statistics.picture_of(str(other.pid))
    # The option that is named helps. 16 MiB of what was written before may have stayed.
    assert now.kernel.heap_rss < (10 + 16) * MIB, now.kernel
    assert "huge pages" not in causes(now)


def test_the_commands_show_a_running_process(with_cause, capsys):
    process = with_cause("leak")
    said = said_by(capsys, "stat", process.pid)
    assert "mapped for blocks" in said and "208" in said
    assert said_by(capsys, "top", process.pid).count("mapped for blocks") == 1  # no terminal: once
    assert "blocks that the program has" in said_by(capsys, "why", "--over", "0", process.pid)


@pytest.mark.parametrize("name", ["of/%p.json", "../start/of/%p.json"])
def test_a_relative_name_is_of_the_folder_of_the_start(started, tmp_path, name):
    (tmp_path / "start/of").mkdir(parents=True)
    process = started("sh", "-c", "cd / && echo ready && read line", HAKMEM_STATS=name,
                      HAKMEM_PROFILE=tmp_path / "%p.json", cwd=tmp_path / "start")
    found = statistics.file_of(process.pid)
    assert found == tmp_path / f"start/of/{process.pid}.json"
    process.stdin.close()
    process.wait()
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
    other.write_text("a name\n")
    with pytest.raises(UserError, match="this is no file of statistics"):
        statistics.picture_of(str(other))


# ---- profiles ----

def without_steps(text):  # which stand before the rows
    return [line for line in text.splitlines() if line[:5] != "  -> "]

def test_a_program_is_profiled_in_one_command(hakmem, build, tmp_path):
    program = build("profiled.c", "-no-pie", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
    done = hakmem("profile", "--mean", 64, "--out", "out", program, "known")
    assert done.returncode == 0, done.stderr
    for name in ("leak_large", "leak_small", "leak_zeroed", "leak_aligned"):
        place = r"at profiled\.c:\d+"
        assert re.search(rf"{name} {place}  <- known {place}", done.stderr)
    page, = (tmp_path / "out").glob("*.html")
    assert "known" in page.read_text() and "<script>" in page.read_text()
    held = pprof.read(next((tmp_path / "out").glob("*.pb"))).total("inuse_space") / 1e6
    assert abs(held - 82.4) < 12  # six standard deviations of what 64 KiB a sample estimate


def test_the_peak_is_shown_where_nothing_is_held_at_the_end(hakmem, build, tmp_path):
    done = hakmem("profile", "--out", "out", build("causes.c"), "temporary")
    first, second, third, *_ = without_steps(done.stderr)
    assert re.search(r"held at the peak, \d\.\d s after its start: 64\.\d MiB ± 0 %", first), first
    assert re.search(r"100\.0 % .*allocate at causes\.c:\d+  <- temporary at ", second), second
    assert re.match(rf"at its end it held {HARDLY}: --show held", third), third
    kept, = (tmp_path / "out").glob("*.peak")
    assert pprof.read(kept).total("inuse_space") > 64 * MIB
    end, = (tmp_path / "out").glob("*.pb")
    assert pprof.read(end).total("inuse_space") < MIB
    done = hakmem("profile", "--show", "held", "--out", "out", build("causes.c"), "temporary")
    assert re.search(f"held at the end: {HARDLY}", done.stderr)


def test_a_peak_too_short_to_be_seen_is_said_and_what_was_allocated_is_shown(hakmem, build):
    done = hakmem("profile", build("causes.c"), "pages")
    first, step, row, *_ = done.stderr.splitlines()
    assert re.search("in all, for its peak was too short to be seen: 28[89] MiB", first), first
    assert step.startswith("  -> allocate has allocated 8 blocks of 36.0 MiB in the mean"), step
    assert "allocate at causes.c:" in row and "  <- pages at " in row, row


def test_a_file_that_is_being_written_is_no_peak(tmp_path, hakmem, build):
    path = tmp_path / "7.pb"
    hakmem("profile", "--mean", 64, "--out", "out", build("profiled.c"), "huge")
    made, = (tmp_path / "out").glob("*.pb")
    watch = peaks.Watch(tmp_path, rest=0)
    path.write_bytes(made.read_bytes())
    watch.look()
    assert not watch.most  # just now
    os.utime(path, (time.time() - 1,) * 2)
    watch.look()
    held, data = watch.most[path]
    assert held == pprof.read(made).total("inuse_space") and data == made.read_bytes()
    assert watch.peak_of(path, pprof.Profile()) == data
    assert watch.peak_of(path, pprof.read(made)) == b""
    for content in (data[:-9], b"", data[:len(data) // 2]):
        path.write_bytes(content)
        os.utime(path, (time.time() - 2,) * 2)
        watch.look()
        assert watch.most[path] == (held, data)


def test_profile_and_leaks_are_json_alone_on_stdout(hakmem, build):
    """What the program says goes to stderr then. Its buffer of stdout may be a sample by chance."""
    done = hakmem("profile", "--json", "--mean", 64, build("profiled.c"), "huge")
    told = json.loads(done.stdout)
    process, = told["processes"]
    assert re.match(r"leak_huge at profiled\.c:\d+", process["rows"][0]["where"])
    assert process["rows"][0]["bytes"] == 64 * MIB and process["rows"][0]["error"] == 0
    assert 64 * MIB <= process["bytes"] == process["held_at_end"] < 65 * MIB
    assert pathlib.Path(process["profile"]).suffix == ".pb" and told["status"] == 0
    done = hakmem("leaks", "--json", "--fail", build("leaking.c", "-fno-optimize-sibling-calls"),
                  "leak_all")
    process, = json.loads(done.stdout)["processes"]
    assert done.returncode == 1 and "ok leak_all" in done.stderr
    assert process["came_to_its_end"] and process["blocks"] == sum(
        leak["blocks"] for leak in process["leaks"])
    frame = process["leaks"][0]["stack"][0]
    assert frame["function"] and pathlib.Path(frame["file"]).exists()


def test_json_says_when_nothing_was_seen(hakmem):
    for tool in ("profile", "leaks"):
        done = hakmem(tool, "--json", "sh", "-c", "exit 5")
        told = json.loads(done.stdout)
        assert done.returncode == told["status"] == 5 and told["notes"], told


def test_the_program_s_status_is_kept(hakmem):
    done = hakmem("profile", "--out", "out", "sh", "-c", "exit 5")
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


@pytest.mark.parametrize("show", ["held", "allocated"])
def test_the_program_s_own_line_leads_where_templates_allocate(hakmem, build, show):
    done = hakmem("profile", "--mean", 64, "--show", show, build("templates.cc"))
    _, first, *_ = without_steps(done.stderr)
    assert re.search(r"  fill_index at templates\.cc:1[34], in std::(map|string|operator|vector)",
                     first), first
    assert max(map(len, without_steps(done.stderr))) < 200 and "std::allocator" not in done.stderr
    assert "has no symbols" not in done.stderr


def test_leaks_of_templates_begin_at_the_program_s_own_line(hakmem, build):
    done = hakmem("leaks", "--most", 2, "--depth", 3, build("templates.cc"))
    assert re.search(r"in \d+ blocks\n    std::.*\n    fill_index at templates\.cc:1[34]\n",
                     done.stderr), done.stderr


@pytest.mark.parametrize("source", ["templates.cc", "profiled.c"])
@pytest.mark.parametrize("tool", ["profile", "leaks"])
def test_a_program_without_symbols_is_said_to_have_none(hakmem, build, source, tool):
    stripped = build(source, "-s", name=f"stripped-{source[0]}")
    done = hakmem(tool, stripped, *["huge"] * (source == "profiled.c"))
    assert f"{stripped.name}+0x" in done.stderr
    assert f"{stripped.name} has no symbols: names need a build with -g" in done.stderr


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
    rows = [line.split() for line in output("nm", library).splitlines()]
    places = {row[2]: int(row[0], 16) for row in rows if row[-1] in ("hidden", "shown")}
    subprocess.run(["strip", library], check=True)
    code = next(each for each in elf.load_segments(library)
                if 0 <= places["shown"] - each.address < each.length)
    offset = code.offset - code.address
    mapping = pprof.Mapping(0, 1 << 20, 0, str(library), "")
    found = symbols.names_of(pprof.Profile(
        [pprof.Sample([place + offset for place in places.values()], {})], [mapping]))
    assert found[places["shown"] + offset] == [Name("shown", file=str(library))]
    assert found[places["hidden"] + offset] == [
        Name(f"libtwo.so+{places['hidden'] + offset:#x}", file=str(library))]
