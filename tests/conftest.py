"""Fixtures for tests of every part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sites import Site

from tests.postgresql import Cluster, cluster
from tests.real_pages import folder


@pytest.fixture
def site() -> Iterator[Site]:
    """A small site on a free port of this machine, with its hits counted."""
    site = Site()
    yield site
    site.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """One PostgreSQL server for the whole run."""
    with cluster() as made:
        yield made


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="kill in every place, not only in a few (make crash)")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Here, because workers of pytest-xdist have no terminal, and only this file is read beside them.
    if not folder.FOUND:
        terminalreporter.write_line(folder.NOT_FOUND)
