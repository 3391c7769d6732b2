"""Where peaks lie, and what sets of size classes cost: the arithmetic, on figures known by hand."""

import itertools
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import attribution  # noqa: E402
import census  # noqa: E402
import class_sets  # noqa: E402
import size_classes  # noqa: E402

MIB = 1 << 20


def blocks(**counts):
    """Rows of a census: blocks(s100=3) are three of 100 bytes."""
    return list(census.rows_of_blocks("p", "c", {int(name[1:]): count
                                                 for name, count in counts.items()}))


# ---- classes ----

def test_the_classes_are_those_of_the_library():
    assert len(size_classes.HAKMEM) == 72
    assert size_classes.HAKMEM[:10] == [16, 32, 48, 64, 80, 96, 112, 128, 144, 160]
    assert size_classes.HAKMEM[-9:] == [16384, *range(18432, 32769, 2048)]


def test_four_classes_to_each_doubling():
    assert size_classes.MIMALLOC[:14] == [8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256,
                                          320]
    assert size_classes.MIMALLOC[-5:] == [16384, 20480, 24576, 28672, 32768]


def test_no_class_breaks_an_alignment():
    assert size_classes.serving(size_classes.HAKMEM, 1088) == 1152
    assert size_classes.serving([1104, 1152], 1088) == 1152  # 64 divides 1088 and not 1104
    assert size_classes.serving([1104, 1152], 1088, is_lawful=False) == 1104
    assert size_classes.rounded(1030) == 1152
    assert size_classes.rounded(1000) == 1024
    assert size_classes.rounded(40000) == 40 << 10
    assert size_classes.rounded((32 << 20) + 1) == (32 << 20) + 4096
    for sizes in (size_classes.HAKMEM, size_classes.MIMALLOC):
        for wanted in range(16, 32769, 16):
            assert size_classes.serving(sizes, wanted) == \
                size_classes.serving(sizes, wanted, is_lawful=False)


# ---- attribution ----

def row(peak, **figures):
    return {"program": "p", "allocator": "", "version": "c", "runs": "3",
            "peak": str(peak * MIB), "resident": str(peak * MIB // 2),
            **{name: str(figures.get(name, 0) * MIB) for name in attribution.KEPT}}


OURS = row(200, used=100, free_in_slabs=30, purged_in_slabs=10, slab_ends=5, cached_threads=7,
           cached_depots=3, free_pages=20, huge_cached=2, metadata=4)
THEIRS = row(150, arena=90, hblkhd=10)


def test_the_parts_are_those_of_the_figures():
    parts = attribution.parts_of(OURS, THEIRS, attribution.Slack(0.1, 0.02))
    assert {name: size / MIB for name, size in parts.items()} == pytest.approx({
        "rounding": 10, "large": 2, "partial": 25, "caches": 10, "kept": 22, "own": 4,
        "theirs": 88 - 100, "rest": (200 - 161) - (150 - 100)})
    assert sum(parts.values()) == 50 * MIB
    assert attribution.largest(parts) == "partly used slabs"


@pytest.mark.parametrize("slack", [attribution.Slack(), attribution.Slack(0.3, 0.3)])
def test_the_parts_add_up_to_the_difference(slack):
    assert sum(attribution.parts_of(OURS, THEIRS, slack).values()) == 50 * MIB


def test_the_slack_of_known_blocks():
    found = attribution.slack_of(blocks(s100=1000, s40000=2))
    total = 112 * 1000 + 2 * 40960
    assert found.small == pytest.approx(12 * 1000 / total)
    assert found.large == pytest.approx(2 * 960 / total)
    assert attribution.slack_of(blocks(s1030=10)).small == pytest.approx(122 / 1152)


def test_the_table_has_each_program_that_ran_on_both():
    ours, theirs = OURS | {"allocator": "hakmem"}, THEIRS | {"allocator": "system"}
    told = attribution.table([ours, theirs, ours | {"program": "alone"}],
                             {"p": attribution.Slack(0.1, 0.02)})
    assert "| p | 150.0 | 133.3 | +6.7 | +1.3 | +16.7 | +6.7 | +14.7 | +2.7 | -8.0 | -7.3 | " \
        "partly used slabs | 50 % |" in told
    assert "alone" not in told and "above the C library's in 1 of 1" in told


def test_programs_that_were_left_out_are_named():
    told = attribution.notes([OURS | {"program": "sqlite"}])
    assert "sqlite," not in told and "redis, " in told
    every = [{"program": name} for name in attribution.left_out([])]
    assert len(every) > 30 and not attribution.left_out(every)


def test_what_the_repository_has_adds_up():
    """Each program's parts, to the byte."""
    found = {}
    for each in census.read_rows(attribution.TABLE):
        found.setdefault(each["program"], {})[each["allocator"]] = each
    for by in found.values():
        assert by.keys() == {"hakmem", "system"}
        parts = attribution.parts_of(by["hakmem"], by["system"], attribution.Slack(0.05, 0.01))
        assert sum(parts.values()) == int(by["hakmem"]["peak"]) - int(by["system"]["peak"])


# ---- sets of classes ----

def cost(sizes, weights):
    return sum(weight * size_classes.serving(sizes, 16 * (index + 1), is_lawful=False)
               for index, weight in enumerate(weights))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("weights", [[1, 0, 5, 2, 2, 9, 0, 1], [0, 0, 0, 7, 0, 0, 0, 1],
                                     [3, 3, 3, 3, 3, 3, 3, 3]])
def test_no_other_set_of_so_many_costs_less(weights, count):
    pytest.importorskip("numpy")
    found = class_sets.best_set(weights, count)
    assert found[-1] == 128 and len(found) <= count
    least = min(cost([*each, 128], weights)
                for each in itertools.combinations(range(16, 128, 16), count - 1))
    assert cost(found, weights) == least


def test_what_rounding_loses():
    rows = blocks(s100=10, s7=4, s50000=1)
    assert class_sets.lost(rows, size_classes.HAKMEM) == 12 * 10 + 9 * 4
    assert class_sets.lost(rows, size_classes.MIMALLOC) == 12 * 10 + 1 * 4
    assert class_sets.requested(rows) == 1000 + 28 + 50000


def test_a_set_is_judged_by_programs_that_it_has_not_seen():
    pytest.importorskip("numpy")
    names = {name: blocks(**{f"s{size}": 1000, "s32768": 1}) for name, size in
             (("a", 1040), ("b", 1040), ("c", 1040), ("d", 2064))}
    found = {each["program"]: each for each in class_sets.judged(names)}
    assert [found[name]["half"] for name in "abcd"] == ["1", "2", "1", "2"]
    assert found["a"]["best_lost"] == "0" == found["b"]["best_lost"]
    assert found["a"]["hakmem_lost"] == str(112 * 1000)
    assert int(found["d"]["best_lost"]) > int(found["d"]["hakmem_lost"])
    told = class_sets.sets_table(list(found.values()))
    assert "loses less than HAKMEM's in 3 of 4 programs and more in 1." in told
    ours, best = (100 * sum(class_sets.share(found[name], which) for name in "cd") / 2
                  for which in ("hakmem", "best"))
    assert (f"a and b. Without them the mean is {ours:.2f} for HAKMEM's set and {best:.2f} for"
            in told)


# ---- the census of a trace ----

BLOCK, FREED, RESIZE, RESIZED = range(2, 6)  # kind_t of recorder/recorder.h


def trace(*records):
    """Each: kind, address, and the size of what is there from then on."""
    data = b"".join(struct.pack("<QQQIHBB", address, sum(size), 0, 0, 1, kind, 0)
                    for kind, address, *size in records)
    return b"hakmem trace 2\n\0" + struct.pack("<QQ", len(records), 0) + data


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("census")
    programs = ROOT / "bench/programs"
    subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-I", programs, "-I",
                    ROOT / "recorder", "-o", folder / "trace_census", programs / "trace_census.c",
                    programs / "trace_reader.c"], check=True)
    return folder / "trace_census"


def test_the_blocks_of_the_peak(counter, tmp_path, monkeypatch):
    monkeypatch.setattr(census, "COUNTER", counter)
    file = tmp_path / "a.trace"
    file.write_bytes(trace((BLOCK, 10, 100), (BLOCK, 30, 100), (BLOCK, 50, 5000), (FREED, 10),
                           (BLOCK, 10, 1000), (RESIZE, 50), (RESIZED, 500, 9000), (FREED, 30),
                           (FREED, 77), (FREED, 500), (BLOCK, 30, 200)))
    found = census.counted(file, ["1-128:1", "97-112,193-208:2", "1-64,900-9999:5"])
    assert found["peak"] == {100: 1, 1000: 1, 9000: 1}
    assert found["1-128:1"] == {100: 1}
    assert found["97-112,193-208:2"] == {100: 2}
    assert found["1-64,900-9999:5"] == {1000: 1, 5000: 1}  # never so many: the most, at first


def test_what_is_no_moment_is_refused(counter, tmp_path):
    (tmp_path / "a").write_bytes(trace((BLOCK, 1, 1)))
    for moment in ("1-2", "1-2:", "1-2:x", "1-:3", "1-2,:3", "1-2:3x", ""):
        done = subprocess.run([counter, tmp_path / "a", moment], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, moment


# ---- the sampler ----

@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """sampled(folder, before) runs the text `before` of a shell, and then, as the same process, a
    program with the sampler."""
    library = tmp_path_factory.mktemp("sampler") / "libpeak.so"
    done = subprocess.run(["cc", "-std=c17", "-shared", "-fPIC", "-I", ROOT / "include", "-o",
                           library, ROOT / "lab/peak.c", "-ldl", "-lpthread"], check=False)
    if done.returncode != 0:
        pytest.skip("this C library has no mallinfo2")

    def run(folder, before=""):
        script = f'{before}\nexec env LD_PRELOAD="$1" PEAK_FILE="$2/%p" sleep 0.3'
        subprocess.run(["sh", "-c", script, "sh", library, folder], cwd=folder, check=True,
                       timeout=60)

    return run


def test_the_sampler_leaves_a_row(sampled, tmp_path):
    sampled(tmp_path)
    row, = (path.read_text().split() for path in tmp_path.iterdir())
    assert len(row) == 3 + len(attribution.OF_LIBC)
    assert 100 << 10 < int(row[1]) < 100 * MIB and int(row[2]) < int(row[1])


@pytest.mark.parametrize("plant", ["ln -s precious $$", "mkfifo $$"])
def test_the_sampler_follows_nothing_that_another_user_has_put_there(sampled, tmp_path, plant):
    """Any user may write into its folder, since programs may change theirs."""
    (tmp_path / "precious").write_text("kept")
    sampled(tmp_path, plant)
    assert (tmp_path / "precious").read_text() == "kept"
