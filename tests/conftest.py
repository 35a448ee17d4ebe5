"""Fixtures for tests of every part."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.real_pages import folder
from tests.support.postgresql import Cluster, cluster
from tests.support.sites import Site

#: Folders whose files take long.
_LONG = ("crash", "tests", "example_project", "docs", "jobs", "server", "browser", "ui", "real_pages", "extraction")


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
    parser.addoption("--full", action="store_true", help="all there is of each kind (make crash, make test-full)")


def pytest_configure(config: pytest.Config) -> None:
    # A shell ignores SIGINT in what it starts in the background. What tests start and interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "full: one of many of its kind; runs with --full only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Files with long tests first, so that no worker is left alone with one of them at the end.
    items.sort(key=lambda item: item.path.parent.name not in _LONG)
    if config.getoption("--full"):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("full")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Here, because workers of pytest-xdist have no terminal, and only this file is read beside them.
    if not folder.FOUND:
        terminalreporter.write_line(folder.NOT_FOUND)
