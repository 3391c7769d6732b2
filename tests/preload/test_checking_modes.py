"""The programs of api, model and stress preloaded in the modes that check every free. What they do
in a loop they do less often here."""
import pytest

from conftest import CHECK_SKIPPED, TESTS

STRESS = ("handoff", "fork_busy", "late_destructors", "thread_cancel", "signals", "phases")
ARGUMENTS = {"stress/handoff.c": [4, 30000, 1], "model/random_ops.c": [100000, 3]}
PROGRAMS = [str(path.relative_to(TESTS)) for kind in ("api/*_contract.c*", "model/*.c")
            for path in sorted(TESTS.glob(kind))] + [f"stress/{name}.c" for name in STRESS]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("mode", ["checked", "debug"])
def test_a_right_program_passes(build, run, mode, program):
    result = run(build(program), *ARGUMENTS.get(program, []), HAKMEM_MODE=mode, SOAK="few")
    if result.returncode == CHECK_SKIPPED:
        pytest.skip(result.stdout)
    assert result.returncode == 0, result
    assert "hakmem: " not in result.stderr
