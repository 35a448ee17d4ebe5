"""Fixtures for tests of every part."""

from __future__ import annotations

import gc
import hashlib
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import scrapy

from tests.acceptance.real_pages import folder
from tests.acceptance.scrapydweb import program
from tests.support import public_suffixes, scrapy_versions
from tests.support.postgresql import Cluster, cluster
from tests.support.sites import Site

#: Those whose files take longest come first.
_ORDER = (
    *("acceptance/test_", "integration/server/test_serve", "integration/server/jobs/", "acceptance/example_project/"),
    *("acceptance/", "integration/models/", "integration/", "unit/"),
)

_LEFT_OUT = pytest.StashKey[dict[str, str]]()


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
    parser.addoption("--random-order", type=int, metavar="SEED", help="files, and the tests of each, in a random order")
    parser.addoption("--long", action="store_true", help="those that take long instead of the others (make test-long)")


def pytest_configure(config: pytest.Config) -> None:
    # A shell ignores SIGINT in what it starts in the background. What tests start and interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.add_cleanup(public_suffixes.fill_cache().cleanup)
    config.addinivalue_line("markers", "full: one of many of its kind; runs with --full only")
    config.addinivalue_line(
        "markers",
        "long(keep=0): takes long, or repeats cheaper tests; runs with --long, --full. keep: so many cases run always",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay until the end: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_out_of_other_versions(config, items)
    if (seed := config.getoption("--random-order")) is not None:
        _shuffle(items, seed)
    # Files with long tests first, so that no worker is left alone with one of them at the end.
    items.sort(key=_rank)
    if config.getoption("--full"):
        return
    wanted = bool(config.getoption("--long"))
    cases: Counter[str] = Counter()
    chosen, others = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        is_chosen = not item.get_closest_marker("full") and _is_long(item, cases) is wanted
        (chosen if is_chosen else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def _shuffle(items: list[pytest.Item], seed: int) -> None:
    """Bring files, and the tests of each file, into a random order, which is the same in all workers of a run."""

    def place(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    items.sort(key=lambda item: (place(str(item.path)), place(item.nodeid)))


def _leave_out_of_other_versions(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that need another version of Scrapy; they are named at the end."""
    faults = {item: fault for item in items if (fault := scrapy_versions.fault_of(item)) is not None}
    config.hook.pytest_deselected(items=list(faults))
    items[:] = [item for item in items if item not in faults]
    config.stash[_LEFT_OUT] = {item.nodeid: fault for item, fault in faults.items()}
    # Workers of pytest-xdist collect the same.
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash[_LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def _is_long(item: pytest.Item, cases: Counter[str]) -> bool:
    """Return True if an item runs with ``--long`` alone. ``cases`` counts the cases of each test so far."""
    marks = list(item.iter_markers("long"))
    test = item.nodeid.partition("[")[0]
    cases[test] += 1
    return any(cases[test] > mark.kwargs.get("keep", 0) for mark in marks)


def _rank(item: pytest.Item) -> int:
    return _rank_of_file(item.path)


@cache
def _rank_of_file(file: Path) -> int:
    path = file.relative_to(Path(__file__).parent).as_posix()
    return next((rank for rank, start in enumerate(_ORDER) if path.startswith(start)), 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Here, because workers of pytest-xdist have no terminal, and only this file is read beside them.
    left_out = terminalreporter.config.stash.get(_LEFT_OUT, {})
    counts = Counter((test.partition("[")[0], fault) for test, fault in left_out.items())
    for (test, fault), cases in sorted(counts.items()):
        terminalreporter.write_line(f"left out with Scrapy {scrapy.__version__}: {test} ({cases}) {fault}")
    if not folder.FOUND:
        terminalreporter.write_line(folder.NOT_FOUND)
    if not program.PROGRAM:
        terminalreporter.write_line(program.NOT_FOUND)
