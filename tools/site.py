#!/usr/bin/env python3
"""Builds the documentation site: make site. It needs no network. site.py FOLDER makes FOLDER/site;
without an argument the folder is out.

Sphinx reads FOLDER/site-source, which this script fills: the pages of docs/ and of the folders in
PAGES, with links where they name each other; what `make docs` makes of tables; manual pages by
mandoc, the interface by Doxygen, and the data of the page "Explore".
"""

import os
import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out").resolve()
SOURCE, SITE = OUT / "site-source", OUT / "site"
MADE = ROOT / "docs/site"  # what only the site has

# Part, page of the site, its name in the list of pages, the file that it is made from.
# A page without a file is made below.
PAGES = (
    ("Start", "start", "Install and first steps", "docs/start.md"),
    ("Start", "containers", "Containers and services", "docs/containers.md"),
    ("Start", "migration", "From another allocator", "docs/migration.md"),
    ("Start", "faq", "Questions", "docs/faq.md"),
    ("Guide", "guide", "Settings by goal", "docs/guide.md"),
    ("Guide", "memory", "Memory", "docs/memory.md"),
    ("Guide", "hardening", "Wrong use, and what stops it", "docs/hardening.md"),
    ("Tools", "profile", "Profile and leaks", "docs/profile.md"),
    ("Tools", "learning", "Learning", "docs/learning.md"),
    ("Tools", "trace", "Traces", "docs/trace.md"),
    ("Tools", "fleets", "Many machines", "docs/fleets.md"),
    ("Tools", "laboratory", "The laboratory", "docs/laboratory.md"),
    ("Measured", "explore", "Explore", "docs/site/explore.md"),
    ("Measured", "measured", "Tables", "docs/measured.md"),
    ("Measured", "counted", "Counted", ""),
    ("Measured", "studies", "Studies", "bench/studies.md"),
    ("How it works", "life_of_a_block", "The life of a block", "docs/life_of_a_block.md"),
    ("How it works", "architecture", "Architecture", "docs/architecture.md"),
    ("How it works", "concurrency", "Concurrency", "docs/concurrency.md"),
    ("How it works", "reliability", "Reliability", "docs/reliability.md"),
    ("How it works", "design", "Decisions", "docs/design.md"),
    ("How it works", "porting", "Porting", "docs/porting.md"),
    ("How it works", "source", "The source", "src/README.md"),
    ("Reference", "options", "Options", "docs/options.md"),
    ("Reference", "api", "C interface", ""),
    ("Reference", "api_cpp", "C++ interface", ""),
    ("Reference", "man", "Manual pages", ""),
    ("Reference", "tuning", "Numbers that are choices", ""),
    ("Reference", "glossary", "Glossary", "docs/glossary.md"),
    ("Project", "changelog", "Changes", "CHANGELOG.md"),
    ("Project", "contributing", "Contributing", "CONTRIBUTING.md"),
    ("Project", "releasing", "Releasing", "docs/releasing.md"),
    ("Project", "security", "Security", "SECURITY.md"),
    ("Project", "packaging", "Packages", "packaging/README.md"),
    ("Project", "python", "Python", "python/README.md"),
    ("Project", "rust", "Rust", "packaging/rust/README.md"),
)
BY_FILE = {file: (page, name) for _, page, name, file in PAGES if file}
# A page names another by its path, in docs/ also without the folder, or links to it. Code and
# comments stay.
NAMED = re.compile(r"(?P<kept>^```.*?^```|<!--.*?-->)|\]\((?P<link>[\w./]+\.md)\)"
                   r"|`(?P<path>[\w./]+\.md)`", re.MULTILINE | re.DOTALL)
DOXYFILE = """
PROJECT_NAME = hakmem
INPUT = include/hakmem.h include/hakmem.hpp
FILTER_PATTERNS = *="sed -E -f docs/site/for_doxygen.sed"
OUTPUT_DIRECTORY = "{out}"
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
JAVADOC_AUTOBRIEF = NO
MARKDOWN_SUPPORT = YES
AUTOLINK_SUPPORT = NO
EXTRACT_ALL = YES
EXCLUDE_SYMBOLS = hakmem::detail
MACRO_EXPANSION = YES
PREDEFINED = __cplusplus=201703L __cpp_exceptions
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
"""


def linked(text: str, own_file: str) -> str:
    """The page with a link wherever it names another page of the site."""
    def link(found: re.Match[str]) -> str:
        if found["kept"]:
            return found["kept"]
        path = found["path"] or found["link"]
        page = BY_FILE.get(path) or BY_FILE.get(f"docs/{path}") or \
            (("index", "HAKMEM") if path == "README.md" else None)
        if page is None or path == own_file:
            return found[0]
        return f"]({page[0]}.md)" if found["link"] else f"[{page[1]}]({page[0]}.md)"

    return NAMED.sub(link, text).replace("](docs/pictures/", "](pictures/")


def index() -> str:
    """README.md and, beside it, the list of all pages."""
    parts = dict.fromkeys(part for part, *_ in PAGES)
    trees = [f"```{{toctree}}\n:hidden:\n:caption: {part}\n\n" +
             "".join(f"{name} <{page}>\n" for at, page, name, _ in PAGES if at == part) + "```\n"
             for part in parts]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join([linked(readme, "README.md"), *trees])


def output(*command: str | Path) -> str:
    return subprocess.run([str(word) for word in command], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout


def manual() -> str:
    """All manual pages, one after the other; without mandoc as they are."""
    (SOURCE / "man7").mkdir()
    options = SOURCE / "man7/hakmem-options.7"
    options.write_text(output(sys.executable, "tools/options_doc.py", "--man"), encoding="utf-8")
    said = ["# Manual pages\n"]
    for page in (ROOT / "docs/man/hakmem.1", ROOT / "docs/man/hakmem.3", options):
        name, section = page.name.rsplit(".", 1)
        said.append(f"## {name}({section})\n")
        if shutil.which("mandoc"):
            html = output("mandoc", "-T", "html", "-O", "fragment", page)
            html = re.sub(r'<table class="(head|foot)">.*?</table>', "", html, flags=re.DOTALL)
            html = re.sub(r'</?a\b[^>]*>| id="[^"]*"', "", html)  # of three pages, so not unique
            html = re.sub(r"(</?h)([12])\b", lambda tag: f"{tag[1]}{int(tag[2]) + 2}", html)
        else:
            html = f"<pre>{escape(page.read_text(encoding='utf-8'))}</pre>"
        said.append(f"```{{raw}} html\n{html}\n```\n")
    return "\n".join(said)


def api() -> str:
    """The folder of what Doxygen made of the headers; empty without Doxygen."""
    for name, title, header in (("api", "C interface", "hakmem.h"),
                                ("api_cpp", "C++ interface", "hakmem.hpp")):
        body = f"```{{doxygenfile}} {header}\n```\n" if shutil.which("doxygen") else \
            f"```c++\n{(ROOT / 'include' / header).read_text(encoding='utf-8')}```\n"
        (SOURCE / f"{name}.md").write_text(f"# {title}\n\n{body}", encoding="utf-8")
    if not shutil.which("doxygen"):
        return ""
    text = DOXYFILE.format(out=SOURCE / "doxygen")
    subprocess.run(["doxygen", "-"], input=text, text=True, check=True, cwd=ROOT,
                   stdout=subprocess.DEVNULL)
    return str(SOURCE / "doxygen/xml")


def explore() -> None:
    from hakmem_lab.show import explorer  # here: it reads every committed row
    static = SOURCE / "_static"
    static.mkdir()
    for name in ("explore.js", "explore.css"):
        shutil.copy(MADE / name, static)
    (static / "explore-data.js").write_text(explorer.script(ROOT / "bench/results"),
                                            encoding="utf-8")
    (static / "explore-colours.css").write_text(explorer.style(), encoding="utf-8")


def fill() -> str:
    """Writes the folder that Sphinx reads; where the interface is."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    shutil.copy(MADE / "conf.py", SOURCE)
    shutil.copytree(ROOT / "docs/pictures", SOURCE / "pictures")
    for _, page, _, file in PAGES:
        if file:
            text = linked((ROOT / file).read_text(encoding="utf-8"), file)
            (SOURCE / f"{page}.md").write_text(text, encoding="utf-8")
    (SOURCE / "index.md").write_text(index(), encoding="utf-8")
    (SOURCE / "man.md").write_text(manual(), encoding="utf-8")
    (SOURCE / "tuning.md").write_text(output(sys.executable, "tools/tuning_doc.py"),
                                      encoding="utf-8")
    (SOURCE / "counted.md").write_text(output(sys.executable, "tools/counts.py"), encoding="utf-8")
    explore()
    return api()


def main() -> int:
    version = re.search(r"^project\(hakmem VERSION ([\d.]+)",
                        (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert version
    environment = os.environ | {"SITE_API": fill(), "SITE_VERSION": version[1]}
    shutil.rmtree(SITE, ignore_errors=True)
    # A warning is an error: a link to a page or heading that is not there is one.
    return subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-d",
                           OUT / "site-cache", SOURCE, SITE], env=environment,
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
