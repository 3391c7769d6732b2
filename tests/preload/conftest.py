"""What the preload tests share: the library, a compiler, and a clean environment.

TESTED_LIBRARY names the library; without it every test of this folder is skipped. TESTED_BUILD
names the folder of libhakmem.a; without it, the folder of the library.
"""
import contextlib
import os
import pathlib
import resource
import shutil
import subprocess
import sys

import pytest
import traces

CHECK_SKIPPED = 77  # of check.h
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


@pytest.fixture(scope="session")
def plugin(build):
    """A library that does nothing to malloc: it allocates and frees."""
    return build("plugin.c", "-shared", "-fPIC")


def clean_environment(**settings):
    """This process's environment without our variables or the loader's, plus the settings."""
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_"))}
    return environment | {name: str(text) for name, text in settings.items()}


@pytest.fixture
def hakmem(library, tmp_path):
    """Runs the command `hakmem` with the library, in the folder of the test."""

    def execute(*words):
        return subprocess.run(
            [sys.executable, "-m", "hakmem.command", *map(str, words)], cwd=tmp_path, check=False,
            env=clean_environment(LIBHAKMEM=library, PYTHONPATH=TESTS.parent / "python"),
            capture_output=True, text=True)

    return execute


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


@pytest.fixture(scope="session")
def recorder(library):
    path = pathlib.Path(os.environ.get("TESTED_BUILD") or library.parent) / "librecorder.so"
    if not path.exists():
        pytest.skip(f"no librecorder.so in {path.parent}")
    return path


@pytest.fixture(scope="session")
def recorded(library, recorder):
    """What is preloaded where the calls of the library are recorded."""
    return f"{recorder}:{library}"


@pytest.fixture
def trace_of(run, recorder, library, tmp_path):
    """trace_of(program, …) is all that a program does; it remains in a.trace."""
    def record(*command, behind=library, name="a.trace", **settings):
        path = tmp_path / name
        result = run(*command, preload=f"{recorder}:{behind}" if behind else recorder,
                     RECORDER_FILE=path, **settings)
        assert (result.returncode, result.stderr) == (0, ""), result
        return list(traces.records(path))

    return record


@pytest.fixture
def started(library):
    """started(program, …, HAKMEM_STATS=…) runs a program on HAKMEM until its input ends, at the end
    of the test. It has written a line, which is its `said`."""
    with contextlib.ExitStack() as stack:
        def start(*command, cwd=None, **settings):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=cwd,
                env=clean_environment(**{"LD_PRELOAD": library, **settings}))
            stack.enter_context(process)
            process.said = process.stdout.readline().decode()
            return process

        yield start


def address_space(mebibytes):
    """To be called in the child: a limit that is there before the program starts."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))


@pytest.fixture
def memory_group():
    """memory_group(bytes): makes a control group that may hold so many, and is how a child enters
    it."""
    made = []

    def make(most):
        for parent, name in (("", "memory.max"), ("unified", "memory.max"),
                             ("memory", "memory.limit_in_bytes")):
            group = pathlib.Path("/sys/fs/cgroup") / parent / f"hakmem-{os.getpid()}"
            with contextlib.suppress(OSError):
                group.mkdir()
                made.append(group)
                if (group / name).exists():
                    (group / name).write_text(str(most))
                    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
        return pytest.skip("no control group for memory can be made here")

    yield make
    for group in made:
        group.rmdir()


def succeeds(result):
    """The program ended well and said nothing on stderr."""
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout


def succeeds_or_skips(result):
    """So did this one, unless the machine has not got what it is for."""
    if result.returncode == CHECK_SKIPPED:
        pytest.skip(result.stdout)
    return succeeds(result)


def output(*command):
    """What a tool prints about a file."""
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout
