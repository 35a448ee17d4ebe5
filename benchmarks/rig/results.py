"""Results of benchmarks as files, from which the page of figures is made.

``--save`` of a script writes ``results/SCRIPT.json``, ``--save NAME`` writes ``results/SCRIPT-NAME.json``: what it
printed, its arguments, the digest of its source, versions, and what else the machine did. No path, no name of the
machine. A :class:`Run` says which result the page needs; :func:`fault` says why a file is not that.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rig.digest import BENCHMARKS, digest

RESULTS: Final = BENCHMARKS / "results"
#: A result is measured again, on demand, if other programs used more than this share of the machine.
QUIET: Final = 0.1
_PACKAGES: Final = (
    "scrapy",
    "scrapy-ext",
    "scrapy-redis",
    "scrapinghub",
    "scrapy-zyte-api",
    "trafilatura",
    "playwright",
)
_PROGRAMS: Final = ("redis-server", "postgres")

Result = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run of a script whose result the page needs.

    ``minutes`` are those that it takes on two quiet cores. ``folder`` is the option for a folder of labelled pages,
    which are not part of the repository.
    """

    script: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 1
    variant: str = ""
    folder: str = ""

    @property
    def name(self) -> str:
        return name_of(self.script, self.variant)

    def options(self) -> list[str]:
        """Return the options of the command line, without ``--save``."""
        named = ((f"--{name.replace('_', '-')}", _text(value)) for name, value in self.arguments.items())
        return [part for pair in named for part in pair]


def name_of(script: str, variant: str) -> str:
    return f"{script}-{variant}" if variant else script


def _text(value: Any) -> str:
    return ",".join(map(_text, value)) if isinstance(value, (list, tuple)) else str(value)


# ── saving ──


class Saving:
    """A run that is under way, and will be saved in ``results`` beside its script."""

    def __init__(self, script: Path, variant: str, arguments: Mapping[str, Any], *, quick: bool) -> None:
        self._script, self._variant, self._quick = script.resolve(), variant, quick
        self._arguments = arguments
        # Of the source that runs, whatever happens to the file meanwhile.
        self._digest = digest(self._script.stem, self._script.parent)
        self._load, self._busy, self._began = os.getloadavg()[0], _busy_seconds(), time.monotonic()

    def save(self, result: Mapping[str, Any]) -> None:
        """Write the file."""
        seconds = time.monotonic() - self._began
        others = (_busy_seconds() - self._busy - _own_seconds()) / (seconds * (os.cpu_count() or 1))
        content = {
            "benchmark": self._script.stem,
            "variant": self._variant,
            "arguments": self._arguments,
            "quick": self._quick,
            "measured": time.strftime("%Y-%m-%d", time.gmtime()),
            "seconds": round(seconds),
            "versions": _versions(),
            "machine": {
                "cores": os.cpu_count(),
                "load": [round(self._load, 2), round(os.getloadavg()[0], 2)],
                "used_by_others": round(max(others, 0.0), 2),
            },
            "script": self._digest,
            "result": result,
        }
        path = self._script.parent / "results" / f"{name_of(self._script.stem, self._variant)}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _busy_seconds() -> float:
    """Return the processor time that the machine has spent; 0 without ``/proc``."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    user, nice, system, _, _, interrupts, soft_interrupts, *_ = map(int, stat.read_text().split("\n")[0].split()[1:])
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Return the processor time of this process and of those that it has started, as far as they have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {name: version for name in _PROGRAMS if (version := _version_of_program(name))}


def _version_of_program(name: str) -> str:
    # Debian keeps PostgreSQL's programs out of PATH.
    places = [path for path in Path("/usr/lib/postgresql").glob(f"*/bin/{name}") if path.parent.parent.name.isdigit()]
    path = shutil.which(name) or max(places, key=lambda path: int(path.parent.parent.name), default=None)
    if path is None:
        return ""
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+\.\d+(\.\d+)?", said)
    return found[0] if found else ""


# ── checking ──


def load(run: Run, folder: Path = RESULTS) -> Result | None:
    """Return the content of a run's file; None without one."""
    path = folder / f"{run.name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def fault(run: Run, folder: Path = RESULTS, benchmarks: Path = BENCHMARKS) -> str:
    """Return why the page cannot use a run's result, and what to do; an empty text for one that it can use."""
    found, remedy = load(run, folder), f"make figures ONLY={run.name}"
    if found is None:
        return f"benchmarks/results/{run.name}.json is missing: {remedy}"
    if found["quick"]:
        return f"benchmarks/results/{run.name}.json is of a quick run, which shows only that it works: {remedy}"
    if found["script"] != digest(run.script, benchmarks):
        return f"benchmarks/{run.script}.py has changed since its figures were measured: {remedy}"
    if found["arguments"] != dict(run.arguments):
        return f"benchmarks/results/{run.name}.json is of other arguments than in benchmarks/rig/runs.py: {remedy}"
    return ""


def is_noisy(found: Result) -> bool:
    """Return whether other programs used much of the machine meanwhile."""
    return bool(found["machine"]["used_by_others"] > QUIET)
