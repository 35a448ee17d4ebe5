"""A platform for the commands; each test that writes uses a project of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.support.servers import ForkedServer
from tests.support.terminal_commands import Platform

_projects = itertools.count(1001)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One server for all files. Tests play the lives of its jobs themselves."""
    with ForkedServer(tmp_path_factory.mktemp("data"), options=["--no-runner"]) as server:
        environment = {
            **os.environ,
            "PLATFORM_URL": server.url,
            "PLATFORM_API_KEY": server.platform_key,
            "PLATFORM_PROJECT": "1",
        }
        yield Platform(environment, tmp_path_factory.mktemp("empty"), 1)


@pytest.fixture
def platform(served: Platform) -> Platform:
    """The server with a project that no other test uses."""
    return served.with_project(next(_projects))
