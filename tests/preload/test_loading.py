"""How the library comes into a process: by preload, dlopen, link, beside other tools, set-uid."""
import os
import platform
import re
import shutil
import signal

import pytest

from conftest import output, succeeds, succeeds_or_skips

def test_thread_data_uses_the_initial_exec_model(library):
    relocations = output("readelf", "-rW", library)
    assert "STATIC_TLS" in output("readelf", "-dW", library)
    assert "DTPMOD" not in relocations and "TLSDESC" not in relocations
    assert "__tls_get_addr" not in relocations


def test_only_the_c_library_is_needed(library):
    needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", library))
    assert all(name.startswith(("libc.", "ld-linux", "libpthread.")) for name in needed), needed


@pytest.mark.parametrize("preloaded", [False, True])
def test_the_library_can_be_opened_at_run_time(build, run, library, preloaded):
    result = run(build("self_open.c"), library, preload=library if preloaded else None)
    assert succeeds(result) == "ok\n"


@pytest.mark.parametrize("way,settings", [
    ("plain", {}), ("deepbind", {}), ("into_host", {"HAKMEM_LD_SAFE": 1}),
    ("into_plugin", {"HAKMEM_LD_SAFE": 1})])
def test_plugins_come_and_go(build, run, plugin, way, settings):
    """One with RTLD_DEEPBIND may keep to itself; safe mode lets its blocks cross."""
    assert succeeds(run(build("host.c"), way, plugin, **settings)).endswith("ok\n")


def test_a_block_of_a_deepbind_plugin_is_recognised(build, run, plugin):
    """It comes from the C library's heap: passed on to it, or refused by name; never taken in."""
    result = run(build("host.c"), "into_host", plugin)
    pointer = result.stdout.splitlines()[0]
    refusal = f"hakmem: free of {pointer}, which is not an address of this heap\n"
    assert result.stderr in ("", refusal)
    assert result.returncode == (-signal.SIGABRT if result.stderr else 0)


def test_fork_handlers_of_other_libraries_may_allocate(build, run):
    """They are registered before any of the program's."""
    library = build("fork_handlers.c", "-shared", "-fPIC", name="libforkhandlers.so")
    program = build("stress/fork_busy.c", "-Wl,--no-as-needed", library,
                    f"-Wl,-rpath,{library.parent}", name="handled_forks")
    succeeds(run(program, "the_child_of_a_busy_process_can_allocate"))


def test_a_plugin_may_bring_the_cxx_runtime(build, run):
    assert succeeds(run(build("host.c"), "runtime",
                        build("late_plugin.cc", "-shared", "-fPIC"))) == "ok\n"


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


@pytest.mark.parametrize("source", ["api/native_contract.c", "api/operator_new_contract.cc"])
@pytest.mark.parametrize("how", [(), ("-static",)], ids=["dynamic", "static"])
def test_programs_link_with_the_archive(build, run, archive, source, how):
    program = build(source, "-DHEAP_MUST_BE_HAKMEM", *how, archive,
                    name=f"linked{len(source)}{len(how)}")
    assert "ok" in succeeds(run(program, preload=None))


def test_a_set_uid_program_ignores_the_environment(build, run, library, tmp_path):
    """Preloading is ignored by the loader there, so the program is linked to a copy. It reads no
    file that the environment names, and writes none."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a set-uid program of another user")
    folder = build("churn.c").parent
    copy = folder / re.search(r"SONAME.*\[(.*)\]", output("readelf", "-d", library))[1]
    shutil.copy(library, copy)
    copy.chmod(0o755)
    for outer in folder.parents[:2]:
        outer.chmod(outer.stat().st_mode | 0o055)
    program = build("option_effects.c", copy, f"-Wl,-rpath,{folder}", "-Wl,--disable-new-dtags",
                    name="secure")
    written = tmp_path / "written"
    written.mkdir()
    written.chmod(0o777)
    (tmp_path / "wrong.policy").write_text("no policy\n")
    asked = {"HAKMEM_MODE": "nonsense", "HAKMEM_POLICY": tmp_path / "wrong.policy",
             **{f"HAKMEM_{kind}": written / kind for kind in ("PROFILE", "STATS")}}
    control = run(program, "is_secure", preload=None, **asked)
    assert control.stdout.startswith("0\n") and "nonsense" in control.stderr
    assert "HAKMEM_POLICY is ignored" in control.stderr and len(list(written.iterdir())) == 2
    for each in written.iterdir():
        each.unlink()
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    result = run(program, "is_secure", preload=None, **asked)
    if result.stdout.startswith("0\n"):
        pytest.skip("this system does not honour set-uid")
    assert result.stdout.startswith("1\n") and result.stderr == ""
    assert not list(written.iterdir())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 instructions")
def test_one_thread_executes_no_atomic_instruction(build, run, library):
    if "]: route " in run("true", HAKMEM_FREE_ROUTE_TRACE=1).stderr:
        pytest.skip("a diagnostic build counts routes atomically")
    told = succeeds_or_skips(run(build("single_step.c"), library, preload=None))
    steps, atomic = map(int, told.splitlines()[-1].split())
    assert steps > 20000
    assert atomic == 0, told
