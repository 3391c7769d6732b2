"""Policies: texts, rules from made-up profiles, and what made-up pairs of runs say of them."""
import gzip
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from files import ROOT

sys.path.insert(0, str(ROOT / "python"))
pytest.importorskip("google.protobuf")
from hakmem import learn, policy, pprof, runs  # noqa: E402
from hakmem.errors import UserError  # noqa: E402
from hakmem.policy import Caller, Policy, Site  # noqa: E402
from hakmem.pprof import Mapping, Profile, Sample  # noqa: E402

ID = "0123456789abcdef"
TEXT = f"""hakmem policy 1
# of the whole

program {ID}
# why
option price lean
# a site
site {ID} 1b3c 48 group 1
site {ID} 1b3d 48 group 2
"""
CALLED = f"site {ID} 1b3e 48 group 3 caller 24 {ID} 77 caller 40 {'f' * 40} 78\n"


def test_a_text_is_read_and_written_as_it_was():
    read = policy.parse(TEXT)
    assert read.program == ID and read.options == {"price": "lean"}
    assert read.groups == {Site(ID, 0x1b3c, 48): 1, Site(ID, 0x1b3d, 48): 2}
    assert policy.parse(read.text()) == read
    assert read.text() == TEXT
    assert policy.parse(TEXT + CALLED).text() == TEXT + CALLED
    assert Site(ID, 0x1b3e, 48, (Caller(24, ID, 0x77), Caller(40, "f" * 40, 0x78))) in policy.parse(
        TEXT + CALLED).groups


@pytest.mark.parametrize(("text", "said"), [
    ("", "line 1: expected"), ("hakmem policy 2\n", "line 1"),
    ("hakmem policy 1\noption price lean", "line 2: the last line has no end"),
    ("hakmem policy 1\n\nprice lean\n", "line 3: expected program, option or site"),
    (TEXT + "option price fast\n", "line 10: the option stands here twice"),
    (TEXT + f"site {ID} 1b3c 48 group 3\n", "line 10: the site stands here twice"),
    (TEXT + f"site {ID} 1b3d 48 group 16\n", "line 10: the group is no number"),
    (TEXT + f"site {ID} 1b3d 32769 group 1\n", "line 10: the size is no number"),
    (TEXT + "option price \u0664\n", "line 10: a character that is not printable"),
    (TEXT + "".join(f"site {ID} {place:x} 48 group 1\n" for place in range(127)),
     "line 136: too many sites"),
    (TEXT + CALLED + CALLED, "line 11: the site stands here twice"),
    (TEXT + CALLED + CALLED.replace("24", "16"), "line 11: the bytes of stack differ"),
    (TEXT + CALLED + CALLED.replace("40", "48"), "line 11: the bytes of stack differ"),
    (TEXT + CALLED.replace("40", "24"), "line 10: the bytes of stack are no rising"),
    (TEXT + CALLED.replace("24", "0"), "line 10: the bytes of stack are no rising"),
    (TEXT + CALLED.replace("40", "1032"), "line 10: the bytes of stack are no rising"),
    (TEXT + CALLED.replace("caller 40", "called 40"), "line 10: no site is written so"),
    (TEXT + f"program {ID}\n", "line 10: there is a program already"),
    (TEXT + f"site {ID} 48 group 3\n", "line 10: no site is written so")])
def test_wrong_texts_are_refused_with_their_line(text, said):
    with pytest.raises(UserError, match=said):
        policy.parse(text)


def test_merging_lets_the_second_count_and_keeps_groups_apart():
    second = policy.parse("hakmem policy 1\noption price fast\n"
                          f"site {ID} 9 16 group 1\n"
                          f"site {ID} 1b3c 48 group 4\n")
    merged = policy.merge(policy.parse(TEXT), second)
    assert merged.options == {"price": "fast"} and merged.program == ID
    assert merged.groups == {Site(ID, 0x1b3c, 48): 1, Site(ID, 0x1b3d, 48): 2, Site(ID, 9, 16): 3}
    one, other = (policy.parse(f"hakmem policy 1\n{CALLED.replace('24', slot)}")
                  for slot in ("24", "16"))
    with pytest.raises(UserError, match="do not fit together: the bytes of stack differ"):
        policy.merge(one, other)
    with pytest.raises(UserError, match="for two programs"):
        policy.merge(policy.parse(TEXT), Policy("f" * 16))


def test_differences_are_told():
    first, second = policy.parse(TEXT), policy.parse(TEXT.replace("lean", "fast").replace(
        "1b3d 48 group 2", "1b3d 48 group 1"))
    assert policy.difference(first, first) == []
    assert policy.difference(first, second) == [
        "option price: lean -> fast",
        f"site {ID[:12]} 1b3d, 48 bytes: group 2 -> group 1"]


def sample(place, size, allocated, kept):
    values = {"alloc_space": allocated, "inuse_space": kept, "lifetime": 0}
    return Sample([0x1000 + place], values, size)


MIB = 1 << 20
CODE = [Mapping(0x1000, 0x9000, 0x200, "/nonesuch", ID)]


def test_what_stays_among_what_comes_and_goes_gets_a_group():
    stays, passes = sample(1, 48, 4 * MIB, 3 * MIB), sample(2, 48, 90 * MIB, 0)
    found = learn.policy_of([Profile([stays, passes], CODE)])
    assert found.groups == {Site(ID, 0x202, 48): 1} and found.program == ID
    assert "75 % stay" in found.text()
    assert policy.parse(found.text()) == found


def test_the_order_of_samples_and_of_processes_changes_nothing():
    """More sites stay than there may be rules, all of them alike."""
    stay = [sample(place, 48, 4 * MIB, 3 * MIB) for place in range(1, 200)]
    samples = [*stay, sample(200, 48, 90 * MIB, 0)]
    one = learn.policy_of([Profile(samples, CODE)])
    assert len(one.groups) == policy.MOST_RULES
    assert learn.policy_of([Profile(samples[::-1], CODE)]).text() == one.text()
    halves = [Profile(samples[:50], CODE), Profile(samples[50:], CODE)]
    assert learn.policy_of(halves).text() == learn.policy_of(halves[::-1]).text() == one.text()


@pytest.mark.parametrize("samples", [
    [sample(1, 48, 4 * MIB, 3 * MIB)],  # nobody else
    [sample(1, 48, 4 * MIB, 3 * MIB), sample(2, 64, 90 * MIB, 0)],  # of another size
    [sample(1, 48, 4 * MIB, 1 * MIB), sample(2, 48, 90 * MIB, 0)],  # most of it goes
    [sample(1, 48, 40000, 40000), sample(2, 48, 90 * MIB, 0)],  # too little
    [sample(1, 65536, 4 * MIB, 3 * MIB), sample(2, 65536, 90 * MIB, 0)],  # no small block
])
def test_where_there_is_nothing_to_gain_there_is_no_rule(samples):
    assert learn.policy_of([Profile(samples, CODE)]).groups == {}


def test_other_sizes_and_code_that_is_not_mapped_change_nothing():
    stays, passes = sample(1, 48, 4 * MIB, 3 * MIB), sample(2, 48, 90 * MIB, 0)
    alone = learn.policy_of([Profile([stays, passes], CODE)])
    others = [sample(3, 640, 4 * MIB, 1 * MIB), Sample([-1], stays.values, 48),
              Sample([], stays.values, 48)]
    assert learn.policy_of([Profile([stays, passes, *others], CODE)]).groups == alone.groups


@pytest.mark.parametrize(("samples", "kept_of_four", "is_named"), [
    (1, 4, False), (3, 4, False),  # too few samples, whatever they are worth in bytes
    (4, 4, True), (40, 4, True),
    (4, 2, False),  # a tenth of all stay: four of eight may be chance
    (40, 2, True)])
def test_few_samples_name_no_site_at_any_distance(samples, kept_of_four, is_named):
    """A sample at 512 KiB says no more than one at 16 KiB, though it counts for more bytes."""
    for period in (512 << 10, 16 << 10):
        allocated = samples * period * 4 // kept_of_four
        others = [sample(2, 96, 40 * allocated, 4 * allocated)]
        found = Profile([sample(1, 96, allocated, samples * period), *others], CODE, period=period)
        assert bool(learn.policy_of([found]).groups) == is_named


def test_few_samples_of_what_passes_name_no_site():
    period = 512 << 10
    for count, is_named in ((3, False), (40, True)):
        found = Profile([sample(1, 96, 40 * period, 40 * period),
                         sample(2, 96, count * period, 0)], CODE, period=period)
        assert bool(learn.policy_of([found]).groups) == is_named


def test_a_sample_counts_as_much_as_its_profile_in_a_compiled_policy():
    """Three samples of a long run are worth more than four in bytes."""
    period = 512 << 10
    long, short = (Profile([sample(1, 96, 3 * period, 3 * period), sample(2, 96, 90 * period, 0)],
                           CODE, period=period) for _ in range(2))
    short.samples = []
    assert learn.policy_of([long, short], [1.9, 0.1]).groups == {}


def test_processes_of_a_program_count_together():
    first = Profile([sample(1, 48, 60000, 40000), sample(2, 48, 90 * MIB, 0)], CODE)
    second = Profile([sample(1, 48, 60000, 40000)], CODE)
    assert learn.policy_of([first]).groups == {}
    assert learn.policy_of([first, second]).groups == {Site(ID, 0x202, 48): 1}


# ---- profiles that others wrote ----

def made_profile(kept, libraries, first=0, hours=0):
    """As `pprof -proto` writes it, with labels of others beside ours: a sample for each number of
    bytes that stay; all of them in the first library, or each in one of its own. `first` is added
    to their places."""
    texts = ["", "alloc_space", "inuse_space", "block_size", "thread", *sum(libraries, ())]
    numbers = range(len(kept))
    own = [number if len(libraries) > 1 else 0 for number in numbers]
    message, _ = pprof.library()
    return message(
        sample_type=[{"type": 1}, {"type": 2}],
        sample=[{"location_id": [8 + number], "value": [90 * MIB, kept[number]],
                 "label": [{"key": 4, "num": 9}, {"key": 3, "num": 48}]} for number in numbers],
        mapping=[{"id": 1 + number, "memory_start": 0x1000, "memory_limit": 0x9000,
                  "filename": 5 + 2 * number, "build_id": 6 + 2 * number, "file_offset": 0x200}
                 for number, _ in enumerate(libraries)],
        location=[{"id": 8 + number, "mapping_id": 1 + own[number],
                   "address": 0x1001 + first + number - own[number]} for number in numbers],
        duration_nanos=hours * 3600 * 10**9,
        string_table=[text.encode() for text in texts]).SerializeToString()


def test_libraries_that_had_the_same_place_are_kept_apart(tmp_path):
    """In profiles of two processes that pprof has merged; locations say which mapping they mean."""
    path = tmp_path / "merged.pb"
    path.write_bytes(made_profile([0, 80 * MIB], [("/a.so", ID), ("/b.so", "b" * 40)]))
    profile = pprof.read(path)
    assert [profile.mapping_of(each.addresses[0]).path for each in profile.samples] == [
        "/a.so", "/b.so"]
    assert learn.policy_of([profile]).groups == {Site("b" * 40, 0x202, 48): 1}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_profiles_of_stores_become_a_policy(tmp_path, pack):
    path = tmp_path / "merged.pb"
    data = pack(made_profile([80 * MIB, 0], [("/nonesuch", ID)]))
    path.write_bytes(data)
    assert learn.compiled([path]).groups == {Site(ID, 0x202, 48): 1}
    assert learn.compiled([path, path]).groups == {Site(ID, 0x202, 48): 1}
    path.write_bytes(data[:-5])
    with pytest.raises(UserError, match="not all of one"):
        learn.compiled([path])


@pytest.fixture
def compiled_of(tmp_path):
    """The sites of the policy that profiles make: compiled_of(profile, ...)."""
    def compile_profiles(*profiles):
        paths = [tmp_path / f"{number}.pb" for number, _ in enumerate(profiles)]
        for path, data in zip(paths, profiles):
            path.write_bytes(data)
        return {site.place for site in learn.compiled(paths).groups}

    return compile_profiles


LIBRARY = [("/nonesuch", ID)]


def test_a_policy_of_two_machines_has_the_rules_of_both(compiled_of):
    one, other = (made_profile([80 * MIB, 0], LIBRARY, first, hours=24) for first in (0, 16))
    assert (compiled_of(one), compiled_of(other)) == ({0x202}, {0x212})
    assert compiled_of(one, other) == {0x202, 0x212}


def test_a_profile_of_a_day_counts_more_than_one_of_an_hour(compiled_of):
    """On one machine the blocks stay, on the other the same code's come and go."""
    def both(hours_of_stay, hours_of_go):
        return compiled_of(made_profile([80 * MIB, 0], LIBRARY, hours=hours_of_stay),
                           made_profile([0, 0], LIBRARY, hours=hours_of_go))

    assert both(24, 1) == {0x202}
    assert both(1, 24) == both(0, 24) == both(1, 1) == set()  # 80 of 180 MiB, where all are alike


# ---- a policy, and whether it pays ----

def test_policies_with_too_many_rules_are_not_merged():
    many = Policy(ID, groups={Site(ID, place, 48): 1 for place in range(policy.MOST_RULES)})
    with pytest.raises(UserError, match="more than 128"):
        policy.merge(policy.parse(TEXT), many)


def test_the_bounds_are_those_of_the_library():
    table = (ROOT / "src/options/tuning.h").read_text()
    for name, value in (("SITE_RULES_MOST", policy.MOST_RULES), ("SITE_GROUPS", policy.LAST_GROUP),
                        ("SITE_SIZE_MOST", policy.LARGEST_SIZE),
                        ("SITE_FRAMES_MOST", policy.MOST_FRAMES),
                        ("SITE_SLOT_MOST", policy.MOST_SLOT),
                        ("MADE_CLASSES_MOST", policy.MOST_SIZES)):
        assert f"TUNE({name}, {value}, " in table


def run_of(status, cpu_s, gib_s=0.1):
    return runs.Run(status, Path(), cpu_s, 1.0, 1, gib_s)


def given(monkeypatch, *ratios, status=0):
    """Pairs of runs take what the ratios say, the last one again and again; who counts them."""
    made = []

    def pairs(words, old, new, most_s):
        while True:
            made.append(new["HAKMEM_POLICY"])
            ratio = ratios[min(len(made), len(ratios)) - 1]
            yield run_of(0, 1.0, 0), run_of(status, ratio, 0)

    monkeypatch.setattr(runs, "pairs", pairs)
    return made


LEARNT = {Path("a.policy"): Policy(ID, groups={Site(ID, 5, 64): 1})}


@pytest.mark.parametrize(("ratios", "is_worth", "said", "count"), [
    ((0.50, 0.51, 0.49), True, "it pays", 3),
    ((1.20, 1.21, 1.19), False, "costs more than it gains", 3),
    ((0.80, 0.60, 0.90, 0.70, 0.75, 0.71), True, "it pays", 6),  # noise takes more pairs
    ((0.98, 1.02, 1.00, 0.99, 1.01, 1.0), False, "do not settle it", 60)])
def test_pairs_are_run_until_the_sign_is_settled(monkeypatch, ratios, is_worth, said, count):
    made = given(monkeypatch, *ratios)
    monkeypatch.setattr(runs.time, "monotonic", lambda: float(len(made)))  # a second a pair
    assert learn.judged(["x"], LEARNT, 1)[0] == is_worth
    assert len(made) == count
    made.clear()
    assert said in learn.judged(["x"], LEARNT, 1)[1]


def test_three_pairs_are_run_however_long_they_take(monkeypatch):
    made = given(monkeypatch, 0.9, 1.1)
    monkeypatch.setattr(runs.time, "monotonic", lambda: 1000.0 * len(made))
    assert not learn.judged(["x"], LEARNT, 1)[0] and len(made) == 3


def test_pairs_that_were_run_decide_if_a_later_run_fails(monkeypatch):
    def pairs(*_):
        yield from noisy(0.86, 1.0)[:count]
        raise runs.NotRepeated("it ended with status 4")

    monkeypatch.setattr(runs, "pairs", pairs)
    for count in (6, 3):
        is_worth, said = learn.judged(["x"], LEARNT, 60)
        assert is_worth and "since a later run failed (it ended with status 4): " in said
    is_worth, said = learn.judged(["x"], LEARNT, 60, 1 << 40)
    assert not is_worth and "--minutes" not in said
    count = 2
    with pytest.raises(runs.NotRepeated):
        learn.judged(["x"], LEARNT, 60)


def test_what_ends_in_another_way_is_left_out(monkeypatch):
    made = given(monkeypatch, 0.5, 0.51, 0.49, status=139)
    is_worth, said = learn.judged(["x"], LEARNT, 1)
    assert not is_worth and "did not end in the same way" in said and len(made) == 1


@pytest.mark.parametrize(("status", "said"), [
    (4, "ended with status 4 instead of 0; input from a pipe or a terminal is not repeated"),
    (runs.NO_END, "does not end by itself")])
def test_what_does_not_end_well_again_is_not_compared(monkeypatch, status, said):
    made = []

    def measured(words, settings, most_s):
        made.append(settings["HAKMEM_POLICY"])
        return run_of(status if made[-1] == "none" else 0, 1.0)

    monkeypatch.setattr(runs, "measured", measured)
    with pytest.raises(runs.NotRepeated, match=said):
        learn.judged(["x"], LEARNT, 1)
    assert made == ["none"]


def noisy(memory, time):
    """Pairs in which the noise of processor time hides what memory gains."""
    return [(run_of(0, 10.0, 1.0), run_of(0, 10 * time * noise, memory * each))
            for noise, each in zip((1.07, 0.93, 0.98, 1.05, 0.95, 1.02),
                                   (1.001, 0.999, 1.0, 1.002, 0.998, 1.0))]


@pytest.mark.parametrize(("pairs", "calls", "is_worth", "said"), [
    (noisy(0.86, 1.0), 9_000_000, True,  # 0.14 GiB and second: 98 ms, and 10 ns a call
     "memory saved is worth 98 ms of processor time a run, and 9,000,000 calls that look for a "
     "rule take 90 ms: it pays"),
    (noisy(0.86, 1.0), 11_000_000, False, "left out, because the memory saved is worth 98 ms"),
    (noisy(1.14, 1.0), 0, False, "do not settle it"),
    (noisy(0.86, 1.3), 0, False, "do not settle it"),
    (noisy(0.86, 1.0)[:2], 0, False, "do not settle it")])
def test_where_noise_hides_the_cost_the_calls_with_rules_are_counted(pairs, calls, is_worth, said):
    found, text = learn.judged_by_memory(pairs, calls)
    assert found == is_worth and said in text


def test_the_memory_alone_is_judged_once_when_the_time_is_over(monkeypatch):
    pairs = noisy(0.86, 1.0)
    monkeypatch.setattr(runs, "pairs", lambda *_: iter(pairs))
    monkeypatch.setattr(runs, "LEAST_PAIRS", len(pairs))
    assert "do not settle it, but" in learn.judged(["x"], LEARNT, 0)[1]


def test_calls_are_those_of_sizes_with_rules_in_all_processes():
    def calls(size, count):
        return Sample([0x1001], {"alloc_objects": count}, size)

    profiles = [Profile([calls(64, 3), calls(48, 5)], CODE), Profile([calls(64, 4)], CODE)]
    assert learn.calls_of(LEARNT[Path("a.policy")], profiles) == 7


def test_chance_settles_few_signs():
    chance, wrong = random.Random(7), 0
    for _ in range(1000):
        ratios = []
        for _ in range(20):
            ratios.append(chance.lognormvariate(0, 0.03))
            if runs.sign_of(ratios):
                wrong += 1
                break
    assert 20 < wrong < 90


def test_what_stood_in_a_policy_stays_but_for_groups(tmp_path):
    target = tmp_path / "a.policy"
    target.write_text(TEXT)
    new = Policy(ID, groups={Site(ID, 5, 64): 1})
    learn.write({target: learn.beside_old(new, target)})
    assert "1 rule" in learn.told_of(new, "x")  # also those without a comment
    found = policy.read(target)
    assert found.options == {"price": "lean"}
    assert found.groups == {Site(ID, 5, 64): 1} and found.comments["price"] == ["why"]


def test_a_policy_is_written_whatever_the_locale(tmp_path):
    code = ("from pathlib import Path; from hakmem import learn, policy; "
            "learn.write({Path('p'): policy.parse(input().replace('|', chr(10)))})")
    text = TEXT.replace("# a site", "# Gr\u00f6\u00dfe")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "LC_ALL": "C",
                   "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=False,
                          input=text.replace("\n", "|"), encoding="utf-8", capture_output=True)
    assert done.returncode == 0, done.stderr
    assert policy.parse((tmp_path / "p").read_text(encoding="utf-8")).text() == text


def test_a_policy_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.policy"
    path.write_text(TEXT)
    with path.open() as reader:  # as a program that starts meanwhile
        policy.write(path, Policy(ID))
        assert reader.read() == TEXT
    assert policy.read(path) == Policy(ID, comments={"": []})
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("length", [1, 245])  # of 255 bytes that the text of an option may have
def test_a_refusal_is_seen_however_long_the_path_is(tmp_path, hakmem, length):
    path = tmp_path / ("x" * max(1, length - len(f"{tmp_path}/")))
    path.write_text("hakmem policy 1\noption nonesuch 1\n")
    done = hakmem("policy", "check", path)
    assert done.returncode == 1 and done.stderr.startswith(f"hakmem: {path}: "), done
    path.write_text("hakmem policy 1\noption price lean\n")
    assert hakmem("policy", "check", path).returncode == 0
