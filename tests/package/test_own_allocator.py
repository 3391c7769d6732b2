"""Programs that bring an allocator of their own are named as such, first; others are not."""
import os
import re
import shutil
import subprocess
import sys

import pytest
from files import ROOT, clean_environment, run

sys.path.insert(0, str(ROOT / "python"))
pytest.importorskip("elftools")
from hakmem import own_allocator  # noqa: E402
from hakmem.own_allocator import GO, LITTLE, NOTHING, of_command, of_file  # noqa: E402

MAIN = "int main(int n, char **words) { (void)words; %s; return n == 7; }\n"
# A function as an allocator has it, with the texts that it has besides.
BRINGS = """#include <stdio.h>
static char room[100000];
static unsigned used;
__attribute__((noinline)) void *NAME(unsigned long size)
{ if (size > 1000) { puts(TEXT1); puts(TEXT2); } used += 64; return room + used - 64; }
""" + MAIN % "for (int i = 0; i < 1000; i++) *(char *)NAME(9) = 1"


def written(place, text, *flags, name="program", compiler="cc"):
    source = place / f"{name}.c"
    source.write_text(text)
    run(compiler, source, "-o", place / name, *flags)
    return place / name


def with_allocator(place, name, texts=("", "a"), **more):
    return written(place, BRINGS, f"-DNAME={name}", *(f'-DTEXT{number}="{text}"' for number, text
                                                      in enumerate(texts, 1)), **more)


@pytest.mark.parametrize("function, allocator", [
    ("je_malloc", "jemalloc"), ("_rjem_malloc", "jemalloc"), ("mi_malloc", "mimalloc"),
    ("tc_malloc", "tcmalloc"), ("sn_rust_alloc", "snmalloc"), ("rpmalloc", "rpmalloc"),
    ("scalable_malloc", "the allocator of oneTBB")])
def test_a_function_names_the_allocator(tmp_path, function, allocator):
    found = of_file(with_allocator(tmp_path, function))
    assert (found.allocator, found.reach) == (allocator, LITTLE)


@pytest.mark.parametrize("texts, allocator", [
    (("<jemalloc>: ", "MALLOC_CONF"), "jemalloc"),
    (("mimalloc: error: ", "mimalloc: warning: "), "mimalloc"),
    (("tcmalloc.max_total_thread_cache_bytes", "tcmalloc.current_total_thread_cache_bytes"),
     "tcmalloc")])
def test_texts_name_the_allocator_of_a_stripped_program(tmp_path, texts, allocator):
    program = with_allocator(tmp_path, "get", texts)
    run("strip", program)
    assert of_file(program).allocator == allocator


@pytest.mark.parametrize("text", ["<jemalloc>: ", "mimalloc: error: ", "MALLOC_CONF", "mi_malloc"])
def test_one_text_alone_does_not(tmp_path, text):
    """As a program has it that sets another's variables, or reads its messages."""
    assert of_file(with_allocator(tmp_path, "get", (text, "other"))) is None


def test_a_name_that_only_ends_in_one_or_is_called_is_none(tmp_path):
    assert of_file(with_allocator(tmp_path, "mini_mi_malloc")) is None
    library = written(tmp_path, "void *mi_malloc(unsigned long s) { return (void *)s; }\n",
                      "-shared", "-fPIC", name="libpool.so")
    user = written(tmp_path, "void *mi_malloc(unsigned long);\n" + MAIN % "mi_malloc(1)",
                   f"-Wl,-rpath,{tmp_path}", library, name="user")
    assert of_file(user) is None


def test_a_program_that_exports_malloc_keeps_it(tmp_path):
    text = "static char room[9999];\nvoid *malloc(unsigned long s) { return room + s % 9; }\n"
    program = written(tmp_path, text + MAIN % "malloc(1)", "-fno-builtin", "-rdynamic")
    found = of_file(program)
    assert (found.allocator, found.reach) == (own_allocator.UNKNOWN, LITTLE)
    library = written(tmp_path, text, "-shared", "-fPIC", "-fno-builtin", name="library.so")
    assert of_file(library, is_library=True) is None  # a preloaded one comes first


def test_a_program_with_hakmem_in_it_has_none(tmp_path, built):
    static = written(tmp_path, "void *malloc(unsigned long);\n" + MAIN % "malloc(1)",
                     "-static", "-pthread", "-Wl,--whole-archive", built / "libhakmem.a",
                     "-Wl,--no-whole-archive")
    assert of_file(static) is None


def test_a_static_program_is_told_to_link_the_archive(tmp_path):
    found = of_file(written(tmp_path, MAIN % "(void)n", "-static"))
    assert found.reach == NOTHING and "libhakmem.a" in found.line()


@pytest.mark.parametrize("text, said", [
    ("redis_version:%s", "make MALLOC=libc"), ("ClickHouse", "ENABLE_JEMALLOC=0"),
    ("MongoDB", "--allocator=system"), ("ARROW_DEFAULT_MEMORY_POOL", "MEMORY_POOL=system"),
    ("/rustc/0123456789abcdef0123456789abcdef01234567/library/std/src/a.rs", "#[global_allocator]"),
    ("other", "link it without")])
def test_the_line_says_how_to_switch(tmp_path, text, said):
    assert said in of_file(with_allocator(tmp_path, "je_malloc", (text, ""))).line()


def test_the_interpreter_of_a_script_counts(tmp_path):
    interpreter = with_allocator(tmp_path, "je_malloc")
    script = tmp_path / "script"
    script.write_text(f"#!{interpreter} -x\n")
    script.chmod(0o755)
    assert of_command(str(script)).file == interpreter
    script.write_text("#!/usr/bin/env -S A=b cat -u\n")
    assert of_command(str(script)) is None
    for text in ("#!", f"#!{script}\n", "#!'\n", "#! /nonesuch\n", ""):
        script.write_text(text)
        assert of_command(str(script)) is None
    assert of_command("nonesuch") is None


# ---- real ones ----

def compiled_go(place, text, **environment):
    if not shutil.which("go"):
        pytest.skip("no go")
    (place / "main.go").write_text(text)
    run("go", "build", "-ldflags", "-s -w", "-o", place / "program", place / "main.go",
        env={"HOME": str(place), **os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod",
             **environment})
    return place / "program"


@pytest.mark.parametrize("cgo", ["0", "1"])
def test_a_program_in_go_has_the_heap_of_its_collector(tmp_path, cgo):
    """With cgo the package net is linked to the C library; that makes no difference."""
    found = of_file(compiled_go(tmp_path, 'package main\nimport "net"\nfunc main() '
                                '{ _, _ = net.LookupHost("localhost") }\n', CGO_ENABLED=cgo))
    assert (found.allocator, found.reach) == (GO, NOTHING) and "GOMEMLIMIT" in found.line()


def test_a_program_in_go_that_has_c_code_has_work_for_malloc(tmp_path):
    text = (ROOT / "lab/inputs/sensors.go").read_text()  # a program of the matrix
    assert of_file(compiled_go(tmp_path, text, CGO_ENABLED="1")) is None


def test_a_program_in_rust_with_an_allocator(tmp_path):
    if not shutil.which("rustc"):
        pytest.skip("no rustc")
    library = tmp_path / "libmimalloc.a"
    run("cc", "-c", "-xc", "-", "-o", tmp_path / "pool.o",
        input="#include <stdlib.h>\nvoid *mi_malloc(size_t s) { return malloc(s); }\n"
              "void mi_free(void *p) { free(p); }\n")
    run("ar", "rcs", library, tmp_path / "pool.o")
    (tmp_path / "main.rs").write_text("""
use std::alloc::{GlobalAlloc, Layout};
extern "C" { fn mi_malloc(size: usize) -> *mut u8; fn mi_free(place: *mut u8); }
struct Pool;
unsafe impl GlobalAlloc for Pool {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 { mi_malloc(layout.size()) }
    unsafe fn dealloc(&self, place: *mut u8, _: Layout) { mi_free(place) }
}
#[global_allocator]
static POOL: Pool = Pool;
fn main() { println!("{}", vec![1; std::env::args().count()].len()); }
""")
    run("rustc", "-L", tmp_path, "-l", "static=mimalloc", tmp_path / "main.rs", "-o",
        tmp_path / "program")
    found = of_file(tmp_path / "program")
    assert found.allocator == "mimalloc" and "#[global_allocator]" in found.line()


def test_no_alarm_on_the_programs_of_the_matrix():
    tomllib = pytest.importorskip("tomllib")
    told = tomllib.loads((ROOT / "lab/programs.toml").read_text())["program"]
    names = {each["command"].split()[0] for each in told if not each["command"].startswith("{")}
    found = [name for name in sorted(names) if shutil.which(name)]
    assert "git" in names and found
    assert {name: of_command(name) for name in found} == dict.fromkeys(found)


# ---- what the commands say ----

@pytest.fixture(params=["installed", "package"])
def said_by_run(request, prefix, hakmem, tmp_path):
    """What `hakmem run` of a program says on stderr, by the script of `make install` and by the
    entry point of the wheel. The program ends well."""
    def say(*words):
        if request.param == "package":
            done = hakmem("run", *map(str, words))
        else:
            done = subprocess.run([prefix / "bin/hakmem", "run", *words], capture_output=True,
                                  text=True, check=False, cwd=tmp_path, env=clean_environment())
        assert done.returncode == 0, done
        return done.stderr

    return say


def test_run_says_it_before_the_program_does(said_by_run, tmp_path):
    program = with_allocator(tmp_path, "je_malloc")
    line = ("hakmem: preloading HAKMEM does little for program, which has jemalloc of its own; to "
            "switch: ")
    assert said_by_run(program).startswith(line)
    for first in (f"#!{program} -x\n", f"#!/usr/bin/env {program}\n"):
        (tmp_path / "script").write_text(first)
        (tmp_path / "script").chmod(0o755)
        assert said_by_run(tmp_path / "script").startswith(line)
    assert said_by_run("true") == ""


def test_run_says_it_of_go_once(said_by_run, tmp_path):
    said = said_by_run(compiled_go(tmp_path, "package main\nfunc main() {}\n", CGO_ENABLED="0"))
    assert GO in said and said.count("hakmem: ") == 1


def test_the_script_asks_about_each_allocator_that_the_tools_know():
    script = (ROOT / "cmake/hakmem.in").read_text()
    words = re.compile("".join(
        re.findall(r"^hakmem_words=[\"'](?:\$hakmem_words)?([^\"']+)", script, re.M)))
    looked_for = [*own_allocator.GO_SECTIONS,
                  *(name for _, functions, _ in own_allocator.ALLOCATORS for name in functions),
                  *(texts[0].decode() for _, _, texts in own_allocator.ALLOCATORS if texts)]
    assert [each for each in looked_for if not words.search(each)] == []


def waiting(place, text, *flags):
    """A program that says when it has begun and then waits."""
    program = written(place, "#include <stdio.h>\n#include <unistd.h>\n" + text +
                      MAIN % 'puts("there"); fflush(stdout); sleep(100)', *flags, name="waiting")
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def test_why_says_it_of_a_running_program_and_of_its_libraries(hakmem, tmp_path):
    pool = written(tmp_path, "void *mi_malloc(unsigned long s) { return (void *)s; }\n", "-shared",
                   "-fPIC", name="libpool.so")
    process = waiting(tmp_path, "void *mi_malloc(unsigned long);\nvoid *je_malloc(unsigned long s)"
                      " { return mi_malloc(s); }\n", pool, f"-Wl,-rpath,{tmp_path}")
    try:
        first, second = hakmem("why", str(process.pid)).stdout.splitlines()[:2]
    finally:
        process.kill()
        process.communicate()
    assert first.startswith("preloading HAKMEM does little for waiting, which has jemalloc ")
    assert second.startswith("preloading HAKMEM does little for libpool.so, which has mimalloc ")


def test_a_process_that_is_gone_has_none():
    assert own_allocator.of_process(1 << 30) == []
