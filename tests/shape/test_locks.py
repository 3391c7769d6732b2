"""locks.py counts calls from outside, and finds a lock that is held too often."""

import locks

# malloc comes twice to the depot, which calls itself once; names are given once.
RECORD = """\
fl=(1) source.c
fn=(1) malloc
10 800
cfn=(2) depot_take
calls=2 20
11 60
fn=(2)
20 50
cfn=(2)
calls=1 20
21 10
cfn=(3) meta_alloc'2
calls=1 30
22 40
totals: 100000
"""


def test_calls_are_counted_from_outside(tmp_path):
    (tmp_path / "record").write_text(RECORD)
    counts = locks.read(tmp_path / "record")
    assert counts.total == 100000
    assert counts.calls == {"depot_take": 2, "meta_alloc": 1}
    assert counts.instructions == {"depot_take": 60, "meta_alloc": 40}


def test_a_busy_lock_is_found():
    counts = locks.Counts(100000)
    counts.calls["depot_give"] = 100
    counts.instructions["depot_give"] = 20000
    counts.calls["page_map_grow"] = 1
    counts.instructions["page_map_grow"] = 700
    assert locks.threads_borne(counts, ("depot_give",)) == 2
    assert locks.complaints(counts, 2, 100) == []
    assert locks.complaints(counts, 3, 101) == [
        "depots: 2 threads keep it busy, 3 have to fit",
        "window: 100 threads keep it busy, 101 have to fit"]
