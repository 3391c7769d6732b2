"""Digests in sentences: who stands where, whether it is real, and how much that rests on.

Plain text; whoever shows it escapes it for its medium.
"""

from collections.abc import Sequence

from hakmem_lab.judge.digest import EFFECT, EQUIVALENCE, FLOOR, CellDigest, Run, Standing
from hakmem_lab.judge.statistics import FEWEST_FOR_A_VERDICT, PAIRS_FOR_A_CLAIM
from hakmem_lab.judge.summary import Tally, tally

MOST_NAMES = 3  # more are told by their number


def rounds_text(count: int) -> str:
    return f"{count} round" + ("" if count == 1 else "s")


def headline(cells: Sequence[CellDigest]) -> str:
    """Where HAKMEM, or else the base, stands: losses in the same breath as what it leads."""
    told = tally(cells)
    if not told.cells:
        return _unranked(told, cells)
    more = [f"It failed in {told.failed}."] if told.failed else []
    if told.too_few:
        verb = "cell has" if told.too_few == 1 else "cells have"
        more.append(f"{told.too_few} {verb} too few rounds to rank.")
    return " ".join([
        f"{told.name} has the lowest median in {told.lowest} of {told.cells} cells, in "
        f"{told.first} of these for real; it is behind for real in {told.behind}, level within "
        f"{100 * EQUIVALENCE:.0f} % of the cheapest other in {told.within}, and not told apart "
        f"from it in the other {told.unclear}.", *more])


def _unranked(told: Tally, cells: Sequence[CellDigest]) -> str:
    if told.failed:
        return f"{told.name} failed in {told.failed} cells and is ranked in none."
    if told.too_few:
        fewest, needed = (min(cell.pairs for cell in cells),
                          max(cell.pairs_to_rank for cell in cells))
        return (f"Nothing is ranked: a run of {rounds_text(fewest)} ranks nobody, that takes "
                f"{needed} which all have.")
    return "Nothing to rank: a comparison needs two allocators with figures."


def _listed(names: Sequence[str]) -> str:
    """"a", "a and b", "a, b and 8 others"."""
    shown = list(names) if len(names) <= MOST_NAMES \
        else [*names[:MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _claim(standing: Standing, what: str) -> str:
    if standing.is_real:
        return f"{standing.first} {what}, for real"
    return f"{standing.first} {what}, but is not told apart from {_listed(standing.unclear)}"


def winner_sentence(cell: CellDigest) -> str:
    """Who wins in time, who in memory, and whether the difference is real."""
    if len(cell.contestants) < 2:
        return "Nothing to rank: fewer than two allocators have figures without a failure."
    parts = ((cell.standing, "costs least"), (cell.memory, "needs the least memory"))
    said = [_claim(standing, what) for standing, what in parts if standing]
    open_ones = " and ".join(f"who {what}" for standing, what in parts if not standing)
    if open_ones and cell.pairs < cell.pairs_to_rank:
        said.append(f"{rounds_text(cell.pairs)}: too few to say {open_ones}; that takes "
                    f"{cell.pairs_to_rank}")
    elif open_ones:
        said.append(f"fewer than {cell.pairs_to_rank} rounds in common do not say {open_ones}")
    return "; ".join(said) + "."


def power_sentence(cell: CellDigest) -> str:
    """How far the cell is from showing a small difference between all that it compares."""
    needed = sorted((each.runs_to_see, each.name) for each in cell.allocators if each.runs_to_see)
    if not needed:
        return f"How many rounds it needs can be told from {FEWEST_FOR_A_VERDICT} on." \
            if len(cell.contestants) > 1 else ""
    (median, _), (most, name) = needed[len(needed) // 2], needed[-1]
    further = f" (for {name}, the most unsteady, about {most})" if most > median else ""
    return (f"Needs about {median} rounds to see {100 * EFFECT:.0f} %{further}; "
            f"it has {cell.pairs}.")


def floor_sentence(cell: CellDigest) -> str:
    """Empty where nobody costs less than the allocator that does nothing."""
    below = [each.name for each in cell.allocators
             if each.net_cost_ns is not None and each.net_cost_ns < 0]
    if not below:
        return ""
    verb = "costs" if len(below) == 1 else "cost"
    return f"The floor is no floor here: {_listed(below)} {verb} less than the {FLOOR}."


def floors_sentence(cells: Sequence[CellDigest]) -> str:
    """Of several cells, in how many the floor is none; empty if in none."""
    count = sum(not cell.floor_holds for cell in cells)
    return f"The floor is no floor in {count} of {len(cells)} cells: somebody costs less." \
        if count else ""


def rounds_sentence(cell: CellDigest) -> str:
    """How many good rounds there are, and who has fewer."""
    most = max((len(each.rounds) for each in cell.allocators), default=0)
    fewer = [f"{each.name} {len(each.rounds)}" for each in cell.allocators
             if len(each.rounds) < most]
    return f"{rounds_text(most)} in turn" + (f" (good ones of {', '.join(fewer)})" if fewer else "")


def of_cell(cell: CellDigest) -> list[str]:
    """All that is to be said of one cell."""
    return [said for said in (winner_sentence(cell), power_sentence(cell), floor_sentence(cell))
            if said]


def losses(cells: Sequence[CellDigest]) -> str:
    """Where HAKMEM, or else the base, is beaten for real, and by whom."""
    found = [(cell, cell.position) for cell in cells if cell.position]
    if not found:
        return "Nothing is ranked here."
    name = found[0][1].name
    lost = [f"{cell.name} (by {', '.join(position.ahead)})" for cell, position in found
            if position.ahead]
    if not lost:
        return f"Nobody costs less than {name} for real."
    return f"{name} is beaten for real in: " + "; ".join(lost) + "."


def smoke_label(pairs: int) -> str:
    """Empty where the rounds suffice for a claim."""
    if pairs >= PAIRS_FOR_A_CLAIM:
        return ""
    return f"Smoke test: {rounds_text(pairs)}, a claim needs {PAIRS_FOR_A_CLAIM}."


def source_line(run: Run) -> str:
    """From where, how often, when, at which commit: the caption of every figure."""
    commits = sorted({row.commit + (" with changes" if row.dirty else "") for row in run.rows})
    days = sorted({row.time[:10] for row in run.rows})
    most = max((len(each.rounds) for cell in run.cells for each in cell.allocators), default=0)
    fewest = run.fewest_pairs
    rounds = rounds_text(most) if fewest == most else f"{fewest} to {most} rounds"
    return (f"{run.name}: {rounds}, {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
            f"commit {', '.join(commits)}; base: {run.base}.")


def named_rounds(rounds: Sequence[int]) -> str:
    """"round 2", "rounds 0, 4"; the one before all others is the warm-up."""
    counted = [str(number) for number in rounds if number >= 0]
    words = ["the warm-up"] if len(counted) < len(rounds) else []
    if counted:
        words.append(f"round{'s' * (len(counted) > 1)} {', '.join(counted)}")
    return " and ".join(words)
