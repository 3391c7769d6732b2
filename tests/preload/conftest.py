"""What the preload tests share: the library, a compiler, and a clean environment.

TESTED_LIBRARY names the library; without it every test of this folder is skipped. TESTED_BUILD
names the folder of libhakmem.a; without it, the folder of the library.
"""
import os
import pathlib
import shutil
import subprocess

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
FLAGS = ["-O1", "-g", "-w", "-D_GNU_SOURCE", "-fno-builtin", f"-I{TESTS}", f"-I{TESTS}/../include"]


@pytest.fixture(scope="session")
def library():
    path = os.environ.get("TESTED_LIBRARY")
    if not path:
        pytest.skip("TESTED_LIBRARY is not set")
    return pathlib.Path(path).resolve()


@pytest.fixture(scope="session")
def archive(library):
    folder = pathlib.Path(os.environ.get("TESTED_BUILD") or library.parent)
    if not (folder / "libhakmem.a").exists():
        pytest.skip(f"no libhakmem.a in {folder}")
    return folder / "libhakmem.a"


@pytest.fixture(scope="session")
def shipped(library):
    """The library, if it is one that users get: the checked build has other costs."""
    cache = pathlib.Path(os.environ.get("TESTED_BUILD") or library.parent) / "CMakeCache.txt"
    if cache.exists() and "HAKMEM_CHECKED:BOOL=ON" in cache.read_text(encoding="utf-8"):
        pytest.skip("a property of the library as it ships, and this is the checked build")
    return library


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """build("limits.c", "-O2", …) compiles a file of tests/ once and returns what it made.

    A test that builds C++ is skipped where there is no compiler for it.
    """
    folder = tmp_path_factory.mktemp("preload")
    folder.chmod(0o755)
    made = {}

    def compile_once(source, *arguments, name=None):
        key = (source, arguments, name)
        if key not in made:
            path = TESTS / (source if "/" in source else f"preload/{source}")
            result = folder / (name or path.stem)
            compiler = ["c++", "-std=c++17"] if path.suffix == ".cc" else ["cc", "-std=c17"]
            if not shutil.which(compiler[0]):
                pytest.skip(f"no {compiler[0]} here")
            command = compiler + FLAGS + [str(path), *map(str, arguments), "-pthread", "-ldl"]
            subprocess.run([*command, "-o", str(result)], check=True)
            made[key] = result
        return made[key]

    return compile_once


def clean_environment(**settings):
    """This process's environment without our variables or the loader's, plus the settings."""
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_"))}
    return environment | {name: str(text) for name, text in settings.items()}


@pytest.fixture(scope="session")
def run(library):
    """run(program, …, HAKMEM_MODE="debug") runs a program on HAKMEM; preload=… replaces it.

    The limit of time only turns a hang into a failure.
    """

    def execute(*command, preload=library, before=None, **settings):
        if preload:
            settings["LD_PRELOAD"] = preload
        return subprocess.run([str(word) for word in command], env=clean_environment(**settings),
                              preexec_fn=before, capture_output=True, text=True, timeout=120,
                              check=False)

    return execute


def succeeds(result):
    """The program ended well and said nothing on stderr."""
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout
