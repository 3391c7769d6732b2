"""`hakmem run`: a program on HAKMEM, with the options asked for, in the place of this process."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from hakmem import own_allocator
from hakmem.command import with_options
from hakmem.processes import tree
from hakmem_lab import NotExecutable
from hakmem_lab.commands import options
from hakmem_lab.measure import allocators, environment, witness
from hakmem_lab.show import table
from hakmem_lab.measure.memory import Libraries
from hakmem_lab.measure.subject import refuse_if_not_preloadable

LOOK_S = 0.01


def run(command: Sequence[str], mode: str | None, settings: Sequence[str], stats: bool,
        console: Console) -> None:
    """Does not return, unless it is to tell the statistics afterwards."""
    command = with_options(tuple(command))  # as the installed command takes them
    refuse_if_not_preloadable(command[0])
    own_allocator.warn(command[0])
    allocators.build_release()
    ours = allocators.hakmem()
    libraries = [str(path) for path in ours.preload]
    handed = environment.of_user() | options.environment_of(settings)
    if mode is not None:
        handed |= options.environment_of([f"mode={mode}"])
    if not stats:
        handed["LD_PRELOAD"] = ":".join([*libraries, *_preloaded()])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores them, and so would the program
        try:
            os.execvpe(command[0], list(command), handed)
        except OSError as error:
            raise NotExecutable(f"{command[0]}: {error.strerror}") from None
    with tempfile.NamedTemporaryFile(prefix="hakmem-lab-") as record:
        witnessed = [*libraries, str(allocators.WITNESS), *_preloaded()]
        handed |= {"LD_PRELOAD": ":".join(witnessed), "MALLOC_WITNESS": record.name}
        watched = Libraries([*ours.preload, allocators.WITNESS])
        status = _wait(command, handed, watched)
        proof = witness.read(Path(record.name), ours, watched.suspects.values())
        witness.refuse_unless_engaged(replace(proof, strangers=()), ours, Path(command[0]).name)
        table.show_counters(proof, console)
        if proof.strangers:
            console.print(f"not served by HAKMEM: {', '.join(sorted(set(proof.strangers)))}",
                          style="yellow", markup=False)
    if status != 0:
        raise SystemExit(status if status > 0 else 128 - status)


def _preloaded() -> list[str]:
    return [word for word in [os.environ.get("LD_PRELOAD", "")] if word]


def _wait(command: Sequence[str], handed: dict[str, str], watched: Libraries) -> int:
    """Ctrl-C is the program's, and SIGTERM is handed on to it; we tell the statistics all the
    same."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(command, env=handed, restore_signals=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        try:
            return _watch(process, watched)
        except KeyboardInterrupt:
            process.terminate()
            return process.wait()
    except OSError as error:
        raise NotExecutable(f"{command[0]}: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, before)


def _watch(process: "subprocess.Popen[bytes]", watched: Libraries) -> int:
    """Its status; meanwhile a look now and then at who has the libraries."""
    while True:
        try:
            return process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            watched.look(tree(process.pid))
