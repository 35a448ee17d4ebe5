"""Measure the installation of each extra: packages, megabytes and seconds.

Usage: measure_install.py [EXTRA...]; without one, all. Each is installed from a wheel of this checkout into an empty
virtual environment, first with an empty cache, then with what that left there. It prints the rows of the table in
docs/howto/install.rst.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("", "deploy", "poet", "parquet", "server", "postgresql", "all", "dev")
_MB = 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
        (wheel,) = folder.glob("*.whl")
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
        print("extra | packages | MB downloaded | MB installed | s, empty cache | s, full cache | built from source")
        for extra in sys.argv[1:] or EXTRAS:
            print(" | ".join(measure(wheel, extra, folder / (extra or "base"))), flush=True)


def measure(wheel: Path, extra: str, folder: Path) -> tuple[str, ...]:
    """Return the row of an extra."""
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    cache, report = folder / "cache", folder / "report.json"
    seconds = []
    for turn in ("first", "second"):
        python = folder / turn / "bin" / "python"
        run(sys.executable, "-m", "venv", folder / turn)
        # A recent pip, as its speed and its cache have changed.
        run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip")
        empty = size(folder / turn)
        began = time.monotonic()
        run(python, "-m", "pip", "install", "--quiet", "--cache-dir", cache, "--report", report, what)
        seconds.append(time.monotonic() - began)
    installed = json.loads(report.read_text())["install"]
    # The wheel itself is not downloaded here, and is where it comes from an index.
    downloaded = size(cache) + wheel.stat().st_size
    sources = [each["metadata"]["name"] for each in installed if not each["download_info"]["url"].endswith(".whl")]
    return (
        extra or "(none)",
        str(len(installed)),
        f"{downloaded / _MB:.0f}",
        f"{(size(folder / 'second') - empty) / _MB:.0f}",
        *(f"{each:.0f}" for each in seconds),
        ", ".join(sorted(sources)) or "none",
    )


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def run(*command: object) -> None:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True, timeout=3600, env=environment
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


if __name__ == "__main__":
    main()
