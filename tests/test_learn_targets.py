"""What hakmem learn finds beside rules by hand: how its answer is read, the verdicts, the rules
that are written by hand, and a run of it all with a program of the test."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "python"), str(ROOT / "lab")]
for needed in ("google.protobuf", "elftools"):
    pytest.importorskip(needed)

import learn_targets  # noqa: E402
from hakmem import learn, runs  # noqa: E402
from hakmem.policy import Policy, Site  # noqa: E402
from hakmem.pprof import Mapping, Profile, Sample  # noqa: E402
from learn_targets import HAND, LEARNT, Subject  # noqa: E402

ID = "0123456789abcdef"
TWO = Policy(ID, groups={Site(ID, 5, 64): 1, Site(ID, 9, 64): 1})


def said(monkeypatch, new_cost):
    """What the command says of two rules, with pairs of runs."""
    def pairs(*_):
        while True:
            yield tuple(runs.Run(0, Path(), cpu_s, 1.0, 1, 0.1) for cpu_s in (1.0, new_cost()))

    monkeypatch.setattr(runs, "pairs", pairs)
    is_worth, verdict = learn.judged(["x"], {Path("a.policy"): TWO}, 0)
    written = "\nwritten: a.policy; to use it, run x" if is_worth else ""
    return learn_targets.answer_of(f"{learn.told_of(TWO, 'x')}\n{verdict}{written}\n")


def test_the_answer_of_the_command_is_read(monkeypatch):
    assert said(monkeypatch, lambda: 0.5) == (2, "written (0.53 in 3 pairs)")
    assert said(monkeypatch, lambda: 1.5) == (
        2, "declined: it costs more than it gains (1.47 in 3 pairs)")
    costs = iter((0.7, 1.4, 1.0))
    assert said(monkeypatch, lambda: next(costs)) == (
        2, "declined: these pairs do not settle it (1.00 in 3 pairs)")
    nothing = learn.told_of(Policy(ID), "x")
    assert learn_targets.answer_of(nothing) == (0, "declined: nothing to gain")
    assert learn_targets.answer_of("hakmem: x: no such program\n") == (
        0, "failed: hakmem: x: no such program")


def row(cost="", spread=0.01, said="written", **more):
    interval = {} if not cost else {"cost_least": f"{float(cost) - spread}",
                                    "cost_most": f"{float(cost) + spread}", "cpu": "0.9",
                                    "memory_time": "0.5", "rounds": "6"}
    return dict.fromkeys(learn_targets.FIELDS, "") | interval | {"cost": cost, "said": said} | more


DECLINED = row(said="declined: nothing to gain")
NOTHING = row(said="nothing: large blocks")


@pytest.mark.parametrize(("ours", "hand", "told", "target"), [
    # By hand it gains.
    (row("0.55"), row("0.5"), "90 %", "met"), (row("0.56"), row("0.5"), "88 %", "missed"),
    (row("0.55", 0.6), row("0.5"), "90 %", "not settled"), (DECLINED, row("0.5"), "0 %", "missed"),
    # By hand it may gain, or does not.
    (DECLINED, row("1.0", 0.04), "nothing to gain", "met"),
    (DECLINED, row("1.0", 0.06), "nothing to gain", "not settled"),
    (DECLINED, row("1.1"), "nothing to gain", "met"), (row("0.9"), row("1.0"), "a gain", "met"),
    (row("0.9"), row("0.8", 0.3), "–", "not settled"), (row("0.99", 0.02), row("1.0"), "–",
                                                          "not settled"),
    (row("1.1"), row("1.0"), "a loss", "missed"),
    # There is nothing to write by hand.
    (DECLINED, NOTHING, "nothing to gain", "met"), (row("1.0"), NOTHING, "no loss", "met"),
    (row("1.0", 0.04), NOTHING, "no loss", "not settled"), (row("1.03"), NOTHING, "a loss",
                                                            "missed"),
    # The policy is of another input.
    (row("1.0"), None, "no loss", "met"), (row("1.01", 0.02), None, "no loss", "not settled"),
    (row("1.03", 0.2), None, "a loss", "missed"), (row(said="from x: nothing"), None, "–",
                                                   "not run"),
    # What did not run is never met.
    (row(said="failed: x"), row("1.0"), "–", "not run"),
    (row(said="failed: x"), NOTHING, "–", "not run"), (row(), NOTHING, "–", "not run")])
def test_what_was_learnt_is_judged_by_what_was_written_by_hand(ours, hand, told, target):
    by = {LEARNT: ours} | ({HAND: hand} if hand else {})
    assert learn_targets.verdict(by) == (told, target)


def test_rounds_are_as_many_as_fit_into_the_time_within_bounds():
    def rounds(seconds_of_one, minutes):
        done = 0
        while learn_targets.goes_on(done, done * seconds_of_one, minutes):
            done += 1
        return done

    assert rounds(1, 4) == 30 and rounds(100, 4) == 6
    assert rounds(20, 4) == 12 and rounds(21, 4) == 11


def test_the_page_has_a_row_for_each_program(tmp_path, monkeypatch):
    monkeypatch.setattr(learn_targets, "ROOT", tmp_path)
    (tmp_path / "bench").mkdir()
    for cost in ("0.7", "0.55"):  # the second replaces the first
        learn_targets.save([
            row("1.0", program="redis, deleted at random", policy=LEARNT, version="c"),
            row(cost, program="phases", policy=LEARNT, rules="3", seconds="9", version="c"),
            row("0.5", program="phases", policy=HAND, said="by name", rules="4", version="c")])
    text = learn_targets.render(f"before\n{learn_targets.BEGIN}x{learn_targets.END}\nafter",
                                (tmp_path / learn_targets.TABLE).read_text())
    assert text.startswith("before\n") and text.endswith(f"{learn_targets.END}\nafter")
    assert ("| phases | by name: 4 rules | 0.50 (0.49–0.51) | 0.90 | 0.50 | written | 3 | 9 | "
            "0.55 (0.54–0.56) | 0.90 | 0.50 | 90 % | met |\n"
            "| redis, deleted at random | – |") in text
    assert "*2 rows: 2 met. Medians of 6 to 30 rounds" in text


def test_code_that_only_one_load_runs_is_named(monkeypatch):
    """By its own place, or by its caller where another load runs it too."""
    def found(*stacks):
        values = {"alloc_space": 1000, "inuse_space": 0}
        return Profile([Sample([0x1000 + place for place in stack], values, 48, False, (24, 40))
                        for stack in stacks], [Mapping(0x1000, 0x9000, 0, "/nonesuch", ID)])

    profiles = {"stays": found((1, 10, 90), (2, 20, 90), (3, 10, 90)),
                "goes": found((1, 11, 90), (3, 10, 90))}
    monkeypatch.setattr(learn_targets, "profiled", lambda subject: profiles[subject.load[0]])
    written = learn_targets.only_under("stays", "goes")(Subject(("x",), ("kind", "1")))
    assert written.program == ID
    assert {(site.place, *(caller.place for caller in site.callers))
            for site in written.groups} == {(2, 11), (3,)}


def test_a_server_gets_its_load_again_and_again(tmp_path):
    said = tmp_path / "said"
    until = time.monotonic() + 60
    with learn_targets.visited(Subject(("x",), ("sh", "-c", f"echo load >> {said}"))):
        while not said.exists() or len(said.read_text().split()) < 3:
            assert time.monotonic() < until
            time.sleep(0.05)
    with learn_targets.visited(Subject(("x",), ("sleep", "1000"))):
        pass  # It does not wait for the load to end.


SOURCE = """
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
static char *volatile kept[10000], *volatile passing[400000];
NOINLINE static char *that_stays(void) { char *block = malloc(96); *block = 1; return block; }
NOINLINE static char *that_goes(void) { char *block = malloc(96); *block = 1; return block; }
int main(void)
{
    for (int index = 0; index < 400000; index++) {
        passing[index] = that_goes();
        if (index % 40 == 0) kept[index / 40] = that_stays();
    }
    for (int index = 0; index < 400000; index++) free(passing[index]);
    return 0;
}
"""


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """Of a program of the test, in the folder of the test."""
    if not learn_targets.LIBRARY.exists():
        pytest.skip("needs the release build")
    (tmp_path / "program.c").write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-fno-builtin", "-Wl,--build-id=sha1", "-o", "program",
                    "program.c"], cwd=tmp_path, check=True)
    monkeypatch.setenv("LIBHAKMEM", str(learn_targets.LIBRARY))
    monkeypatch.setattr(learn_targets, "PROGRAMS",
                        {"mine": ("by name", learn_targets.made_by("that_stays"))})
    monkeypatch.setattr(learn_targets, "OTHER_INPUT", {"mine, other": "mine"})
    return SimpleNamespace(subject=SimpleNamespace(command=("./program",), load=(), settings={},
                                                   folder=str(tmp_path)))


def test_a_program_is_learnt_from_and_run_with_both_policies(tmp_path, cell):
    ours, hand = learn_targets.rows_of_program("mine", {"mine": cell}, 0, 0, tmp_path)
    assert (ours["policy"], ours["rules"], ours["said"]) == (LEARNT, "1", "written")
    assert (hand["policy"], hand["rules"], hand["said"]) == (HAND, "1", "by name")
    assert float(ours["cost"]) > 0 and float(hand["memory_time"]) > 0 and ours["rounds"] == "6"
    policies = [next((tmp_path / "mine").glob("*.policy")), tmp_path / "mine by hand.policy"]
    assert len({next(line for line in path.read_text().splitlines() if line.startswith("site"))
                for path in policies}) == 1


def test_another_input_runs_with_what_was_learnt_whatever_the_pairs_said(tmp_path, cell,
                                                                         monkeypatch):
    """If `learn` has declined the first input, its rules are made without pairs."""
    cells = {"mine": cell, "mine, other": cell}
    ours, = learn_targets.rows_of_program("mine, other", cells, 0, 0, tmp_path)
    assert (ours["rules"], ours["said"]) == ("1", "from mine, `--minutes 0`: written")
    assert float(ours["cost"]) > 0
    ours, = learn_targets.rows_of_program("mine, other", cells, 0, 0, tmp_path)
    assert ours["said"] == "from mine" and float(ours["cost"]) > 0
    monkeypatch.setattr(learn_targets, "learnt", lambda *_: dict(DECLINED))
    ours, = learn_targets.rows_of_program("mine, other", cells, 0, 0, tmp_path / "fresh")
    assert learn_targets.verdict({LEARNT: ours}) == ("–", "not run")
