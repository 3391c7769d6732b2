"""Connections collect small frames of audio, cut and copy them, and end at some time while others
live on (BasedHardware/omi#6938); at the end all are gone, and three seconds of rest follow."""

import random
import time

FRAMES = 160, 320, 640, 1280


class Connection:
    def __init__(self, draw: random.Random) -> None:
        self.draw, self.limit = draw, draw.randrange(8000, 120000)
        self.frames, self.all, self.text = bytearray(), bytearray(), []

    def hear(self) -> None:
        self.frames.extend(b"\1" * self.draw.choice(FRAMES))
        if len(self.frames) > self.limit:
            part = bytes(self.frames)
            self.all.extend(part)
            del self.frames[:len(part) // 2]
            self.limit = self.draw.randrange(8000, 120000)
            self.text.append(f"said {len(part)} " * self.draw.randrange(1, 30))


def serve() -> None:
    draw, live, texts = random.Random(5), [], []
    for tick in range(2600):
        wanted = 60 + 240 * (tick // 260 % 2)
        live += [Connection(draw) for _ in range(wanted - len(live))]
        for connection in list(live):
            connection.hear()
            if draw.random() < 0.0015 or len(live) > wanted:
                texts.append("".join(connection.text)[:2000])
                live.remove(connection)


serve()
time.sleep(3)
