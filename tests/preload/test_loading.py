"""How the library comes into a process: by preload, dlopen, link, beside other tools, set-uid."""
import os
import platform
import re
import shutil
import signal
import subprocess

import pytest

from conftest import clean_environment, succeeds

FAMILY = """malloc calloc realloc free reallocarray posix_memalign aligned_alloc memalign valloc
pvalloc cfree malloc_usable_size malloc_trim mallopt mallinfo mallinfo2 malloc_info malloc_stats
free_sized free_aligned_sized __libc_malloc __libc_calloc __libc_realloc __libc_free
__libc_memalign __libc_valloc __libc_pvalloc hakmem_version hakmem_owns hakmem_purge hakmem_idle
hakmem_check hakmem_get_statistics hakmem_option_get
_Znwm _Znam _ZnwmSt11align_val_t _ZnamSt11align_val_t _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t
_ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t
_ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t
_ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t
_ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t""".split()


def exported(library):
    rows = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True,
                          capture_output=True, text=True).stdout.splitlines()
    return {row.split()[2].split("@")[0] for row in rows if row.split()[1] != "A"}


def test_the_whole_family_is_exported(library):
    assert set(FAMILY) - exported(library) == set()


def test_nothing_else_is_exported(library):
    ours = re.compile(r"hakmem_\w+|__libc_\w+|_Z(nw|na|dl|da)\w+|dlopen")
    assert {name for name in exported(library) - set(FAMILY) if not ours.fullmatch(name)} == set()


def test_thread_data_uses_the_initial_exec_model(library):
    dynamic = subprocess.run(["readelf", "-dW", str(library)], check=True, capture_output=True,
                             text=True).stdout
    relocations = subprocess.run(["readelf", "-rW", str(library)], check=True,
                                 capture_output=True, text=True).stdout
    assert "STATIC_TLS" in dynamic
    assert "DTPMOD" not in relocations and "TLSDESC" not in relocations
    assert "__tls_get_addr" not in relocations


def test_only_the_c_library_is_needed(library):
    dynamic = subprocess.run(["readelf", "-dW", str(library)], check=True, capture_output=True,
                             text=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert all(name.startswith(("libc.", "ld-linux", "libpthread.")) for name in needed), needed


def test_the_library_can_be_opened_at_run_time(build, run, library):
    assert succeeds(run(build("self_open.c"), library, preload=None)) == "ok\n"


def test_the_library_can_be_opened_when_it_is_already_preloaded(build, run, library):
    assert succeeds(run(build("self_open.c"), library)) == "ok\n"


def test_plugins_come_and_go(build, run):
    plugin = build("plugin.c", "-shared", "-fPIC")
    assert succeeds(run(build("host.c"), "plain", plugin)) == "ok\n"


def test_a_deepbind_plugin_may_keep_to_itself(build, run):
    plugin = build("plugin.c", "-shared", "-fPIC")
    assert succeeds(run(build("host.c"), "deepbind", plugin)) == "ok\n"


def test_a_block_of_a_deepbind_plugin_is_recognised(build, run):
    """It comes from the C library's heap: passed on to it, or refused by name; never taken in."""
    plugin = build("plugin.c", "-shared", "-fPIC")
    result = run(build("host.c"), "into_host", plugin)
    pointer = result.stdout.splitlines()[0]
    refusal = f"hakmem: free of {pointer}, which is not an address of this heap\n"
    assert result.stderr in ("", refusal)
    assert result.returncode == (-signal.SIGABRT if result.stderr else 0)


@pytest.mark.parametrize("way", ["into_host", "into_plugin"])
def test_safe_mode_lets_a_deepbind_plugin_cross(build, run, way):
    plugin = build("plugin.c", "-shared", "-fPIC")
    succeeds(run(build("host.c"), way, plugin, HAKMEM_LD_SAFE=1))


def test_fork_handlers_of_other_libraries_may_allocate(build, run):
    library = build("fork_handlers.c", "-shared", "-fPIC", name="libforkhandlers.so")
    program = build("forks.c", "-Wl,--no-as-needed", library,
                    f"-Wl,-rpath,{library.parent}")
    assert succeeds(run(program)) == "ok\n"


def test_a_plugin_may_bring_the_cxx_runtime(build, run):
    plugin = build("late_plugin.cc", "-shared", "-fPIC")
    assert succeeds(run(build("late_runtime.c"), plugin)) == "ok\n"


def test_safe_mode_leaves_everything_to_the_c_library(build, run):
    succeeds(run(build("safe.c"), HAKMEM_LD_SAFE=1))


def test_the_end_of_a_process_is_orderly(build, run):
    assert succeeds(run(build("at_exit.c"))) == "handler\ndestructor\n"


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("tool", ["interposer.c", "wrapper.c"])
def test_tools_that_interpose_and_allocate_are_no_trouble(build, run, library, tool, order):
    other = build(tool, "-shared", "-fPIC")
    pair = [other, library] if order == "before" else [library, other]
    program = build("churn.c")
    expected = succeeds(run(program, 2, preload=None))
    assert succeeds(run(program, 2, preload=":".join(map(str, pair)))) == expected


@pytest.mark.parametrize("how", [(), ("-static",)], ids=["dynamic", "static"])
def test_programs_link_with_the_archive(build, run, archive, how):
    program = build("linked.c", *how, archive, name="linked" + "".join(how))
    assert succeeds(run(program, preload=None)) == "ok\n"


@pytest.mark.parametrize("how", [(), ("-static",)], ids=["dynamic", "static"])
def test_cxx_programs_link_with_the_archive(build, run, archive, how):
    program = build("api/operator_new_contract.cc", *how, archive, name="cxx" + "".join(how))
    assert "ok" in succeeds(run(program, preload=None))


@pytest.mark.parametrize("setting,words", [
    (("HAKMEM_MODE", "nonsense"), ["minimal", "debug"]),
    (("HAKMEM_PURGE_DELAY_MS", "banana"), ["3600000"]),
    (("HAKMEM_PURGE_DELAY_MS", "-1"), ["3600000"]),
    (("HAKMEM_PURGE_DELAY_MS", "99999999999999999999"), ["3600000"]),
    (("HAKMEM_BIGCACHE", "maybe"), ["on", "off"]),
    (("HAKMEM_NO_SUCH_OPTION", "1"), []),
])
def test_a_wrong_option_is_told_in_one_line_and_ignored(build, run, setting, words):
    result = run(build("churn.c"), 2, **dict([setting]))
    assert result.returncode == 0
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("hakmem["), result
    assert all(word in result.stderr for word in [setting[0], *words]), result.stderr


def test_debug_mode_fills_memory(build, run):
    succeeds(run(build("junk.c"), HAKMEM_MODE="debug"))


def test_a_set_uid_program_ignores_the_environment(build, run, library, tmp_path):
    """Preloading is ignored by the loader there, so the program is linked to a copy. It reads no
    file that the environment names, and writes none."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a set-uid program of another user")
    folder = build("churn.c").parent
    copy = shutil.copy(library, folder / "libhakmem_copy.so")
    os.chmod(copy, 0o755)
    for outer in folder.parents[:2]:
        outer.chmod(outer.stat().st_mode | 0o055)
    program = build("secure.c", copy, f"-Wl,-rpath,{folder}", "-Wl,--disable-new-dtags")
    name = re.search(r"SONAME.*\[(.*)\]", subprocess.run(
        ["readelf", "-d", copy], check=True, capture_output=True, text=True).stdout)
    if name:
        shutil.copy(copy, folder / name.group(1))
        os.chmod(folder / name.group(1), 0o755)
    written = tmp_path / "written"
    written.mkdir()
    written.chmod(0o777)
    (tmp_path / "wrong.policy").write_text("no policy\n")
    asked = {"HAKMEM_MODE": "nonsense", "HAKMEM_POLICY": tmp_path / "wrong.policy",
             **{f"HAKMEM_{kind}": written / kind for kind in ("PROFILE", "STATS", "TRACE")}}
    control = run(program, preload=None, **asked)
    assert control.stdout == "secure 0\n" and "nonsense" in control.stderr
    assert "HAKMEM_POLICY is ignored" in control.stderr and len(list(written.iterdir())) == 3
    for each in written.iterdir():
        each.unlink()
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    result = run(program, preload=None, **asked)
    if result.stdout == "secure 0\n":
        pytest.skip("this system does not honour set-uid")
    assert (result.stdout, result.stderr) == ("secure 1\n", "")
    assert not list(written.iterdir())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 instructions")
def test_one_thread_executes_no_atomic_instruction(build, run, library):
    if "]: route " in run("true", HAKMEM_FREE_ROUTE_TRACE=1).stderr:
        pytest.skip("a diagnostic build counts routes atomically")
    result = subprocess.run([build("single_step.c"), build("stepped.c"), library], check=False,
                            env=clean_environment(), capture_output=True, text=True, timeout=120)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    assert result.returncode == 0, result
    steps, atomic = map(int, result.stdout.splitlines()[-1].split())
    assert steps > 20000
    assert atomic == 0, result.stdout
