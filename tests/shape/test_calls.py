"""calls.py reads calls from objects, and finds those that go up or in a circle."""

import subprocess

import calls


def test_calls_are_read_and_addresses_are_not(tmp_path):
    (tmp_path / "slab").mkdir()
    for name, text in {
            "slab/a": "void b(void), c(void); void (*taken)(void) = c; void a(void) { b(); b(); }",
            "slab/b": "void d(void); void b(void) { d(); }",
            "slab/c": "void c(void) {} void d(void) {}"}.items():
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run(["cc", "-O1", "-c", "-fPIC", "-fvisibility=hidden",
                        "-o", tmp_path / f"{name}.c.o", tmp_path / f"{name}.c"], check=True)
    (tmp_path / "slab/gone.c.o").touch()
    objects = calls.objects_in(tmp_path, tmp_path)
    assert calls.calls_of(objects) == {"slab/a.c": {"slab/b.c": "b"},
                                       "slab/b.c": {"slab/c.c": "d"}, "slab/c.c": {}}


def test_calls_that_go_up_and_circles_are_found():
    down = {"malloc.c": {"entry/slow.c": "malloc_slow"}, "entry/slow.c": {"slab/a.c": "a"},
            "slab/a.c": {"slab/b.c": "b"}, "slab/b.c": {"heap/c.c": "c"}}
    assert list(calls.complaints(down)) == []
    assert list(calls.complaints({**down, "heap/c.c": {"slab/a.c": "a"}})) == [
        "heap/c.c calls a of slab/a.c, which is above it"]
    assert list(calls.complaints({**down, "slab/b.c": {"slab/a.c": "a"}})) == [
        "a circle of calls: slab/a.c -> slab/b.c -> slab/a.c"]
    assert list(calls.complaints({**down, "entry/slow.c": {"malloc.c": "free"}})) == [
        "a circle of calls: malloc.c -> entry/slow.c -> malloc.c"]
