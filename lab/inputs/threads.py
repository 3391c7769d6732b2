"""Four threads of a pool parse, compress and search documents. Arguments: text, rounds."""
import concurrent.futures
import hashlib
import json
import sys
import zlib

TEXT, ROUNDS = sys.argv[1], int(sys.argv[2])


def work(part):
    """zlib and hashlib let the other threads run meanwhile."""
    rows = [{"number": number, "words": line.split(), "line": line}
            for number, line in enumerate(part)]
    packed = zlib.compress(json.dumps(rows).encode(), 1)
    back = json.loads(zlib.decompress(packed))
    places = {}
    for row in back:
        for word in row["words"]:
            places.setdefault(word.lower(), []).append(row["number"])
    blocks = [bytes(word, "ascii") * (1 + len(lines) % 50) for word, lines in places.items()]
    return len(packed), hashlib.sha256(b"".join(sorted(blocks))).hexdigest()


with open(TEXT, encoding="utf-8") as file:
    lines = file.readlines()
parts = [lines[start::16] for start in range(16)] * ROUNDS
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    found = list(pool.map(work, parts))
print(len(found), sum(size for size, _ in found), found[-1][1])
