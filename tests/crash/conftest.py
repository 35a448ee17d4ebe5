"""``--full`` runs every place to kill at, not only a few."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill_after" in metafunc.fixturenames:
        full = metafunc.config.getoption("--full")
        metafunc.parametrize("kill_after", range(5, 100, 5) if full else (25, 70), ids="at {0}%".format)
