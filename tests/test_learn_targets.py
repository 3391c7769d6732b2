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
for needed in ("click", "rich", "google.protobuf", "elftools"):
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


@pytest.mark.parametrize(("ours", "hand", "told", "is_met"), [
    (row("0.55"), row("0.5"), "90 %", True), (row("0.56"), row("0.5"), "88 %", False),
    (row(said="declined: nothing to gain"), row("0.5"), "0 %", False),
    (row(said="declined: nothing to gain"), row(), "nothing to gain", True),
    (row(said="declined: nothing to gain"), row("1.1"), "nothing to gain", True),
    (row(said="failed: x"), row(), "–", False),
    (row("0.9"), row(), "a gain", True), (row("0.99", 0.02), row(), "no gain", False),
    (row("1.01"), None, "no loss", True), (row("1.03"), None, "a loss", False),
    (row(), None, "no loss", True)])
def test_what_was_learnt_is_judged_by_what_was_written_by_hand(ours, hand, told, is_met):
    by = {LEARNT: ours} | ({HAND: hand} if hand else {})
    assert learn_targets.verdict(by) == (told, is_met)


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
    assert "*2 of 2 met. Medians of 6 rounds" in text


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


def test_a_program_is_learnt_from_and_run_with_both_policies(tmp_path, monkeypatch):
    if not learn_targets.LIBRARY.exists():
        pytest.skip("needs the release build")
    (tmp_path / "program.c").write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-fno-builtin", "-Wl,--build-id=sha1", "-o", "program",
                    "program.c"], cwd=tmp_path, check=True)
    monkeypatch.setenv("LIBHAKMEM", str(learn_targets.LIBRARY))
    monkeypatch.setattr(learn_targets, "PROGRAMS",
                        {"mine": ("by name", learn_targets.made_by("that_stays"))})
    subject = SimpleNamespace(command=("./program",), load=(), settings={}, folder=str(tmp_path))
    rows = learn_targets.rows_of_program("mine", SimpleNamespace(subject=subject), 0, 1, tmp_path)
    ours, hand = rows
    assert (ours["policy"], ours["rules"], ours["said"]) == (LEARNT, "1", "written")
    assert (hand["policy"], hand["rules"], hand["said"]) == (HAND, "1", "by name")
    assert float(ours["cost"]) > 0 and float(hand["memory_time"]) > 0 and ours["rounds"] == "1"
    policies = [next((tmp_path / "mine").glob("*.policy")), tmp_path / "mine by hand.policy"]
    assert len({next(line for line in path.read_text().splitlines() if line.startswith("site"))
                for path in policies}) == 1
