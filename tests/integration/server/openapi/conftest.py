"""The fuzz of the API description is imported in the long lane alone: schemathesis takes seconds to import."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_long = config.getoption("--long") or config.getoption("--full")
    return True if collection_path.name == "test_fuzz.py" and not is_long else None
