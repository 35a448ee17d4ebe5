"""Build of wheel and sdist from the tracked files, the same bytes on each machine.

``python tools/distributions.py DIRECTORY``, with the packages of release-requirements.txt. Times are those of the
newest commit (or SOURCE_DATE_EPOCH), modes are 644 and 755, and setuptools is the pinned one: its version is in the
wheel.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
#: Files and folders of the sdist: what the wheel is built from, and what a reader of it needs.
SOURCES = ("scrapy_ext", "pyproject.toml", "setup.cfg", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md")
#: Files that setuptools writes into the sdist.
_WRITTEN = ("PKG-INFO", "setup.cfg", "scrapy_ext.egg-info/")
#: Timeout of a build in seconds; one takes a few.
_TIMEOUT = 600


class DistributionError(Exception):
    """Fault of a wheel or an sdist."""


class Distributions(NamedTuple):
    """A wheel and an sdist of the same version."""

    wheel: Path
    sdist: Path

    @property
    def version(self) -> str:
        return self.wheel.name.split("-")[1]


def read_toml(name: str) -> dict[str, Any]:
    """Return the contents of a file of the repository."""
    table: dict[str, Any] = tomllib.loads((ROOT / name).read_text("utf-8"))
    return table


def distributions(folder: Path) -> Distributions:
    """Return the wheel and the sdist in a folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Distributions(wheel, sdist)


def git(*arguments: str) -> str:
    """Return the output of a git command in the repository."""
    command = [shutil.which("git") or "git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tracked(*paths: str) -> list[str]:
    """Return the names of the tracked files below some paths."""
    return git("ls-files", "--", *paths).splitlines()


def epoch() -> int:
    """Return the time of all files, in seconds since 1970."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))


def export(folder: Path) -> None:
    """Copy the sources. A build in the checkout would leave files there, and find those of an earlier one."""
    for name in tracked(*SOURCES):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        target.chmod(0o755 if os.access(ROOT / name, os.X_OK) else 0o644)
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


def build(output: Path, *, wheel_from_sdist: bool = True) -> Distributions:
    """Build both. The wheel is built from the sdist, or, to compare the two, from the sources."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch()), "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name) / "source", Path(name) / "made"
        source.mkdir()
        export(source)
        both = [] if wheel_from_sdist else ["--sdist", "--wheel"]
        command = [sys.executable, "-m", "build", "--no-isolation", *both, "--outdir", str(made), str(source)]
        done = subprocess.run(
            command, check=False, env=environment, capture_output=True, text=True, timeout=_TIMEOUT, cwd=name
        )
        if done.returncode:
            raise DistributionError(done.stdout[-3000:] + done.stderr[-3000:])
        wheel, sdist = distributions(made)
        output.mkdir(parents=True, exist_ok=True)
        result = Distributions(output / wheel.name, output / sdist.name)
        shutil.copyfile(wheel, result.wheel)
        result.sdist.write_bytes(normalized(sdist.read_bytes(), epoch()))
    return result


def normalized(archive: bytes, seconds: int) -> bytes:
    """Return an sdist with sorted files, one time and no owner: setuptools writes the current time and user."""
    plain = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.mtime = member.type, member.size, seconds
            clean.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(clean, old.extractfile(member) if member.isfile() else None)
    packed = io.BytesIO()
    # gzip.compress writes a header that differs between versions of Python.
    with gzip.GzipFile("", "wb", fileobj=packed, mtime=seconds) as file:
        file.write(plain.getvalue())
    return packed.getvalue()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel or an sdist, without the folder that holds those of an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(path) as sdist:
        files = [(member, sdist.extractfile(member)) for member in sdist.getmembers() if member.isfile()]
        return {member.name.partition("/")[2]: file.read() for member, file in files if file is not None}


def check_contents(built: Distributions) -> str:
    """Raise DistributionError unless both hold the tracked files and nothing else; return their numbers."""
    sdist, wheel = contents(built.sdist), contents(built.wheel)
    _compare(built.sdist.name, {name for name in sdist if not name.startswith(_WRITTEN)}, set(tracked(*SOURCES)))
    information = f"scrapy_ext-{built.version}.dist-info/"
    _compare(built.wheel.name, {name for name in wheel if not name.startswith(information)}, set(tracked("scrapy_ext")))
    if f"{information}licenses/LICENSE" not in wheel:
        raise DistributionError(f"{built.wheel.name} has no licence")
    other = [name for name in tracked(*SOURCES) if name in sdist and sdist[name] != (ROOT / name).read_bytes()]
    if other := [name for name in other if name != "setup.cfg"]:
        raise DistributionError(f"{built.sdist.name} has other contents of {', '.join(other[:5])}")
    return f"{len(sdist)} files in the sdist, {len(wheel)} in the wheel"


def _compare(archive: str, found: set[str], expected: set[str]) -> None:
    expected = {name for name in expected if not name.startswith(_WRITTEN)}
    if missing := sorted(expected - found):
        raise DistributionError(
            f"{archive} lacks {', '.join(missing[:5])} (package-data in pyproject.toml, MANIFEST.in)"
        )
    if surplus := sorted(found - expected):
        raise DistributionError(f"{archive} has {', '.join(surplus[:5])}, which git does not track")


def check_reproducible(built: Distributions, again: Distributions) -> str:
    """Raise DistributionError unless two builds have equal bytes; return the hash of the wheel."""
    for one, other in zip(built, again, strict=True):
        if sha256(one) != sha256(other):
            first, second = contents(one), contents(other)
            differ = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
            raise DistributionError(f"two builds of {one.name} differ: {', '.join(differ[:5]) or 'in times or modes'}")
    return f"wheel sha256 {sha256(built.wheel)[:16]}…, sdist {sha256(built.sdist)[:16]}…"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("Usage: python tools/distributions.py DIRECTORY")
    try:
        for path in build(Path(sys.argv[1])):
            print(f"{sha256(path)}  {path}")
    except DistributionError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
