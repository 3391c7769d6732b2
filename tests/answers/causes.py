"""What causes.c does, in Python."""
import select
import sys
import threading

STEP, PAGE, THREADS = 1 << 18, 36 << 20, 24
kept = []
rows = bytearray()


def keep_request():
    kept.append(bytearray(2000))


def fragment():
    """Blocks above 512 bytes are from malloc."""
    temporaries = []
    for index in range(24000):
        (temporaries if index % 4 else kept).append(bytearray(1000))


def fill_caches():
    for size in range(528, 2048, 128):
        blocks = [bytearray(size) for _ in range(96)]
        del blocks


def park():
    parked = threading.Barrier(THREADS + 1)

    def work_and_wait():
        fill_caches()
        parked.wait()
        threading.Event().wait()

    for _ in range(THREADS):
        threading.Thread(target=work_and_wait, daemon=True).start()
    parked.wait()


def render_page(size):
    page = b"x" * size
    assert len(page) == size


def append_rows(size):
    global rows
    rows += b"r" * size


def begin(cause):
    if cause == "leak":
        for _ in range(10000):
            keep_request()
    elif cause == "fragmentation":
        fragment()
    elif cause == "parked":
        park()
    elif cause == "array":
        for _ in range(40):
            append_rows(STEP)
    else:
        for index in range(8):
            render_page(PAGE + index)


def go_on(cause, step):
    if cause == "leak":
        for _ in range(100):
            keep_request()
    elif cause == "array":
        append_rows(STEP)
    elif cause in ("same", "more") and step % 7 == 1:
        render_page(PAGE + step * 9000 * (cause == "more"))
    elif cause == "fragmentation" or cause == "parked" and step == 25:
        bytearray(200000)


begin(sys.argv[1])
print("ready", flush=True)
steps = 0
while not select.select([sys.stdin], [], [], 0.1)[0]:
    steps += 1
    go_on(sys.argv[1], steps)
