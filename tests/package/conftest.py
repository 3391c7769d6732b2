"""What tests of the command `hakmem` and of what is installed share."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from files import ROOT, clean_environment, run

sys.path.append(str(ROOT / "tools"))


@pytest.fixture(scope="session")
def built():
    """The folder of the build that is tested."""
    if not os.environ.get("TESTED_BUILD"):
        pytest.skip("TESTED_BUILD is not set")
    return Path(os.environ["TESTED_BUILD"])


@pytest.fixture(scope="session")
def library():
    if not os.environ.get("TESTED_LIBRARY"):
        pytest.skip("TESTED_LIBRARY is not set")
    return Path(os.environ["TESTED_LIBRARY"]).resolve()


@pytest.fixture(scope="session")
def prefix(built, tmp_path_factory):
    """Where `cmake --install` has put what was built."""
    place = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", built, "--prefix", place)
    return place


@pytest.fixture(scope="session")
def libraries(prefix):
    return next(prefix.rglob("libhakmem.so")).parent


def heed_ctrl_c():
    """A shell without job control may have started the tests with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def hakmem(library, tmp_path):
    """Runs the command with the library that is tested, in the folder of the test."""
    environment = clean_environment(LIBHAKMEM=library, PYTHONPATH=ROOT / "python")

    def run_command(*words, stdin=None, preexec_fn=heed_ctrl_c, **more):
        return subprocess.run([sys.executable, "-B", "-m", "hakmem.command", *words], cwd=tmp_path,
                              env=environment | more, stdin=stdin, preexec_fn=preexec_fn,
                              capture_output=True, text=True, check=False)

    return run_command


@pytest.fixture
def compiled(tmp_path):
    """compiled(text, flags…) is a program of the test that has a build ID."""
    def compile_text(text, *flags, name="program"):
        (tmp_path / f"{name}.c").write_text(text)
        run("cc", "-fno-builtin", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1",
            tmp_path / f"{name}.c", "-o", tmp_path / name, *flags)
        return tmp_path / name

    return compile_text
