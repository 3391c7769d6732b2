"""A walk through python's own library, with checked results."""
import collections
import ctypes
import decimal
import hashlib
import json
import re
import sqlite3
import threading
import xml.etree.ElementTree as tree
import zlib

table = {f"key{i}": {"n": i, "words": ["w" * (i % 40)] * (i % 5)} for i in range(30000)}
text = json.dumps(table)
assert json.loads(text) == table
print(hashlib.sha256(text.encode()).hexdigest(), len(re.findall(r'"n": \d*7,', text)))
assert zlib.decompress(zlib.compress(text.encode())).decode() == text

base = sqlite3.connect(":memory:")
base.execute("create table t(a integer primary key, b text)")
base.executemany("insert into t values(?, ?)", ((i, "x" * (i % 200)) for i in range(50000)))
base.execute("create index i on t(b)")
print(base.execute("select count(*), sum(length(b)) from t").fetchone(),
      base.execute("pragma integrity_check").fetchone())

sums = collections.Counter()
lock = threading.Lock()


def churn(seed):
    kept = collections.deque(maxlen=500)
    total = 0
    for i in range(30000):
        seed = (seed * 1103515245 + 12345) & 0x7fffffff
        kept.append(bytes(1 + seed % 3000))
        total += len(kept[0])
    with lock:
        sums["total"] += total


threads = [threading.Thread(target=churn, args=(n,)) for n in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sums["total"])

root = tree.Element("root")
for i in range(20000):
    tree.SubElement(root, "item", id=str(i)).text = "text" * (i % 10)
print(len(tree.tostring(root)), len(tree.fromstring(tree.tostring(root)).findall("item")))
decimal.getcontext().prec = 2000
print(hashlib.sha256(str(decimal.Decimal(2).sqrt()).encode()).hexdigest(), 3 ** 20000 % 1000007)

# Straight through malloc, without python's small-object cache.
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
block = libc.malloc(ctypes.c_size_t(100))
ctypes.memset(block, 65, 100)
for size in (1000, 30000, 700000, 5000000, 200):
    block = libc.realloc(ctypes.c_void_p(block), ctypes.c_size_t(size))
print(ctypes.string_at(block, 100) == b"A" * 100)
libc.free(ctypes.c_void_p(block))
