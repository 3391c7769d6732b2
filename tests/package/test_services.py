"""The examples of docs/containers.md hold, as far as that can be seen without the daemons."""
import json
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from files import ROOT, UNAWARE, clean_environment, run

FOLDER = ROOT / "examples/services"
PAGE = (ROOT / "docs/containers.md").read_text(encoding="utf-8")
INSTALLED = "/usr/local/lib/libhakmem.so"


@pytest.fixture
def unaware(compiled):
    return compiled(UNAWARE)


def directives(text):
    """Instructions of a Dockerfile: name, words."""
    joined = re.sub(r"\\\n", " ", text)
    return [line.split(maxsplit=1) for line in joined.splitlines()
            if line and not line.startswith("#")]


def test_each_example_is_named_and_each_named_one_exists():
    named = set(re.findall(r"examples/services/([\w.]+)", PAGE))
    assert named == {file.name for file in FOLDER.iterdir()}


def settings(text):
    """Of the lines Environment= of a unit, as systemd reads them."""
    lines = re.findall(r"^Environment=(.*)$", text, re.MULTILINE)
    return dict(word.split("=", 1) for line in lines for word in shlex.split(line))


def test_the_drop_in_runs_a_program_on_hakmem(library, unaware, tmp_path):
    told = settings((FOLDER / "hakmem.conf").read_text(encoding="utf-8"))
    assert told["LD_PRELOAD"] == INSTALLED
    file = told["HAKMEM_STATS"].replace("%%", "%").replace("/run/%N", str(tmp_path))
    environment = clean_environment(**told | {"LD_PRELOAD": library, "HAKMEM_STATS": file})
    assert run(unaware, env=environment) == "ours\n"
    [written] = tmp_path.glob("hakmem-*.json")
    assert re.fullmatch(r"hakmem-\d+\.json", written.name)
    json.loads(written.read_text(encoding="utf-8"))


def test_systemd_takes_the_drop_in(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    unit = tmp_path / "app.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n", encoding="utf-8")
    folder = tmp_path / "app.service.d"
    folder.mkdir()
    shutil.copy(FOLDER / "hakmem.conf", folder)

    def said():
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr

    with_it = said()
    (folder / "hakmem.conf").write_text("[Service]\nEnvironmentt=A=b\n", encoding="utf-8")
    if "Environmentt" not in said()[1]:
        pytest.skip("systemd-analyze does not read drop-ins here")
    assert with_it[0] == 0 and "hakmem.conf" not in with_it[1], with_it


def test_the_image_is_built_by_lines_that_work(unaware, tmp_path):
    found = directives((FOLDER / "Dockerfile").read_text(encoding="utf-8"))
    known = {"FROM", "RUN", "COPY", "ENV", "CMD"}
    assert {name for name, _ in found} == known and found[0][0] == "FROM"
    stages = [words.split(" AS ") for name, words in found if name == "FROM"]
    assert [len(stage) for stage in stages] == [2, 1] and stages[0][0] == stages[1][0]
    json.loads(next(words for name, words in found if name == "CMD"))
    build = next(words for name, words in found if name == "RUN" and words.startswith("cmake"))
    here = build.replace("/source", str(ROOT)).replace("/build", str(tmp_path / "build"))
    run("sh", "-c", here)
    [copied] = [words for name, words in found if name == "COPY" and "--from=" in words]
    stage, source, target = copied.split()
    assert stage == f"--from={stages[0][1]}"
    assert ["ENV", f"LD_PRELOAD={target}"] in found
    library = tmp_path / source.lstrip("/")
    assert not library.is_symlink()
    assert run(unaware, env=clean_environment(LD_PRELOAD=library)) == "ours\n"


def documents(name):
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def test_the_file_for_compose_mounts_what_it_names():
    [told] = documents("compose.yaml")
    assert set(told) == {"services", "volumes"}
    for service in told["services"].values():
        mounted = {volume.split(":")[0]: volume.split(":")[1] for volume in service["volumes"]}
        assert service["environment"]["LD_PRELOAD"] in mounted.values()
        file = service["environment"]["HAKMEM_STATS"]
        assert file.rsplit("/", 1)[0] in mounted.values()
        assert {name for name in mounted if "/" not in name} == set(told["volumes"])


def test_the_pod_mounts_what_it_names_and_serves_what_the_service_writes(hakmem):
    [pod] = documents("kubernetes.yaml")
    spec = pod["spec"]
    [library] = spec["initContainers"]
    app, metrics = spec["containers"]
    volumes = {volume["name"] for volume in spec["volumes"]}

    def mounts(container):
        found = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        assert set(found.values()) <= volumes
        return found

    values = {each["name"]: each["value"] for each in app["env"]}
    assert library["command"][-1] == values["LD_PRELOAD"]
    assert mounts(library)["/hakmem"] == mounts(app)["/hakmem"]
    assert metrics["command"][-1] == values["HAKMEM_STATS"]
    assert mounts(metrics)["/run/app"] == mounts(app)["/run/app"]
    assert metrics["command"][:3] == ["hakmem", "top", "--serve"]
    assert "--serve" in hakmem("top", "--help").stdout


def test_the_whole_machine(library, unaware, tmp_path):
    """Every program of a namespace of mounts, by its own /etc/ld.so.preload."""
    listed = tmp_path / "ld.so.preload"
    listed.write_text(f"{library}\n", encoding="utf-8")
    inside = ["bwrap", "--bind", "/", "/", "--ro-bind", listed, "/etc/ld.so.preload"]
    if not shutil.which("bwrap") or subprocess.run(
            [*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no bwrap here, or no file /etc/ld.so.preload to mount over")
    assert run(*inside, unaware, env=clean_environment()) == "ours\n"


def test_a_process_that_runs_is_seen_and_not_changed(library, hakmem, tmp_path):
    for preloaded in (True, False):
        settings_of = {"LD_PRELOAD": library} if preloaded else {}
        with subprocess.Popen(["sleep", "600"], env=clean_environment(**settings_of)) as process:
            try:
                maps = ""
                for _ in range(600):  # until the program is what it will be
                    maps = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
                    if "libc" in maps and "sleep" in maps:
                        break
                    time.sleep(0.1)
                said = hakmem("why", str(process.pid))
            finally:
                process.kill()
        assert ("libhakmem" in maps) == preloaded
        assert said.returncode == 1 and len(said.stderr.splitlines()) == 1
        assert "writes no statistics: start it with HAKMEM_STATS=/tmp/hakmem-%p.json" in said.stderr
