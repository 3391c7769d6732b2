"""The other allocators: what is built once stays built, and who takes part by default."""

import json
from pathlib import Path
from typing import Any

import pytest
from hakmem_lab.commands import compare
from hakmem_lab.commands.cli import CONSOLE
from hakmem_lab.measure import allocators, peers

SOURCES = ["mimalloc3", "mimalloc2", "jemalloc", "snmalloc", "tcmalloc", "rpmalloc"]
PACKAGES = ["debian-mimalloc", "debian-jemalloc", "debian-gperftools", "debian-tbb"]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """bench/peers/build.py in a folder of its own; instead of building it writes a file."""
    module = peers._recipes()
    monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr(allocators, "PEERS", tmp_path / "peers.json")
    monkeypatch.setattr(allocators, "build_release", lambda *targets: None)
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/usr/bin/{name}")
    module.built = []

    def pretend(name: str) -> list[dict[str, Any]]:
        module.built.append(name)
        library = tmp_path / f"lib{name}.so"
        library.touch()
        return [module.record(name, "1.0", library, str(library), "a test", {},
                              module.recipe(name))]

    monkeypatch.setattr(module, "build", pretend)
    return module


def test_an_interrupted_build_goes_on_where_it_stopped(build: Any, monkeypatch: pytest.MonkeyPatch,
                                                       ) -> None:
    def interrupted(name: str) -> list[dict[str, Any]]:
        if name == "jemalloc":
            raise KeyboardInterrupt
        return list(pretend(name))

    pretend = build.build
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(build, "build", interrupted)
        peers.build(SOURCES, CONSOLE)
    assert build.built == ["mimalloc3", "mimalloc2"]
    peers.build(SOURCES, CONSOLE)
    assert build.built == SOURCES


def test_another_recipe_or_a_lost_library_is_built_again(build: Any,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    peers.build(SOURCES[:2], CONSOLE)
    (build.OUT / "libmimalloc3.so").unlink()
    monkeypatch.setattr(build.PEERS["mimalloc2"], "compiler_flags", "-O3")
    assert not peers.is_built("mimalloc3") and not peers.is_built("mimalloc2")
    peers.build(SOURCES[:2], CONSOLE)
    assert build.built == SOURCES[:2] * 2
    rows = json.loads((build.OUT / "peers.json").read_text())
    assert [row["name"] for row in rows] == ["system", "mimalloc3", "mimalloc2"]


def test_by_default_only_packages_are_fetched_and_all_takes_the_rest(build: Any) -> None:
    compare.ready_allocators(None, CONSOLE, takes_all=False)
    assert build.built == PACKAGES
    compare.ready_allocators("jemalloc,debian-tbb", CONSOLE, takes_all=False)
    assert build.built[4:] == ["jemalloc"]
    compare.ready_allocators(None, CONSOLE, takes_all=True)
    assert sorted(build.built) == sorted(SOURCES + PACKAGES)


def test_what_debian_ships_gives_way_to_the_newer_version(build: Any) -> None:
    peers.build(PACKAGES, CONSOLE)
    assert {*PACKAGES} <= {each.name for each in allocators.choose(None)}
    peers.build(["jemalloc"], CONSOLE)
    names = {each.name for each in allocators.choose(None)}
    assert "debian-mimalloc" in names and "debian-jemalloc" not in names
    assert [each.name for each in allocators.choose("debian-jemalloc")] == ["debian-jemalloc"]


def test_what_could_not_be_built_is_tried_again_only_when_asked_for(
        build: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(name: str) -> list[dict[str, Any]]:
        raise build.Skip("cc: no such file")

    monkeypatch.setattr(build, "build", fails)
    peers.build(["snmalloc", "debian-tbb"], CONSOLE)
    assert "snmalloc           skipped: cc: no such file" in capsys.readouterr().out
    assert not peers.is_built("snmalloc")
    assert "snmalloc" not in allocators.lacking(None) and "debian-tbb" in allocators.lacking(None)
    assert allocators.lacking("snmalloc") == ["snmalloc"]
