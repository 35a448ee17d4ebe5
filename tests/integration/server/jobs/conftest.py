"""A server that runs jobs of a project in a folder, for tests that do not harm it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.postgresql import Cluster, cluster
from tests.support.running_jobs import Platform
from tests.support.servers import RunningServer


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--units", "8", "--unit-memory", "300", "--stop-grace", "3"]
    with RunningServer(tmp_path_factory.mktemp("server") / "data", options=options) as server:
        yield server


@pytest.fixture(scope="session")
def running_on_postgresql(postgresql: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--units", "8", "--unit-memory", "300", "--stop-grace", "3"]
    data = tmp_path_factory.mktemp("server") / "data"
    with RunningServer(data, database=postgresql.database(), options=options) as server:
        yield server


@pytest.fixture
async def platform(running: RunningServer) -> AsyncIterator[Platform]:
    async with Http(running.url, running.platform_key) as http:
        yield Platform(http)


@pytest.fixture(params=["sqlite", "postgresql"])
async def either(request: pytest.FixtureRequest, platform: Platform) -> AsyncIterator[Platform]:
    """Store on each engine in turn, with the notifier for it."""
    if request.param == "sqlite":
        yield platform
        return
    server: RunningServer = request.getfixturevalue("running_on_postgresql")
    async with Http(server.url, server.platform_key) as http:
        yield Platform(http)


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[Cluster]:
    """A PostgreSQL that may be harmed."""
    with cluster() as own:
        yield own
