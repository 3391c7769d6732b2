"""Builds the wheels in a folder, out/wheel if none is named: for this processor, for 64-bit Arm
where its cross compiler is, and for musl where musl-gcc is. Each gets the lowest tag that is true
for the library inside: the newest version of glibc that one of its symbols needs, or the musl that
was linked."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROMISED = r"(libc|libm|libdl|libpthread|librt|ld-linux[-\w]*)\.so\.\d+"  # glibc's own
# What readelf calls a processor: what tags call it, and the oldest glibc for which there are tags.
MACHINES = {"Advanced Micro Devices X86-64": ("x86_64", (2, 5)), "AArch64": ("aarch64", (2, 17))}
MUSL = r"libc\.(so|musl-\w+\.so\.1)"  # as musl-gcc names it, and as Alpine Linux does


def musl_tag(processor: str) -> str:
    """The tag for the musl of this system, as PEP 656 defines it. Its loader tells the version."""
    said = subprocess.run([f"/lib/ld-musl-{processor}.so.1"], capture_output=True, text=True,
                          check=False).stderr
    major, minor = re.findall(r"^Version (\d+)\.(\d+)", said, re.MULTILINE)[0]
    return f"musllinux_{major}_{minor}_{processor}"


def platform_tag(library: Path) -> str:
    """The tag that is true for a shared library, as PEP 600 and PEP 656 define them."""
    said = subprocess.run(["readelf", "-hdVW", library], env={**os.environ, "LC_ALL": "C"},
                          capture_output=True, text=True, check=True).stdout
    needs = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
    processor, oldest = MACHINES[re.findall(r"Machine: +(.*)", said)[0]]
    if len(needs) == 1 and re.fullmatch(MUSL, needs[0]):
        return musl_tag(processor)
    for needed in needs:
        if not re.fullmatch(PROMISED, needed):
            sys.exit(f"wheel: the library needs {needed}, which no manylinux tag allows")
    versions = [(int(major), int(minor))
                for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", said)]
    major, minor = max([*versions, oldest])
    return f"manylinux_{major}_{minor}_{processor}"


def retag(wheel: Path, tag: str, to: Path) -> Path:
    """Writes the wheel with another platform in its name, its description and its record."""
    distribution, version, python, abi, _ = wheel.stem.split("-")
    renamed = to / f"{distribution}-{version}-{python}-{abi}-{tag}.whl"
    about = f"{distribution}-{version}.dist-info"
    with zipfile.ZipFile(wheel) as before, \
            zipfile.ZipFile(renamed, "w", zipfile.ZIP_DEFLATED) as after:
        described = re.sub(rb"(?m)^Tag: .*$", f"Tag: {python}-{abi}-{tag}".encode(),
                           before.read(f"{about}/WHEEL"))
        digest = base64.urlsafe_b64encode(hashlib.sha256(described).digest()).decode().rstrip("=")
        row = f"{about}/WHEEL,sha256={digest},{len(described)}"
        record = re.sub(rf"(?m)^{re.escape(about)}/WHEEL,.*$", row,
                        before.read(f"{about}/RECORD").decode())
        changed = {f"{about}/WHEEL": described, f"{about}/RECORD": record.encode()}
        for entry in before.infolist():
            after.writestr(entry, changed.get(entry.filename) or before.read(entry))
    return renamed


def build(processor: str, to: Path, **more: str) -> Path:
    """A wheel of the checkout; more is set in the environment of the build. It is named for this
    processor at first, as pip would fetch the tools of the build for another one as well."""
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel",
                               "-q", "--no-deps", "-w", place, ROOT],
                              env={**os.environ, **more}, check=False)
        if done.returncode != 0:
            sys.exit(f"wheel: the one for {processor} could not be built: see above")
        wheel, = Path(place).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            tags = [platform_tag(Path(files.extract(f"hakmem/{name}", place)))
                    for name in ("libhakmem.so", "librecorder.so")]
        newest = max(tags, key=lambda tag: list(map(int, re.findall(r"\d+", tag))))
        return retag(wheel, newest, to)


def main() -> None:
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out/wheel"
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    here = os.uname().machine
    print(build(here, to), flush=True)
    for need, name in (("aarch64", "aarch64"), ("musl", f"{here} with musl")):
        has = subprocess.run([ROOT / "tools/setup.sh", "--has", need], check=False)
        if need != here and has.returncode == 0:
            toolchain = f"-DCMAKE_TOOLCHAIN_FILE={ROOT / f'cmake/{need}.cmake'}"
            print(build(name, to, CMAKE_ARGS=toolchain), flush=True)


if __name__ == "__main__":
    main()
