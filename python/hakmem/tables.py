"""Statistics as tables for the terminal."""

from collections.abc import Sequence

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


def aligned(rows: Sequence[Sequence[str]], is_first_a_name: bool = True) -> str:
    """Columns, all flush right but for names in the first."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(
        f"{text:{'<' if column == 0 and is_first_a_name else '>'}{width}}"
        for column, (text, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def where(now: Picture) -> str:
    """Where the memory is."""
    rows = [("where", "bytes", "share")]
    for name, text in ROWS:
        size = now.bytes[name]
        share = f"{100 * size / max(now.bytes['mapped'], 1):.1f} %" if text[0] == " " else ""
        rows.append((text, shown(size), share))
    if now.kernel:
        rows.append(("resident, says the kernel", shown(now.kernel.rss), ""))
        rows.append(("  in huge pages", shown(now.kernel.huge), ""))
    return f"{plain(now.name)}\n{aligned(rows)}"


def sizes(now: Picture) -> str:
    """The sizes that hold most."""
    rows = [("block size", "in use", "bytes")]
    held = sorted(((size * count, size, count)
                   for size, count in now.used_by_size.items()), reverse=True)
    for total, size, count in held[:MOST_SIZES]:
        rows.append((f"{size:,}", f"{count:,}", shown(total)))
    if now.grouped_bytes:
        rows.append(("of these in groups", "", shown(now.grouped_bytes)))
    for kind, text in (("large", "above 32 KiB"), ("huge", "huge")):
        if now.told["blocks"][kind]:
            rows.append((text, f"{now.told['blocks'][kind]:,}", ""))
    return aligned(rows, is_first_a_name=False)


def policy(now: Picture) -> str:
    """Whether one is in force; "": there is none."""
    said = now.told.get("policy", {"state": "none"})
    if said["state"] == "in_force":
        return f"policy: {said['rules_found']} of {said['rules']} rules found in the code"
    return "" if said["state"] == "none" else f"policy: {plain(said['state'].replace('_', ' '))}"


def everything(now: Picture) -> str:
    calls = ", ".join(f"{plain(name)} {call['calls']:,} ({shown(call['bytes'])}, "
                      f"{call['us'] / 1000:,.1f} ms)"
                      for name, call in now.told["system_calls"].items() if call["calls"])
    return "\n".join((where(now), "", sizes(now), "", f"system calls: {calls}", policy(now)))
