"""Digests in sentences: who stands where, whether it is significant, and how much that rests on.

Plain text; whoever shows it escapes it for its medium.
"""

import math
from collections.abc import Sequence

from hakmem_lab.judge.digest import EQUIVALENCE, Basis, CellDigest, Run, Standing
from hakmem_lab.judge.statistics import PAIRS_FOR_A_CLAIM, Mean
from hakmem_lab.judge.summary import Tally, beside, summarise, tally
from hakmem_lab.measure.ledger import mixed_rounds

MOST_NAMES = 3  # more are told by their number
# By group: the title of its tables and pictures, and what its cells are called.
TITLES = {"programs": "Programs", "made": "Programs written for this laboratory",
          "memory": "Memory over seconds",
          "touched": "Families, every page written", "families": "Families, little written",
          "own": "Own programs"}
NOUNS = {"programs": "program", "made": "program", "memory": "memory workload"}


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def percent(share: float) -> str:
    """0.0213 as "2.1 %"."""
    return f"{100 * share:.{0 if abs(share) >= 0.0995 else 1}f} %".replace("-", "−")


def basis_of(cells: Sequence[CellDigest]) -> str:
    """What the time of these cells is; it is the same for servers and programs."""
    found = {cell.basis for cell in cells}
    if Basis.CPU in found:
        return "CPU time"
    return found.pop().value if len(found) == 1 else "time"


def title_of(cells: Sequence[CellDigest]) -> str:
    """Of cells of one group."""
    return f"{TITLES[cells[0].group]} ({counted(len(cells), 'cell')})"


def headline(run: Run) -> str:
    """How much time and memory HAKMEM, or else the base, needs in the first group, beside the
    system's allocator and the one of the others that needs least of it."""
    cells = run.of_group(run.groups[0])
    told = tally(cells)
    others = [each for each in summarise(cells) if each.name != told.name and each.rank]
    if not told.cells or not others:
        return _unranked(told, cells)
    said = []
    for figure, words in (("time", basis_of(cells)), ("peak", "peak memory")):
        best = min(others, key=lambda each: each.means[figure].value).name
        rivals = [("system", _called(run, "system"))] * (
            best != "system" and "system" in (each.name for each in others)) \
            + [(best, f"the best other, {_called(run, best)}")]
        parts = [f"{_change(beside(cells, told.name, rival, figure))} than that of {called}"
                 for rival, called in rivals]
        said.append(f"mean {words} is {'. It is '.join(parts)}.")
    where = counted(len(cells), NOUNS.get(cells[0].group, "cell"))
    failed = f" It failed in {told.failed}." if told.failed else ""
    return f"Over {where} {_called(run, told.name)}'s {' Its '.join(said)}{failed}"


def _called(run: Run, name: str) -> str:
    versions = {row.allocator: row.version for row in run.rows}
    return versions.get(name) or name if name == "system" else \
        "HAKMEM" if name == "hakmem" else name


def _change(ratio: Mean) -> str:
    """Of ours to theirs, as "14 % less (95 % interval −26 % to −0.5 %)"."""
    words = f"{percent(abs(ratio.value - 1))} {'less' if ratio.value < 1 else 'more'}"
    if math.isnan(ratio.low):
        return words
    is_clear = ratio.high < 1 or ratio.low > 1
    return (f"{words} ({percent(ratio.low - 1)} to {percent(ratio.high - 1)}"
            f"{'' if is_clear else ', not significant'})")


def standing_of(cells: Sequence[CellDigest]) -> str:
    """Where HAKMEM, or else the base, stands in the cells of a group: losses beside what it leads,
    and what could have been seen."""
    told, memory = tally(cells), tally(cells, "peak")
    if not told.cells:
        return _unranked(told, cells)
    more = [f"It failed in {told.failed}."] if told.failed else []
    if told.too_few:
        more.append(f"{counted(told.too_few, 'cell')} with too few rounds to rank.")
    margin = f"{100 * EQUIVALENCE:.0f} %"
    seen = "" if math.isnan(told.smallest_seen) else \
        f" The smallest difference that could be seen is {percent(told.smallest_seen)}" \
        " (median of the cells)."
    return " ".join([
        f"{told.name} needs significantly less time than every other in {told.first} of "
        f"{counted(told.cells, 'cell')}, significantly more than another in {told.behind}; it is "
        f"within {margin} of the best other in {told.within}, and no difference from it was found "
        f"in {told.unclear}. A loss above {margin} to the best other can be excluded in "
        f"{told.lossless} of {told.cells}.{seen} Its peak memory is significantly the lowest in "
        f"{memory.first} of {memory.cells}; another holds significantly less in {memory.behind}.",
        *more])


def _unranked(told: Tally, cells: Sequence[CellDigest]) -> str:
    if told.failed:
        return f"{told.name} failed in {counted(told.failed, 'cell')} and is ranked in none."
    if told.too_few:
        fewest, needed = (min(cell.pairs for cell in cells),
                          max(cell.pairs_to_rank for cell in cells))
        return f"Nothing is ranked: that takes {needed} rounds (-n {needed}); there are {fewest}."
    return "Nothing to rank: a comparison needs two allocators with figures."


def listed(names: Sequence[str]) -> str:
    """"a", "a and b", "a, b and 8 others"."""
    shown = list(names) if len(names) <= MOST_NAMES \
        else [*names[:MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _claim(standing: Standing, what: str) -> str:
    if not standing.unclear:
        return f"{standing.first} {what}, significantly"
    return (f"{standing.first} {what}, but no significant difference from "
            f"{listed(standing.unclear)} was found")


def winner_sentence(cell: CellDigest) -> str:
    """Who wins in time, who in memory, and whether the difference is significant."""
    if len(cell.contestants) < 2:
        return "Nothing to rank: fewer than two allocators have figures without a failure."
    parts = ((cell.standings.get("time"), "needs the least time"),
             (cell.standings.get("peak"), "needs the least memory"))
    said = [_claim(standing, what) for standing, what in parts if standing]
    open_ones = " and ".join(f"who {what}" for standing, what in parts if not standing)
    if open_ones and cell.pairs < cell.pairs_to_rank:
        said.append(f"{counted(cell.pairs, 'round')}: too few to say {open_ones}; that takes "
                    f"{cell.pairs_to_rank}")
    elif open_ones:
        said.append(f"fewer than {cell.pairs_to_rank} rounds in common do not say {open_ones}")
    return "; ".join(said) + "."


def losses(cells: Sequence[CellDigest]) -> str:
    """Where HAKMEM, or else the base, needs significantly more than another, and than whom."""
    said = []
    for figure, what in (("time", "time"), ("peak", "peak memory")):
        found = [(cell, cell.positions[figure]) for cell in cells if figure in cell.positions]
        if not found:
            return "Nothing is ranked here."
        lost = [f"{cell.name} (than {', '.join(position.ahead)})" for cell, position in found
                if position.ahead]
        name = found[0][1].name
        said.append(f"{name} needs significantly more {what} in: {'; '.join(lost)}." if lost else
                    f"Nobody needs significantly less {what} than {name}.")
    return " ".join(said)


def smoke_label(pairs: int) -> str:
    """Empty where the rounds suffice for a claim."""
    if pairs >= PAIRS_FOR_A_CLAIM:
        return ""
    return f"Smoke test: {counted(pairs, 'round')}, a claim needs {PAIRS_FOR_A_CLAIM}."


def source_line(run: Run) -> str:
    """From where, how often, when, at which commit: the caption of every figure."""
    commits = sorted({row.commit + (" with changes" if row.dirty else "") for row in run.rows
                      if row.commit})
    disturbed = sum(row.was_disturbed for row in run.rows)
    load = f"others used the machine in {disturbed} of {len(run.rows)} runs; " * bool(disturbed)
    days = sorted({row.time[:10] for row in run.rows})
    most = max((len(each.rounds) for cell in run.cells for each in cell.allocators), default=0)
    fewest = run.fewest_pairs
    rounds = counted(most, 'round') if fewest == most else f"{fewest} to {most} rounds"
    regimes = sorted({row.regime for row in run.rows if row.regime})
    pages = f"huge pages: {', '.join(regimes)}; " if regimes else ""
    mixed = mixed_rounds(run.rows)
    left_out = f"left out: {counted(mixed, 'round')} in which the processors came nearer or went " \
        "farther apart; " if mixed else ""
    return (f"{run.name}: {rounds}, {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
            f"commit {', '.join(commits)}; {pages}{load}{left_out}base: {run.base}.")
