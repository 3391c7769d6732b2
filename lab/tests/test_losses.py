"""The table of the cells in which another allocator needs less, made from ledgers made up here."""

from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.judge import digest
from hakmem_lab.show import figures, markdown
from test_report import folder_of, row, rows_of


def test_losses_are_the_cells_where_another_needs_less() -> None:
    (ahead,) = digest.digest(rows_of("b", 10, ("hakmem", "system")))
    behind = [row(name, who, number, cost + number / 1e3) for name in ("b", "c")
              for number in range(10) for who, cost in
              (("hakmem", 10), ("system", 9), ("jemalloc", 7), ("snmalloc", 6), ("tcmalloc", 8))]
    table = markdown.losses_table([ahead, *digest.digest(behind)], ["time", "end"])
    said = [[field.text for field in line] for line in table.rows]
    assert said == [[name, "snmalloc 0.60, jemalloc 0.70 and 2 others", "–"] for name in "bc"]
    assert table.heads == ("setting", "time per operation", "RSS at the end")
    assert markdown.losses_table([ahead], ["time"]).rows == ()


@pytest.mark.parametrize("words", ["figures=speed", "", "figures=end group=families"])
def test_losses_without_rows_or_figures_are_an_error(words: str, tmp_path: Path) -> None:
    folder_of(tmp_path / "bench/results/2026-run", rows_of("a cell", 10))
    page = tmp_path / "README.md"
    page.write_text(f"<!-- figures: losses bench/results/2026-run {words} -->\n"
                    "<!-- end of figures -->\n")
    with pytest.raises(LabError, match=r"README.md:1: (losses needs|nobody needs)"):
        figures.update(tmp_path)
