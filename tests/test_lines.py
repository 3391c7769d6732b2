"""Cache lines that move between processors: the caches, and a run whose count is known."""

import platform
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import lines  # noqa: E402
from coherence import Caches  # noqa: E402


def costs(*accesses):
    caches = Caches()
    return [caches.access(cache, line, kind == "w") for cache, kind, line in accesses]


def test_a_line_of_one_cache_costs_nothing():
    assert costs((0, "r", 1), (0, "w", 1), (0, "r", 1), (1, "w", 2)) == ["", "", "", ""]


def test_a_line_that_another_has_written_moves():
    assert costs((0, "w", 1), (1, "r", 1), (1, "r", 1)) == ["", "moved", ""]
    assert costs((0, "w", 1), (1, "w", 1), (0, "w", 1)) == ["", "moved", "moved"]


def test_who_writes_a_line_that_others_have_read_claims_it():
    assert costs((0, "w", 1), (1, "r", 1), (0, "w", 1), (1, "r", 1)) == \
        ["", "moved", "claimed", "moved"]


def test_who_reads_what_is_shared_has_a_copy_too():
    assert costs((0, "w", 1), (1, "r", 1), (2, "r", 1), (1, "w", 1), (2, "w", 1)) == \
        ["", "moved", "moved", "claimed", "moved"]


@pytest.fixture
def program():
    pytest.importorskip("capstone")
    if platform.machine() != "x86_64" or not lines.PROGRAM.exists():
        pytest.skip("needs the release build on x86-64")


@pytest.mark.parametrize("threads", [2, 5])
def test_a_word_that_all_write_in_turn_moves_each_time(program, threads):
    found = lines.count("pingpong", threads, "", 20, 3)
    assert found.blocks == 20
    assert found.moved == {("block", "pingpong"): 20 * threads}
    assert not found.claimed


def test_what_accesses_an_instruction_makes():
    pytest.importorskip("capstone")
    decoder, registers = lines.Decoder(), lines.Registers(rax=1000, rcx=5, fs_base=70000)

    def seen(code):
        return [(each.address(registers), each.size, each.writes)
                for each in decoder.operands(bytes.fromhex(code), 0x4000)]

    assert seen("488b0488") == [(1020, 8, False)]  # mov rax, [rax + rcx*4]
    assert seen("488908") == [(1000, 8, True)]  # mov [rax], rcx
    assert seen("f0480fb108") == [(1000, 8, True)]  # lock cmpxchg [rax], rcx
    assert seen("f0480fc708") == [(1000, 16, True)]  # lock cmpxchg16b [rax]
    assert seen("0f1100") == [(1000, 16, True)]  # movups [rax], xmm0
    assert seen("0f1000") == [(1000, 16, False)]  # movups xmm0, [rax]
    assert seen("c5fe7f00") == [(1000, 32, True)]  # vmovdqu [rax], ymm0
    assert seen("64488b0c2510000000") == [(70016, 8, False)]  # mov rcx, fs:[0x10]
    assert seen("48ff0d10000000") == [(0x4017, 8, True)]  # dec [rip + 0x10]
    assert seen("488d0488") == []  # lea rax, [rax + rcx*4]


def row(allocator, place, moved, claimed):
    return {"workload": "ring", "threads": "2", "allocator": allocator, "version": "1",
            "blocks": "100", "place": place, "by": "free", "moved": str(moved),
            "claimed": str(claimed)}


def test_the_table_is_per_block(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "ROOT", tmp_path)
    (tmp_path / "bench").mkdir()
    lines.save([row("hakmem", "block", 1, 1)])
    lines.save([row("hakmem", "block", 100, 50), row("hakmem", "a lock", 25, 0)])
    lines.save([row("snmalloc", "block", 200, 0)])
    text = lines.table((tmp_path / lines.TABLE).read_text())
    assert "| ring, 2 threads | 1.25 + 0.50 | 2.00 + 0.00 |" in text
    assert "| a lock | free | 0.250 | 0.000 |" in text
