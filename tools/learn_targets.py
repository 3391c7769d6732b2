#!/usr/bin/env python3
"""Compares what `hakmem learn` finds with what one would write by hand.

    learn_targets.py [run [--minutes 1] [--rounds-minutes 4] [PROGRAM ...]]

`run` lets `hakmem learn` run each program, writes the policy that one would write by hand, and runs
the program without a policy and with each, in rounds. It takes more than an hour, alone on the
machine. The rows go to bench/learn_targets.csv, and the table into docs/measured.md, which is all
that is done without `run`. A program that is not installed is left out.
"""

import argparse
import csv
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = "bench/learn_targets.csv"
PAGE = "docs/measured.md"
BEGIN, END = "<!-- made from bench/learn_targets.csv -->", "<!-- end of targets -->"
LIBRARY = ROOT / "out/release/libhakmem.so"
SUITES = "lab/suites/learning.toml", "lab/programs.toml"
FIELDS = ("program", "policy", "rules", "said", "seconds", "rounds", "cost", "cost_least",
          "cost_most", "cpu", "peak", "memory_time", "version")
LEARNT, HAND = "learnt", "hand"
GAINED = 0.9  # of what is gained by hand: the target
LITTLE = 0.05  # so small a gain by hand need not be found
NO_LOSS = 1.02  # what a policy may cost where none gains, or where it does not fit
KEYS = "200000"  # of redis
LEAST_ROUNDS, MOST_ROUNDS = 6, 30  # the least have an interval at 95 %
LONGEST_S = 400  # for all that is done with a program, besides the minutes that are asked for
MET, MISSED, OPEN, NOT_RUN = "met", "missed", "not settled", "not run"
EXACT_KIB = 1  # a sample for each so many: nearly each block

Row = dict[str, str]


class Failed(Exception):
    """A program does not do what it should."""


@dataclass
class Subject:
    """A program that can be started."""
    words: tuple[str, ...]
    load: tuple[str, ...] = ()  # of a server: runs beside it, and ends it


# ---- what one would write by hand ----

def made_by(function: str) -> Callable[[Subject], object]:
    """Blocks that a function makes, by itself or by another, of all sizes."""
    def written(subject: Subject):
        from hakmem import symbols
        found = profiled(subject)
        names = symbols.names_of(found)
        return policy_of(found, (
            (part, depth) for depth in range(1, deepest() + 1) for part in parts_of(found)
            if part.sample.addresses[depth - 1:]
            and names[part.sample.addresses[depth - 1]][-1].function == function))

    return written


def only_under(stays: str, goes: str) -> Callable[[Subject], object]:
    """Blocks of code that one load runs and the other does not: the fewest calls that tell."""
    def written(subject: Subject):
        def under(load: str):
            return profiled(Subject(subject.words, tuple(load if word == "kind" else word
                                                         for word in subject.load)))

        found, others = under(stays), {part.site(depth) for part in parts_of(under(goes))
                                       for depth in range(1, deepest() + 1)}
        depths = ((part, next((depth for depth in range(1, deepest() + 1)
                               if part.site(depth) not in others), 0)) for part in parts_of(found))
        return policy_of(found, ((part, depth) for part, depth in depths if depth))

    return written


# What one would write, and how. None: no rule of a policy can help.
PROGRAMS: dict[str, tuple[str, Callable[[Subject], object] | None]] = {
    "phases": ("what `long_block` makes", made_by("long_block")),
    "phases, one wrapper": ("what `long_block` makes", made_by("long_block")),
    "sessions": ("what `long_block` makes", made_by("long_block")),
    "sessions, one wrapper": ("what `long_block` makes", made_by("long_block")),
    "redis, deleted by kind": ("what only the kind that stays makes", only_under("stays", "goes")),
    "arrays": ("nothing: large blocks", None),
    "batches": ("nothing: large blocks", None),
    "sqlite": ("nothing: no mixture", None),
    "python": ("nothing", None),
    "c++ compile (gcc)": ("nothing", None),
    "ghostscript": ("nothing", None),
}
# Programs that run with what was learnt from another input.
OTHER_INPUT = {"redis, deleted at random": "redis, deleted by kind"}


def deepest() -> int:
    from hakmem import policy
    return policy.MOST_FRAMES


def parts_of(found) -> list:
    from hakmem.uses import parts_of as parts
    return parts([found], [1.0])


def policy_of(found, chosen: Iterable[tuple[object, int]]):
    """Group 1 for the sites of these parts, each with so many calls; the largest if there are too
    many."""
    from hakmem import learn, policy
    sizes = Counter()
    for part, depth in chosen:
        site = part.site(depth)
        if site is not None and len(site.callers) == depth - 1:
            sizes[site] += part.sample.values["alloc_space"]
    return policy.Policy(learn.program_of(found),
                         groups={site: 1 for site, _ in sizes.most_common(policy.MOST_RULES)})


def profiled(subject: Subject):
    """The profile of the program's first process."""
    from hakmem import pprof, runs
    with visited(subject), tempfile.TemporaryDirectory() as folder:
        runs.measured(subject.words, {"HAKMEM_PROFILE": f"{folder}/%p.pb",
                                      "HAKMEM_PROFILE_MEAN_KB": str(EXACT_KIB)})
        files = sorted(Path(folder).glob("*.pb"))
        if not files:
            raise Failed("no profile was written")
        return pprof.read(files[0])


# ---- runs ----

@contextmanager
def visited(subject: Subject) -> Iterator[None]:
    """Meanwhile a server has its load, and then ends, as often as it is started."""
    if not subject.load:
        yield
        return
    is_over = threading.Event()

    def visit() -> None:
        while not is_over.is_set():
            with subprocess.Popen(subject.load, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as load:
                while load.poll() is None:
                    if is_over.wait(0.05):
                        load.kill()
            is_over.wait(0.05)

    visits = threading.Thread(target=visit)
    visits.start()
    try:
        yield
    finally:
        is_over.set()
        visits.join()


@contextmanager
def ready(cell) -> Iterator[Subject]:
    """In the folder and the environment that a program of the laboratory wants."""
    from hakmem_lab.measure.programs import FRESH
    from recorded import free_port
    subject, port = cell.subject, free_port()
    before, here = dict(os.environ), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="hakmem-targets-") as fresh:
        def filled(words: Sequence[str]) -> tuple[str, ...]:
            return tuple(word.replace("{folder}", fresh).replace("{root}", str(ROOT))
                         .replace("{port}", str(port)) for word in words)

        os.environ.update(subject.settings)
        os.chdir(fresh if subject.folder == FRESH else subject.folder)
        try:
            # tools/recorded.py KIND PORT KEYS
            load = (*filled(subject.load[:-1]), KEYS, "end") if subject.load else ()
            yield Subject(filled(subject.command), load)
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Failed after so long."""
    def over(*_: object) -> None:
        raise Failed(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def learnt(subject: Subject, out: Path, minutes: float) -> Row:
    """Runs the command; what it has found and said."""
    words = [sys.executable, "-m", "hakmem.command", "learn", "--minutes", str(minutes), "--out",
             str(out), *subject.words]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}/python", "LIBHAKMEM": str(LIBRARY)}
    start = time.monotonic()
    with visited(subject), subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, encoding="utf-8", errors="replace") as command:
        try:
            _, text = command.communicate()
        except BaseException:
            command.terminate()  # it ends the program
            raise
    rules, said = answer_of(text)
    return {"rules": str(rules), "said": said, "seconds": f"{time.monotonic() - start:.0f}"}


def answer_of(text: str) -> tuple[int, str]:
    """How many rules the command has found, and what it made of them."""
    rules = sum(int(found) for found in re.findall(r": (\d+) rules?$", text, re.M))
    cost = re.search(r"^cost ([\d.]+) \(", text, re.M)
    pairs = re.search(r"(\d+) pairs?, median", text)
    judged = f" ({cost[1]} in {pairs[1]} pairs)" if cost and pairs else ""
    if re.search(r"^written: ", text, re.M):
        return rules, f"written{judged}"
    if why_not := re.search(r"left out, because (.*?)(?:;|$)", text, re.M):
        return rules, f"declined: {why_not[1]}{judged}"
    if not rules and ("groups gain nothing" in text or "nothing was sampled" in text):
        return rules, "declined: nothing to gain"
    return rules, "failed: " + (text.strip().splitlines() or ["it said nothing"])[-1][:100]


def goes_on(done: int, took_s: float, minutes: float) -> bool:
    """Is there another round? As many as fit into the time, within the bounds: what the rounds have
    shown does not matter."""
    if done < LEAST_ROUNDS:
        return True
    return done < MOST_ROUNDS and took_s * (done + 1) / done <= 60 * minutes


def compared(subject: Subject, policies: dict[str, Path], minutes: float) -> dict[str, Row]:
    """Of each policy what it costs, divided by what no policy costs. Who is first changes."""
    from hakmem import learn, runs
    settings = {"": runs.WITHOUT_POLICY} | {name: {"HAKMEM_POLICY": str(path)}
                                            for name, path in policies.items()}
    done: dict[str, list[runs.Run]] = {name: [] for name in settings}
    order = list(settings)
    start, rounds = time.monotonic(), 0
    with visited(subject):
        while goes_on(rounds, time.monotonic() - start, minutes):
            for name in order[rounds % len(order):] + order[:rounds % len(order)]:
                run = runs.measured(subject.words, settings[name])
                if run.status:
                    raise Failed(f"it ended with status {run.status}")
                done[name].append(run)
            rounds += 1

    def ratio(name: str, of: Callable[[runs.Run], float]):
        return runs.ratio_of(list(map(of, done[name])), list(map(of, done[""])))

    found = {}
    for name in policies:
        cost = ratio(name, lambda run: runs.cost(run, learn.PRICE_MS))
        sides = (ratio(name, lambda run: run.cpu_s), ratio(name, lambda run: run.peak),
                 ratio(name, lambda run: run.gib_s))
        found[name] = dict(zip(FIELDS[5:12], (str(rounds), *(f"{each:.4f}" for each in (
            cost.median, cost.low, cost.high, *(side.median for side in sides)))), strict=True))
    return found


def from_other(other: str, cell, kept: Path) -> Row:
    """Sees to it that there is a policy learnt from another input, and says how it was made: where
    the pairs of the other program spoke against it, without them."""
    if any((kept / other).glob("*.policy")):
        return {"said": f"from {other}"}
    with ready(cell) as subject, limited(LONGEST_S):
        row = learnt(subject, kept / other, 0)
    return row | {"said": f"from {other}, `--minutes 0`: {row['said']}"}


def rows_of_program(name: str, cells: Mapping[str, Any], minutes: float, rounds_minutes: float,
                    kept: Path) -> list[Row]:
    """`kept` has a folder for what was learnt from each program."""
    rows: dict[str, Row] = {}
    source = OTHER_INPUT.get(name, name)
    if source != name:
        rows[LEARNT] = from_other(source, cells[source], kept)
    seconds = LONGEST_S + round(60 * (minutes + rounds_minutes))
    with ready(cells[name]) as subject, limited(seconds):
        policies = {LEARNT: kept / source}
        if source == name:
            said, write = PROGRAMS[name]
            rows[LEARNT] = learnt(subject, kept / name, minutes)
            rows[HAND] = {"said": said}
            if write is not None:
                policies[HAND] = kept / f"{name} by hand.policy"
                rows[HAND]["rules"] = str(written_to(policies[HAND], write(subject)))
        policies = {each: path for each, path in policies.items() if path.exists()}
        if policies:
            for each, row in compared(subject, policies, rounds_minutes).items():
                rows[each] |= row
    return [dict.fromkeys(FIELDS, "") | {"program": name, "policy": each} | row
            for each, row in rows.items()]


def written_to(path: Path, policy) -> int:
    """How many rules it has."""
    from hakmem import policy as policies
    policies.write(path, policy)
    if refusal := policies.refusal(path):
        raise Failed(refusal)
    return len(policy.groups)


def run(wanted: Sequence[str], minutes: float, rounds_minutes: float) -> int:
    sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "python")]
    from hakmem.errors import UserError
    from hakmem_lab.measure import environment, programs
    os.environ["LIBHAKMEM"] = str(LIBRARY)
    found = [cell for suite in SUITES
             for cell in programs.read(ROOT / suite, (ROOT / suite).parent, "", "")[0]]
    names = [name for name in (*PROGRAMS, *OTHER_INPUT) if not wanted or name in wanted]
    needed = {*names, *(OTHER_INPUT.get(name, name) for name in names)}
    cells = {cell.name: cell for cell in
             programs.ready([cell for cell in found if cell.name in needed])[0]}
    commit, is_dirty = environment.commit()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hakmem-learnt-") as folder:
        for name in names:
            if name not in cells:
                print(f"{name} is left out: it is not installed", flush=True)
                continue
            try:
                rows = rows_of_program(name, cells, minutes, rounds_minutes, Path(folder))
            except (Failed, UserError, OSError) as error:
                print(f"{name} is left out: {error}", flush=True)
                failed += 1
                continue
            for row in rows:
                row["version"] = commit + " and changes" * is_dirty
                print(*filter(None, row.values()), sep="  ", flush=True)
            save(rows)
    return 1 if failed else 0


# ---- the table ----

def rows_of(text: str) -> dict[str, dict[str, Row]]:
    """By program and policy."""
    found: dict[str, dict[str, Row]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        found.setdefault(row["program"], {})[row["policy"]] = row
    return found


def save(rows: list[Row]) -> None:
    """Puts the rows in the place of those of the same programs."""
    file = ROOT / TABLE
    found = rows_of(file.read_text(encoding="utf-8")) if file.exists() else {}
    for row in rows:
        found[row["program"]] = found.get(row["program"], {}) | {row["policy"]: row}
    order = [*PROGRAMS, *OTHER_INPUT]
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        for program in sorted(found, key=order.index):
            writer.writerows(found[program].values())


def is_gain(row: Row) -> bool:
    """The whole interval is on the better side."""
    return bool(row["cost"]) and float(row["cost_most"]) < 1


def without_loss(row: Row) -> tuple[str, str]:
    if float(row["cost"]) > NO_LOSS:
        return "a loss", MISSED
    return "no loss", MET if float(row["cost_most"]) <= NO_LOSS else OPEN


def verdict(by: dict[str, Row]) -> tuple[str, str]:
    """What was learnt beside what was written by hand, and whether that is the target. A policy
    gains if its whole interval lies below 1.

    1. What did not run, or failed, is "not run".
    2. With nothing to write by hand, or with the policy of another input: met if nothing was
       learnt. What was learnt may cost NO_LOSS: missed if its median is above that, not settled
       if only its interval reaches beyond.
    3. What was learnt nothing of: missed if the policy by hand gains. Met if the whole interval of
       that policy lies above 1 - LITTLE, and else not settled.
    4. The rest: missed if the policy by hand gains, and the median of what was learnt gains less
       than GAINED of it. Met if it gains so much, and its interval says that it gains at all.
       Missed if it costs more than none by its whole interval, and else not settled.
    """
    ours, hand = by[LEARNT], by.get(HAND)
    is_declined = ours["said"].startswith("declined")
    if not ours["cost"] and not (hand and is_declined):
        return "–", NOT_RUN
    if hand is None or not hand["cost"]:
        return ("nothing to gain", MET) if is_declined else without_loss(ours)
    by_hand = 1 - float(hand["cost"])
    share = f"{100 * by_share(ours, by_hand):.0f} %" if is_gain(hand) else "–"
    if not ours["cost"]:
        if is_gain(hand):
            return share, MISSED
        return "nothing to gain", MET if float(hand["cost_least"]) > 1 - LITTLE else OPEN
    is_enough = by_share(ours, by_hand) >= GAINED if by_hand > 0 else True
    if is_gain(hand) and not is_enough:
        return share, MISSED
    if is_gain(ours) and is_enough:
        return share if is_gain(hand) else "a gain", MET
    if float(ours["cost_least"]) > 1:
        return "a loss", MISSED
    return share, OPEN


def by_share(ours: Row, by_hand: float) -> float:
    """What was learnt gains so much of what the policy by hand gains, as it is shown."""
    return round((1 - float(ours["cost"])) / by_hand, 2) if ours["cost"] else 0.0


HEADS = ("program", "by hand", "cost", "CPU", "memory over time", "`hakmem learn`", "rules found",
         "seconds", "cost", "CPU", "memory over time", "of the gain", "target")


def figures(row: Row | None) -> list[str]:
    """The cost with its interval, and what it is made of; "–": it was not run."""
    if row is None or not row["cost"]:
        return ["–"] * 3
    low, cost, high = (f"{float(row[name]):.2f}" for name in ("cost_least", "cost", "cost_most"))
    return [f"{cost} ({low}–{high})", *(f"{float(row[name]):.2f}" for name in
                                        ("cpu", "memory_time"))]


def table(text: str) -> str:
    found = rows_of(text)
    if not found:
        return "No program was run.\n"
    lines = [f"| {' | '.join(HEADS)} |", "|---|---|---:|---:|---:|---|" + "---:|" * 6 + "---|"]
    verdicts = Counter[str]()
    for program, by in found.items():
        ours, hand = by[LEARNT], by.get(HAND)
        share, target = verdict(by)
        verdicts[target] += 1
        rules = f": {hand['rules']} rules" if hand and hand["rules"] not in ("", "0") else ""
        cells = [program, f"{hand['said']}{rules}" if hand else "–", *figures(hand), ours["said"],
                 ours["rules"] or "–", ours["seconds"] or "–", *figures(ours), share,
                 "**missed**" if target == MISSED else target]
        lines.append(f"| {' | '.join(cells)} |")
    counts = ", ".join(f"{verdicts[each]} {each}" for each in (MET, MISSED, OPEN, NOT_RUN)
                       if verdicts[each])
    versions = sorted({row["version"] for by in found.values() for row in by.values()})
    return "\n".join([*lines, "", f"*{len(found)} rows: {counts}. Medians of {LEAST_ROUNDS} to "
                      f"{MOST_ROUNDS} rounds with their interval; commit "
                      f"{', '.join(versions)}.*"]) + "\n"


def render(page: str, text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(text)}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="?", choices=("run",))
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--minutes", type=float, default=1.0, help="as hakmem learn has it")
    parser.add_argument("--rounds-minutes", type=float, default=4.0,
                        help=f"of the runs that compare, {LEAST_ROUNDS} to {MOST_ROUNDS} rounds")
    words = parser.parse_intermixed_args()
    if unknown := set(words.programs) - {*PROGRAMS, *OTHER_INPUT}:
        parser.error(f"there is no program {', '.join(sorted(unknown))}")
    status = run(words.programs, words.minutes, words.rounds_minutes) if words.what else 0
    page = ROOT / PAGE
    page.write_text(render(page.read_text(encoding="utf-8"),
                           (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
