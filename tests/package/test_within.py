"""`hakmem learn --within` and `hakmem policy compile LOG`: what was learnt within a run becomes a
policy that the next run begins with."""
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
pytest.importorskip("click")
pytest.importorskip("rich")
from hakmem import policy, within  # noqa: E402
from hakmem.errors import UserError  # noqa: E402

RECORDED = ROOT / "tests/unit/learn/recorded.csv"
ID = "0123456789abcdef"
COLUMNS = "epoch,ms,state,runs,bins,depots,wait,decisions,event,reason,cost,other_cost\n"


def log_of(path, *rows, program=ID, bins=0):
    """Rows: who runs, its bins, how many decisions there were."""
    path.write_text(f"# hakmem epochs 1, program {program}, price 700, bins {bins}, depots 0, "
                    "wait 0\n" + COLUMNS + "".join(
                        f"{number},100,learn,{runs},{bins},0,-1,{decisions},,,0,0\n"
                        for number, (runs, bins, decisions) in enumerate(rows, 1)))
    return path


def test_the_last_incumbent_is_what_was_learnt(tmp_path):
    path = log_of(tmp_path / "log", ("incumbent", 0, 0), ("incumbent", 1, 1), ("challenger", 2, 1))
    assert within.read(path) == within.Log(ID, 3, 1, {"bins": 1, "depots": 0, "wait": -1})
    found = within.compiled([path])
    assert found.strategy == {"bins": 1, "wait": -1} and found.program == ID
    assert policy.parse(found.text()).text() == found.text()
    assert "3 epochs, 1 decision\n" in found.text()


def test_a_log_of_the_library_is_read():
    assert within.read(RECORDED).strategy == {"bins": 2, "depots": 2, "wait": 0}
    assert "strategy bins 2\nstrategy depots 2\n" in within.compiled([RECORDED]).text()


def test_a_log_without_an_epoch_has_what_it_began_with(tmp_path):
    path = log_of(tmp_path / "log", bins=-2, program="-")
    assert within.read(path) == within.Log("", 0, 0, {"bins": -2, "depots": 0, "wait": 0})


def test_of_several_logs_most_epochs_count(tmp_path):
    long = log_of(tmp_path / "a", *[("incumbent", 2, 1)] * 5)
    short = [log_of(tmp_path / name, *[("incumbent", 1, 1)] * 2) for name in ("b", "c")]
    assert within.compiled([long, *short]).strategy == {"bins": 2, "wait": -1}
    with pytest.raises(UserError, match="another program"):
        within.compiled([long, log_of(tmp_path / "d", program="f" * 16)])


@pytest.mark.parametrize(("change", "said"), [
    (lambda text: "", "line 1: this is no log"),
    (lambda text: text.replace("epochs 1", "epochs 2"), "line 1: this is no log"),
    (lambda text: text.replace("2,100,learn,incumbent,0", "2,100,learn,incumbent,x"), "line 4"),
    (lambda text: text.replace("2,100,learn,incumbent,0,0", "2,100"), "line 4: this is no line"),
    (lambda text: text.replace("2,100,learn,incumbent,0", "2,100,learn,incumbent,3"), "line 4"),
    (lambda text: text.replace("2,100,learn", "1_0,100,learn"), "line 4"),
    (lambda text: text.replace("2,100,learn", "9" * 200000 + ",100,learn"), "line 4"),
    (lambda text: text.replace("bins 0", "bins 9"), "line 1"),
    (lambda text: text.replace(ID, "../../x"), "line 1: this is no log")])
def test_what_is_no_log_is_refused(tmp_path, change, said):
    path = log_of(tmp_path / "log", ("incumbent", 0, 0), ("incumbent", 0, 0))
    path.write_text(change(path.read_text()))
    with pytest.raises(UserError, match=said):
        within.read(path)


def test_a_last_line_that_was_cut_does_not_count(tmp_path):
    path = log_of(tmp_path / "log", ("incumbent", 1, 1), ("incumbent", 2, 2))
    path.write_text(path.read_text()[:-3])
    assert within.read(path) == within.Log(ID, 1, 1, {"bins": 1, "depots": 0, "wait": -1})


def test_the_strategy_takes_its_place_in_a_policy(tmp_path):
    """The other lines stay; where the default is best, none of the strategy does."""
    target = tmp_path / "a.policy"
    target.write_text("hakmem policy 1\noption price lean\nstrategy bins -1\n")
    log = within.read(log_of(tmp_path / "log", ("incumbent", 1, 1)))
    said = within._written(within.policy_of([log]), target, [log])
    assert "bins of threads may hold 2 times as much" in said
    assert policy.read(target).options == {"price": "lean"}
    assert policy.read(target).strategy == {"bins": 1, "wait": -1}
    level = within.Log(ID, 5, 1, {"bins": 0, "depots": 0, "wait": 0})
    assert "nothing that was tried" in within._written(within.policy_of([level]), target, [level])
    assert target.read_text() == "hakmem policy 1\noption price lean\n"


def test_logs_and_profiles_become_policies_by_the_same_command(tmp_path, hakmem):
    path = log_of(tmp_path / "log", ("incumbent", 1, 1))
    assert "strategy bins 1\n" in hakmem("policy", "compile", path).stdout
    (tmp_path / "no.pb").write_bytes(b"")
    done = hakmem("policy", "compile", path, tmp_path / "no.pb")
    assert done.returncode == 1 and "make a policy of each" in done.stderr


def test_the_library_takes_what_was_learnt(tmp_path, hakmem):
    found = within.compiled([log_of(tmp_path / "log", ("incumbent", 1, 1), program="-")])
    (tmp_path / "a.policy").write_text(found.text())
    done = hakmem("policy", "check", "a.policy")
    assert done.returncode == 0, done


def test_the_bounds_are_those_of_the_library():
    text = (ROOT / "src/policy/tuning_learn.h").read_text()
    for name, (least, most) in {"BINS_STEPS": policy.DOUBLINGS["bins"],
                                "DEPOTS_STEPS": policy.DOUBLINGS["depots"]}.items():
        assert f"#define LEARN_{name} {most}\n" in text and least == -most
    least, most = policy.DOUBLINGS["wait"]
    assert f"#define LEARN_WAIT_SHORTER {-least}\n" in text
    assert f"#define LEARN_WAIT_LONGER {most}\n" in text


def test_a_program_that_decides_nothing_is_told(hakmem):
    done = hakmem("learn", "--within", "--pairs", "0", "true")
    assert done.returncode == 0 and "nothing was decided" in done.stderr


STIRRING = """
import csv, os, pathlib, time
log = os.environ.get("HAKMEM_LEARN_LOG", "").replace("%p", str(os.getpid()))
end = time.monotonic() + (100 if log else 0.1)  # that only ends what hangs
while time.monotonic() < end:
    for _ in range(100):
        kept = [bytearray(600 + 100 * (i % 9)) for i in range(2000)]
    rows = csv.DictReader(pathlib.Path(log).read_text().splitlines()[1:]) if log else ()
    if any(row["decisions"] != "0" for row in rows):
        break
"""


def test_a_program_is_learnt_from_while_it_runs(tmp_path, hakmem):
    """It goes on until something was decided; the pairs that judge it are short."""
    (tmp_path / "stir.py").write_text(STIRRING)
    done = hakmem("learn", "--within", "--pairs", "1", "purge_delay_ms=20", sys.executable,
                  "stir.py")
    assert done.returncode == 0, done
    assert " epochs, " in done.stderr and " decision" in done.stderr, done.stderr
    found = list((tmp_path / "hakmem-policy").glob("*.policy"))
    assert bool(found) == ("; best: " in done.stderr)
    assert ("with it, of what it takes without: " in done.stderr) == bool(found)


ENDING = """
import os, pathlib, signal, sys
log = os.environ.get("HAKMEM_LEARN_LOG")
if log is None:
    pathlib.Path("again").touch()
elif sys.argv[1] != "empty":
    pathlib.Path(log.replace("%p", "x")).write_text(sys.argv[1])
else:
    pathlib.Path(log.replace("%p", "x")).touch()
if sys.argv[2] == "interrupted" and log:  # as by Ctrl-C, which reaches all of the terminal
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    os.kill(os.getppid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
sys.exit(0 if sys.argv[2] == "interrupted" else int(sys.argv[2]))
"""


@pytest.mark.parametrize(("log", "status", "said", "is_run_again"), [
    (ID, 7, "not run again to compare anything, since it ended with status 7", False),
    (ID, 0, "with it, of what it takes without", True),
    (ID, "interrupted", "not run again to compare anything, since it was interrupted", False),
    ("1234", 0, "it has no build ID", False),
    ("-", 0, "it has no build ID: name the file", False),
    ("empty", 0, "a process is left out: ", False)])
def test_only_what_ended_well_is_run_again(tmp_path, hakmem, log, status, said, is_run_again):
    """A service that was ended by hand is not started again."""
    text = "empty"
    if log != "empty":
        text = log_of(tmp_path / "log", ("incumbent", 1, 1), program=log).read_text()
    (tmp_path / "ends.py").write_text(ENDING)
    done = hakmem("learn", "--within", "--pairs", "1", sys.executable, "ends.py", text,
                  str(status))
    assert done.returncode == (status if status == 7 else 0) and said in done.stderr, done
    assert (tmp_path / "again").exists() == is_run_again


def test_options_of_profiles_are_refused(hakmem):
    done = hakmem("learn", "--within", "--trials", "6", "true")
    assert done.returncode == 1 and "--trials is for rules that profiles make" in done.stderr
