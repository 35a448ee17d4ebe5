"""A server for tests that do not harm it: each uses a project of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.http import Http
from tests.support.servers import RunningServer

_projects = itertools.count(1)


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for the whole run, on each engine in turn."""
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    with RunningServer(tmp_path_factory.mktemp("server") / "data", database=database) as server:
        yield server


@pytest.fixture
def project() -> int:
    """A project that no other test uses."""
    return next(_projects)


@pytest.fixture
async def http(server: RunningServer) -> AsyncIterator[Http]:
    """A client with the platform's key."""
    async with Http(server.url, server.platform_key) as http:
        yield http
