"""Measure the installation of each extra: packages, megabytes and seconds.

Usage: measure_install.py [EXTRA...]; without one, all. The pip of this Python gets all packages of an extra, with an
empty cache, and builds those that are no wheels; then it installs them into an empty virtual environment. It prints the
rows of the table in docs/reference/extras.rst.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("", "server", "poet", "postgresql", "all", "alerts", "deploy", "parquet", "mcp", "dev")
_MB = 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
        (wheel,) = folder.glob("*.whl")
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
        print(
            "extra | packages | MB downloaded | MB installed | s to get them (processor) | s to install | from source"
        )
        for extra in sys.argv[1:] or EXTRAS:
            print(" | ".join(measure(wheel, extra, folder / (extra or "base"))), flush=True)


def measure(wheel: Path, extra: str, folder: Path) -> tuple[str, ...]:
    """Return the row of an extra."""
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    wheels, environment, report = folder / "wheels", folder / "venv", folder / "report.json"
    venv.create(environment, with_pip=False)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
    getting = timed(*pip, "wheel", "--quiet", "--no-cache-dir", "--wheel-dir", wheels, what)
    run(*pip, "install", "--quiet", "--dry-run", "--report", report, what)
    installing = timed(*pip, "install", "--quiet", "--no-index", "--find-links", wheels, what)
    found = json.loads(report.read_text())["install"]
    sources = [each["metadata"]["name"] for each in found if not each["download_info"]["url"].endswith(".whl")]
    return (
        extra or "(none)",
        str(len(list(wheels.iterdir()))),
        f"{size(wheels) / _MB:.0f}",
        f"{size(environment) / _MB:.0f}",
        *(f"{elapsed:.0f} ({used:.0f})" for elapsed, used in (getting, installing)),
        ", ".join(sorted(sources)) or "none",
    )


def timed(*command: object) -> tuple[float, float]:
    """Return the seconds that a command takes, and those of the processor: the others depend on what else runs."""
    began, used = time.monotonic(), processor_seconds()
    run(*command)
    return time.monotonic() - began, processor_seconds() - used


def processor_seconds() -> float:
    """Return the processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
