"""Caches that keep each other coherent: which cache lines move between them (MESI).

The caches have room for everything, so a line leaves one only because another wants it. Without
that the line's state follows from two facts: who has a copy, and who alone may write."""

from dataclasses import dataclass, field

LINE = 64


@dataclass
class Caches:
    holders: dict[int, set[int]] = field(default_factory=dict)  # of a line: shared, or its owner
    owners: dict[int, int] = field(default_factory=dict)  # who may write (exclusive or modified)

    def access(self, cache: int, line: int, is_write: bool) -> str:
        """What it costs: "" nothing that another cache sees; "moved": the line came from another
        cache; "claimed": the line was here, and the copies of others were made invalid."""
        holders = self.holders.get(line)
        if holders is None:  # from memory: exclusive
            self.holders[line], self.owners[line] = {cache}, cache
            return ""
        if self.owners.get(line) == cache:
            return ""
        if not is_write:
            if cache in holders:
                return ""
            holders.add(cache)
            self.owners.pop(line, None)
            return "moved"
        was_here = cache in holders
        self.holders[line], self.owners[line] = {cache}, cache
        return "claimed" if was_here else "moved"
