"""The heap profile: what it says of programs whose allocations are known."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import output, succeeds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from hakmem import pprof  # noqa: E402
from hakmem.errors import UserError  # noqa: E402

MEAN_KB = 64
SMALL = 500000 * 48


@pytest.fixture(scope="session")
def program(build):
    """At fixed addresses, so that those of its functions are those of its symbols."""
    return build("profiled.c", "-no-pie", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")


@pytest.fixture(scope="session")
def moving(build):
    """At random addresses, as programs are."""
    return build("profiled.c", "-pie", "-fPIE", "-fno-optimize-sibling-calls", name="moving")


@pytest.fixture(scope="session")
def functions(program):
    """name -> (first address, behind the last)."""
    rows = [line.split() for line in output("nm", "-S", program).splitlines()]
    return {row[3]: (int(row[0], 16), int(row[0], 16) + int(row[1], 16))
            for row in rows if len(row) == 4 and row[2] in "tT"}


@pytest.fixture
def profile_of(run, program, tmp_path):
    def execute(*words, file="profile.pb", **settings):
        path = tmp_path / file
        settings = {"HAKMEM_PROFILE": path, "HAKMEM_PROFILE_MEAN_KB": MEAN_KB} | settings
        succeeds(run(program, *words, **settings))
        return pprof.read(path)

    return execute


def is_near(estimate, truth, samples):
    """Within five standard deviations."""
    return abs(estimate - truth) <= 5 * truth / samples ** 0.5


def test_known_amounts_are_told_by_function(profile_of, functions):
    profile = profile_of("known")
    assert profile.period == MEAN_KB << 10
    assert profile.comments == ["samples left out for lack of room: 0"]
    for name, size in (("leak_small", SMALL), ("leak_large", 400 * 100000),
                       ("leak_zeroed", 4000 * 3000), ("leak_aligned", 10000 * 640)):
        place = functions[name], functions["known"], functions["main"]
        assert is_near(profile.of("inuse_space", *place), size, size / (MEAN_KB << 10)), name
        assert profile.of("alloc_space", *place) == profile.of("inuse_space", *place)
    count = profile.of("inuse_objects", functions["leak_small"])
    assert is_near(count, 500000, SMALL / (MEAN_KB << 10))
    come_and_gone = profile.of("alloc_space", functions["churn"])
    assert is_near(come_and_gone, 100000 * 200, 100000 * 200 / (MEAN_KB << 10))
    assert profile.of("inuse_space", functions["churn"]) == 0


def test_blocks_that_stay_are_seen_among_those_that_go(profile_of, functions):
    """Of sixteen places, all of one size; a sample point in the caches alone would miss them."""
    profile = profile_of("places", HAKMEM_PROFILE_MEAN_KB=4)
    for number in range(16):
        place, stays = functions[f"place_{number}"], number % 2 == 1
        truth = 50000 * 64 * (1 if stays else 4)
        assert is_near(profile.of("alloc_space", place), truth, truth / 4096), number
        assert profile.of("inuse_space", place) == stays * profile.of("alloc_space", place)


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_where_a_block_began_is_known_when_realloc_has_moved_it(profile_of, functions, mode):
    profile = profile_of("grown", HAKMEM_PROFILE_MEAN_KB=4, HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT=0)
    for name, stays in (("begin_to_stay", True), ("begin_to_go", False)):
        place, truth = functions[name], 20000 * 40
        assert is_near(profile.of("alloc_space", place), truth, truth / 4096), name
        assert profile.of("kept_space", place) == stays * profile.of("alloc_space", place)
        assert profile.of("inuse_space", place) == 0  # where it was moved to
    for sample in profile.samples:  # a rule names the calls of malloc
        low, high = functions["grow_on"]
        assert sample.is_unnamed == (low <= sample.addresses[0] < high)
    held = profile.of("inuse_space", functions["grow_on"])
    assert is_near(held, 20000 * 60, 20000 * 60 / 4096)


def test_stacks_begin_outside_of_the_library(profile_of, functions):
    profile = profile_of("known")
    low, high = functions["leak_small"]
    assert any(low <= sample.addresses[0] < high for sample in profile.samples)
    for sample in profile.samples:
        mapping = profile.mapping_of(sample.addresses[0])
        assert "libhakmem" not in mapping.path


def test_code_is_named_with_its_build(profile_of, program):
    profile = profile_of("known")
    own = next(each for each in profile.mappings if each.path == str(program))
    assert own.build_id and f"Build ID: {own.build_id}\n" in output("readelf", "-n", program)
    assert any("libc.so" in each.path and each.build_id for each in profile.mappings)
    for sample in profile.samples:
        assert all(profile.mapping_of(address) for address in sample.addresses)


def test_a_profile_does_not_tell_where_code_lies(run, moving, tmp_path):
    """Of a program at random addresses, twice: the same addresses, none of which may be mapped."""
    first, length = next(
        [int(each, 16) for each in line.split()[:2]]
        for line in output("nm", "-S", moving).splitlines() if line.endswith(" leak_small"))
    for number in range(2):
        succeeds(run(moving, "known", HAKMEM_PROFILE=tmp_path / f"{number}.pb",
                     HAKMEM_PROFILE_MEAN_KB=MEAN_KB))
    profiles = [pprof.read(tmp_path / f"{number}.pb") for number in range(2)]
    mappings = [sorted((each.path, each.start, each.end) for each in profile.mappings
                       if each.path) for profile in profiles]
    assert mappings[0] == mappings[1] and len(mappings[0]) > 2
    places = [{address for sample in profile.samples for address in sample.addresses}
              for profile in profiles]
    # The kernel maps code at 0x55… and 0x7f…, with more bits than these have.
    assert places[0] and all(place >> 40 < 0x40 for place in places[0] | places[1])
    assert len(places[0] & places[1]) > len(places[0]) / 2  # samples are drawn
    for profile in profiles:
        own = next(each for each in profile.mappings if each.path == str(moving))
        low = (own.start >> 40 << 40) + first
        size = profile.of("inuse_space", (low, low + length))
        assert is_near(size, SMALL, SMALL / (MEAN_KB << 10))


def test_huge_blocks_count_exactly(profile_of, functions):
    profile = profile_of("huge")
    place = functions["leak_huge"]
    assert profile.of("alloc_objects", place) == 10
    assert profile.of("inuse_space", place) == 64 << 20


@pytest.mark.parametrize("settings", [{}, {"HAKMEM_JUNK": 1}], ids=["", "without caches"])
def test_who_frees_is_told(profile_of, functions, settings):
    profile = profile_of("hand_over", **settings)
    place = functions["leak_small"], functions["allocate_here"]
    moved = profile.of("moved_space", *place)
    assert moved == profile.of("alloc_space", *place)
    assert is_near(moved, SMALL, SMALL / (MEAN_KB << 10))
    assert profile.of("inuse_space", *place) == 0


@pytest.mark.parametrize("mode", ["balanced", "minimal", "checked", "debug"])
def test_sampled_blocks_are_blocks_like_others(profile_of, mode):
    """The mean is 1 KiB: nearly every long block is sampled, and many short ones."""
    profile = profile_of("every", HAKMEM_PROFILE_MEAN_KB=1, HAKMEM_MODE=mode)
    assert profile.total("inuse_space") < 1 << 20


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_who_is_killed_leaves_what_was_sampled(started, program, functions, tmp_path, by):
    process = started(program, "then_wait", HAKMEM_PROFILE=tmp_path / "profile.pb",
                      HAKMEM_PROFILE_MEAN_KB=MEAN_KB)
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    assert "SigCgt:\t0000000000000000\n" in status  # no handler, which the program could see
    process.send_signal(by)
    assert process.wait(60) == -by
    profile = pprof.read(tmp_path / "profile.pb")
    assert profile.of("inuse_space", functions["leak_huge"]) == 64 << 20
    for name, size in (("leak_small", SMALL), ("leak_large", 10 * 100000)):
        found = profile.of("inuse_space", functions[name])
        assert is_near(found, size, size / (MEAN_KB << 10)), name
    assert any("went on" in comment for comment in profile.comments)


def test_the_child_of_a_fork_writes_where_the_name_has_its_number(profile_of, functions, tmp_path):
    """A buffer of a stream may be a sample by chance; huge blocks are samples always."""
    place = functions["leak_huge"]
    assert profile_of("fork_once").of("inuse_objects", place) == 1
    with pytest.raises(UserError):
        profile_of("fork_once", file="%p.pb")
    counts = [pprof.read(path).of("inuse_objects", place) for path in tmp_path.glob("[0-9]*.pb")]
    assert counts == [1, 1]  # what the parent had is in the parent's


def test_the_child_of_a_fork_counts_no_block_of_its_parent(profile_of, functions, tmp_path):
    """Nor does it when the child frees them."""
    with pytest.raises(UserError):
        profile_of("fork_and_free", file="%p.pb")
    child, parent = sorted(map(pprof.read, tmp_path.glob("[0-9]*.pb")),
                           key=lambda profile: profile.total("alloc_space"))
    assert parent.of("inuse_objects", functions["leak_huge"]) == 1
    assert parent.of("inuse_space", functions["leak_small"]) > 0
    for name in "leak_huge", "leak_small":
        for value in "alloc_objects", "inuse_objects", "inuse_space", "lifetime", "kept_space":
            assert child.of(value, functions[name]) == 0, (name, value)


def test_the_child_of_a_fork_does_not_wait_for_the_loader(run, build, tmp_path):
    """Another thread holds the lock of the loader when it is made, and is not in it."""
    program = build("forked_loader.c")
    succeeds(run(program, HAKMEM_PROFILE=tmp_path / "%p.pb", HAKMEM_PROFILE_MEAN_KB=64))
    files = list(tmp_path.glob("*.pb"))
    assert len(files) == 2
    for path in files:
        names = [mapping.path for mapping in pprof.read(path).mappings]
        assert str(program) in names, names


def test_sampling_goes_on_and_off(run, program, functions, tmp_path):
    path = tmp_path / "api.pb"
    succeeds(run(program, "api", path))
    profile = pprof.read(path)
    assert is_near(profile.of("inuse_space", functions["leak_small"]), 100000 * 48,
                   100000 * 48 / 4096)


@pytest.mark.parametrize("mode", ["balanced", "checked"])
def test_sampling_may_go_on_and_off_while_others_allocate(run, program, mode):
    succeeds(run(program, "toggle", HAKMEM_MODE=mode))


def test_a_sample_that_finds_no_span_is_a_block_like_others(run, program, tmp_path):
    """And the profile is written although memory has run out."""
    succeeds(run(program, "full", tmp_path / "full.pb"))
    assert pprof.read(tmp_path / "full.pb").total("alloc_space") > 0


@pytest.mark.skipif(not shutil.which("go"), reason="pprof itself comes with go")
@pytest.mark.parametrize("where", ["program", "moving"])
def test_pprof_reads_it(run, request, where, tmp_path):
    program = request.getfixturevalue(where)
    path = tmp_path / "profile.pb"
    succeeds(run(program, "known", HAKMEM_PROFILE=path, HAKMEM_PROFILE_MEAN_KB=MEAN_KB))
    done = subprocess.run(["go", "tool", "pprof", "-top", "-inuse_space", program, path],
                          capture_output=True, text=True, check=False,
                          env={"HOME": str(tmp_path), "PATH": os.environ["PATH"],
                               "PPROF_TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    for name in ("leak_small", "leak_large", "leak_zeroed", "leak_aligned"):
        assert name in done.stdout


@pytest.mark.parametrize("how", ["-static", "-static-pie"])
def test_a_static_program_is_profiled_from_its_first_call_on(run, build, archive, tmp_path, how):
    """Which comes before the unwinder can find the program's code. A mean of 1 KiB samples it
    nearly always."""
    program = build("profiled.c", how, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
                    name=f"early{how}")
    for turn in range(5):
        path = tmp_path / f"early{turn}.pb"
        succeeds(run(program, "known", preload=None, HAKMEM_PROFILE=path, HAKMEM_PROFILE_MEAN_KB=1))
        assert pprof.read(path).total("alloc_space") > SMALL
