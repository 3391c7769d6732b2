"""fill.py PORT: redis gets 200,000 keys, of which three of four are deleted, twice, then none is
left, and eight seconds of rest follow."""

import socket
import sys
import time

KEYS, BATCH = 200_000, 500


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                              for word in words)


def send(server: socket.socket, commands: list[bytes]) -> None:
    server.sendall(b"".join(commands))
    answers = 0
    while answers < len(commands):
        answers += server.recv(1 << 16).count(b"\n")


with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as redis:
    for _ in range(2):
        for first in range(0, KEYS, BATCH):
            send(redis, [command(b"SET", b"key:%d" % key, b"v" * (50 + key % 300))
                         for key in range(first, first + BATCH)])
        for first in range(0, KEYS, BATCH):
            send(redis, [command(b"DEL", b"key:%d" % key)
                         for key in range(first, first + BATCH) if key % 4])
    send(redis, [command(b"FLUSHALL")])
    time.sleep(8)
