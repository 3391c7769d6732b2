#!/usr/bin/env python3
"""Tests of the tests: changes one token of src/ at a time and asks whether any test notices.

    tools/mutate.py --count 200 --seed 1             a sample, on copies in out/mutate
    tools/mutate.py --count 200 --seed 1 --list      only prints what would be changed
    tools/mutate.py --again                          the survivors so far once more

A mutant is killed when a build's test fails, hangs or the process dies. One that makes the same
machine code in all builds is equal and does not count. The result is out/mutate/result.jsonl, a row
per mutant; a sample that was interrupted goes on where it stopped. docs/reliability.md lists the
known survivors and why they are harmless; those it does not list are printed as unexplained.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from mutants import Mutant, sample

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out" / "mutate"
RESULT = OUT / "result.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
COPIED = ("src", "include", "recorder", "tests", "bench", "lab", "cmake", "tools", "docs",
          "CMakeLists.txt", "CMakePresets.json", "hakmem", "LICENSE", "README.md")
# In the order in which they are asked; the checked build finds most.
BUILDS = ("checked", "release", "sanitised", "tsan")
GROUPS = ("unit", "api", "model", "misuse", "preload", "stress")
# Ten times what the test took unchanged, and this: other work on the machine must not kill.
GRACE_S = 30.0
# What compilers of today refuse, older ones only warn of.
FLAGS = "-Werror=int-conversion -Werror=incompatible-pointer-types"
LOCK = Lock()


@dataclass
class Test:
    """One test as ctest knows it, and how long it took unchanged."""

    name: str
    label: str
    command: list[str]
    environment: dict[str, str]
    folder: str
    skip_status: int
    seconds: float = GRACE_S

    def fails(self) -> bool:
        """Runs it; a process that outlives its time is ended with all that it started."""
        process = subprocess.Popen(self.command, cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                   env={**os.environ, **self.environment}, start_new_session=True,
                                   preexec_fn=be_first_to_go)
        try:
            status = process.wait(10 * self.seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        return status not in (0, self.skip_status)


def be_first_to_go() -> None:
    """In the child: no core, and when memory runs out it is this process that goes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Path("/proc/self/oom_score_adj").write_text("1000")


class Workshop:
    """A copy of the checkout with builds of its own: one mutant at a time."""

    def __init__(self, number: int, builds: list[str], groups: list[str]) -> None:
        self.root = OUT / str(number)
        self.builds = builds
        self.groups = groups
        self.tests: dict[str, list[Test]] = {}
        self.objects: dict[str, dict[str, str]] = {}
        content = hashlib.sha256()
        for path in filter(bool, git("ls-files", "-z", "--cached", "--others",
                                     "--exclude-standard", *COPIED).split("\0")):
            self.copy(path)
            content.update((self.root / path).read_bytes())
        self.content = content.hexdigest()

    def copy(self, path: str) -> None:
        source, target = ROOT / path, self.root / path
        if not source.is_file():
            target.unlink(missing_ok=True)
        elif not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def make(self, build: str, *targets: str) -> bool:
        command = ["ninja", "-C", str(self.root / "out" / build), "-j2", *targets]
        return subprocess.run(command, capture_output=True).returncode == 0

    def prepare(self, build: str) -> None:
        """The unchanged build, its tests in their order, its machine code."""
        if build in self.tests:
            return
        subprocess.run(["cmake", "--preset", build, "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON",
                        f"-DCMAKE_C_FLAGS={FLAGS}"],
                       cwd=self.root, check=True, stdout=subprocess.DEVNULL)
        if not self.make(build):
            sys.exit(f"mutate: {build} does not build unchanged in {self.root}")
        self.objects[build] = self.machine_code(build)
        said = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.root / "out" / build,
                              check=True, capture_output=True, text=True).stdout
        tests = [test for row in json.loads(said)["tests"] if (test := self.read_test(row))]
        seconds = self.measure(build, tests)
        for test in tests:
            test.seconds = seconds.get(test.name, 0.0)
        self.tests[build] = sorted((test for test in tests if test.name in seconds),
                                   key=lambda test: (GROUPS.index(test.label), test.seconds))

    def measure(self, build: str, tests: list[Test]) -> dict[str, float]:
        """What each test takes unchanged, kept for the other copies of the same checkout."""
        seconds: dict[str, float] = {}
        path = OUT / f"{build}-{'-'.join(self.groups)}-{self.content[:16]}.json"
        with LOCK:
            if path.exists():
                return dict(json.loads(path.read_text()))
            for test in tests:
                begin = time.monotonic()
                if test.fails():
                    print(f"mutate: {test.name} fails unchanged: left out", flush=True)
                else:
                    seconds[test.name] = time.monotonic() - begin
            path.write_text(json.dumps(seconds))
        return seconds

    def read_test(self, row: dict[str, object]) -> Test | None:
        properties = {item["name"]: item["value"] for item in row["properties"]}  # type: ignore
        name = str(row["name"])
        label = name.split("/")[1]
        if label not in self.groups:
            return None
        environment = dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
        return Test(name, label, list(row["command"]), environment,  # type: ignore
                    properties["WORKING_DIRECTORY"], properties.get("SKIP_RETURN_CODE", 0))

    def machine_code(self, build: str) -> dict[str, str]:
        """A hash per object file of the allocator, without what names lines."""
        hashes = {}
        for path in (self.root / "out" / build).rglob("*.o"):
            if "/src/" in str(path):
                bare = self.root / "bare.o"
                subprocess.run(["objcopy", "--strip-debug", str(path), str(bare)], check=True)
                hashes[str(path)] = hashlib.sha256(bare.read_bytes()).hexdigest()
        return hashes

    def judge(self, mutant: Mutant) -> tuple[str, str]:
        """What became of it, and who killed it."""
        target = self.root / mutant.path
        text = target.read_text()
        end = mutant.offset + len(mutant.old)
        for build in self.builds[:1]:
            self.prepare(build)
        target.write_text(text[:mutant.offset] + mutant.new + text[end:])
        try:
            return self.ask_all(mutant, target, text)
        finally:
            target.write_text(text)

    def ask_all(self, mutant: Mutant, target: Path, text: str) -> tuple[str, str]:
        changed = target.read_text()
        differs = False
        for build in self.builds:
            if build not in self.tests:
                target.write_text(text)
                self.prepare(build)
                target.write_text(changed)
            folder = "_".join(mutant.path.split("/")[1:-1])
            near = [test for test in self.tests[build] if f"/unit/{folder}/" in test.name]
            if near and self.make(build, *(f"unit_{test.name.split('/unit/')[1].replace('/', '_')}"
                                           "_test" for test in near)):
                for test in near:
                    if test.fails():
                        return "killed", test.name
            if not self.make(build):
                return "not compilable", build
            if self.machine_code(build) == self.objects[build]:
                continue
            differs = True
            for test in self.tests[build]:
                if test not in near and test.fails():
                    return "killed", test.name
        return ("survived" if differs else "equal"), ""


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True,
                          text=True).stdout


def explained() -> set[tuple[str, str, str]]:
    """The survivors that docs/reliability.md lists: - `file`: `line` → `line`."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return set(re.findall(r"^ *- `(src/[^`]+)`: `([^`]+)` → `([^`]+)`", text, re.M))


def report(rows: list[dict[str, object]]) -> None:
    known = explained()
    verdicts = Counter(str(row["verdict"]) for row in rows)
    for verdict, count in sorted(verdicts.items()):
        print(f"{count:5} {verdict}")
    judged = verdicts["killed"] + verdicts["survived"]
    if judged:
        print(f"{100 * verdicts['killed'] / judged:5.1f} % killed of {judged}")
    for row in rows:
        if row["verdict"] == "survived":
            key = (row["path"], row["before"], row["after"])
            word = "explained" if key in known else "UNEXPLAINED"
            print(f"{word}: {row['kind']} at {row['path']}:{row['line']}\n"
                  f"- `{row['path']}`: `{row['before']}` → `{row['after']}`")


def work(mutants: list[Mutant], builds: list[str], groups: list[str], jobs: int) -> None:
    """Judges what has no row yet and appends one for each."""
    shops: SimpleQueue[Workshop] = SimpleQueue()
    for number in range(jobs):
        shops.put(Workshop(number, builds, groups))

    def judge(mutant: Mutant) -> None:
        shop = shops.get()
        try:
            verdict, killer = shop.judge(mutant)
        finally:
            shops.put(shop)
        row = {**asdict(mutant), "verdict": verdict, "by": killer, "builds": " ".join(builds)}
        with LOCK, RESULT.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(f"{verdict:14} {killer:36} {mutant.name()}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(judge, mutants))


def read_rows() -> dict[Mutant, dict[str, object]]:
    rows = {}
    for line in RESULT.read_text().splitlines() if RESULT.exists() else []:
        row = json.loads(line)
        rows[Mutant(**{name: row[name] for name in Mutant.__dataclass_fields__})] = row
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="copies of the checkout at work")
    parser.add_argument("--builds", default=" ".join(BUILDS), help="whose tests are asked")
    parser.add_argument("--groups", default=" ".join(GROUPS), help="folders of tests to ask")
    parser.add_argument("--again", action="store_true", help="only the last sample's survivors")
    parser.add_argument("--list", action="store_true", help="only print the sample")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    mutants = sample(ROOT, options.count, options.seed)
    rows = read_rows()
    if options.list:
        print("\n".join(mutant.name() for mutant in mutants))
        return
    left = [mutant for mutant in mutants if mutant not in rows]
    if options.again:  # those whose file is as it was
        today = set(sample(ROOT, sys.maxsize, 0))
        mutants = [mutant for mutant in rows if mutant in today]
        left = [mutant for mutant in mutants if rows[mutant]["verdict"] == "survived"]
    work(left, options.builds.split(), options.groups.split(), options.jobs)
    rows = read_rows()
    report([rows[mutant] for mutant in mutants])


if __name__ == "__main__":
    main()
