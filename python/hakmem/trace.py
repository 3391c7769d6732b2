"""Runs a program and writes down what its processes allocate and free."""

from collections.abc import Sequence
from pathlib import Path

from hakmem import profile
from hakmem.errors import UserError
from hakmem.statistics import shown


def trace_program(words: Sequence[str], out: Path) -> tuple[int, str]:
    """A file for each process in `out`. The program's status, and a text."""
    folder = out.resolve()  # the program may go elsewhere
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}") from None
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.trace")}
    status = profile.run_with(words, {"HAKMEM_TRACE": str(folder / "%p.trace")}).status
    made = [path for path in sorted(folder.glob("*.trace"))
            if path.stat().st_mtime_ns != before.get(path)]
    for path in made:
        if path.stat().st_size == 0:  # of a shell, which leaves by _exit
            path.unlink()
    made = [path for path in made if path.exists()]
    if not made:
        return status, ("nothing was traced: the program allocates nothing, ends by _exit, is "
                        "statically linked, or removes LD_PRELOAD")
    return status, "\n".join(
        f"process {path.stem}: {shown(path.stat().st_size)} in {out}/{path.name}" for path in made)
