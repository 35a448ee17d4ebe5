"""Download of third-party front-end files, for the pages and for their tests.

Usage: get_assets.py. They come from the npm registry by ``npm pack``, each at a fixed version whose hash is
checked, and go with their licences into folders that are not committed. Nothing of a package is run. What is there
already stays.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: Part of the wheel.
VENDOR = ROOT / "scrapy_ext/server/ui/static/vendor"
#: For tests only.
CHECKS = ROOT / "tests/acceptance/server/ui/vendor"
#: Timeout in seconds for one package.
_TIMEOUT = 120


class Package(NamedTuple):
    """A package: target folder and file names. ``sha512`` is that of the archive, in base64."""

    name: str
    version: str
    sha512: str
    folder: Path
    files: dict[str, str]


PACKAGES = (
    Package(
        "htmx.org",
        "4.0.1",
        "oF7JgXhDW9UXCy/k1ZYFUQgzu/rm19ORWPSPNL91vPluB2PB9+MV55tyQdH/w7o2EAbTYUG5SDW1R60mdkdqGg==",
        VENDOR,
        {"dist/htmx.min.js": "htmx.min.js", "LICENSE": "htmx.LICENSE.txt"},
    ),
    Package(
        "axe-core",
        "4.14.1",
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        CHECKS,
        {"axe.min.js": "axe.min.js", "LICENSE": "axe.LICENSE.txt"},
    ),
)


def main() -> None:
    for package in PACKAGES:
        mark = package.folder / f".{package.name}"
        if mark.is_file() and mark.read_text() == package.version and all(_paths(package)):
            continue
        print(f"── Getting {package.name} {package.version}")
        unpack(package, fetch(package))
        mark.write_text(package.version)


def _paths(package: Package) -> list[bool]:
    return [(package.folder / name).is_file() for name in package.files.values()]


def fetch(package: Package) -> bytes:
    """Return the verified archive of a package."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is needed to get front-end files: on Debian and Ubuntu, apt-get install npm")
    with tempfile.TemporaryDirectory() as folder:
        what = f"{package.name}@{package.version}"
        command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", folder, what]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, cwd=folder)
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            sys.exit(f"{what} could not be had: {done.stderr.strip()[-500:]}")
        archive = archives[0].read_bytes()
    check(package, archive)
    return archive


def check(package: Package, archive: bytes) -> None:
    """Exit when this is not the pinned archive."""
    found = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != package.sha512:
        sys.exit(f"{package.name} {package.version} is not what was pinned: its hash is {found}. It was not kept.")


def unpack(package: Package, archive: bytes) -> None:
    """Put the files in their folder."""
    package.folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for path, name in package.files.items():
            file = opened.extractfile(f"package/{path}")
            if file is None:
                sys.exit(f"{package.name} {package.version} has no file {path}.")
            (package.folder / name).write_bytes(file.read())


if __name__ == "__main__":
    main()
