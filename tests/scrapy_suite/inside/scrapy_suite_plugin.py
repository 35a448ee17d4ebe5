"""The pytest plugin of the runs of Scrapy's tests: which tests run, and how each of them ended."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Final

import pytest

# Read at the start, for some tests clear the environment.
#: File with the tests that a run is limited to, one a line; None: all.
_ONLY: Final = os.environ.get("SCRAPY_SUITE_ONLY")
#: Where the outcomes go; None in the workers of pytest-xdist, which report to the process that started them.
_OUTCOMES: Final = None if "PYTEST_XDIST_WORKER" in os.environ else os.environ["SCRAPY_SUITE_OUTCOMES"]
#: Characters of a traceback that are kept.
_KEPT: Final = 20_000


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _ONLY is None:
        return
    only = set(Path(_ONLY).read_text("utf-8").splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in only])
    items[:] = [item for item in items if item.nodeid in only]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # A project of its own on the platform: no test sees jobs and queues of another.
    os.environ["PLATFORM_PROJECT"] = str(1 + zlib.crc32(item.nodeid.encode()) % 1_000_000)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if _OUTCOMES is None:
        return
    line = {
        "test": report.nodeid,
        "when": report.when,
        "outcome": "xfailed" if hasattr(report, "wasxfail") else report.outcome,
        "seconds": round(report.duration, 2),
        "why": report.longreprtext[-_KEPT:],
    }
    with Path(_OUTCOMES).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
