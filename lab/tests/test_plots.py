"""Pictures, from ledgers made up here."""

import dataclasses
import re
from pathlib import Path

from hakmem_lab.judge import digest
from hakmem_lab.show import plots
from test_report import fallen, folder_of, rows_of


def test_pictures_repeat_to_the_byte(tmp_path: Path) -> None:
    rows = [*rows_of("a, quoted", 10), fallen("a, quoted", "rpmalloc")]
    run = digest.read_run(folder_of(tmp_path / "run", rows))

    def drawn() -> list[str | None]:
        return [plots.trade_off_plot(run, run.cells, "All"),
                plots.memory_plot(run, run.cells[0])]

    first = drawn()
    assert first == drawn()
    assert all(each and each.startswith("<svg") and len(each) < 60_000 for each in first)


def test_settings_of_one_allocator_share_its_colour_and_a_line(tmp_path: Path) -> None:
    def dotted(name: str) -> int:
        rows = [dataclasses.replace(each, allocator=name if each.allocator == "mimalloc3"
                                    else each.allocator) for each in rows_of("a", 10)]
        run = digest.read_run(folder_of(tmp_path / name, rows))
        picture = plots.trade_off_plot(run, run.cells, "All")
        assert picture.count(f">{name}<") == 1  # beside its point, or in the legend
        return len(re.findall(r"stroke-dasharray", picture))

    assert dotted("hakmem-lean") == dotted("other") + 1
    assert dotted("jemalloc-decay-0") == dotted("another") + 1
