"""What a process has learnt in this run (HAKMEM_LEARN=1), from its statistics: sentences."""

from collections.abc import Iterator
from typing import Any

from hakmem.foreign import plain
from hakmem.statistics import Picture

SHOWN = 12  # decisions, the last ones

PARTS = {"bins": "bins of threads may hold {}", "depots": "depots may hold {}",
         "wait": "free memory waits {}"}
STATES = {"learn": "It tries others.", "canary": "Another has won and runs on probation.",
          "frozen": "No step from it was better, so nothing more is tried."}
EVENTS = {
    "won": "won its match", "lost": "lost its match", "drawn": "was no better",
    "promoted": "took over", "rolled_back": "was taken back at once",
    "frozen": "stays, for every step from it was tried",
    "drifted": "cost more than when it won, for long: the default took over",
}
REASONS = {
    "held": "it held too much memory", "fresh": "it needed too many fresh pages",
    "cost": "it took too much processor time", "refused": "memory was refused, or a limit was near",
    "dearer": "it cost more",
}


def name_of(strategy: dict[str, int]) -> str:
    """A strategy in words: what differs from the default."""
    parts = [PARTS[part].format(times(strategy[part])) for part in PARTS if strategy[part]]
    return ", ".join(parts) if parts else "the default"


def times(doublings: int) -> str:
    return f"{1 << doublings} times as much" if doublings > 0 else f"1/{1 << -doublings}"


def _cost(cost: int) -> str:
    return f"{cost / 1e6:,.2f} ms"


def sentence(decision: dict[str, Any]) -> str:
    """A decision."""
    event, reason = decision["event"], decision["reason"]
    why = f" ({REASONS[reason]})" if event == "rolled_back" and reason in REASONS else ""
    costs = ""
    if decision["cost"] and decision["incumbent_cost"]:
        than = "promised" if event == "drifted" else name_of(decision["incumbent"])
        costs = f": {_cost(decision['cost'])} a second, {than}: " \
            f"{_cost(decision['incumbent_cost'])}"
    return f"Epoch {decision['epoch']:,}: {name_of(decision['strategy'])} " \
        f"{EVENTS.get(event, plain(event))}{why}{costs}."


def sentences(now: Picture) -> Iterator[str]:
    """What is learnt, or is in force by the policy."""
    learning = now.told.get("learning")
    strategy = now.told.get("strategy", {})
    if learning is None:  # nobody learns, or a decision was being made
        if any(strategy.values()) and not now.options.get("learn"):
            yield f"The policy says: {name_of(strategy)}."
            if strategy["wait"] and now.options.get("free_policy") == 0:
                yield "How long it waits has no effect with free_policy=keep."
        return
    strategies = learning["strategies"]
    leader = strategies[str(learning["incumbent"])]
    yield (f"Learning within the run, after {learning['epochs']:,} epochs: in force is "
           f"{name_of(leader['strategy'])}. {STATES.get(learning['state'], '')}")
    for each in sorted(strategies.values(), key=lambda each: -each["rating"]):
        yield (f"* {name_of(each['strategy'])}: rating {each['rating']}, {each['wins']} of "
               f"{each['matches']} matches won, {each['age']:,} epochs")
    decisions = list(learning["decisions"].values())
    if len(decisions) > SHOWN:
        yield f"The last {SHOWN} decisions of {len(decisions)} that are told:"
    for decision in decisions[-SHOWN:]:
        yield f"* {sentence(decision)}"
