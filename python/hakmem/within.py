"""What processes have learnt within their run, by trying (HAKMEM_LEARN=1), as a policy for later
runs: from their logs of epochs (HAKMEM_LEARN_LOG, src/learn/epoch_log.h)."""

import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import policy as policies
from hakmem import foreign, learn, profile
from hakmem.errors import UserError
from hakmem.learnt import name_of
from hakmem.policy import DOUBLINGS, Policy

MARK = b"# hakmem epochs "
VALUE = re.compile(r"-?[0-9]{1,18}")
HEAD = re.compile(r"# hakmem epochs 1, program ([0-9a-f]{2,40}|-), price \d+, "
                  + ", ".join(rf"{name} (?P<{name}>-?\d)" for name in DOUBLINGS))


@dataclass(frozen=True)
class Log:
    """The end of a log."""

    program: str  # build ID; "": it has none
    epochs: int
    decisions: int
    strategy: dict[str, int]  # the incumbent: doublings of each value


def is_log(path: Path) -> bool:
    with foreign.opened(path) as file:
        return file.read(len(MARK)) == MARK


def _number(text: str, least: int = 0, most: int = 10**18) -> int:
    number = int(text) if VALUE.fullmatch(text) else least - 1
    if not least <= number <= most:
        raise ValueError
    return number


def _strategy(row: Mapping[str, str]) -> dict[str, int]:
    return {name: _number(row[name], *bounds) for name, bounds in DOUBLINGS.items()}


def read(path: Path) -> Log:
    """A last line that was cut, as on a full disk, does not count."""
    lines = foreign.read(path).decode(errors="replace").split("\n")[:-1]
    head = HEAD.fullmatch(lines[0]) if lines else None
    number, epochs, decisions = 1, 0, 0
    try:
        if head is None:
            raise UserError(f"{path}: line 1: this is no log of epochs of this version")
        strategy = _strategy(head.groupdict())
        columns = lines[1].split(",") if len(lines) > 1 else []
        for number, line in enumerate(lines[2:], 3):
            row = dict(zip(columns, line.split(","), strict=True))
            own, is_incumbent = _strategy(row), row["runs"] == "incumbent"
            epochs, decisions = _number(row["epoch"]), _number(row["decisions"])
            strategy = own if is_incumbent else strategy
    except (KeyError, ValueError):
        raise UserError(f"{path}: line {number}: this is no line of an epoch") from None
    program = head[1] if re.fullmatch(policies.BUILD_ID, head[1]) else ""
    return Log(program, epochs, decisions, strategy)


def best_of(logs: Sequence[Log]) -> dict[str, int]:
    """What most epochs speak for; only what differs from the default."""
    spoken: dict[tuple[int, ...], int] = defaultdict(int)
    for log in logs:
        spoken[tuple(log.strategy[name] for name in DOUBLINGS)] += log.epochs
    best = max(spoken, key=lambda each: spoken[each])
    return {name: value for name, value in zip(DOUBLINGS, best) if value}


def _extent(logs: Sequence[Log]) -> str:
    decisions = sum(log.decisions for log in logs)
    epochs = sum(log.epochs for log in logs)
    return (f"{epochs} {'epoch' if epochs == 1 else 'epochs'}, "
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
    what was learnt as a text. Only a program that ended well and by itself is run again, to be
    compared."""
    by_program: dict[str, list[Log]] = defaultdict(list)
    texts: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        ending = profile.run_with(words, {"HAKMEM_LEARN": "1",
                                          "HAKMEM_LEARN_LOG": f"{folder}/%p.csv"})
        for path in sorted(Path(folder).glob("*.csv")):
            try:
                log = read(path)
            except UserError as error:
                texts.append(f"a process is left out: {error}")
                continue
            if log.decisions:
                by_program[log.program or path.stem].append(log)
    is_written = False
    for program, logs in by_program.items():
        policy = policy_of(logs)
        target = out / f"{program}.policy"
        texts.append(_written(policy, target, logs))
        if policy.strategy and not policy.program:
            texts.append(f"it has no build ID: name the file, HAKMEM_POLICY={target.resolve()}")
        is_written |= bool(policy.strategy and policy.program)
    if not by_program:
        texts.append("nothing was decided: it takes some minutes in which the program allocates "
                     "all the time")
    if is_written and rounds and ending.why_not_again():
        texts.append(learn.not_compared(ending))
    elif is_written and rounds:
        foreign.tell("\n".join(texts), err=True)
        texts = [learn.compared(words, out, rounds)]
    return ending.status, "\n".join(texts)


def _written(policy: Policy, target: Path, logs: Sequence[Log]) -> str:
    """Puts the strategy into the file, whose other lines stay. What it is, as a line."""
    tried = f"{policy.program[:12] or target.stem}: {_extent(logs)}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        found = policies.read(target) if target.exists() else Policy(policy.program)
        found.strategy = policy.strategy
        found.comments["strategy"] = policy.comments.get("strategy", [])
        if policy.strategy or target.exists():
            target.write_text(found.text(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{target}: {error.strerror}") from None
    if not policy.strategy:
        return f"{tried}; nothing that was tried is better than the default"
    values = {name: policy.strategy.get(name, 0) for name in DOUBLINGS}
    return f"{tried}; best: {name_of(values)}; in {target}"
