"""The documentation site: it builds without a warning, its links hold, it loads nothing from the
network, and its pages work in a browser, at 400 pixels too."""
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
NARROW, WIDE = 400, 1280
for needed in ("sphinx", "myst_parser", "furo", "breathe", "scipy"):
    pytest.importorskip(needed, reason=f"no {needed}: the documentation site is not built")
sys.path.insert(0, str(ROOT / "lab"))
from hakmem_lab.judge.digest import NOT_RANKED, read_run  # noqa: E402
from hakmem_lab.judge.summary import summarise  # noqa: E402
from hakmem_lab.measure import ledger  # noqa: E402
from hakmem_lab.show import colours  # noqa: E402

RESULTS = ROOT / "bench/results"
# How wide the page is, and what reaches beyond the screen without a scroll bar of its own.
OVERFLOW = """return [document.documentElement.scrollWidth, [...document.querySelectorAll("body *")]
  .filter(each => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(
    ".scroll, .table-wrapper, .highlight, pre, .sidebar-drawer, .toc-drawer, .math"))
  .slice(0, 3).map(each => each.outerHTML.slice(0, 200))]"""


class Page(HTMLParser):
    """The names in a page, what it points to, and what it loads."""

    def __init__(self, file):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.ids |= {told["id"]} if told.get("id") else set()
        if tag == "a" and told.get("href"):
            self.links.append(told["href"])
        if told.get("src"):
            self.loaded.append(told["src"])
        if tag == "link" and told.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(told["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'lab'}:{ROOT / 'python'}"}
    done = subprocess.run([sys.executable, ROOT / "tools/site.py", place], env=environment,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return place / "site"


@pytest.fixture(scope="module")
def pages(site):
    found = {file: Page(file) for file in sorted(site.glob("*.html"))}
    assert {"index", "start", "explore", "api", "man", "search"} <= {file.stem for file in found}
    return found


def test_each_link_within_the_site_leads_somewhere(pages):
    broken = []
    for file, page in pages.items():
        for link in [*page.links, *page.loaded]:
            told = urlsplit(link)
            if told.scheme or told.netloc:
                continue
            target = (file.parent / unquote(told.path)).resolve() if told.path else file
            if not target.exists():
                broken.append((file.name, link))
            elif told.fragment and target in pages and file.stem not in ("genindex", "search") \
                    and unquote(told.fragment) not in pages[target].ids:
                broken.append((file.name, link))
    assert not broken


def test_nothing_is_loaded_from_the_network(site, pages):
    for file, page in pages.items():
        assert not [each for each in page.loaded if urlsplit(each).scheme not in ("", "data")], file
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", text), style


def test_each_page_of_the_documentation_is_in_the_site(pages):
    shown = {file.stem for file in pages}
    assert {file.stem for file in (ROOT / "docs").glob("*.md")} <= shown


def test_the_pages_name_each_other_by_links(pages):
    """What stands as `docs/memory.md` in a checkout."""
    for file, page in pages.items():
        if file.stem == "start":
            assert "memory.html" in page.links and "source.html" in page.links
            assert "docs/memory.md" not in re.sub(r"<pre>.*?</pre>", "", file.read_text("utf-8"),
                                                  flags=re.DOTALL)


@pytest.fixture(scope="module")
def measured(site):
    text = (site / "_static/explore-data.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("const MEASURED = ").rstrip().removesuffix(";"))


def test_each_committed_row_is_behind_a_point(measured):
    shown = {run["name"]: sum(len(cell["rows"]) for cell in run["cells"])
             for run in measured["runs"]}
    for folder in RESULTS.iterdir():
        rows = ledger.read_folder(folder) if folder.is_dir() else []
        if rows and not any(row.round_trip_ns for row in rows):  # else by distance, a row twice
            ranked = [row for row in rows if row.allocator != NOT_RANKED]
            assert shown[folder.name] == len(ranked), folder.name


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        pytest.skip("no chromium with chromium-driver: pages are not opened in a browser")
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pages are not "
                                    "opened in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--disable-dev-shm-usage", f"--user-data-dir={tmp_path_factory.mktemp('user')}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "localhost,127.0.0.1"
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(300)
    driver.set_script_timeout(300)
    yield driver
    driver.quit()


def size(browser, width):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})


def theme(browser, name):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": name}]})


def errors(browser):
    return [each["message"] for each in browser.get_log("browser") if each["level"] == "SEVERE"]


def test_pages_have_no_error_and_fit_a_narrow_screen(browser, pages):
    size(browser, NARROW)
    wrong = []
    for file in pages:
        browser.get(file.as_uri())
        width, what = browser.execute_script(OVERFLOW)
        if width > NARROW or errors(browser):
            wrong.append((file.name, width, what, errors(browser)))
    assert not wrong


@pytest.fixture
def explore(browser, site):
    """Opens the page anew; what it has by a selector, and by a change of a control."""
    size(browser, WIDE)
    theme(browser, "light")
    browser.get((site / "explore.html").as_uri())

    class Explore:
        def all(self, selector):
            return browser.find_elements("css selector", f"#explore {selector}")

        def ask(self, words):
            return browser.execute_script(f"return {words}")

        def choose(self, label, text):
            browser.execute_script("""
                const label = [...document.querySelectorAll("#explore .controls label")]
                  .find(each => each.firstChild.textContent === arguments[0]);
                const list = label.querySelector("select");
                list.value = [...list.options].find(each => each.text === arguments[1]).value;
                list.dispatchEvent(new Event("change"));""", label, text)

        def press(self, selector):
            browser.execute_script("""
                const at = document.querySelector("#explore " + arguments[0]);
                at.dispatchEvent(new Event("click", {bubbles: true}));
                at.dispatchEvent(new Event("change", {bubbles: true}));""", selector)

        def rows(self, place):
            return self.ask(f"""[...document.querySelectorAll("#explore {place} tbody tr")]
                .map(row => [...row.cells].map(each => each.textContent))""")

    yield Explore()
    assert not errors(browser)


def test_the_page_sums_up_as_the_laboratory_does(explore, measured):
    run = read_run(RESULTS / measured["runs"][measured["first"]]["name"])
    shown = {row[0]: row[1:] for row in explore.rows(".sums")}
    expected = summarise(run.of_group("programs"))
    assert set(shown) == {each.name for each in expected}
    for each in expected:
        told = [each.means["time"], each.means["wall"], each.means["peak"], each.means["area"]]
        words = [f"{mean.value:.2f} ({mean.low:.2f}–{mean.high:.2f})" for mean in told]
        counts = [each.ahead, each.behind, each.lighter, each.heavier, each.cells, each.failed]
        assert shown[each.name] == words + [str(count) for count in counts]


def test_the_plot_has_a_point_for_each_allocator_by_shape_and_name(explore, measured):
    names = [each["name"] for each in measured["runs"][measured["first"]]["allocators"]]
    assert len(explore.all("figure .point")) == len(names)
    shapes = explore.ask("""[...document.querySelectorAll("#explore figure .point path")]
        .map(each => each.getAttribute("d"))""")
    assert len(set(shapes)) == len(names)
    labels = explore.ask("""[...document.querySelectorAll("#explore figure text:not(.axis)")]
        .map(each => each.textContent)""")
    assert sorted(labels) == sorted(names)


def test_a_point_opens_its_rows(explore, measured):
    run = measured["runs"][measured["first"]]
    explore.choose("a point is", "a program on an allocator")
    programs = [cell for cell in run["cells"] if cell["group"] == "Programs"]
    assert len(explore.all("figure .point")) == sum(len(cell["allocators"]) for cell in programs)
    explore.press("figure .point")
    name = explore.ask("document.querySelector('#explore .point.chosen title').textContent")
    cell = next(cell for cell in programs if name.startswith(f"{cell['name']} on "))
    rows = explore.rows(".rows")
    assert len(rows) == sum(row[0] == 0 for row in cell["rows"])
    assert {row[0] for row in rows} == {cell["name"]}
    assert rows[0][3] == f"{cell['rows'][0][3] / 1e6:.4f}"


def test_what_is_chosen_is_drawn(explore, measured):
    run = measured["runs"][measured["first"]]
    explore.ask("document.querySelector('#explore .choices input').click()")
    assert len(explore.all("figure .point")) == len(run["allocators"]) - 1
    explore.choose("figures", "medians")
    assert explore.all("figure .point") and "MiB" in explore.all("figure")[0].text
    explore.choose("memory", "RSS at the end")
    assert "RSS at the end, MiB" in explore.all("figure")[0].text
    for other in measured["runs"]:
        explore.choose("run", other["name"])
        assert explore.all("figure .point"), other["name"]
        assert len(explore.rows(".sums")) == len(other["allocators"])


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_plot_is_seen(explore, browser, mode, width):
    size(browser, width)
    theme(browser, mode)
    paper, *fills = explore.ask("""[getComputedStyle(document.body).backgroundColor,
        ...[...document.querySelectorAll("#explore figure .point path")]
        .map(each => getComputedStyle(each).fill)]
        .map(each => "#" + each.match(/\\d+/g).slice(0, 3)
            .map(part => Number(part).toString(16).padStart(2, "0")).join(""))""")
    assert (colours.luminance(paper) > 0.5) == (mode == "light") and fills
    assert [fill for fill in fills if colours.contrast(fill, paper) < 2.9] == []
    box = browser.execute_script("""
        const box = document.querySelector("#explore figure svg").getBoundingClientRect();
        return [box.left, box.right, box.height]""")
    assert 0 <= box[0] and box[1] <= width and box[2] > 200
    assert browser.execute_script(OVERFLOW)[0] <= width


def test_the_interface_is_found_in_a_checkout_whose_path_has_a_space(tmp_path):
    if not shutil.which("doxygen"):
        pytest.skip("no doxygen")
    tree = tmp_path / "a tree"
    for name in ("include", "docs/site", "tools"):
        shutil.copytree(ROOT / name, tree / name)
    code = ("import runpy; made = runpy.run_path('tools/site.py'); "
            "made['SOURCE'].mkdir(parents=True); print(made['api']())")
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True,
                          check=True)
    assert done.stderr == ""
    assert "hakmem_idle" in (Path(done.stdout.strip()) / "hakmem_8h.xml").read_text()
