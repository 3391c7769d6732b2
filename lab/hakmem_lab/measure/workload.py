"""What `hakmem compare` measures when it is given no command."""

import sysconfig
from pathlib import Path

from hakmem_lab import ROOT

TITLE = "an index of all words in Python's standard library, by perl"


def default_command() -> list[str]:
    """An index of all words in Python's standard library, built by perl: every machine that has
    git and python3 has both. It makes millions of small strings and growing arrays."""
    library = Path(sysconfig.get_paths()["stdlib"])
    script = ROOT / "lab/inputs/word_index.pl"
    return ["perl", str(script), *(str(path) for path in sorted(library.glob("*.py")))]
