"""The programs of api, model and stress with every check on: HAKMEM_MODE=debug, preloaded."""
import pytest

from conftest import TESTS

STRESS = {
    "handoff": [4, 30000, 1],
    "fork_busy": [],
    "late_destructors": [],
    "thread_cancel": [],
    "signals": [],
    "phases": [],
}
PROGRAMS = [(path.relative_to(TESTS), []) for path in sorted(TESTS.glob("api/*_contract.c*"))]
PROGRAMS += [(path.relative_to(TESTS), [100000, 3]) for path in TESTS.glob("model/*.c")]
PROGRAMS += [(TESTS.joinpath(f"stress/{name}.c").relative_to(TESTS), arguments)
             for name, arguments in STRESS.items()]


@pytest.mark.parametrize("program,arguments", PROGRAMS, ids=[str(row[0]) for row in PROGRAMS])
def test_debug_mode_passes(build, run, program, arguments):
    result = run(build(str(program)), *arguments, HAKMEM_MODE="debug")
    assert result.returncode in (0, 77), result
    assert "hakmem: double free" not in result.stderr
