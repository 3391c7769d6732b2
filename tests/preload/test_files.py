"""Files that options ask for: a program keeps its own, and its rights open no name later."""
import json
import os
import re
import resource
import signal
import stat
import subprocess

import pytest
from conftest import clean_environment, succeeds

OUTPUTS = ["HAKMEM_STATS", "HAKMEM_PROFILE"]
REPORTS = {"HAKMEM_STATS": "exit", "HAKMEM_LEAK_REPORT": 1, "HAKMEM_NONE": 1}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its root and user")


@pytest.fixture(scope="session")
def program(build):
    return build("files.c")


def one_of(name, path):
    """Settings that write to the path."""
    return {name: path, "HAKMEM_PROFILE_MEAN_KB": 1}


# ---- numbers that the program takes for its own files ----


def test_a_data_file_that_became_number_2_gets_no_report(run, program, tmp_path):
    data = tmp_path / "data"
    result = run(program, "take_standard_error", data, **REPORTS)
    assert result.returncode == 0 and "not an option" in result.stderr
    assert data.read_text() == "data"


def test_a_program_without_standard_error_gets_no_report(library, program, tmp_path):
    data = tmp_path / "data"
    command = f"exec {program} have_no_standard_error {data} <&- >&- 2>&-"
    done = subprocess.run(["/bin/sh", "-c", command], check=False,
                          env=clean_environment(LD_PRELOAD=library, **REPORTS))
    assert done.returncode == 0 and data.read_text() == "data"


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("deed", ["take_every_number", "close_every_number"])
def test_a_number_that_is_another_file_by_now_is_left_alone(run, program, tmp_path, name, deed):
    data, ours = tmp_path / "data", tmp_path / "ours"
    result = run(program, deed, data, **one_of(name, ours))
    assert result.returncode == 0
    assert ours.exists() and (deed == "close_every_number" or data.read_text() == "data")
    said = r"hakmem\[\d+ files\]: no [a-z ]+ could be written: the program has closed it \(.*\)\n"
    assert re.fullmatch(said, result.stderr)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_data_file_with_the_inode_of_a_deleted_file_is_left_alone(run, program, tmp_path, name):
    data = tmp_path / "data"
    result = run(program, "take_the_inode", data, before=lambda: os.chdir(tmp_path),
                 **one_of(name, tmp_path / "ours"))
    assert result.returncode == 0 and data.read_bytes() == b"data"
    if not result.stdout.startswith("the same\n"):
        pytest.skip("this file system gives no inode again at once")


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_number_is_high_and_closed_at_exec(run, program, tmp_path, name):
    told = succeeds(run(program, "show_numbers", "", **one_of(name, tmp_path / "file")))
    assert told == "100 1\nok show_numbers\n"


def test_where_numbers_are_few_the_highest_serves(run, program, tmp_path):
    path = tmp_path / "file"

    def allow(count):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))

    told = succeeds(run(program, "show_numbers", "", before=allow(20), HAKMEM_STATS=path))
    assert told == "19 1\nok show_numbers\n" and json.loads(path.read_text())
    none = run(program, "leak", before=allow(3), HAKMEM_STATS=path)
    # The loader of this very program needs a number as well.
    assert none.returncode in (0, 127)


# ---- a wrong free is told ----


def test_a_wrong_free_is_told_where_lines_go_and_never_in_a_data_file(run, program, tmp_path):
    data, log = tmp_path / "data", tmp_path / "log"
    said = re.compile(r"hakmem: double free of 0x[0-9a-f]+ \(.*\)\n")
    results = [run(program, f"misuse_with_{what}", path, HAKMEM_MODE="checked")
               for what, path in (("data", data), ("log", log), ("pipe", ""))]
    assert {each.returncode for each in results} == {-signal.SIGABRT}
    assert data.read_text() == "data"
    assert said.fullmatch(log.read_text().removeprefix("data"))
    assert said.fullmatch(results[2].stdout)
    assert [each.stderr for each in results] == ["", "", ""]


# ---- lines that nobody can take ----


@pytest.mark.parametrize("settings", [
    {"HAKMEM_NONE": 1}, {"HAKMEM_STATS": "exit"}, {"HAKMEM_LEAK_REPORT": 1}, {"HAKMEM_STATS": "/"}])
@pytest.mark.parametrize("kind", ["pipe", "limit"])
def test_a_line_that_cannot_be_written_ends_no_program(library, program, tmp_path, settings, kind):
    reader, pipe = os.pipe()
    os.close(reader)
    with open(tmp_path / "errors", "w", encoding="utf-8") as file, os.fdopen(pipe, "w") as broken:
        def ended(deed):
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
            return subprocess.run([program, deed], check=False, preexec_fn=limit, timeout=120,
                                  stderr=broken if kind == "pipe" else file,
                                  env=clean_environment(LD_PRELOAD=library, **settings)).returncode

        assert ended("leak") == 0
        assert ended("free_twice") == -signal.SIGABRT


@pytest.mark.parametrize("settings", [
    {"HAKMEM_PROFILE": "a", "HAKMEM_PROFILE_MEAN_KB": 1}, {"HAKMEM_MODE": "debug"}, REPORTS])
def test_exit_in_a_handler_inside_the_allocator_ends_the_program(run, program, tmp_path, settings):
    """What cannot be written then is said."""
    for _ in range(10):
        result = run(program, "exit_in_a_handler", "", before=lambda: os.chdir(tmp_path),
                     **settings)
        assert result.returncode == 0, result
        assert "HAKMEM_PROFILE" not in settings or result.stderr == "" or "at exit" in result.stderr


# ---- rights ----


@pytest.fixture
def jail(tmp_path):
    """A folder with a file that only root may write, and one that anybody may write in."""
    tmp_path.chmod(0o755)
    (tmp_path / "secret").write_text("root:only\n")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "out").mkdir()
    os.chown(tmp_path / "out", 65534, 65534)
    return tmp_path


@needs_root
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_link_that_another_user_puts_there_is_not_followed(run, program, jail, name):
    """The file that was opened at the start has the figures though its name is a link by now."""
    ours = jail / "ours"
    settings = one_of(name, jail / "out" / "file")
    ours.touch()
    os.link(ours, jail / "out" / "file")
    result = run(program, "drop_in_a_jail", jail, **settings)
    assert result.returncode == 0, result
    assert (jail / "secret").read_text() == "root:only\n"
    assert (jail / "out" / "file").is_symlink() and ours.stat().st_size > 0


@needs_root
def test_a_child_that_drops_its_rights_writes_what_was_opened_before(run, program, tmp_path):
    for option, ending in (("HAKMEM_STATS", "json"), ("HAKMEM_PROFILE", "pb")):
        succeeds(run(program, "drop_in_a_child", "", **one_of(option, tmp_path / f"%p.{ending}")))
        files = list(tmp_path.glob(f"*.{ending}"))
        assert len(files) == 2 and all(each.stat().st_size for each in files)
        assert {each.stat().st_uid for each in files} == {0}


@needs_root
@pytest.mark.parametrize("deed", ["fork_after_dropping", "fork_in_a_jail"])
@pytest.mark.parametrize("name", ["HAKMEM_STATS", "HAKMEM_PROFILE"])
def test_with_other_rights_no_name_is_opened(run, program, jail, deed, name):
    """The child of such a fork has no file, though it could make one."""
    (jail / "out").chmod(0o777)
    succeeds(run(program, deed, jail, before=lambda: os.chdir(jail), **one_of(name, "out/of-%p")))
    assert len(list((jail / "out").iterdir())) == 1


# ---- children ----


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_bare_child_leaves_the_file_to_its_parent(run, program, tmp_path, name):
    path = tmp_path / "file"
    succeeds(run(program, "exit_in_a_bare_child", "", **one_of(name, path)))
    assert path.stat().st_size > 0


@pytest.mark.parametrize("name", ["HAKMEM_STATS", "HAKMEM_PROFILE"])
def test_a_name_without_a_folder_is_opened_in_that_of_the_start_alone(run, program, tmp_path, name):
    (tmp_path / "other").mkdir()
    for path, count in (("of-%p", 1), (tmp_path / "at-%p", 2)):
        succeeds(run(program, "fork_elsewhere", tmp_path / "other",
                     before=lambda: os.chdir(tmp_path), **one_of(name, path)))
        assert len(list(tmp_path.glob(f"{str(path)[-5:-2]}*"))) == count
    assert not list((tmp_path / "other").iterdir())


# ---- what is no regular file ----


def special(folder, kind, device):
    """A file of the kind that is not regular."""
    path = folder / "it"
    if kind == "device":
        return device
    if kind == "link":
        path.symlink_to(folder / "target")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mknod(path, 0o600 | (stat.S_IFSOCK if kind == "socket" else stat.S_IFIFO))
    return path


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("kind", ["fifo", "read fifo", "link", "folder", "socket", "device"])
def test_only_a_regular_file_serves(run, program, tmp_path, name, kind):
    target = tmp_path / "target"
    target.write_text("before")
    path = special(tmp_path, kind, "/dev/full")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if kind == "read fifo" else None
    result = run(program, "leak", **one_of(name, path))
    assert result.returncode == 0
    assert re.fullmatch(rf"hakmem\[\d+ files\]: no [a-z ]+ could be written: only a regular "
                        rf"file serves, no link, pipe or device \({path}\)\n", result.stderr)
    assert target.read_text() == "before"
    if reader is not None:
        assert os.read(reader, 10) == b""
        os.close(reader)


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_device_that_takes_all_serves(run, program, name):
    succeeds(run(program, "leak", **one_of(name, "/dev/null")))


@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
def test_a_policy_that_is_no_regular_file_holds_nobody_up(run, program, tmp_path, kind):
    path = special(tmp_path, kind, "/dev/zero")
    result = run(program, "leak", HAKMEM_POLICY=path)
    assert result.returncode == 0
    assert re.fullmatch(r"hakmem\[\d+ files\]: HAKMEM_POLICY is ignored: it cannot be read, is "
                        rf"empty, or is no regular file \({path}\)\n", result.stderr)


@pytest.mark.parametrize("name", [*OUTPUTS, "HAKMEM_POLICY"])
def test_a_file_that_cannot_be_opened_is_said_once_however_long_its_path_is(run, program, name):
    result = run(program, "leak", **one_of(name, f"/{'nowhere/' * 30}"))
    reason = "it cannot be read" if name == "HAKMEM_POLICY" else "could be written: error 2"
    assert result.returncode == 0 and result.stderr.count("\n") == 1
    assert reason in result.stderr and "nowhere" in result.stderr


@pytest.mark.parametrize("name,said", [
    ("HAKMEM_STATS", "no statistics could be written: error 5"),
    ("HAKMEM_PROFILE", "no profile could be written: error 5")])
def test_no_signal_comes_of_a_file_that_may_not_grow(run, program, tmp_path, name, said):
    result = run(program, "leak", **one_of(name, tmp_path / "it"),
                 before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
    assert result.returncode == 0
    assert re.fullmatch(rf"hakmem\[\d+ files\]: {said} \({tmp_path}/it\)\n", result.stderr)


def test_safe_mode_has_no_profile(run, program, tmp_path):
    result = run(program, "leak", HAKMEM_LD_SAFE=1, **one_of("HAKMEM_PROFILE", tmp_path / "it"))
    assert result.returncode == 0
    assert "HAKMEM_PROFILE is ignored: HAKMEM_LD_SAFE serves every call" in result.stderr
    assert not (tmp_path / "it").exists()


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_name_that_is_too_long_is_refused(run, program, name):
    result = run(program, "leak", **one_of(name, "x" * 600))
    assert result.returncode == 0
    assert f"{name} is ignored: its text has more than 255 bytes" in result.stderr
