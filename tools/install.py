"""Set up a virtual environment with this package and one of its extras, and show the progress.

Usage: install.py FOLDER EXTRA. pip's own output is long, and most of it, warnings about other packages included, is of
no use to somebody who wants to see the package run. It is shown when pip fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Releases before warn of an extra of lxml that they do not know under another spelling.
_PIP = "pip>=23.3"
#: Seconds between two lines where the output is no terminal.
_INTERVAL = 10
_COLLECTED = re.compile(r"Collecting ([\w.-]+)")
_DOWNLOADED = re.compile(r"Downloading \S+ \(([\d.]+) (bytes|kB|MB|GB)\)")
_INSTALLING = re.compile(r"Installing collected packages: (.+)")
_UNITS = {"bytes": 1e-6, "kB": 1e-3, "MB": 1, "GB": 1e3}


class Progress:
    """One line that changes in a terminal; a line every ten seconds elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._shown = time.monotonic()
        self._began = self._shown

    def show(self, text: str, *, always: bool = False) -> None:
        now = time.monotonic()
        if self._terminal:
            print(f"\r\033[K   {text}, {now - self._began:.0f} s", end="", flush=True)
        elif always or now - self._shown >= _INTERVAL:
            self._shown = now
            print(f"   {text}, {now - self._began:.0f} s", flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", flush=True)


def main() -> None:
    folder, extra = Path(sys.argv[1]), sys.argv[2]
    oldest = _oldest()
    if sys.version_info < oldest:
        sys.exit(
            f"Python {_text(oldest)} or later is needed, and this is {_text(sys.version_info)}: name another one "
            "with make PYTHON=..."
        )
    python = create(folder, oldest)
    print(f"── Setting up {folder} with Python {_text(_version_of(python))} and scrapy-ext[{extra}]", flush=True)
    pip(python, "--quiet", "--upgrade", _PIP)
    packages, megabytes, seconds = pip(python, "--editable", f"{ROOT}[{extra}]")
    print(f"── Installed {packages} packages in {seconds:.0f} s; downloaded {megabytes:.0f} MB", flush=True)


def _oldest() -> tuple[int, ...]:
    """Return the oldest version of Python that the package declares."""
    # tomllib is younger than that version.
    found = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    if found is None:
        sys.exit("pyproject.toml has no requires-python")
    return tuple(map(int, found.group(1).split(".")))


def _text(version: Sequence[object]) -> str:
    return ".".join(map(str, version[:3]))


def _version_of(python: Path) -> tuple[int, ...]:
    """Return the version of an interpreter; empty if it does not run."""
    code = "import sys; print(*sys.version_info[:3])"
    try:
        done = subprocess.run([str(python), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return ()
    return tuple(map(int, done.stdout.split()))


def create(folder: Path, oldest: tuple[int, ...]) -> Path:
    """Return the Python of a virtual environment. It is made where there is none, or one that cannot be used."""
    python = folder / "bin" / "python"
    if _version_of(python) < oldest:
        try:
            venv.create(folder, with_pip=True, symlinks=True, clear=True)
        except (subprocess.CalledProcessError, ModuleNotFoundError):
            sys.exit("Python's venv module is needed: on Debian and Ubuntu, apt-get install python3-venv")
    return python


def pip(python: Path, *arguments: str) -> tuple[int, float, float]:
    """Run ``pip install``; return the number of packages, the downloaded megabytes and the seconds.

    Exits with pip's output when it fails.
    """
    began = time.monotonic()
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", *arguments]
    # The warnings of a build are those of the build tool.
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PIP_NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    output: list[str] = []
    packages, megabytes = follow(process.stdout or iter(()), output)
    if process.wait():
        errors = [line for line in output if not line.startswith("WARNING: ")]
        sys.exit("".join(errors[-60:]) + f"Not installed: {' '.join(command)} failed.")
    return packages, megabytes, time.monotonic() - began


def follow(lines: Iterator[str], output: list[str]) -> tuple[int, float]:
    """Show what pip does, line by line, and keep its output."""
    progress = Progress()
    collected: set[str] = set()
    installed, megabytes = 0, 0.0
    for line in lines:
        output.append(line)
        if match := _COLLECTED.match(line):
            collected.add(match.group(1))
        if match := _DOWNLOADED.search(line):
            megabytes += float(match.group(1)) * _UNITS[match.group(2)]
        if match := _INSTALLING.match(line):
            installed = match.group(1).count(",") + 1
            progress.show(f"installing {installed} packages, {megabytes:.0f} MB downloaded", always=True)
        elif collected and not installed:
            progress.show(f"{len(collected)} packages found, {megabytes:.0f} MB downloaded")
    progress.end()
    return installed, megabytes


if __name__ == "__main__":
    main()
