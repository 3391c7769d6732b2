"""Real programs do real work on the preloaded allocator, and their results are checked.

Each test is one row of the summary: `@programs` names what must have run with the library (the
first name is the row's), the docstring says what was done. test_servers.py has the servers.
"""

import hashlib
import random
import shutil

import pytest
from stage import INPUTS

programs = pytest.mark.programs


def some_text(lines, seed=1):
    """Repeatable text: not random to a compressor, not regular to a hash table."""
    draw = random.Random(seed)
    words = [f"w{draw.randrange(10**6):x}" for _ in range(4000)]
    return "".join(" ".join(draw.choices(words, k=10)) + "\n" for _ in range(lines))


# Languages


@programs("python3")
@pytest.mark.parametrize("env", [{}, {"PYTHONMALLOC": "malloc"}], ids=["", "on malloc"])
def test_python_walks_through_its_library(stage, env):
    """json, sqlite, threads, zlib, xml, decimal and raw realloc; or every object is a malloc."""
    output = stage.same("python3", INPUTS / "stdlib.py", env=env)
    assert "('ok',)" in output and output.endswith("True\n")


@programs("python3")
def test_python_forks_and_spawns(stage):
    """Pools and queues by fork beside allocating threads, a pool by spawn."""
    output = stage.same("python3", INPUTS / "processes.py")
    assert output.endswith("[1229, 9592]\n")


@programs("python3")
def test_python_passes_its_own_tests(stage):
    """A slice of CPython's test suite on PYTHONMALLOC=malloc."""
    names = ("list dict set deque bytes array memoryview json re unicode itertools functools heapq "
             "zlib bz2 lzma struct pickle gc weakref thread threading_local queue ctypes hashlib")
    output = stage.run("python3", "-m", "test", "-j2", *(f"test_{name}" for name in names.split()),
                       env={"PYTHONMALLOC": "malloc"})
    assert "Tests result: SUCCESS" in output


@programs("perl")
def test_perl_counts_sorts_and_substitutes(stage):
    """Hashes of strings, sorting, regular expressions, SHA-256."""
    stage.same("perl", INPUTS / "churn.pl", env={"PERL_HASH_SEED": "0"})


@programs("ruby")
def test_ruby_runs_threads_and_compacts(stage):
    """Threads that grow strings, JSON round trip, big integers, GC.compact."""
    stage.same("ruby", INPUTS / "churn.rb")


@programs("lua5.4")
def test_lua_churns_strings(stage):
    """A million strings through a table, gsub, an allocation that must fail."""
    stage.same("lua5.4", INPUTS / "churn.lua")


@programs("php")
def test_php_churns_on_malloc_alone(stage):
    """Arrays, JSON round trip and regular expressions with Zend's own allocator off."""
    # Its extensions are opened with RTLD_DEEPBIND: without entry/glibc/deepbind.c this crashes.
    output = stage.same("php", INPUTS / "churn.php", env={"USE_ZEND_ALLOC": "0"})
    assert "bool(true)" in output


@programs("node")
def test_node_compresses_in_workers(stage):
    """Buffers, gzip and SHA-256 in four worker threads, a large JSON round trip."""
    output = stage.same("node", INPUTS / "churn.js")
    assert output.endswith("100000 49\n")


@programs("java", "javac")
def test_java_compiles_and_runs_threads(stage):
    """javac, then gzip and direct buffers in a pool and in 200 short threads."""
    stage.run("javac", "-d", stage.folder, INPUTS / "Churn.java")
    stage.same("java", "-Xmx512m", "-cp", stage.folder, "Churn")


@programs("gawk")
def test_gawk_counts_words(stage):
    """Counts, joins and sorts the words of 40,000 lines."""
    stage.same("gawk", "-f", INPUTS / "words.awk", stdin=some_text(40000))


@programs("bash")
def test_bash_forks_and_pipes(stage):
    """Arrays, substitution, pipes, 300 subshells and their small programs."""
    stage.same("bash", INPUTS / "pipes.sh")


# Compilers and builds


def compiled(stage, *compiler):
    """The object file of the heavy templates, which is that of the system run."""
    objects = [stage.folder / "system.o", stage.folder / "ours.o"]
    for run, target in zip((stage.run_on_system, stage.run), objects):
        run(*compiler, "-std=c++17", "-c", INPUTS / "heavy.cpp", "-o", target)
    assert objects[0].read_bytes() == objects[1].read_bytes()
    return objects[1]


@programs("g++", "as", "ld")
def test_gcc_compiles_heavy_templates(stage):
    """Compiles deep templates with -O2 to the same object file, links, runs four threads."""
    stage.run("g++", compiled(stage, "g++", "-O2"), "-pthread", "-o", stage.folder / "heavy")
    assert "bad_alloc" in stage.same(stage.folder / "heavy").splitlines()
    assert any("/cc1plus" in program for program, _, _ in stage.witnessed())


@programs("clang")
def test_clang_compiles_heavy_templates(stage):
    """Compiles the same C++ with -O1 to the same object file."""
    compiled(stage, "clang", "-O1")


@programs("rustc", "cargo")
def test_cargo_builds_and_tests_a_crate(stage):
    """cargo builds a release binary whose threads free each other's boxes."""
    crate = stage.folder / "churn"
    stage.run("cargo", "init", "--quiet", "--vcs=none", "--name=churn", crate)
    shutil.copy(INPUTS / "churn.rs", crate / "src/main.rs")
    stage.run("cargo", "build", "--quiet", "--release", "--offline", cwd=crate)
    stage.same(crate / "target/release/churn")
    stage.assert_engaged([crate / "target/release/churn"])


@programs("go")
def test_go_calls_malloc_through_cgo(stage):
    """go build with cgo; goroutines free blocks that others made."""
    program = stage.folder / "churn"
    stage.run("go", "build", "-o", program, INPUTS / "churn.go",
              env={"CGO_ENABLED": "1", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"})
    assert stage.same(program) == f"{4 * 20000 * 64 * 7}\n"
    stage.assert_engaged([program])


@programs("cmake", "ninja", "ctest")
def test_cmake_and_ninja_build_a_project(stage):
    """Configures, builds 40 sources in parallel, runs ctest, finds nothing left to do."""
    calls = "+".join(f"f{n}()" for n in range(40))
    declarations = "".join(f"int f{n}(void);" for n in range(40))
    for n in range(40):
        (stage.folder / f"f{n}.c").write_text(f"int f{n}(void) {{ return {n}; }}\n")
    (stage.folder / "main.c").write_text(
        f"{declarations}\nint main(void) {{ return {calls} != {sum(range(40))}; }}\n")
    (stage.folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(sum C)\nenable_testing()\n"
        "file(GLOB parts f*.c)\nadd_library(parts STATIC ${parts})\n"
        "add_executable(sum main.c)\ntarget_link_libraries(sum parts)\nadd_test(sum sum)\n")
    stage.run("cmake", "-G", "Ninja", "-S", ".", "-B", "build")
    stage.run("ninja", "-C", "build")
    assert "100% tests passed" in stage.run("ctest", "--test-dir", "build")
    assert "no work to do" in stage.run("ninja", "-C", "build")


@programs("git")
def test_git_keeps_a_history(stage):
    """120 commits, branches, merge, gc, fsck, clone; the hash equals the system run's."""
    def history(run, folder):
        dates = {"GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
                 "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z"}

        def git(*words):
            return run("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c",
                       "init.defaultBranch=main", *words, cwd=folder, env=dates)

        folder.mkdir()
        git("init", "--quiet")
        for n in range(120):
            if n == 60:
                git("checkout", "--quiet", "-b", "side")
            (folder / f"file{n % 17}").write_text(some_text(60, seed=n))
            git("add", ".")
            git("commit", "--quiet", "-m", f"commit {n}")
        git("checkout", "--quiet", "main")
        git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
        git("gc", "--quiet", "--aggressive", "--prune=now")
        git("fsck", "--full", "--strict")
        git("clone", "--quiet", "--no-local", folder, folder / "clone")
        assert len(git("-C", "clone", "log", "--oneline").splitlines()) == 121
        return git("-C", "clone", "log", "--format=%H", "-p")

    expected = history(stage.run_on_system, stage.folder / "system")
    assert history(stage.run, stage.folder / "ours") == expected


@programs("gdb")
def test_gdb_debugs_a_program(stage):
    """Compiles C, breaks in a recursion, prints a backtrace and evaluates an expression."""
    source = stage.folder / "sum.c"
    source.write_text("int down(int n) { return n ? n + down(n - 1) : 0; }\n"
                      "int main(void) { return down(50) != 1275; }\n")
    stage.run("gcc", "-g", "-O0", source, "-o", stage.folder / "sum")
    # The program under gdb keeps its addresses: gdb switches the randomisation off where it may.
    output = stage.run("gdb", "-nx", "-batch", "-ex", "break down if n == 0", "-ex", "run", "-ex",
                       "backtrace", "-ex", "print n * 7 + 3", "-ex", "continue",
                       stage.folder / "sum")
    assert output.count("down (n=") >= 51 and "$1 = 3" in output and "exited normally" in output


# Data, documents, media


@programs("sqlite3")
def test_sqlite_loads_indexes_and_checks(stage):
    """200,000 rows, two indexes, a join, updates, VACUUM, integrity_check."""
    script = ("create table t(a integer primary key, b text, c integer);"
              "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)"
              " insert into t select i, printf('%x', i * 2654435761 % 4294967296), i % 977 from n;"
              "create index tb on t(b); create index tc on t(c);"
              "update t set b = b || 'x' where c % 5 = 0; delete from t where c = 13; vacuum;"
              "select count(*), sum(length(x.b)) from t x join t y on x.c = y.a;"
              "select b, c from t order by b limit 3 offset 1000; pragma integrity_check;")
    output = stage.same("sqlite3", "-batch", ":memory:", script)
    assert output.endswith("ok\n")
    stage.run("sqlite3", "-batch", "base.db", script)
    assert stage.run("sqlite3", "base.db", "pragma integrity_check") == "ok\n"


@programs("jq")
def test_jq_groups_and_sorts(stage):
    """Parses 60,000 objects, groups, sorts and prints them."""
    rows = "\n".join(f'{{"id":{n},"k":"g{n * 7919 % 613}","v":[{n},"{"x" * (n % 40)}"]}}'
                     for n in range(60000))
    stage.same("jq", "-s", "group_by(.k)|map({k:.[0].k,n:length,s:(map(.v[1]|length)|add)})|sort",
               stdin=rows)


@programs("xmllint")
def test_xmllint_parses_and_queries(stage):
    """Parses, reformats and canonicalises 50,000 elements, answers an XPath."""
    document = stage.folder / "big.xml"
    document.write_text("<r>" + "".join(f'<i n="{n}"><t>{"x" * (n % 50)}&amp;</t></i>'
                                        for n in range(50000)) + "</r>")
    stage.same("xmllint", "--format", document)
    stage.same("xmllint", "--c14n", document)
    assert stage.same("xmllint", "--xpath", "count(//i[@n mod 7 = 0])", document) == "7143\n"


@programs("gs")
def test_ghostscript_renders(stage):
    """PostScript to PDF, the PDF to a bitmap: the pixels equal the system run's."""
    quiet = ("gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE")
    stage.run(*quiet, "-sDEVICE=pdfwrite", "-o", "page.pdf", INPUTS / "page.ps")
    stage.same(*quiet, "-sDEVICE=ppmraw", "-r80", "-sstdout=%stderr", "-sOutputFile=-", "page.pdf")


@programs("convert")
def test_imagemagick_filters(stage):
    """Draws plasma, blurs, resizes, rotates and swirls: the pixels equal the system run's."""
    stage.same("convert", "-seed", "7", "-size", "700x500", "plasma:fractal", "-blur", "0x3",
               "-resize", "60%", "-rotate", "17", "-swirl", "90", "-depth", "8", "ppm:-")


@programs("ffmpeg")
def test_ffmpeg_encodes_and_decodes(stage):
    """Encodes a test picture and a tone with two threads, decodes: equal frame checksums."""
    tool = ("ffmpeg", "-nostdin", "-loglevel", "error", "-bitexact")
    film = stage.folder / "film.mkv"
    stage.run(*tool, "-f", "lavfi", "-i", "testsrc2=size=480x270:rate=25:duration=4", "-f", "lavfi",
              "-i", "sine=frequency=440:duration=4", "-c:v", "mpeg4", "-q:v", "5", "-c:a", "flac",
              "-threads", "2", film)
    output = stage.same(*tool, "-i", film, "-vf", "scale=240:-1,hflip", "-f", "framemd5", "-")
    assert sum(line.startswith("0,") for line in output.splitlines()) == 100


def pigeons(count):
    """So many pigeons, each in a hole of its own, one hole too few."""
    birds, holes = range(count), range(count - 1)
    lines = [f"(declare-const p{b}_{h} Bool)" for b in birds for h in holes]
    lines += [f"(assert (or {' '.join(f'p{b}_{h}' for h in holes)}))" for b in birds]
    lines += [f"(assert (not (and p{a}_{h} p{b}_{h})))" for h in holes for b in birds
              for a in range(b)]
    return "\n".join([*lines, "(check-sat)"])


@programs("z3")
def test_z3_proves(stage):
    """Queens, factoring by bit vectors and ten pigeons, with the right five answers."""
    riddles = (INPUTS / "riddles.smt2").read_text() + pigeons(10)
    answers = stage.run("z3", "-in", stdin=riddles).split()
    assert answers == ["sat", "unsat", "sat", "unsat", "unsat"]


@programs("openssl")
def test_openssl_signs_and_encrypts(stage):
    """RSA key, certificate, verification, AES there and back, a digest that Python confirms."""
    text = some_text(20000)
    (stage.folder / "text").write_text(text)
    stage.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out",
              "cert", "-subj", "/CN=localhost", "-days", "2")
    assert "cert: OK" in stage.run("openssl", "verify", "-CAfile", "cert", "cert")
    stage.run("openssl", "cms", "-encrypt", "-binary", "-aes256", "-in", "text", "-out", "secret",
              "cert")
    assert stage.run("openssl", "cms", "-decrypt", "-in", "secret", "-inkey", "key") == text
    digest = stage.run("openssl", "dgst", "-sha256", "-r", "text").split()[0]
    assert digest == hashlib.sha256(text.encode()).hexdigest()


@programs("tar", "xz", "zstd", "gzip")
def test_archives_survive_packing(stage):
    """tar through gzip, xz (two threads) and zstd (two threads), unpacked and compared."""
    tree = stage.folder / "tree"
    for n in range(60):
        (tree / f"d{n % 7}").mkdir(parents=True, exist_ok=True)
        (tree / f"d{n % 7}/f{n}").write_text(some_text(300, seed=n))
    for packer in ("gzip", "xz -T2 --block-size=1MiB", "zstd -q -T2 -9"):
        stage.run("tar", "-I", packer, "-cf", "packed", "tree")
        stage.run("tar", "-I", packer.split()[0], "-df", "packed")


@programs("vim")
def test_vim_edits_in_batch(stage):
    """Substitutes, sorts, undoes and runs a macro over 20,000 lines without a screen."""
    def edit(run, name):
        target = stage.folder / name
        target.write_text(some_text(20000))
        run("vim", "-u", "NONE", "-es", "-N", "-c", r"%s/w\(\x\+\)/<\1>/g", "-c", "sort", "-c",
            "g/7>$/normal A!", "-c", "undo", "-c", "redo", "-c", "v/a/d", "-c", "wq", target,
            env={"TERM": "dumb"})
        return target.read_text()

    expected = edit(stage.run_on_system, "system.txt")
    assert expected.count("!\n") > 100
    assert edit(stage.run, "ours.txt") == expected
