"""Fixtures for tests of every part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sites import Site


@pytest.fixture
def site() -> Iterator[Site]:
    """A small site on a free port of this machine, with its hits counted."""
    site = Site()
    yield site
    site.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="kill in every place, not only in a few (make crash)")
