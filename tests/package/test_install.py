"""What `cmake --install` puts where, and that a user's build finds and uses it."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from files import LINKED, ROOT, UNAWARE, VERSION, run

PROJECT = """
cmake_minimum_required(VERSION 3.21)
project(user LANGUAGES C)
enable_testing()
find_package(hakmem REQUIRED)
foreach(form hakmem shared static object-override)
  add_executable(with_${form} program.c)
  target_link_libraries(with_${form} PRIVATE hakmem::${form})
endforeach()
add_executable(with_prefixed prefixed.c)
target_link_libraries(with_prefixed PRIVATE hakmem::prefixed)
add_library(user STATIC unaware.c) # a dependency of a dependency brings it along, once
target_link_libraries(user PUBLIC hakmem::object-override)
add_executable(overridden unaware.c)
target_link_libraries(overridden PRIVATE user hakmem::object-override hakmem::static)
add_executable(unaware unaware.c)
target_link_options(unaware PRIVATE -rdynamic)
add_test(NAME alone COMMAND unaware)
add_test(NAME preloaded COMMAND unaware)
set_tests_properties(alone PROPERTIES WILL_FAIL TRUE)
set_tests_properties(preloaded PROPERTIES ENVIRONMENT LD_PRELOAD=$<TARGET_FILE:hakmem::preload>)
"""


def test_what_is_installed(prefix):
    names = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    wanted = (r"bin/hakmem", r"include/hakmem\.h", r"include/hakmem\.hpp",
              r"include/hakmem_prefixed\.h", r"lib.*/libhakmem\.so", r"lib.*/libhakmem\.so\.0",
              rf"lib.*/libhakmem\.so\.{re.escape(VERSION)}", r"lib.*/libhakmem\.a",
              r"lib.*/libhakmem_prefixed\.a", r"lib.*/hakmem/librecorder\.so",
              r"lib.*/pkgconfig/hakmem\.pc",
              r"lib.*/cmake/hakmem/hakmem-config\.cmake", r"share/man/man1/hakmem\.1",
              r"share/man/man3/hakmem\.3", r"share/man/man7/hakmem-options\.7",
              r"share/doc/hakmem/LICENSE")
    for pattern in wanted:
        assert any(re.fullmatch(pattern, name) for name in names), (pattern, sorted(names))


def test_the_installed_command_makes_a_trace(prefix, tmp_path):
    pytest.importorskip("click")
    pytest.importorskip("rich")
    done = subprocess.run([prefix / "bin/hakmem", "trace", "--out", tmp_path / "here", "ls", "/"],
                          capture_output=True, text=True, check=False)
    trace, = (tmp_path / "here").iterdir()
    assert done.returncode == 0 and f"in {trace}" in done.stderr
    assert trace.read_bytes().startswith(b"hakmem trace 2\n")


def test_the_command_runs_a_program_on_it(prefix, libraries, compiled):
    command = prefix / "bin/hakmem"
    assert run(command, "--version") == f"hakmem {VERSION}\n"
    library = Path(run(command, "--library").strip())
    assert library.resolve() == (libraries / "libhakmem.so").resolve()
    assert run(command, "run", "--", compiled(UNAWARE, "-rdynamic")) == "ours\n"
    said = run(command, "run", "mode=debug", "HAKMEM_REPORT_FD=1", "sh", "-c",
               "echo $HAKMEM_MODE $HAKMEM_REPORT_FD", env={**os.environ, "HAKMEM_LEAK_REPORT": "0"})
    assert said.startswith("debug 1\n")
    for words, status in ((["run"], 2), ([], 2), (["nonesuch"], 2), (["--help"], 0)):
        assert subprocess.run([command, *words], capture_output=True,
                              check=False).returncode == status


@pytest.mark.parametrize("folder", ["with space", "with:colon"])
def test_a_place_that_cannot_be_preloaded_is_told(prefix, tmp_path, folder):
    shutil.copytree(prefix, tmp_path / folder, symlinks=True)
    done = subprocess.run([tmp_path / folder / "bin/hakmem", "run", "touch", "has_run"],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    assert "cannot be preloaded: install HAKMEM in another folder" in done.stderr
    assert not (tmp_path / "has_run").exists()


def test_the_command_keeps_what_is_preloaded_already(prefix):
    said = run(prefix / "bin/hakmem", "run", "sh", "-c", "echo $LD_PRELOAD",
               env={**os.environ, "LD_PRELOAD": "libm.so.6"})
    assert said.strip().endswith("libhakmem.so.0:libm.so.6")


def test_the_command_leaves_the_variables_of_its_caller_alone(prefix):
    """Each name that a line of the script could give a value to is exported by the caller."""
    script = (prefix / "bin/hakmem").read_text()
    names = {"file", "folder", "name", *re.findall(r"\b([a-z_]+)=", script)}
    names = {name for name in names if not name.startswith("hakmem_")}
    said = run(prefix / "bin/hakmem", "run", "env",
               env={**os.environ, **dict.fromkeys(names, "kept")})
    assert {name for name in names if f"{name}=kept" in said.splitlines()} == names


def test_cmake_finds_each_form(prefix, tmp_path):
    (tmp_path / "program.c").write_text(LINKED)
    (tmp_path / "unaware.c").write_text(UNAWARE)
    shutil.copy(ROOT / "examples/prefixed.c", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "out", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release", env={**os.environ, "CFLAGS": "-fno-builtin"})
    run("cmake", "--build", tmp_path / "out")
    for form in ("hakmem", "shared", "static", "object-override"):
        run(tmp_path / f"out/with_{form}")
    run(tmp_path / "out/overridden")
    run("ctest", "--test-dir", tmp_path / "out")
    assert run(tmp_path / "out/with_prefixed") == "malloc: another, hk_malloc: HAKMEM\n"


def test_the_example_for_cmake(prefix, tmp_path):
    run("cmake", "-S", ROOT / "examples/cmake", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    run("ctest", "--test-dir", tmp_path)


def test_the_archive_links_into_a_static_program_without_a_word(libraries, tmp_path):
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "program.c").write_text(LINKED)
    if subprocess.run(["cc", "-static", tmp_path / "empty.c", "-o", tmp_path / "empty"],
                      capture_output=True, check=False).returncode != 0:
        pytest.skip("no static C library")
    done = subprocess.run(["cc", "-static", "-fno-builtin", f"-I{ROOT / 'include'}",
                           tmp_path / "program.c", "-o", tmp_path / "program",
                           libraries / "libhakmem.a", "-pthread"], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (0, "")
    run(tmp_path / "program")


def test_pages_that_are_named_are_installed(prefix):
    """README.md apart, which also tells of the checkout."""
    pages = prefix / "share/doc/hakmem"
    texts = [*pages.glob("*.md"), *prefix.glob("share/man/*/*"), *prefix.rglob("*.py")]
    assert len(texts) > 20
    for text in texts:
        for name in re.findall(r"docs/(\w+\.md)", text.read_text()):
            assert (pages / name).exists(), (text, name)


def test_manual_pages_are_well_formed(prefix):
    if not shutil.which("groff"):
        pytest.skip("no groff")
    for page in prefix.glob("share/man/man*/*"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True,
                              text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), page


def test_the_checkout_tells_the_same_commands():
    """python/help.txt is what ./hakmem shows of them."""
    told = (ROOT / "python/help.txt").read_text()
    commands = (ROOT / "python/hakmem/command.py").read_text()
    for name, sentence in re.findall(r"^  ([a-z]+) +(.*)$", told, re.MULTILINE):
        assert f'"""{sentence}' in commands, name


def test_the_checkout_builds_with_tools_that_it_has_fetched(tmp_path):
    """Who has no root gets cmake into .venv."""
    for name, text in {"tools/setup.sh": "", ".venv/bin/cmake": "",
                       "tools/build.sh": f"command -v cmake > {tmp_path}/found; exit 1"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    shutil.copy(ROOT / "hakmem", tmp_path)
    subprocess.run([tmp_path / "hakmem", "why", "1"], check=False)
    assert (tmp_path / "found").read_text() == f"{tmp_path}/.venv/bin/cmake\n"


def test_a_python_that_is_too_old_is_told_in_a_line(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tests/programs").mkdir(parents=True)
    shutil.copy(ROOT / "tools/setup.sh", tmp_path / "tools")
    shutil.copy(ROOT / "tests/programs/packages.txt", tmp_path / "tests/programs")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python3").write_text("#!/bin/sh\n[ $1 = --version ] || exit 9\n"
                                                "echo Python 3.10.12\n")
    (tmp_path / ".venv/bin/python3").chmod(0o755)
    done = subprocess.run([tmp_path / "tools/setup.sh", "cmake", "lab"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "need Python 3.11" in done.stderr and "here is Python 3.10.12" in done.stderr
