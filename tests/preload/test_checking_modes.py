"""The programs of api, model and stress preloaded in the modes that check every free."""
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


@pytest.mark.parametrize("mode", ["checked", "debug"])
@pytest.mark.parametrize("program,arguments", PROGRAMS, ids=[str(row[0]) for row in PROGRAMS])
def test_a_right_program_passes(build, run, program, arguments, mode):
    result = run(build(str(program)), *arguments, HAKMEM_MODE=mode)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    assert result.returncode == 0, result
    assert "hakmem: " not in result.stderr
