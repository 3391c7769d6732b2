"""The programs that tools/lifetimes.py records: how each is started, its load, and its end.

    recorded.py age|kind|random|stays|goes PORT KEYS [end]

The load of redis, with so many keys, for a server that is there (lab/suites/learning.toml). With
"end" the server is told to end. Of the kinds of keys that "kind" draws, "stays" only has the one
that is not deleted, and "goes" the others; they delete none.

Each is killed when its load is done, so that what it holds then is the end of its trace. Loads
are drawn with fixed seeds. All servers listen on this machine only, on a port that was free.
"""

import http.client
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "out/release"
PATIENCE_S = 60


class NotHere(Exception):
    """What a program needs is not on this machine."""


@dataclass
class Program:
    """`{port}` and `{folder}` in its words are filled in. The load gets the process and the port
    and returns when the end is reached."""
    words: tuple[str, ...]
    load: Callable[[subprocess.Popen[bytes], int], None]
    settings: dict[str, str] = field(default_factory=dict)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def record(name: str, folder: Path) -> Path:
    """Runs it under its load. The trace, which is the longest of its processes."""
    program = PROGRAMS[name]
    recorder, library = BUILT / "librecorder.so", BUILT / "libhakmem.so"
    if not recorder.exists():
        raise NotHere("make release builds the recorder")
    port = free_port()
    words = [word.format(port=port, folder=folder, built=BUILT, root=ROOT)
             for word in program.words]
    if not shutil.which(words[0]):
        raise NotHere(f"no {words[0]}")
    environment = dict(os.environ, LC_ALL="C", RECORDER_FILE=f"{folder}/%p.trace",
                       LD_PRELOAD=f"{recorder}:{library}", **program.settings)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
                          stderr=subprocess.DEVNULL, cwd=folder) as process:
        try:
            program.load(process, port)
        finally:
            process.kill()
    return max(folder.glob("*.trace"), key=lambda file: file.stat().st_blocks)


def until_done(process: subprocess.Popen[bytes], port: int) -> None:
    """Programs that say so themselves."""
    assert process.stdout is not None
    while (line := process.stdout.readline()) != b"done\n":
        if not line:
            raise RuntimeError("the program ended before it was done")


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """As soon as the server listens."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            link = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
            break
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
    with link:
        yield link


# ---- redis: three kinds of values of like sizes, then two thirds are deleted ----

def redis_command(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                             for word in map(str.encode, words))


def redis_told(link: socket.socket, commands: Sequence[bytes]) -> None:
    """Sends them, some at a time, and waits for as many answers of one line each."""
    answers = link.makefile("rb")
    for start in range(0, len(commands), 100):
        part = commands[start:start + 100]
        link.sendall(b"".join(part))
        for _ in part:
            if (answer := answers.readline())[:1] not in b":+":
                raise RuntimeError(f"redis says {answer!r}")


KEYS = 100000
REST_S = 3  # after the load, for what gives memory back


def redis_load(which: str, keys: int = KEYS) -> Callable[[subprocess.Popen[bytes] | None, int],
                                                         None]:
    def text(draw: random.Random, least: int, most: int) -> str:
        return "x" * draw.randint(least, most)

    def made(draw: random.Random, key: int) -> list[tuple[str, bytes]]:
        kind = draw.randrange(3)
        if kind == 0:
            name = f"page:{key}"
            return [(name, redis_command("set", name, text(draw, 60, 300)))]
        if kind == 1:
            name = f"user:{key}"
            fields = [word for at in range(5) for word in (f"field{at}", text(draw, 4, 40))]
            return [(name, redis_command("hset", name, *fields))]
        name = f"list:{key}"
        return [(name, redis_command("rpush", name, *(text(draw, 8, 40) for _ in range(6))))]

    def stays(name: str) -> bool:
        return name.startswith("user")

    def load(process: subprocess.Popen[bytes] | None, port: int) -> None:
        draw = random.Random(7)
        items = [item for key in range(keys) for item in made(draw, key)]
        if which in ("stays", "goes"):
            items = [item for item in items if stays(item[0]) == (which == "stays")]
        names = [name for name, _ in items]
        if which in ("stays", "goes"):
            gone = []
        elif which == "kind":
            gone = [name for name in names if not stays(name)]
        elif which == "age":
            gone = names[:2 * keys // 3]
        else:
            gone = draw.sample(names, 2 * keys // 3)
        with connected(port) as link:
            redis_told(link, [command for _, command in items])
            redis_told(link, [redis_command("del", name) for name in gone])
            redis_told(link, [redis_command("ping")])

    return load


# ---- sqlite: requests on a database in memory ----

def sqlite_load(process: subprocess.Popen[bytes], port: int) -> None:
    assert process.stdin is not None
    draw = random.Random(3)
    lines = ["create table visit(id integer primary key, who text, what text, at integer);",
             "create index visits_by_who on visit(who, at);"]
    for at in range(400):
        rows = ", ".join(f"('u{draw.randrange(900)}', '{'w' * draw.randint(20, 300)}', {at})"
                         for _ in range(50))
        lines.append(f"insert into visit(who, what, at) values {rows};")
        lines.append(f"create temp table t{at} as select who, count(*) n, max(what) w from visit "
                     f"where at > {at - 30} group by who order by n;")
        lines.append(f"select sum(n) from t{at}; drop table t{at};")
        if at % 10 == 9:
            lines.append(f"delete from visit where at < {at - 60};")
    process.stdin.write("\n".join([*lines, ".print done", ""]).encode())
    process.stdin.flush()
    until_done(process, port)


# ---- a web service in Python, each of whose objects is a malloc ----

def visits_load(process: subprocess.Popen[bytes], port: int) -> None:
    draw = random.Random(5)
    with connected(port):
        pass
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    for _ in range(800):
        link.request("GET", f"/visitor-{draw.randrange(500)}")
        link.getresponse().read()


# ---- mosquitto: retained messages, and others that wait for a client that is away ----

def mqtt_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def mqtt_packet(kind: int, body: bytes) -> bytes:
    length, left = b"", len(body)
    while True:
        left, low = left >> 7, left & 127
        length += bytes([low | (128 if left else 0)])
        if not left:
            return bytes([kind]) + length + body


def mqtt_connect(name: str, is_clean: bool) -> bytes:
    return mqtt_packet(0x10, mqtt_text("MQTT") + bytes([4, 2 * is_clean, 0, 0]) + mqtt_text(name))


def mqtt_publish(topic: str, text: str, is_retained: bool, number: int = 0) -> bytes:
    head = 0x30 | is_retained | (2 if number else 0)
    body = mqtt_text(topic) + (struct.pack(">H", number) if number else b"") + text.encode()
    return mqtt_packet(head, body)


def mosquitto_load(process: subprocess.Popen[bytes], port: int) -> None:
    """Devices report and keep their last state; a subscriber reads; another is away and has its
    messages kept, and the states of two thirds of the devices are removed at the end."""
    draw = random.Random(9)
    with connected(port) as away:
        away.sendall(mqtt_connect("away", False)
                     + mqtt_packet(0x82, b"\0\1" + mqtt_text("alarm/#") + b"\1"))
        away.recv(100)
    devices = list(range(8000))
    with connected(port) as reader, connected(port) as link:
        reader.sendall(mqtt_connect("reader", True)
                       + mqtt_packet(0x82, b"\0\1" + mqtt_text("#") + b"\0"))
        reader.setblocking(False)
        answers = link.makefile("rb")
        link.sendall(mqtt_connect("link", True))
        answers.read(4)
        for turn in range(40000):
            device, text = draw.choice(devices), "v" * draw.randint(20, 400)
            packet = mqtt_publish(f"state/floor{device % 40}/device{device}", text, True)
            if turn % 50 == 0:
                packet += mqtt_publish(f"alarm/device{device}", text, False, 1 + turn % 60000)
            link.sendall(packet)
            if turn % 50 == 0:
                answers.read(4)  # the alarm has arrived, and all before it
                mqtt_drain(reader)
        for device in draw.sample(devices, 2 * len(devices) // 3):
            link.sendall(mqtt_publish(f"state/floor{device % 40}/device{device}", "", True))
            mqtt_drain(reader)
        link.sendall(mqtt_packet(0xC0, b""))
        answers.read(2)


def mqtt_drain(reader: socket.socket) -> None:
    try:
        while reader.recv(1 << 20):
            pass
    except BlockingIOError:
        pass


# ---- memcached: a store that has slabs of its own ----

def memcached_load(process: subprocess.Popen[bytes], port: int) -> None:
    draw = random.Random(11)
    with connected(port) as link:
        answers = link.makefile("rb")
        for _ in range(60000):
            value = b"m" * draw.randint(20, 900)
            link.sendall(b"set key%d 0 0 %d\r\n%s\r\n" % (draw.randrange(30000), len(value), value))
            answers.readline()


def redis(which: str) -> Program:
    return Program(("redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--save", "",
                    "--appendonly", "no", "--dir", "{folder}", "--activerehashing", "no"),
                   redis_load(which))


PROGRAMS = {
    "redis, deleted by age": redis("age"),
    "redis, deleted by kind": redis("kind"),
    "redis, deleted at random": redis("random"),
    "sessions": Program(("{built}/lifetimes", "sessions"), until_done),
    "sessions, one wrapper": Program(("{built}/lifetimes", "wrapped"), until_done),
    "phases": Program(("{built}/lifetimes", "phases"), until_done),
    "sqlite": Program(("sqlite3", "-batch", ":memory:"), sqlite_load),
    "web service (python on malloc)": Program(
        ("/usr/bin/python3", "{root}/lab/inputs/visits.py", "{port}"), visits_load,
        {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}),
    "mosquitto": Program(("mosquitto", "-p", "{port}"), mosquitto_load),
    "memcached": Program(("memcached", "-u", "root", "-l", "127.0.0.1", "-p", "{port}", "-U", "0",
                          "-m", "64", "-t", "2"), memcached_load),
}


def main() -> int:
    which, port, keys, *end = sys.argv[1:]
    redis_load(which, int(keys))(None, int(port))
    time.sleep(REST_S)
    with connected(int(port)) as link:
        redis_told(link, [redis_command("ping")])
        if end:
            link.sendall(redis_command("shutdown", "nosave"))
            link.recv(1)  # it closes the connection
    return 0


if __name__ == "__main__":
    sys.exit(main())
