"""A platform and a maze for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.support.crash.lives import Crawls, Platform
from tests.support.crash.maze import SMALLEST, Maze


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill_after" in metafunc.fixturenames:
        full = metafunc.config.getoption("--full")
        metafunc.parametrize("kill_after", range(5, 100, 5) if full else (70,), ids="at {0}%".format)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """The real server, for all tests of a file."""
    platform = Platform(tmp_path_factory.mktemp("platform"))
    yield platform
    platform.close()


@pytest.fixture
def make_crawls(tmp_path: Path, platform: Platform) -> Iterator[Callable[..., Crawls]]:
    """Makes the crawls of a test: of a maze of so many pages, with a gate or more settings."""
    with ExitStack() as opened:

        def make(pages: int = SMALLEST, settings: str = "", gate: int | None = None) -> Crawls:
            maze = opened.enter_context(closing(Maze(pages, gate)))
            return opened.enter_context(Crawls(tmp_path, platform, maze, settings))

        yield make


@pytest.fixture
def crawls(make_crawls: Callable[..., Crawls]) -> Crawls:
    """Crawls of the smallest maze."""
    return make_crawls()
