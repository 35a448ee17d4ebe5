"""Fixtures for tests of every part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sites import Site

from tests.real_pages import folder


@pytest.fixture
def site() -> Iterator[Site]:
    """A small site on a free port of this machine, with its hits counted."""
    site = Site()
    yield site
    site.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="kill in every place, not only in a few (make crash)")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Here, because workers of pytest-xdist have no terminal, and only this file is read beside them.
    if not folder.FOUND:
        terminalreporter.write_line(folder.NOT_FOUND)
