"""Programs that replace some forms of operator new and delete, as C++ allows.

All sets of the eight base forms, and each of the other twelve alone. What a program sees of its
own forms is what it sees with the C library's malloc and libstdc++, wherever the forms come from;
and it keeps its environment, before which the library looks for what the nothrow forms need.
"""
import concurrent.futures
import itertools
import os
import shutil
import subprocess

import pytest

from conftest import FLAGS, TESTS, clean_environment

BASE = """_Znwm _Znam _ZnwmSt11align_val_t _ZnamSt11align_val_t
_ZdlPv _ZdaPv _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t""".split()
OTHERS = """_ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t
_ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t
_ZdlPvm _ZdaPvm _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t
_ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t
_ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t""".split()
SETS = [*(chosen for count in range(len(BASE) + 1)
          for chosen in itertools.combinations(BASE, count)),
        *((form,) for form in OTHERS), tuple(BASE + OTHERS)]
HEADER = 32


def command(*words):
    subprocess.run([str(word) for word in words], check=True)


class Kit:
    """Compiles once; links each set of replaced forms into programs and libraries."""

    def __init__(self, folder):
        self.folder = folder
        self.main = folder / "main.o"
        self.all_forms = folder / "replaced.o"
        for source, target in ("replaced_main", self.main), ("replaced", self.all_forms):
            command("c++", "-std=c++17", *FLAGS, "-fPIC", "-c",
                    TESTS / f"preload/{source}.cc", "-o", target)
        self.expected = {}

    def place(self, chosen):
        place = self.folder / str(SETS.index(chosen))
        place.mkdir(exist_ok=True)
        return place

    def forms(self, chosen):
        """An object file that shows the chosen forms and no others."""
        made = self.place(chosen) / "forms.o"
        if not made.exists():
            hidden = [f"--localize-symbol={form}" for form in BASE + OTHERS if form not in chosen]
            command("objcopy", *hidden, self.all_forms, made)
        return made

    def program(self, chosen, *more):
        made = self.place(chosen) / ("static" if "-static" in more else "program")
        if not made.exists():
            command("c++", self.main, self.forms(chosen), *more, "-rdynamic", "-o", made)
        return made

    def library(self, chosen):
        made = self.place(chosen) / "libforms.so"
        if not made.exists():
            command("c++", "-shared", "-Wl,-soname,libforms.so", self.forms(chosen), "-o", made)
        return made

    def program_with_library(self, *behind):
        """A program that needs libforms.so, and then what else is named."""
        made = self.folder / ("with_library" + "_and_more" * bool(behind))
        if not made.exists():
            command("c++", self.main, "-rdynamic", "-Wl,--no-as-needed", self.library(SETS[-1]),
                    *behind, *(f"-Wl,-rpath,{path.parent}" for path in behind), "-o", made)
        return made

    def reference(self, chosen):
        """What the forms see with the C library's malloc, and the lengths of headers they allow."""
        if chosen not in self.expected:
            text = seen(self.program(chosen), 0)
            headers = [0] if " NOT " in text else [0, HEADER]
            self.expected[chosen] = text, headers
        return self.expected[chosen]


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    if not shutil.which("c++") or not shutil.which("objcopy"):
        pytest.skip("no C++ compiler")
    return Kit(tmp_path_factory.mktemp("operators"))


def seen(program, header, **environment):
    done = subprocess.run([str(program), str(header)], capture_output=True, text=True, timeout=120,
                          env=clean_environment(THE_VARIABLE="its value", **environment),
                          check=False)
    return done.stdout + (f"status {done.returncode}: {done.stderr}" if done.returncode else "")


def differing(kit, look, expected=None):
    """The sets for which `look(chosen, header)` is not what it is with the C library's malloc, or
    for the set that is expected instead."""

    def difference(chosen):
        text, headers = kit.reference(chosen if expected is None else expected)
        for header in headers:
            found = look(chosen, header)
            if found != text:
                return [pair for pair in itertools.zip_longest(found.splitlines(),
                                                               text.splitlines())
                        if pair[0] != pair[1]][:3]
        return []

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = dict(zip(SETS, pool.map(difference, SETS)))
    return {chosen: lines for chosen, lines in answers.items() if lines}


def test_the_reference_has_every_form_and_refuses_wrong_pairs(kit):
    text, headers = kit.reference(SETS[-1])
    assert text.startswith("the variable: its value\n")
    assert len(headers) == 2 and {line.split(":")[1] for line in text.splitlines()} >= \
        {" new / delete", " new[]-a-n / delete[]-s-a", " new-n = null", " new = bad_alloc"}
    assert kit.reference(("_Znwm",))[1] == [0]
    assert kit.reference(("_Znwm", "_ZdlPv"))[1] == [0, HEADER]


def test_a_program_that_replaces_operators(kit, library):
    assert differing(kit, lambda chosen, header:
                     seen(kit.program(chosen), header, LD_PRELOAD=library)) == {}


def test_a_library_of_the_program_replaces_operators(kit, library):
    program = kit.program_with_library(library)
    assert differing(kit, lambda chosen, header:
                     seen(program, header, LD_LIBRARY_PATH=kit.library(chosen).parent)) == {}


def test_a_preloaded_library_replaces_operators(kit, library):
    program = kit.program(())
    assert differing(kit, lambda chosen, header: seen(
        program, header, LD_PRELOAD=f"{kit.library(chosen)}:{library}")) == {}


def test_the_forms_of_a_library_behind_a_preloaded_hakmem_are_not_called_at_all(kit, library):
    program = kit.program_with_library()
    assert differing(kit, lambda chosen, header: seen(
        program, header, LD_PRELOAD=library, LD_LIBRARY_PATH=kit.library(chosen).parent),
        expected=()) == {}


def test_a_static_program_replaces_operators(kit, archive):
    assert differing(kit, lambda chosen, header:
                     seen(kit.program(chosen, archive, "-static"), header)) == {}
