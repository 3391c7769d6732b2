#!/usr/bin/env python3
"""The load of redis in learning.toml: three kinds of values of like sizes, then most are deleted.

    redis_keys.py kind|random PORT KEYS [end]

With "kind" two kinds of keys go, with "random" two thirds of all. What is made is drawn with fixed
seeds. The server is there already; with "end" it is told to end.
"""

import random
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

PATIENCE_S = 60
REST_S = 3  # after the load, for what gives memory back


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


def command(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                             for word in map(str.encode, words))


def tell(link: socket.socket, commands: Sequence[bytes]) -> None:
    """Sends them, some at a time, and waits for as many answers of one line each."""
    answers = link.makefile("rb")
    for start in range(0, len(commands), 100):
        part = commands[start:start + 100]
        link.sendall(b"".join(part))
        for _ in part:
            if (answer := answers.readline())[:1] not in (b":", b"+"):
                raise RuntimeError(f"redis says {answer!r}")


def text(draw: random.Random, least: int, most: int) -> str:
    return "x" * draw.randint(least, most)


def made(draw: random.Random, key: int) -> tuple[str, bytes]:
    """The name of the key, and the command that makes it."""
    kind = draw.randrange(3)
    if kind == 0:
        name = f"page:{key}"
        return name, command("set", name, text(draw, 60, 300))
    if kind == 1:
        name = f"user:{key}"
        fields = [word for at in range(5) for word in (f"field{at}", text(draw, 4, 40))]
        return name, command("hset", name, *fields)
    name = f"list:{key}"
    return name, command("rpush", name, *(text(draw, 8, 40) for _ in range(6)))


def main() -> None:
    which, port, keys, *end = sys.argv[1:]
    draw = random.Random(7)
    items = [made(draw, key) for key in range(int(keys))]
    names = [name for name, _ in items]
    gone = [name for name in names if not name.startswith("user")] if which == "kind" else \
        draw.sample(names, 2 * len(names) // 3)
    with connected(int(port)) as link:
        tell(link, [each for _, each in items])
        tell(link, [command("del", name) for name in gone])
        tell(link, [command("ping")])
    time.sleep(REST_S)
    with connected(int(port)) as link:
        tell(link, [command("ping")])
        if end:
            link.sendall(command("shutdown", "nosave"))
            link.recv(1)  # it closes the connection


if __name__ == "__main__":
    main()
