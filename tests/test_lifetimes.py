"""The pages that groupings need: hand-made traces whose pages can be counted, and the recorder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

numpy = pytest.importorskip("numpy")

import lifetimes  # noqa: E402
import placement  # noqa: E402

BLOCK, FREED, RESIZE, RESIZED = (placement.BLOCK, placement.FREED, placement.RESIZE,
                                 placement.RESIZED)
SHORT, LONG = (0x10, 0x20, 0x30), (0x10, 0x20, 0x31)  # one wrapper, one function, two callers


def events(*rows, stacks=(SHORT, LONG)):
    """Each row: kind, address, size, number of the stack, ns."""
    made = []
    for number, frames in enumerate(stacks, 1):
        made.append((0, 0, 0, number, 0, placement.STACK, 0))
        words = [*frames, 0, 0, 0, 0][:4]
        made.append((*words[:3], words[3] & 0xFFFFFFFF, words[3] >> 32 & 0xFFFF, 0, 0))
    for kind, address, size, stack, time in rows:
        made.append((address, size, time, stack, 1, kind, 0))
    return placement.read(numpy.array(made, dtype=placement.RECORD))


def test_shapes_are_those_of_the_library():
    """Each class as src/slab/size_class.h computes it."""
    assert placement.CLASSES == 72
    sizes = [placement.class_bytes(number) for number in range(1, 73)]
    assert sizes[:10] == [16, 32, 48, 64, 80, 96, 112, 128, 144, 160] and sizes[-1] == 32768
    for number, size in enumerate(sizes, 1):
        assert placement.size_class(size) == number
        assert placement.size_class(size + 1) == number + 1
    tiny, mid, longest = (placement.SHAPES[placement.size_class(size)] for size in
                          (1024, 20480, 32768))
    assert (tiny.pages, tiny.blocks, tiny.bin) == (16, 64, 64)
    assert (mid.pages, mid.blocks, mid.bin) == (30, 6, 8)
    assert longest.pages * placement.PAGE == longest.blocks * 32768


def test_blocks_fill_pages_from_the_lowest_address():
    """Eight of 1 KiB are two pages; in the mean over time it is what the clock says."""
    rows = [(BLOCK, 0x1000 * n, 1000, 1, 0) for n in range(1, 9)]
    rows += [(FREED, 0x1000 * n, 0, 0, 100) for n in range(1, 5)]
    found = events(*rows, (BLOCK, 0x90000, 32768, 2, 200))
    placed = placement.place(found, [0] * 9)
    assert placed.pages.end == 1 + 8
    assert placed.slab_pages.end == 16 + placement.SHAPES[72].pages
    assert placement.dense(found).end == 1 + 8


def test_a_block_across_two_pages_holds_both():
    found = events(*((BLOCK, 0x1000 * n, 1536, 1, n) for n in (1, 2, 3)),
                   (FREED, 0x1000, 0, 0, 4), (FREED, 0x2000, 0, 0, 5), (FREED, 0x3000, 0, 0, 6))
    looks = [placement.place(cut(found, steps), [0] * 3).pages.end for steps in range(1, 7)]
    assert looks == [1, 1, 2, 2, 2, 0]  # bytes 0, 1536 and 3072 to 4608


def cut(found, steps):
    """The first of its steps."""
    return placement.Events(found.steps[:steps], found.times[:steps], found.classes, found.stacks,
                            found.ends, found.begins)


def test_the_block_freed_last_serves_first():
    found = events((BLOCK, 1, 4096, 1, 0), (BLOCK, 2, 4096, 1, 0), (FREED, 1, 0, 0, 0),
                   (FREED, 2, 0, 0, 0), (BLOCK, 3, 4096, 1, 0))
    shelf = placement.Shelf(placement.SHAPES[placement.size_class(4096)], placement.Totals())
    first, second = shelf.take(), shelf.take()
    assert (first[1], second[1]) == (0, 1)
    shelf.give(first)
    shelf.give(second)
    assert shelf.take() == second
    assert placement.place(found, [0] * 3).pages.end == 1


def test_the_fullest_slab_serves_first_and_an_empty_one_goes():
    totals = placement.Totals()
    shelf = placement.Shelf(placement.SHAPES[placement.size_class(32768)], totals)
    count = shelf.shape.blocks  # of a slab
    held = [shelf.take() for _ in range(20 * count)]
    slabs = [held[n * count][0] for n in range(20)]
    assert all(block[0] is slabs[n // count] for n, block in enumerate(held))
    for block in held[: 15 * count]:
        if block is not held[0] and block is not held[count]:
            shelf.give(block)
    assert totals.pages == 8 * (2 + 5 * count)
    shelf.bin.clear()
    served = [shelf.take()[0] for _ in range(2 * (count - 1))]
    assert {id(slab) for slab in served} <= {id(slab) for slab in slabs}
    assert totals.slab_pages < 20 * shelf.shape.pages


def mixed(count=2048):
    """Blocks of one size, each fourth of which stays; the others go."""
    rows = [(BLOCK, 16 * n, 1024, 2 if n % 4 == 0 else 1, n) for n in range(1, count + 1)]
    rows += [(FREED, 16 * n, 0, 0, count + n) for n in range(1, count + 1) if n % 4]
    return events(*rows)


def test_a_block_that_stays_on_each_page_holds_all_pages():
    found = mixed()
    one = placement.place(found, [0] * 2048)
    assert (one.pages.peak, one.pages.end) == (512, 512)
    assert placement.dense(found).end == 128


def test_only_three_frames_tell_two_callers_of_one_wrapper_apart():
    found = mixed()
    ends = {grouping: placement.place(found, groups).pages.end
            for grouping, groups in lifetimes.groupings(found).items()}
    assert ends == {"classes": 512, "stays 1": 512, "stays 2": 512, "stays 3": 128,
                    "whole 1": 512, "whole 2": 512, "whole 3": 128, "sites 1": 512,
                    "sites 2": 512, "sites 3": 128, "oracle stays": 128, "oracle lives": 128}


def test_little_that_stays_is_no_group():
    """The rule of hakmem learn: 64 KiB that stay beside 64 KiB that go."""
    assert set(lifetimes.groupings(mixed(250))["stays 3"]) == {0}
    assert set(lifetimes.groupings(mixed(256))["stays 3"]) == {0, 1}


def test_a_whole_site_is_judged_over_all_its_sizes():
    """Of each of four sizes 48 KiB stay: too little for a rule by size."""
    rows = [(BLOCK, 16 * n, 1024 - n % 4 * 128, 2 if n // 4 % 4 == 0 else 1, n)
            for n in range(4, 772)]
    rows += [(FREED, 16 * n, 0, 0, n) for n in range(4, 772) if n // 4 % 4]
    found = lifetimes.groupings(events(*rows))
    assert set(found["stays 3"]) == {0} and set(found["whole 3"]) == {0, 1}


def test_realloc_within_a_class_is_no_step_and_a_moved_block_keeps_its_site():
    found = events((BLOCK, 1, 100, 2, 0), (RESIZE, 1, 0, 0, 1), (RESIZED, 1, 105, 1, 1),
                   (RESIZE, 1, 0, 0, 2), (RESIZED, 5, 500, 1, 2), (RESIZE, 5, 0, 0, 3),
                   (RESIZED, 9, 50000, 1, 3))
    assert found.steps == [0, 1, ~0, ~1]
    assert [placement.class_bytes(number) for number in found.classes] == [112, 512]
    assert found.stacks == [LONG, LONG]
    assert found.begins == [0, 112] and found.ends == [624, 624]


def test_an_address_that_is_handed_out_again_was_freed_unseen():
    found = events((BLOCK, 1, 100, 1, 0), (BLOCK, 1, 100, 1, 1), (FREED, 7, 0, 0, 2))
    assert found.steps == [0, 1, ~0] or found.steps == [0, ~0, 1]
    assert sum(end >= 0 for end in found.ends) == 1


def test_the_recorder_writes_what_a_program_does(tmp_path):
    recorder = ROOT / "out/release/librecorder.so"
    if not recorder.exists():
        pytest.skip("needs the release build")
    source = tmp_path / "program.c"
    source.write_text("""#include <stdlib.h>
        void *volatile kept[64];
        __attribute__((noipa)) static void *wrapped(size_t size)
        { void *made = malloc(size); kept[0] = made; return made; }
        __attribute__((noipa)) static void one(int n) { kept[n] = wrapped(3000); __asm__(""); }
        __attribute__((noipa)) static void two(int n) { kept[n] = wrapped(3000); __asm__(""); }
        int main(void) { for (int n = 0; n < 64; n++) n % 2 ? one(n) : two(n);
            free(kept[0]); kept[1] = realloc(kept[1], 9000); free(calloc(3, 7001)); }""")
    subprocess.run(["cc", "-O1", "-o", tmp_path / "program", source], check=True)
    file = tmp_path / "trace"
    subprocess.run([tmp_path / "program"], check=True,
                   env=dict(os.environ, LD_PRELOAD=str(recorder), RECORDER_FILE=str(file)))
    found = placement.read(lifetimes.records(file))
    mine = [n for n, number in enumerate(found.classes) if placement.class_bytes(number) == 3072]
    sites = [found.stacks[n] for n in mine]
    assert len(mine) == 64 and len({site[:1] for site in sites}) == 1
    assert len({site[:2] for site in sites}) == 2 and all(len(site) == 4 for site in sites)
    assert sum(found.ends[n] >= 0 for n in mine) == 2
    moved = [n for n, number in enumerate(found.classes) if placement.class_bytes(number) == 9216]
    assert [found.stacks[n] for n in moved] == [sites[1]] and found.ends[moved[0]] < 0


def row(program, grouping, end):
    held = placement.Held(1024.0, 2048, end)
    return lifetimes.row_of(program, grouping, 2, 10, held, held)


def test_the_page_says_which_grouping_needs_a_tenth_less(tmp_path, monkeypatch):
    monkeypatch.setattr(lifetimes, "ROOT", tmp_path)
    (tmp_path / "bench").mkdir()
    ends = {"classes": 1000, "stays 1": 901, "stays 2": 811, "stays 3": 720, "sites 1": 900,
            "whole 1": 901, "whole 2": 811, "whole 3": 720,
            "sites 2": 900, "sites 3": 900, "oracle stays": 700, "oracle lives": 650, "dense": 600}
    for name in ("one", "two"):
        lifetimes.save([row(name, grouping, end) for grouping, end in ends.items()])
    lifetimes.save([row("two", "stays 3", 811)])
    text = lifetimes.table((tmp_path / lifetimes.TABLE).read_text())
    assert "| what stays, by one frame, against one heap | no program | 0 of 2 |" in text
    assert "| what stays, by two frames, against one | no program | 0 of 2 |" in text
    assert "| what stays, by three frames, against one | one (end 20 %) | 1 of 2 |" in text
    assert ("|  | end | 3.9 | 0.90 | 0.81 | 0.81 | 0.90 | 0.81 | 0.72 | 0.90 | 0.90 | 0.90 | 0.70 "
            "| 0.65 | 0.60 |") in text


def test_lives_are_told_by_factors_of_four():
    assert [lifetimes.life(0, end) for end in (0, 3, 4, 15, 16, -1)] == [0, 1, 1, 2, 2, 99]
