"""Tests that need a version of Scrapy: the marker ``scrapy``."""

from __future__ import annotations

import os

import pytest
import scrapy

#: Variable with a folder of wheels.
WHEELS = "SCRAPY_EXT_OLD_WHEELS"


def fault_of(item: pytest.Item, installed: str = scrapy.__version__) -> str | None:
    """Return the reason why a test cannot run with the installed version of Scrapy; None if it can."""
    for mark in item.iter_markers("scrapy"):
        oldest, newest = mark.kwargs.get("oldest"), mark.kwargs.get("newest")
        if oldest is not None and _release(installed) < _release(oldest):
            return f"needs Scrapy {oldest} or later ({mark.kwargs['why']})"
        if newest is not None and _release(installed) > _release(newest):
            return f"needs Scrapy {newest} or earlier ({mark.kwargs['why']})"
    if item.get_closest_marker("old_wheels") and not os.environ.get(WHEELS):
        return f"needs {WHEELS}, a folder of wheels (make test-matrix NOX='--session scrapy-deployed-python-3.13')"
    return None


def _release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2])
