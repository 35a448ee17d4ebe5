"""A crawl during which the server is upgraded: it waits, goes on, and is exact."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from scrapy_ext.server.store import schema
from tests.support.crash import newer_server
from tests.support.crash.lives import Crawls, Platform, finished, until
from tests.support.crash.maze import Maze


@pytest.fixture(params=["sqlite", "postgresql"])
def upgradable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Platform]:
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    with closing(Platform(tmp_path / "platform", database=database)) as platform:
        yield platform


@pytest.fixture
def crawls_of(upgradable: Platform, tmp_path: Path) -> Iterator[Callable[[], Crawls]]:
    with ExitStack() as opened:

        def make() -> Crawls:
            maze = opened.enter_context(closing(Maze(48, 30)))
            return opened.enter_context(Crawls(tmp_path, upgradable, maze))

        yield make


def test_a_crawl_goes_on_when_its_server_was_drained_and_a_newer_one_has_migrated_the_store(
    upgradable: Platform, crawls_of: Callable[[], Crawls]
) -> None:
    crawls = crawls_of()
    life = crawls.worker(start_items=2).start(proxied=False)
    until(lambda: crawls.maze.is_at_gate, "the crawl is in the middle of it", life)
    known = [version for version, _ in schema.migrations()]
    assert versions_of(upgradable) == known
    # The crawl writes while the server drains.
    threading.Timer(0.1, crawls.maze.open_gate).start()
    assert upgradable.upgrade(newer_server.__name__) == 0
    assert versions_of(upgradable) == [*known, newer_server.LATER[0]]
    finished(life)
    crawls.check(start_items=2)
    # Requests that the older server had stored were there when the newer one migrated them.
    ((rewritten,),) = asyncio.run(upgradable.query("SELECT count(*) FROM later_slots"))
    assert rewritten > 0


def versions_of(platform: Platform) -> list[int]:
    rows = asyncio.run(platform.query("SELECT version FROM schema_version WHERE version > 0 ORDER BY version"))
    return [row[0] for row in rows]
