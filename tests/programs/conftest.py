"""The frame of the program matrix: the library under test, one stage per test, the summary.

A test names its programs with `@programs(...)`, says in its docstring what they do, and gets a
`stage`. Everything that holds for all of them (present, engaged, in time, servers stopped) is here.
"""

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

import stage as stages

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_LIBRARY = ROOT / "out/release/libhakmem.so"

# A whole test, with its reference run; a hang must not eat the matrix.
TEST_LIMIT_S = 120

ROWS = pytest.StashKey[list]()


@pytest.fixture(scope="session")
def theatre():
    """A folder that any user may enter, with a copy of the library and the witness."""
    # Whoever stops the matrix from outside stops its servers too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    library = Path(os.environ.get("TESTED_LIBRARY") or DEFAULT_LIBRARY)
    if not library.is_file():
        pytest.exit(f"no library at {library}: build it or set TESTED_LIBRARY", returncode=2)
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    folder.chmod(0o755)
    copy = Path(shutil.copy(library.resolve(), folder))
    copy.chmod(0o755)
    yield folder, copy, stages.build_witness(folder)
    shutil.rmtree(folder)


@pytest.fixture
def stage(request, tmp_path, theatre):
    programs = request.node.get_closest_marker("programs").args
    require(programs)
    folder, library, witness = theatre
    here = stages.Stage(library, witness, tmp_path, folder / request.node.name)
    request.node.user_properties.append(("stage", here))

    def too_late(*_):
        raise TimeoutError(f"not done in {TEST_LIMIT_S} s")

    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(TEST_LIMIT_S)
    try:
        yield here
    finally:
        # The alarm must not interrupt this: stopping has limits of its own.
        signal.alarm(0)
        try:
            here.stop_servers()
        finally:
            here.started = len(here.witnessed())
    here.assert_engaged(programs)


def require(programs):
    """A missing program is a failure where it could have been installed, else a skip."""
    missing = [name for name in programs if not stages.find(name)]
    if not missing:
        return
    reason = f"not installed: {', '.join(missing)} (see tests/programs/packages.txt)"
    if os.geteuid() == 0:
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_configure(config):
    config.addinivalue_line("markers", "programs(*names): the programs that must be engaged")
    config.stash[ROWS] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """One row of the summary per test: what it did, how it ended, how long, how many programs."""
    start = time.monotonic()
    outcomes = []
    item.stash[ROWS] = outcomes
    yield
    here = dict(item.user_properties).get("stage")
    count = here.started if here else 0
    item.user_properties.clear()
    verdict = next((word for word in ("failed", "skipped") if word in outcomes), "passed")
    marker = item.get_closest_marker("programs")
    if marker:
        item.config.stash[ROWS].append((verdict, marker.args[0], item.function.__doc__ or "",
                                        count, time.monotonic() - start))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    item.stash[ROWS].append(report.outcome)


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[ROWS]
    if not rows:
        return
    terminalreporter.section("programs")
    terminalreporter.write_line(f"{'':8} {'program':16} {'started':>7} {'seconds':>7}  what it did")
    for verdict, program, sentence, count, seconds in rows:
        words = " ".join(sentence.split()).rstrip(".")
        terminalreporter.write_line(f"{verdict:8} {program:16} {count:7} {seconds:7.1f}  {words}",
                                    red=verdict == "failed", yellow=verdict == "skipped")
    total = sum(row[4] for row in rows)
    passed = sum(row[0] == "passed" for row in rows)
    terminalreporter.write_line(f"{passed} of {len(rows)} passed in {total:.0f} s")
