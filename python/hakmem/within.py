"""What processes have learnt within their run, by trying (HAKMEM_LEARN=1), as a policy for later
runs: from their logs of epochs (HAKMEM_LEARN_LOG, src/learn/epoch_log.h)."""

import csv
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import policy as policies
from hakmem import learn, profile
from hakmem.errors import UserError
from hakmem.learnt import name_of
from hakmem.policy import DOUBLINGS, Policy

MARK = b"# hakmem epochs "
HEAD = re.compile(r"# hakmem epochs 1, program (\S+), price \d+, "
                  + ", ".join(rf"{name} (?P<{name}>-?\d)" for name in DOUBLINGS))


@dataclass(frozen=True)
class Log:
    """The end of a log."""

    program: str  # build ID; "": it has none
    epochs: int
    decisions: int
    strategy: dict[str, int]  # the incumbent: doublings of each value


def is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MARK)) == MARK
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def read(path: Path) -> Log:
    lines = path.read_text(errors="replace").splitlines()
    head = HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        raise UserError(f"{path}: line 1: this is no log of epochs of this version")
    strategy = {name: int(head[name]) for name in DOUBLINGS}
    epochs = decisions = 0
    for number, row in enumerate(csv.DictReader(lines[1:]), 3):
        try:
            own = {name: int(row[name]) for name in DOUBLINGS}
            epochs, decisions = int(row["epoch"]), int(row["decisions"])
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{path}: line {number}: this is no line of an epoch") from None
        strategy = own if row["runs"] == "incumbent" else strategy
    return Log("" if head[1] == "-" else head[1], epochs, decisions, strategy)


def best_of(logs: Sequence[Log]) -> dict[str, int]:
    """What most epochs speak for; only what differs from the default."""
    spoken: dict[tuple[int, ...], int] = defaultdict(int)
    for log in logs:
        spoken[tuple(log.strategy[name] for name in DOUBLINGS)] += log.epochs
    best = max(spoken, key=lambda each: spoken[each])
    return {name: value for name, value in zip(DOUBLINGS, best) if value}


def _extent(logs: Sequence[Log]) -> str:
    decisions = sum(log.decisions for log in logs)
    return (f"{sum(log.epochs for log in logs)} epochs, "
            f"{decisions} {'decision' if decisions == 1 else 'decisions'}")


def policy_of(logs: Sequence[Log]) -> Policy:
    """Of processes of one program."""
    policy = Policy(logs[0].program, strategy=best_of(logs))
    if policy.strategy:
        policy.comments["strategy"] = [f"Learnt within the run: {_extent(logs)}"]
    return policy


def compiled(paths: Sequence[Path]) -> Policy:
    """The policy that logs of one program make."""
    logs = [read(path) for path in paths]
    for path, log in zip(paths, logs):
        if log.program != logs[0].program:
            raise UserError(f"{path} is of another program than {paths[0]}")
    return policy_of(logs)


def learn_within(words: Sequence[str], out: Path, rounds: int) -> tuple[int, str]:
    """Runs the program while it tries, and writes what it found best. The program's status, and
    what was learnt as a text."""
    by_program: dict[str, list[Log]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        status = profile.run_with(words, {"HAKMEM_LEARN": "1",
                                          "HAKMEM_LEARN_LOG": f"{folder}/%p.csv"})
        for path in sorted(Path(folder).glob("*.csv")):
            log = read(path)
            if log.decisions:
                by_program[log.program or path.stem].append(log)
    texts, is_written = [], False
    for program, logs in by_program.items():
        policy = policy_of(logs)
        is_written |= bool(policy.strategy)
        texts.append(_written(policy, out / f"{program}.policy", logs))
    if not by_program:
        texts.append("nothing was decided: it takes some minutes in which the program allocates "
                     "all the time")
    elif is_written and rounds:
        texts.append(learn.compared(words, out, rounds))
    return status, "\n".join(texts)


def _written(policy: Policy, target: Path, logs: Sequence[Log]) -> str:
    """Puts the strategy into the file, whose other lines stay. What it is, as a line."""
    tried = f"{policy.program[:12] or target.stem}: {_extent(logs)}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        found = policies.read(target) if target.exists() else Policy(policy.program)
        found.strategy = policy.strategy
        found.comments["strategy"] = policy.comments.get("strategy", [])
        if policy.strategy or target.exists():
            target.write_text(found.text())
    except OSError as error:
        raise UserError(f"{target}: {error.strerror}") from None
    if not policy.strategy:
        return f"{tried}; nothing that was tried is better than the default"
    values = {name: policy.strategy.get(name, 0) for name in DOUBLINGS}
    return f"{tried}; best: {name_of(values)}; in {target}"
