"""Statistics as tables for the terminal."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hakmem.foreign import plain
from hakmem.statistics import Picture, shown

ROWS = (  # a field of hakmem.h, what it is called; indented: a part of the row above
    ("mapped", "mapped for blocks"), ("used", "  in use"), ("slab_ends", "  ends of slabs"),
    ("cached_threads", "  cached by threads"), ("cached_depots", "  cached between threads"),
    ("free_in_slabs", "  free in slabs"), ("free_pages", "  free pages, dirty"),
    ("huge_cached", "  kept huge blocks"), ("clean_pages", "  free pages, clean"),
    ("purged_in_slabs", "purged in slabs"), ("metadata", "own structures"),
    ("resident", "resident, at most"),
)
MOST_SIZES = 12


def where(now: Picture) -> Table:
    """Where the memory is."""
    table = Table(title=now.name, box=None, title_justify="left", title_style="bold")
    table.add_column("where")
    table.add_column("bytes", justify="right")
    table.add_column("share", justify="right")
    for name, text in ROWS:
        size = now.bytes[name]
        share = f"{100 * size / max(now.bytes['mapped'], 1):.1f} %" if text[0] == " " else ""
        table.add_row(text, shown(size), share)
    if now.kernel:
        table.add_row("resident, says the kernel", shown(now.kernel.rss), "")
        table.add_row("  in huge pages", shown(now.kernel.huge), "")
    return table


def sizes(now: Picture) -> Table:
    """The sizes that hold most."""
    table = Table(box=None)
    for name in ("block size", "in use", "bytes"):
        table.add_column(name, justify="right")
    held = sorted(((size * count, size, count)
                   for size, count in now.used_by_size.items()), reverse=True)
    for total, size, count in held[:MOST_SIZES]:
        table.add_row(f"{size:,}", f"{count:,}", shown(total))
    if now.grouped_bytes:
        table.add_row("of these in groups", "", shown(now.grouped_bytes))
    for kind, text in (("large", "above 32 KiB"), ("huge", "huge")):
        if now.told["blocks"][kind]:
            table.add_row(text, f"{now.told['blocks'][kind]:,}", "")
    return table


def policy(now: Picture) -> str:
    """Whether one is in force; "": there is none."""
    said = now.told.get("policy", {"state": "none"})
    if said["state"] == "in_force":
        return f"policy: {said['rules_found']} of {said['rules']} rules found in the code"
    return "" if said["state"] == "none" else f"policy: {plain(said['state'].replace('_', ' '))}"


def everything(now: Picture) -> Group:
    calls = ", ".join(f"{plain(name)} {call['calls']:,} ({shown(call['bytes'])}, "
                      f"{call['us'] / 1000:,.1f} ms)"
                      for name, call in now.told["system_calls"].items() if call["calls"])
    return Group(where(now), Text(), sizes(now), Text(), Text(f"system calls: {calls}"),
                 Text(policy(now)))
