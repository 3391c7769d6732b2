"""`hakmem learn` with programs: one whose blocks that stay stand among others, and such as fail,
wait for ever, leave a daemon or are interrupted. What both `learn` and `tune` refuse."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from files import ROOT

sys.path.insert(0, str(ROOT / "python"))
pytest.importorskip("google.protobuf")
from hakmem import policy, processes, profile, runs  # noqa: E402

SOURCE = """
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
static char *volatile kept[40000], *volatile passing[400000];
NOINLINE static char *that_stays(void) { char *block = malloc(96); *block = 1; return block; }
NOINLINE static char *that_goes(void) { char *block = malloc(96); *block = 1; return block; }
int main(void)
{
    for (int round = 0; round < 4; round++) {
        for (int index = 0; index < 400000; index++) {
            passing[index] = that_goes();
            if (index % 40 == 0) kept[round * 10000 + index / 40] = that_stays();
        }
        for (int index = 0; index < 400000; index++) free(passing[index]);
    }
    return 0;
}
"""


def test_a_program_is_learnt_from_and_its_policy_is_taken(tmp_path, hakmem, compiled):
    program = compiled(SOURCE, "-O1", "-g")
    done = hakmem("learn", "--minutes", "0.001", "--out", "judged", program)
    assert done.returncode == 0 and "peak memory" in done.stderr, done.stderr
    assert ("left out" in done.stderr) != bool(list((tmp_path / "judged").glob("*.policy")))
    done = hakmem("learn", "--minutes", "0", "--out", "found", program)
    assert done.returncode == 0 and "that_stays" in done.stderr, done.stderr
    path, = (tmp_path / "found").glob("*.policy")
    text = path.read_text()
    assert "that_stays" in text and "that_goes" not in text
    assert hakmem("policy", "check", path).stdout == f"{path} is a policy\n"
    path.write_text(text + "option nonesuch 1\n")
    refused = hakmem("policy", "check", path)
    assert refused.returncode == 1 and "there is no such option" in refused.stderr


@pytest.mark.parametrize("wrapper", [
    "char *block = malloc(96); *block = 1; return block;",
    "char *block = malloc(16); *block = 1; return realloc(block, 200);"], ids=["plain", "growing"])
def test_what_a_wrapper_allocates_is_learnt_by_its_callers(tmp_path, hakmem, compiled, wrapper):
    said = "that_stays, by allocate: "
    text = SOURCE.replace("char *block = malloc(96); *block = 1; return block;",
                          "char *block = allocate(); *block = 2; return block;")
    text = text.replace("NOINLINE static char *that_stays",
                        f"NOINLINE static char *allocate(void) {{ {wrapper} }}\n"
                        "NOINLINE static char *that_stays")
    program = compiled(text, "-O1", "-g")
    done = hakmem("learn", "--minutes", "0", "--out", "found", program)
    assert done.returncode == 0 and said in done.stderr and "that_goes" not in done.stderr, done
    path, = (tmp_path / "found").glob("*.policy")
    assert " caller " in path.read_text()
    assert hakmem("policy", "check", path).returncode == 0


SIGNALS = "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nint main("
COUNTED = 'FILE *runs = fopen("runs", "a+"); fputc(49, runs); fseek(runs, 0, SEEK_END); ' \
          "long before = ftell(runs) - 1; fclose(runs); "


def that_ends(ends):
    """The program, which notes each run in the file `runs`, and then does so."""
    assert "return 0;" in SOURCE
    return SOURCE.replace("int main(", SIGNALS).replace("return 0;", COUNTED + ends)


@pytest.mark.parametrize(("ends", "said"), [
    ("return before > 99;", "it is not run again to be compared: --minutes 0"),
    ("return 7;", "it is not run again to be compared, since it ended with status 7"),
    ("signal(SIGINT, SIG_IGN); kill(getppid(), SIGINT); return 0;",  # Ctrl-C is for all of them
     "it is not run again to be compared, since it was interrupted"),
    ("usleep(300000); free(malloc(1 << 24)); kill(getppid(), SIGINT); raise(SIGINT);",
     "it is not run again to be compared, since it was interrupted")])
def test_only_what_ended_well_and_by_itself_is_run_again(tmp_path, hakmem, compiled, ends, said):
    program = compiled(that_ends(ends), "-O1", "-g")
    options = ["--minutes", "0"] if "--minutes 0" in said else []
    done = hakmem("learn", *options, "--out", "found", program)
    assert "now the program is run again" not in done.stderr
    assert said in done.stderr and (tmp_path / "runs").read_text() == "1", done
    assert "cost" not in done.stderr
    assert list((tmp_path / "found").glob("*.policy"))


def test_what_fails_when_it_is_run_again_is_judged_by_its_profile(tmp_path, hakmem, compiled):
    """As a program does that has read all of a pipe."""
    program = compiled(that_ends("return before ? 4 : 0;"), "-O1", "-g")
    done = hakmem("learn", "--out", "found", program)
    assert "the profile alone decides: run again it ended with status 4 instead of 0" in done.stderr
    assert done.returncode == 0 and (tmp_path / "runs").read_text() == "11"
    assert "now the program is run again, at least six times" in done.stderr
    assert list((tmp_path / "found").glob("*.policy"))


@pytest.mark.parametrize("ends_by", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_the_command_ends_the_run_that_it_learns_from(tmp_path, hakmem, compiled,
                                                                  ends_by):
    program = compiled(that_ends(f"signal({ends_by}, exit_well); alarm(100); "
                                 f"kill(getppid(), {ends_by}); for (;;) pause();").replace(
        "int main(", "static void exit_well(int number) { exit(0); }\nint main("), "-O1", "-g")
    done = hakmem("learn", "--out", "found", program)
    assert done.returncode == 128 + getattr(signal, ends_by), done
    assert "since it was interrupted" in done.stderr and (tmp_path / "runs").read_text() == "1"
    assert list((tmp_path / "found").glob("*.policy"))


def test_a_daemon_is_not_started_again_and_goes_on(tmp_path, hakmem, compiled):
    program = compiled(that_ends("""
        if (fork() == 0) {
            setsid(); close(0); close(1); close(2); alarm(100);
            FILE *daemon = fopen("new", "w"); fprintf(daemon, "%d", getpid()); fclose(daemon);
            rename("new", "daemon");
            for (;;) pause();
        }
        while (access("daemon", F_OK)) usleep(1000);
        return 0;"""), "-O1", "-g")
    done = hakmem("learn", "--out", "found", program)
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)
    assert "left a process that goes on: run it in the foreground" in done.stderr, done
    assert done.returncode == 0 and (tmp_path / "runs").read_text() == "1"
    assert list((tmp_path / "found").glob("*.policy"))


def test_what_ends_soon_after_its_program_is_no_daemon(tmp_path, library, monkeypatch):
    monkeypatch.setenv("LIBHAKMEM", str(library))
    monkeypatch.setattr(processes, "GRACE_S", 100)
    words = ["sh", "-c", "sleep 0.1 & for each in 1 2 3; do (true &); done; exit 3"]
    assert not (ending := profile.run_with(words, {})).goes_on
    assert ending.status == 3


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path, library,
                                                                     monkeypatch):
    monkeypatch.setenv("LIBHAKMEM", str(library))
    monkeypatch.setattr(processes, "GRACE_S", 0.1)
    assert runs.measured(["sleep", "1000"], {}, 0.1).status == runs.NO_END
    words = ["sh", "-c", "trap : TERM; sh -c 'trap : TERM; echo $$; while :; do sleep 100; done'"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        processes.end(parent.pid)
    until(lambda: state_of(child) in ("", "Z"))


def until(is_so):
    deadline = time.monotonic() + 100
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def state_of(pid):
    """The letter of the kernel; "": there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_reports_that_the_user_wants_are_not_made_in_measured_runs(tmp_path, library, monkeypatch):
    monkeypatch.setenv("LIBHAKMEM", str(library))
    for name in ("PROFILE", "STATS"):
        monkeypatch.setenv(f"HAKMEM_{name}", str(tmp_path / name))
    assert runs.measured([sys.executable, "-c", "import json"], {}).status == 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_on_stdin_is_read_from_where_the_command_found_it(tmp_path, hakmem, compiled):
    program = compiled(that_ends("""
        char line[8] = "";
        return read(0, line, 7) == 7 && line[0] == 's' ? 0 : 9;"""), "-O1", "-g")
    (tmp_path / "input").write_text("first\nsecond\n")
    with (tmp_path / "input").open("rb", buffering=0) as stdin:
        stdin.read(len("first\n"))
        done = hakmem("learn", "--minutes", "0.001", "--out", "found", program, stdin=stdin)
    assert done.returncode == 0 and "3 pairs" in done.stderr, done


@pytest.mark.parametrize("more", [
    {"stdin": subprocess.PIPE}, {"preexec_fn": lambda: os.close(0)}], ids=["pipe", "closed"])
def test_stdin_may_be_such_that_nothing_is_read_anew(tmp_path, hakmem, compiled, more):
    program = compiled(SOURCE, "-O1", "-g")
    done = hakmem("learn", "--minutes", "0.001", "--out", "found", program, **more)
    assert done.returncode == 0 and "3 pairs" in done.stderr, done


def test_ignored_signals_change_nothing(tmp_path, hakmem, compiled):
    """A shell without job control ignores SIGINT for `command &`, and some services SIGCHLD."""
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    program = compiled(that_ends("kill(getppid(), SIGINT); raise(SIGINT); return 0;"), "-O1", "-g")
    done = hakmem("learn", "--minutes", "0.001", "--out", "found", program, preexec_fn=ignore)
    assert done.returncode == 0 and "3 pairs" in done.stderr, done


BEFORE_IT = """folder=${HAKMEM_PROFILE%%/*}
if [ "$folder" ]; then
    %s
fi
exec ./program
"""


def test_a_torn_profile_costs_no_other(tmp_path, hakmem, compiled):
    compiled(SOURCE, "-O1", "-g")
    (tmp_path / "script").write_text(BEFORE_IT % 'echo torn > "$folder/1.pb"')
    done = hakmem("learn", "--minutes", "0", "--out", "found", "sh", "script")
    assert done.returncode == 0 and "that_stays" in done.stderr, done
    assert list((tmp_path / "found").glob("*.policy"))
    assert "1.pb is no heap profile of HAKMEM, or not all of one: it is left out" in done.stderr


def test_a_torn_profile_alone_is_an_error(tmp_path, hakmem, compiled):
    compiled("int main(void) { return 0; }")
    (tmp_path / "script").write_text(BEFORE_IT % 'echo torn > "$folder/1.pb"')
    done = hakmem("learn", "sh", "script")
    assert done.returncode == 1 and "1.pb is no heap profile" in done.stderr, done


def test_a_torn_profile_fails_a_check_for_leaks(tmp_path, hakmem, compiled):
    compiled("#include <stdlib.h>\nint main(void) { free(malloc(100000)); return 0; }")
    (tmp_path / "script").write_text(BEFORE_IT % ":")
    assert hakmem("leaks", "--fail", "sh", "script").returncode == 0
    (tmp_path / "script").write_text(BEFORE_IT % 'echo torn > "$folder/1.pb"')
    done = hakmem("leaks", "--fail", "sh", "script")
    assert done.returncode == 1 and "it is left out" in done.stderr, done
    for words in (("leaks",), ("profile", "--mean", "1")):
        notes = json.loads(hakmem(*words, "--json", "sh", "script").stdout)["notes"]
        assert "1.pb is no heap profile" in notes[0], words


@pytest.mark.parametrize("words", [("learn", "--out", "found"), ("profile", "--out", "found"),
                                   ("leaks",)], ids=["learn", "profile", "leaks"])
def test_a_daemon_may_write_beside_its_profile(tmp_path, hakmem, compiled, words):
    (tmp_path / "temporary").mkdir()
    compiled(that_ends("""
        const char *profile = getenv("HAKMEM_PROFILE");
        if (fork() == 0) {
            setsid(); close(0); close(1); close(2); alarm(100);
            FILE *daemon = fopen("new", "w"); fprintf(daemon, "%d", getpid()); fclose(daemon);
            rename("new", "daemon");
            char name[4096];
            for (int number = 0;; number = (number + 1) % 1000) {
                snprintf(name, sizeof name, "%s.%d", profile, number);
                symlink("x", name);
            }
        }
        while (access("daemon", F_OK)) usleep(1000);
        return 0;"""), "-O1", "-g", "-w")
    done = hakmem(*words, "./program", TMPDIR=tmp_path / "temporary")
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done
    if words[0] == "learn":
        assert "left a process that goes on" in done.stderr, done
        assert list((tmp_path / "found").glob("*.policy"))


def test_descendants_of_other_users_are_left_alone(monkeypatch):
    """The child itself could not be waited for if it went on, so that is an error."""
    ended = []

    def kill(pid, number):
        if pid in others:
            raise PermissionError
        ended.append(pid)

    monkeypatch.setattr(processes.os, "kill", kill)
    monkeypatch.setattr(processes, "GRACE_S", 0)
    monkeypatch.setattr(processes, "children", lambda pid: [2, 3] if pid == 1 else [])
    others = {2}
    processes.end(1)
    assert ended.count(1) == ended.count(3) == 2
    others = {1}
    with pytest.raises(PermissionError):
        processes.end(1)


def test_ctrl_c_between_two_runs_says_how_to_get_the_rules(tmp_path, hakmem, compiled):
    program = compiled(that_ends("if (before) { kill(getppid(), SIGINT); sleep(100); } return 0;"),
                       "-O1", "-g")
    done = hakmem("learn", "--out", "found", program)
    assert done.returncode and "--minutes 0 writes the rules without" in done.stderr, done
    assert not list(tmp_path.glob("found/*.policy"))


def test_a_program_that_no_rule_can_name_is_told(tmp_path, hakmem, compiled):
    done = hakmem("learn", "--out", "found", compiled(SOURCE, "-O1", "-Wl,--build-id=none"))
    assert "it has no build ID: link it with -Wl,--build-id" in done.stderr, done
    assert "groups gain nothing" not in done.stderr and not (tmp_path / "found").exists()


@pytest.mark.parametrize(("source", "said"), [
    ("#include <stdlib.h>\nint main(void) { return malloc(1) == NULL; }",
     "the program allocates less than 16 KiB; try"),
    ("#include <unistd.h>\nint main(void) { _exit(0); }", "the program left by _exit within"),
    ("#include <stdlib.h>\nint main(void) { abort(); }", "the program was killed within")])
def test_why_nothing_was_sampled_is_told(hakmem, compiled, source, said):
    assert f"nothing was sampled: {said}" in hakmem("learn", compiled(source)).stderr


def test_that_no_process_has_loaded_the_library_is_told(hakmem, compiled):
    done = hakmem("learn", compiled("int main(void) { return 0; }", "-static"))
    assert "nothing was sampled: the program is statically linked, or" in done.stderr


@pytest.mark.parametrize(("command", "runs_before"), [("learn", 1), ("tune", 0)])
@pytest.mark.parametrize("ends_by", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_the_command_ends_the_program_first(tmp_path, hakmem, compiled, command,
                                                                runs_before, ends_by):
    text = SOURCE.replace("int main(", """#include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        static void told(int number) { usleep(300000); fclose(fopen("told", "a")); _exit(0); }
        int main(""")
    text = text.replace("return 0;", f"""FILE *runs = fopen("runs", "a+"); fputc(49, runs);
        fseek(runs, 0, SEEK_END); long before = ftell(runs) - 1; fclose(runs);
        if (before < {runs_before}) return 0;
        signal({ends_by}, told); alarm(100); kill(getppid(), {ends_by}); for (;;) pause();""")
    program = compiled(text, "-O1", "-g")
    done = hakmem(command, "--out", "found", program)
    assert done.returncode == 128 + getattr(signal, ends_by), done
    assert (tmp_path / "told").exists() and len((tmp_path / "runs").read_text()) == runs_before + 1
    assert not list(tmp_path.glob("found/*.policy"))


@pytest.mark.parametrize("out", ["file", "file/folder", "/proc", "/proc/folder", "nowhere/folder"])
@pytest.mark.parametrize("command", ["learn", "tune"])
def test_a_folder_that_takes_no_file_is_refused_before_the_program_runs(tmp_path, hakmem, out,
                                                                        command):
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to("missing")
    done = hakmem(command, "--minutes", "0", "--out", out, "touch", "has_run")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"hakmem: {out}: ")
    assert not (tmp_path / "has_run").exists()


@pytest.mark.parametrize("command", ["learn", "tune"])
@pytest.mark.parametrize(("make", "said"), [
    (lambda path: path.write_text("option price lean\n"), "line 1: expected"),
    (lambda path: path.mkdir(), "not a regular file")])
def test_a_policy_that_cannot_be_read_is_refused_before_the_program_runs(tmp_path, hakmem, command,
                                                                         make, said):
    (tmp_path / "found").mkdir()
    make(tmp_path / "found" / "a.policy")
    done = hakmem(command, "--out", "found", "touch", "has_run")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("hakmem: found/a.policy: ") and said in done.stderr
    assert not (tmp_path / "has_run").exists()


@pytest.mark.parametrize("command", ["learn", "tune"])
@pytest.mark.parametrize("folder", ["with space", "with:colon"])
def test_a_library_that_cannot_be_preloaded_is_told(tmp_path, hakmem, library, command, folder):
    (tmp_path / folder).mkdir()
    shutil.copy(library, tmp_path / folder / "libhakmem.so")
    done = hakmem(command, "touch", "has_run", LIBHAKMEM=tmp_path / folder / "libhakmem.so")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    assert "a path with white space or a colon cannot be preloaded" in done.stderr
    assert not (tmp_path / "has_run").exists()


@pytest.mark.parametrize("setting", [
    "HAKMEM_MODE=debug", "HAKMEM_mode=Debug", "HAKMEM_JUNK=1", "HAKMEM_Junk=ON",
    "HAKMEM_JUNK=yes", "HAKMEM_JUNK=true"])
def test_nothing_is_learnt_from_blocks_of_other_sizes(tmp_path, hakmem, setting):
    name, _, value = setting.partition("=")
    done = hakmem("learn", "touch", "has_run", **{name: value})
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    assert f"{setting}: each block has a byte more then" in done.stderr
    assert not (tmp_path / "has_run").exists()
    done = hakmem("learn", "touch", "has_run", HAKMEM_MODE="debug", HAKMEM_JUNK="off")
    assert done.returncode == 0 and (tmp_path / "has_run").exists()


@pytest.mark.parametrize("command", ["learn", "tune"])
def test_a_folder_whose_name_the_library_refuses_is_refused_before(tmp_path, hakmem, command):
    room = policy.LONGEST_FOLDER - len(f"{tmp_path.resolve()}/")
    done = hakmem(command, "--out", "x" * (room + 1), "touch", "has_run")
    assert done.returncode == 1 and "at most 207 bytes" in done.stderr, done.stderr
    (tmp_path / "temporary").mkdir()
    longer = tmp_path / "temporary" / ("x" * (room - len("temporary/") - runs.TEMPORARY + 1))
    longer.mkdir()
    done = hakmem(command, "touch", "has_run", TMPDIR=longer)
    assert done.returncode == 1 and f"{longer}: " in done.stderr, done.stderr
    assert not (tmp_path / "has_run").exists()
    path = tmp_path / ("x" * room) / f"{'f' * 40}.policy"
    path.parent.mkdir()
    path.write_text("hakmem policy 1\noption price lean\n")
    assert hakmem("policy", "check", path).returncode == 0


def test_a_folder_is_made_only_for_a_policy(tmp_path, hakmem):
    assert hakmem("learn", "--minutes", "0", "--out", "new/folder", "true").returncode == 0
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("words", [("learn", "--minutes", "nan", "touch", "has_run"),
                                   ("tune", "--minutes", "NaN", "touch", "has_run"),
                                   ("why", "--over", "nan", "1"), ("top", "--every", "nan", "1")])
def test_a_time_is_a_number(tmp_path, hakmem, words):
    done = hakmem(*words)
    assert done.returncode == 2 and "is not a number" in done.stderr, done.stderr
    assert not (tmp_path / "has_run").exists()
