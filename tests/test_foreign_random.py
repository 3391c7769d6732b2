"""Whatever stands in a file that the tools read: they find something, or say in a line that they do
not. Hypothesis draws the files: chance, valid ones that are damaged, and JSON of any shape. They
are the same in each run; EXAMPLES=3000 draws more of them."""
import contextlib
import gzip
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(ROOT / "out/hypothesis"))
for needed in ("hypothesis", "elftools", "google.protobuf"):
    pytest.importorskip(needed)
import made_files  # noqa: E402
from hakmem import (  # noqa: E402
    elf, flame, foreign, learn, leaks, policy, pprof, profile, statistics, symbols, tables, why)
from hakmem.errors import UserError  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as draw  # noqa: E402

settings.register_profile(
    "bounded", max_examples=int(os.environ.get("EXAMPLES", "100")), derandomize=True,
    deadline=None, database=None, suppress_health_check=list(HealthCheck))
settings.load_profile("bounded")

POLICY = f"""{policy.HEAD}
# Said before
program {made_files.ID}
option mode debug
site {made_files.ID} 202 48 group 1
site {made_files.ID} 203 64 group 2
""".encode()
ANSWER = ["0x0000000000000010", "f", "a.c:1", "g", "??:?", "0x0000000000000020", "??", "??:0", ""]


def damaged(valid):
    """A valid file of which parts are replaced, dropped or repeated."""
    def damage(changes):
        data = bytearray(valid)
        for place, length, other, times in changes:
            place %= len(data) + 1
            data[place:place + length] = other or data[place:place + length] * times
        return bytes(data)

    change = draw.tuples(draw.integers(0, len(valid)), draw.integers(0, 40),
                         draw.binary(max_size=10), draw.integers(0, 3))
    return draw.lists(change, min_size=1, max_size=6).map(damage)


def contents(valid):
    return draw.one_of(draw.binary(max_size=400), damaged(valid), damaged(gzip.compress(valid)))


def tried(read, *arguments):
    """What is read; None: it was refused in one line."""
    try:
        return read(*arguments)
    except UserError as error:
        assert foreign.plain(error).isprintable()
        return None


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("random") / "file"


@given(draw.text(max_size=60), draw.integers(1, 50))
def test_a_text_is_a_line_that_is_shown_as_it_is(text, most):
    shown = foreign.plain(text, most)
    assert shown.isprintable() and len(shown) <= most + 3
    assert foreign.plain(shown) == shown and (shown == text or not text.isprintable()
                                              or len(text) > most)
    assert not set(foreign.markup(text)) & set("<>\"'\n\x1b")


VALID = made_files.profile(sys.executable)


def numbers_of(message):
    """All fields of a message that are numbers: (the message or list it is in, its name there)."""
    for described, value in message.ListFields():
        if described.name == "string_table":
            continue
        if isinstance(value, int):
            yield message, described.name
            continue
        for index, each in enumerate(value):
            if isinstance(each, int):
                yield value, index
            else:
                yield from numbers_of(each)


def with_other_numbers(changes):
    """A profile that has the form of one, but not all its numbers."""
    message = pprof.library()[0].FromString(VALID)
    places = list(numbers_of(message))
    for which, number in changes:
        inside, place = places[which % len(places)]
        with contextlib.suppress(ValueError):  # beyond what the field may be
            if isinstance(place, int):
                inside[place] = number
            else:
                setattr(inside, place, number)
    return message.SerializeToString()


NUMBER = draw.one_of(draw.integers(-2, 9), draw.sampled_from(
    [1 << 63, (1 << 63) - 1, -1 << 63, (1 << 64) - 1, 1 << 40, 2 << 40]))
OTHER_NUMBERS = draw.lists(draw.tuples(draw.integers(0, 99), NUMBER), max_size=4).map(
    with_other_numbers)


@given(draw.one_of(contents(VALID), OTHER_NUMBERS))
def test_a_profile(path, data):
    path.write_bytes(data)
    if found := tried(pprof.read, path):
        made = learn.policy_of([found]) if found.mappings else policy.Policy()
        assert policy.parse(made.text()).groups == made.groups
        stacks = profile.named_stacks(found, "inuse_space")
        assert profile.text_of("all", stacks, 5)
        assert leaks.text_of("7", leaks.of(found), 5, 5, False)
        assert flame.page(flame.tree([([each.function for each in stack.names], stack.size)
                                      for stack in stacks], "all"))
        assert leaks.left_out(found) >= 0


@given(draw.text(max_size=20), draw.text(max_size=20))
def test_names_in_a_profile(path, name, build_id):
    """A statement of the policy is never one that a name has made."""
    path.write_bytes(made_files.profile(f"/{name}\noption {name} 1", build_id))
    found = pprof.read(path)
    made = learn.policy_of([found])
    assert not policy.parse(made.text()).options
    assert not made.program or elf.BUILD_ID.fullmatch(made.program)


def small_program():
    """The head, the tables and the notes of one, without its code."""
    return Path(sys.executable).read_bytes()[:4096]


@given(draw.one_of(draw.binary(max_size=200), damaged(small_program()),
                   damaged(small_program()[:64]).map(lambda head: head + small_program()[64:])))
def test_a_program(path, data):
    path.write_bytes(data)
    assert elf.build_id(path) == "" or elf.BUILD_ID.fullmatch(elf.build_id(path))
    assert isinstance(elf.is_static(path), bool)
    assert all(start < end for start, end in elf.functions(path))
    assert all(each.length >= 0 for each in elf.load_segments(path))


def looked_at(path):
    picture = statistics._checked(foreign.parsed_json(foreign.read(path)), path)
    now = statistics.Picture(picture, None)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        nowhere.write(tables.everything(now))
    assert why.text_of(now)


JSON = draw.recursive(
    draw.one_of(draw.none(), draw.booleans(), draw.integers(), draw.floats(), draw.text()),
    lambda inner: draw.lists(inner, max_size=3) | draw.dictionaries(draw.text(), inner, max_size=3),
    max_leaves=5)
NAMES = draw.sampled_from([*json.loads(made_files.statistics())])


@given(draw.one_of(
    contents(made_files.statistics()), JSON.map(lambda value: json.dumps(value).encode()),
    draw.dictionaries(NAMES, JSON, max_size=2).map(lambda some: made_files.statistics(**some))))
def test_statistics(path, data):
    path.write_bytes(data)
    with contextlib.suppress(ValueError):  # The text is no JSON: the tools read it again then.
        tried(looked_at, path)


@given(draw.one_of(contents(POLICY), draw.text().map(
    lambda text: f"{policy.HEAD}\n{text}\n".encode(errors="replace"))))
def test_a_policy(path, data):
    path.write_bytes(data)
    if found := tried(policy.read, path):
        again = policy.parse(found.text())
        assert not policy.difference(found, again)
        assert all(line.isprintable() for line in found.text().split("\n"))


@given(draw.lists(draw.sampled_from(ANSWER) | draw.text(max_size=9), max_size=12))
def test_what_names_are_asked_from(lines):
    for names in symbols._answers([16, 32], lines).values():
        assert all(str(name).isprintable() for name in names)
