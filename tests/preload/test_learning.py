"""Learning within one run: programs go on working, and what was decided can be read."""
import json
import pathlib
import subprocess
import sys

import pytest

from conftest import clean_environment, succeeds
from test_stats_file import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
QUICK = {"HAKMEM_LEARN": 1, "HAKMEM_PURGE_DELAY_MS": 20}  # epochs are as short as they may be


@pytest.mark.parametrize("mode", ["balanced", "minimal", "checked"])
@pytest.mark.parametrize("program,arguments", [
    ("stress/handoff.c", [4, 30000, 1]), ("stress/fork_busy.c", []), ("stress/phases.c", []),
    ("stress/late_destructors.c", []), ("stress/thread_churn.c", []),
    ("model/random_ops.c", [100000, 3])])
def test_a_program_works_while_it_is_learnt(build, run, program, arguments, mode):
    result = run(build(program), *arguments, HAKMEM_MODE=mode, **QUICK)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    assert result.returncode == 0, result
    assert "hakmem: " not in result.stderr


def test_decisions_are_told(library, build, tmp_path):
    path = tmp_path / "statistics"
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_STATS=path, HAKMEM_MODE="learning",
                                    HAKMEM_PURGE_DELAY_MS=20)
    with subprocess.Popen([build("stirring.c")], env=environment,
                          stdin=subprocess.PIPE) as process:
        told = wait_for(path, lambda told: told.get("learning", {}).get("decisions"))
        process.stdin.close()
        assert process.wait() == 0
    learning = told["learning"]
    assert learning["epochs"] > 8 and learning["switches"] > 0
    assert learning["strategies"]["0"]["strategy"] == {"bins": 0, "depots": 0, "wait": 0}
    assert str(learning["running"]) in learning["strategies"]
    decision = learning["decisions"]["0"]
    assert decision["event"] in ("won", "lost", "drawn", "rolled_back")
    assert decision["incumbent"] == {"bins": 0, "depots": 0, "wait": 0}
    assert told["options"]["learn"] == 1 and told["options"]["free_policy"] == 2
    pytest.importorskip("rich")
    pytest.importorskip("click")
    from click.testing import CliRunner
    from hakmem import command
    for name in ("why", "stat"):
        said = CliRunner().invoke(command.hakmem, [name, str(path)])
        assert said.exit_code == 0, said.output
        assert ("Learning within the run" in said.output) == (name == "why")


def test_nothing_is_told_where_nobody_learns(build, run, tmp_path):
    path = tmp_path / "statistics"
    succeeds(run(build("counted.c"), HAKMEM_STATS=path, HAKMEM_MODE="balanced"))
    assert "learning" not in json.loads(path.read_text())


def test_a_child_goes_on_learning(build, run, tmp_path):
    succeeds(run(build("counted.c"), "fork", HAKMEM_STATS=tmp_path / "of-%p", **QUICK))
    texts = [json.loads(path.read_text()) for path in tmp_path.glob("of-*")]
    assert len(texts) == 2
    assert all(text["learning"]["state"] == "learn" for text in texts)
