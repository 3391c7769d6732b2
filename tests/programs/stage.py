"""The stage: runs a program on the preloaded allocator and proves that the allocator served it.

One `Stage` exists per test (conftest.py makes it). It owns the environment, the time limits, the
servers that the test started and the record of the witness (lab/witness.c).
"""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INPUTS = Path(__file__).parent / "inputs"

# Debian's own programs, not whatever else a developer has first in PATH. Postgres comes before
# them: in /usr/bin its names are perl wrappers.
PATH = ":".join([*sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:],
                 "/usr/bin", "/bin", "/usr/sbin", "/sbin"])

# One command may take this long; the slowest takes a third of it.
COMMAND_LIMIT_S = 90


def find(program):
    """The real path of a program of the matrix, or None."""
    path = shutil.which(program, path=PATH)
    return os.path.realpath(path) if path else None


def build_witness(folder):
    target = folder / "witness.so"
    source = ROOT / "lab/witness.c"
    subprocess.run(["cc", "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fplt",
                    "-fno-builtin", "-shared", "-I", ROOT / "include",
                    "-Wl,-z,now", "-o", target, source], check=True)
    return target


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(happens, what, limit_s=30):
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if happens():
            return
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {limit_s} s")


def port_is_open(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Stage:
    """Where one test plays: a folder, an environment, a record.

    `folder` admits only who runs the tests, `open_folder` everybody (pytest makes its own private).
    """

    def __init__(self, library, witness, folder, open_folder):
        self.library, self.folder, self.open_folder = library, folder, open_folder
        open_folder.mkdir()
        self.record = record = open_folder / "record"
        record.touch()
        record.chmod(0o666)  # servers that run as another user testify too
        self.system = {"PATH": PATH, "HOME": str(folder), "TMPDIR": str(folder),
                       "LANG": "C.UTF-8", "TZ": "UTC"}
        switches = {name: value for name, value in os.environ.items()
                    if name.startswith("HAKMEM_")}
        self.preload = self.system | switches | {"LD_PRELOAD": f"{library}:{witness}",
                                                 "MALLOC_WITNESS": str(record)}
        self.servers = []
        self.started = 0  # programs, counted at the end

    # Commands

    def folder_of(self, user):
        """A folder that a server may call its own when it runs as another user."""
        folder = self.open_folder / user
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, user)
        return folder

    def run(self, *command, stdin="", status=0, env=None, cwd=None, user=None):
        """Runs a command on the allocator; returns its output. Status None: any will do."""
        return self._run(self.preload | (env or {}), command, stdin, status, cwd, user)

    def run_on_system(self, *command, stdin="", status=0, env=None, cwd=None):
        """The same without preload: the reference."""
        return self._run(self.system | (env or {}), command, stdin, status, cwd, None)

    def same(self, *command, stdin="", env=None):
        """Runs a command on the allocator and on the system's; returns the output both gave."""
        expected = self.run_on_system(*command, stdin=stdin, env=env)
        output = self.run(*command, stdin=stdin, env=env)
        assert output == expected, f"{command[0]}: the output differs from the system malloc's"
        assert output, f"{command[0]} printed nothing"
        return output

    def _run(self, env, command, stdin, status, cwd, user):
        command = [str(word) for word in command]
        child = subprocess.Popen(command, env=env, cwd=cwd or self.folder, user=user,
                                 group=pwd.getpwnam(user).pw_gid if user else None,
                                 text=True, errors="surrogateescape", start_new_session=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        try:
            output, errors = child.communicate(stdin, timeout=COMMAND_LIMIT_S)
        finally:
            end_group(child)
        assert_silent(errors, command[0])
        assert status is None or child.returncode == status, (
            f"{command[0]} ended with {child.returncode}, not {status}:\n"
            f"{output[-2000:]}\n{errors[-2000:]}")
        return output

    # Servers

    def serve(self, *command, port, user=None, stop=signal.SIGTERM):
        """Starts a server on the allocator and waits for its port; the test's end stops it."""
        log = (self.folder / f"server-{len(self.servers)}.log").open("w+b")
        server = subprocess.Popen([str(word) for word in command], env=self.preload,
                                  cwd=self.folder if user is None else "/", user=user,
                                  group=pwd.getpwnam(user).pw_gid if user else None,
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  start_new_session=True)
        self.servers.append((server, log, command[0], stop))
        wait_until(lambda: port_is_open(port) or server.poll() is not None, command[0])
        assert server.poll() is None, f"{command[0]} did not start:\n{tail(log)}"
        return server

    def stop_servers(self):
        """Every server must still be alive, go when told to, and have said nothing of ours."""
        complaints = []
        try:
            self._ask_to_stop(complaints)
        finally:
            for server, log, _, _ in self.servers:
                end_group(server)
                complaints += [line for line in read_log(log).splitlines() if is_ours(line)]
                log.close()
            self.servers = []
        assert not complaints, "\n".join(complaints)

    def _ask_to_stop(self, complaints):
        for server, log, name, stop in reversed(self.servers):
            if server.poll() is not None:
                complaints.append(f"{name} died with {server.returncode}:\n{tail(log)}")
                continue
            server.send_signal(stop)
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                complaints.append(f"{name} did not stop")
            if server.returncode not in (0, None):
                complaints.append(f"{name} ended with {server.returncode}:\n{tail(log)}")

    # Proof

    def witnessed(self):
        """(program, function, library that it is bound to) for every program that started."""
        rows = [tuple(line.split("\t")) for line in self.record.read_text().splitlines()]
        return [row[:3] for row in rows if row[1] != "counter"]

    def assert_engaged(self, programs):
        """Each named program ran, and every program that ran had its malloc from the library."""
        seen = self.witnessed()
        ran = {program for program, _, _ in seen}
        for name in programs:
            assert find(name) in ran, f"{name} never ran with the library: {sorted(ran)}"
        strangers = {row for row in seen if row[2] != str(self.library)}
        assert not strangers, f"bound elsewhere: {sorted(strangers)}"


def end_group(child):
    """Whatever a command left behind ends with it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def read_log(log):
    log.seek(0)
    return log.read().decode(errors="replace")


def tail(log):
    return read_log(log)[-4000:]


def is_ours(line):
    return line.startswith(("hakmem:", "hakmem["))


def assert_silent(errors, name):
    ours = [line for line in errors.splitlines() if is_ours(line)]
    assert not ours, f"{name}: the allocator spoke: {ours[:5]}"
