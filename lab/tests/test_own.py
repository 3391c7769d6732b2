"""What is said of a user's own program: one sentence, and tables that agree with it."""

import dataclasses
import json
import random
import re
from pathlib import Path

import pytest
from hakmem_lab.judge import digest
from hakmem_lab.measure import ledger
from hakmem_lab.measure.ledger import Ledger, Row
from hakmem_lab.measure.subject import OWN_GROUP
from hakmem_lab.show import colours, own, report
from rich.console import Console
from test_report import folder_of


def row(allocator: str, number: int, cpu_s: float, mib: float, **more: object) -> Row:
    known = {"time": "2026-11-21T10:00:00", "cell": "prog -x", "family": "own",
             "command": "prog -x", "status": "ok", "cost_ns": cpu_s * 2e9, "wall_s": cpu_s * 2,
             "cpu_s": cpu_s, "peak_rss_bytes": int(mib * 2**20), "mean_rss_bytes": 2**20,
             "end_rss_bytes": 2**20, "minor_faults": 7, "group": OWN_GROUP, "commit": "0123456789"}
    return Row(allocator=allocator, round=number, **(known | more))  # type: ignore[arg-type]


def rows_of(costs: dict[str, tuple[float, float]], rounds: int = 10, spread: float = 0.01,
            ) -> list[Row]:
    """Seeded: a whole round is slower or faster by up to a third, each run by `spread`."""
    dice = random.Random(7)
    return [row(name, number, cpu * mood * (1 + spread * dice.random()), mib)
            for number in range(rounds) for mood in [1 + dice.random() / 3]
            for name, (cpu, mib) in costs.items()]


def answer(*words: object, **options: float) -> str:
    return own.Judged(rows_of(*words, **options), "system").answer()  # type: ignore[arg-type]


def test_the_answer_is_who_is_fastest_and_who_needs_the_least() -> None:
    said = answer({"system": (1.0, 100), "hakmem": (0.88, 90), "jemalloc": (1.2, 70)})
    assert re.fullmatch(
        r"On prog hakmem is fastest \(1[123]\.\d % ± 0\.\d less CPU time than system; system, the "
        r"next, takes 1[345]\.\d % more\); jemalloc needs the least memory \(30.0 % ± 0.0 less "
        r"peak memory than system; hakmem, the next, takes 28.6 % more\)\.", said), said


def standing(*words: object, **options: float) -> str:
    return own.Judged(rows_of(*words, **options), "system").standing()  # type: ignore[arg-type]


def test_hakmem_s_own_place_is_said_whatever_it_is() -> None:
    said = standing({"system": (1.0, 100), "hakmem": (1.06, 90), "jemalloc": (0.9, 70)})
    assert re.fullmatch(
        r"HAKMEM: [56]\.\d % more CPU time than system \(\d\.\d % to \d\.\d %\), place 3 of 3; "
        r"10 % less peak memory than system \(−10 % to −10 %\), place 2 of 3\.", said), said
    assert "not significant" in standing({"system": (1.0, 9), "hakmem": (1.0, 9)}, spread=0.3)
    assert standing({"system": (1.0, 100), "jemalloc": (1.0, 100)}) == ""


def test_too_few_rounds_for_a_claim_are_said_before_it() -> None:
    costs = {"system": (1.0, 100), "hakmem": (0.5, 90)}
    assert standing(costs, rounds=8).startswith("Smoke test: 8 rounds, a claim needs 10. HAKMEM: ")


def test_the_base_may_be_best() -> None:
    said = answer({"system": (1.0, 100), "hakmem": (1.5, 120), "jemalloc": (1.2, 150)})
    assert re.fullmatch(
        r"On prog system is fastest \(jemalloc, the next, takes (19|20|21)\.\d % more\); "
        r"system needs the least memory \(hakmem, the next, takes 20.0 % more\)\.",
        said), said


def test_what_does_not_differ_is_not_ranked_and_what_it_takes_is_said() -> None:
    costs = {"system": (1.0, 100), "hakmem": (1.005, 100), "jemalloc": (1.5, 100)}
    said = answer(costs, spread=0.1)
    assert re.match(r"On prog no significant difference in CPU time between (system and hakmem|"
                    r"hakmem and system); about [\d,]+ rounds \(-n\) would show one of 2 %; no "
                    r"significant difference in peak memory between system, hakmem and jemalloc",
                    said), said
    costs = {"system": (2.0, 100), "hakmem": (1.005, 90), "jemalloc": (1.0, 90)}
    assert re.match(r"On prog \w+ and \w+ are fastest \(\w+: \d\d % ± \d less CPU time than "
                    r"system\), without a significant difference between them", answer(costs,
                                                                                       spread=0.1))


def test_few_rounds_judge_nobody() -> None:
    costs = {"system": (1.0, 100.0), "hakmem": (0.5, 90.0), "jemalloc": (1.2, 70.0)}
    assert answer(costs, rounds=3) == (
        "On prog hakmem has the lowest CPU time and jemalloc has the lowest peak memory, but it "
        "takes 7 rounds (-n 7) to judge 3 allocators.")
    assert "to judge" not in answer(costs, rounds=7)


def test_ratios_are_those_of_the_figures_beside_them_and_sorted_likewise() -> None:
    rows = rows_of({"system": (1.0, 100), "a": (1.02, 90), "b": (0.99, 80)}, spread=0.5)
    for told, table in zip((judged := own.Judged(rows, "system")).rankings, judged.tables()):
        assert list(told.medians.values()) == sorted(told.medians.values())
        assert [fields[0].text for fields in table.rows] == list(told.medians)
        for name, value in told.medians.items():
            assert told.to_base[name].median == pytest.approx(value / told.medians["system"])


def test_one_rule_colours_all_allocators() -> None:
    judged = own.Judged(rows_of({"system": (1, 1), "hakmem": (1.2, 2), "jemalloc": (1.2, 2)}),
                        "system")
    assert {judged.rankings[0].field(name).kind for name in ("hakmem", "jemalloc")} == {"worse"}


def test_who_failed_is_told_and_not_ranked() -> None:
    rows = [*rows_of({"system": (1.0, 100), "hakmem": (0.5, 50)}),
            row("jemalloc", -1, 0, 0, status="died of SIGSEGV")]
    judged = own.Judged(rows, "system")
    assert "jemalloc failed and is not ranked: died of SIGSEGV" in judged.notes()
    assert "jemalloc" not in judged.answer()
    assert [fields[0].text for fields in judged.tables()[0].rows][-1] == "jemalloc"
    nobody = own.Judged(rows[-1:], "system")
    assert nobody.answer().startswith("Nothing to compare") and nobody.tables() == []


def test_a_server_is_judged_by_its_load() -> None:
    told = [row(name, number, 1.0, 1.0, cell="prog -x under ab", cost_ns=1e9 * load_s,
                figures={"load_s": load_s})
            for number in range(10) for name, seconds in (("system", 2.0), ("hakmem", 1.0))
            for load_s in [seconds + number / 100]]
    assert "hakmem is fastest" in own.Judged(told, "system").answer()
    assert "less time of the load than system" in own.Judged(told, "system").answer()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    opened = Ledger(tmp_path)
    opened.append(rows_of({"system": (1.0, 100), "hakmem": (0.5, 90), "jemalloc": (1.2, 70)}))
    opened.write_object(ledger.ENVIRONMENT, {"base": "system", "cpu": "a processor"})
    opened.append_text(ledger.CURVES, "cell,allocator,seconds,rss_bytes\n" + "".join(
        f"prog -x,{name},{seconds},{2**20 * (1 + seconds)}\n"
        for name in ("system", "hakmem") for seconds in range(9)))
    return tmp_path


def test_all_of_it_is_json_for_programs(folder: Path) -> None:
    told = own.facts(folder)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["answer"] == own.Judged(digest.read_run(folder).rows, "system").answer()
    assert told["hakmem"].startswith("HAKMEM: ") and told["first"] == {"time": ["hakmem"],
                                                                       "peak": ["jemalloc"]}
    hakmem, = (each for each in told["allocators"] if each["name"] == "hakmem")
    assert hakmem["medians"]["peak"] == 90 * 2**20 and 0.4 < hakmem["medians"]["time"] < 0.7
    ratio = hakmem["ratios"]["time"]
    assert ratio["is_significant"] and ratio["low"] < ratio["median"] < ratio["high"] < 0.6
    assert [each["round"] for each in hakmem["runs"]] == list(range(10))
    assert all(each["peak"] == 90 * 2**20 for each in hakmem["runs"])


def test_json_says_who_failed_and_has_no_interval_of_few_rounds(tmp_path: Path) -> None:
    opened = Ledger(tmp_path)
    opened.append([*rows_of({"system": (1.0, 100), "hakmem": (0.5, 90)}, rounds=3),
                   row("jemalloc", 0, 0, 0, status="died of SIGSEGV")])
    told = json.loads(json.dumps(own.facts(tmp_path), allow_nan=False))
    failed = told["allocators"][-1]
    assert failed["failures"] == [{"round": 0, "reason": "died of SIGSEGV"}]
    assert failed["runs"] == [] and failed["ratios"]["time"] is None
    assert told["allocators"][0]["ratios"]["time"]["low"] is None


def test_the_page_begins_with_the_answer(folder: Path) -> None:
    report.write_report([folder], folder)
    said = own.Judged(digest.read_run(folder).rows, "system").answer()
    page = (folder / "report.html").read_text()
    body = page.partition("<main>")[2]
    assert said in (lead := body.partition("</p>")[0])
    assert lead.index("HAKMEM: ") < lead.index(said)
    assert body.index("90.0 MiB") < body.index("<svg") < body.index("<h2>Details")
    assert " of 1 cells" not in page and "a processor" in page and "0.50" in body


def page_of(folder: Path) -> str:
    report.write_report([folder], folder)
    return (folder / "report.html").read_text()


def test_each_run_is_in_the_picture_and_the_rows_are_in_the_order_of_the_bars(folder: Path) -> None:
    judged = own.Judged(digest.read_run(folder).rows, "system")
    *_, time, memory = own.page(digest.read_run(folder))["pictures"]
    assert "hollow: beyond two standard deviations" in time and "95 % interval" in time
    for drawn, told in ((time, judged.rankings[0]), (memory, judged.rankings[1])):
        assert drawn.count("<use ") >= sum(map(len, told.values.values())) == 30
        shown = re.findall(r"<text[^>]*>([a-z]+)</text>", drawn)
        assert [name for name in shown if name in told.medians] == list(told.medians)


def test_memory_over_time_has_all_rounds(folder: Path) -> None:
    assert "one round" in "".join(own.page(digest.read_run(folder))["pictures"])
    (folder / ledger.CURVES).write_text("cell,allocator,seconds,rss_bytes,round\n" + "".join(
        f"prog -x,hakmem,{seconds},{2**20 * (1 + seconds + number)},{number}\n"
        for number in range(4) for seconds in range(9)))
    run = digest.read_run(folder)
    assert len(run.curves["prog -x"]["hakmem"]) == 9
    assert len(run.further_curves["prog -x"]["hakmem"]) == 3
    assert "the first of 4 rounds is bold" in "".join(own.page(run)["pictures"])


def test_how_to_use_the_fastest_and_hakmem_is_said() -> None:
    rows = rows_of({"system": (1.0, 100), "hakmem": (0.88, 90), "jemalloc": (0.5, 70)})
    rows = [dataclasses.replace(each, owner=f"lib{each.allocator}.so") for each in rows]
    assert own.Judged(rows, "system").use() == [
        "To use jemalloc: install it, and set LD_PRELOAD to the path of its library "
        "(libjemalloc.so)",
        "To use HAKMEM: make install, then hakmem run prog"]
    rows = rows_of({"system": (0.5, 100), "jemalloc": (0.88, 90)})
    assert own.Judged(rows, "system").use() == ["prog uses the system's allocator already"]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_and_pictures_stand_out_in_both_modes(folder: Path, mode: str) -> None:
    """WCAG 2, level AA."""
    blocks = re.findall(r"(@media \(prefers-color-scheme: dark\) \{\s*)?:root \{([^}]*)\}",
                        page_of(folder))
    colours_of = {name: colour for is_dark, block in blocks if not is_dark or mode == "dark"
                  for name, colour in re.findall(r"--([\w]+): (#[0-9a-f]{6})\b", block)}
    assert colours_of["paper"] == colours.PAPERS[mode]
    papers = [colours_of[name] for name in ("paper", "ground", "warn")]
    for name in ("ink", "faint", "accent", "better"):
        assert min(colours.contrast(colours_of[name], paper) for paper in papers) >= colours.TEXT
    drawn = {name: colour for name, colour in colours_of.items() if name.startswith("c")}
    assert len(set(drawn.values())) == len(drawn) > 20
    for name, colour in drawn.items():
        assert colours.contrast(colour, colours_of["paper"]) >= colours.GRAPHICS, name


def test_pictures_have_no_colour_that_does_not_change_with_the_mode(folder: Path) -> None:
    page = page_of(folder).partition("<main>")[2]
    assert not re.search(r"#[0-9a-f]{6}\b", page)
    assert not re.search(r"<text[^>]*var\(--c", page)  # a text needs more contrast than a line


def test_contrast_is_that_of_wcag() -> None:
    assert colours.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert colours.contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert colours.readable("#767676", "#ffffff", 4.5) == "#767676"


def test_no_table_of_the_page_is_wider_than_a_small_screen(folder: Path) -> None:
    """Side by side they take half of the page each, of four columns that do not wrap."""
    report.write_report([folder], folder)
    page = (folder / "report.html").read_text()
    tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
    assert len(tables) == 5 and page.count('<table class="bars">') == 2
    for table in tables:
        for line in re.findall(r"<tr>.*?</tr>", table, re.DOTALL):
            fields = [re.sub(r"<small>.*?</small>|<[^>]+>", "", field).strip()
                      for field in re.findall(r"<t[dh].*?</t[dh]>", line, re.DOTALL)]
            assert len(fields) <= 6 and ('class="record"' in table or len("".join(fields)) < 70)


@pytest.mark.parametrize("width", [60, 110])
def test_the_terminal_begins_with_the_answer(folder: Path, width: int) -> None:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        own.show(folder, console)
    said = " ".join(captured.get().split())
    assert said.startswith("prog -x HAKMEM: ") and "On prog hakmem is fastest" in said
    assert "0.50" in said
    assert "70.0 MiB" in said and re.search(r"hakmem 0.5\d\d s ", said)


def test_near_and_far_have_an_answer_each(tmp_path: Path) -> None:
    made = [dataclasses.replace(each, round_trip_ns=300.0 if each.round % 2 else 60.0,
                                wall_s=each.cpu_s / 2)
            for each in rows_of({"system": (1, 1), "hakmem": (0.5, 1)}, 24)]
    near, far = own.judged(digest.read_run(folder_of(tmp_path, made)))
    assert near.where == "With the processors near: " and far.where == "With the processors far: "
    assert all(part.rankings[0].rounds == 12 for part in (near, far))
    assert all("hakmem is fastest" in part.answer() for part in (near, far))
    run = digest.read_run(tmp_path)
    titles = "".join(own.page(run)["pictures"])
    assert titles.count("processors near") >= 3 and titles.count("processors far") >= 3
    assert own.facts(tmp_path)["further"][0]["processors"] in ("near", "far")
