"""Where the library is, whichever way it was installed."""

import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

from hakmem.errors import UserError

HERE = Path(__file__).resolve().parent


def version() -> str:
    """Of the package; the installed command and the checkout tell theirs themselves."""
    try:
        return metadata.version("hakmem")
    except metadata.PackageNotFoundError:
        return "unknown"


def library_path() -> Path:
    """LIBHAKMEM, the one beside this package (wheel), or that of the installed command."""
    told = os.environ.get("LIBHAKMEM")
    for path in (told, HERE / "libhakmem.so"):
        if path and Path(path).exists():
            return Path(path).resolve()
    raise UserError("libhakmem.so was not found: set LIBHAKMEM to it")


def recorder_path() -> Path:
    """What writes traces: beside the library (checkout, wheel), or in the folder for it there."""
    library = library_path()
    for folder in (library.parent, library.parent / "hakmem"):
        if (folder / "librecorder.so").exists():
            return folder / "librecorder.so"
    raise UserError(f"there is no librecorder.so with {library}: install HAKMEM again")


def preloaded(environment: dict[str, str]) -> dict[str, str]:
    """The environment in which a program runs on the library."""
    others = environment.get("LD_PRELOAD")
    path = str(library_path())
    if re.search(r"[\s:]", path):  # nothing quotes them in LD_PRELOAD
        raise UserError(f"{path}: a path with white space or a colon cannot be preloaded: install "
                        "HAKMEM in another folder")
    return {**environment, "LD_PRELOAD": f"{path}:{others}" if others else path}


def said_by_library(settings: dict[str, str]) -> str:
    """What the library says when a program starts with these variables."""
    environment = preloaded({**settings, "PATH": os.environ["PATH"]})
    return subprocess.run(["true"], env=environment, capture_output=True, check=False,
                          encoding="utf-8", errors="replace").stderr
