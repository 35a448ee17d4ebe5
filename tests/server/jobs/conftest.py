"""A server that runs jobs of a project in a folder, for tests that do not harm it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.server.http import Http
from tests.server.jobs.projects import write_project
from tests.server.jobs.running import Platform
from tests.servers import RunningServer


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--units", "8", "--unit-memory", "300", "--stop-grace", "3"]
    with RunningServer(tmp_path_factory.mktemp("server") / "data", options=options) as server:
        yield server


@pytest.fixture
async def platform(running: RunningServer) -> AsyncIterator[Platform]:
    async with Http(running.url, running.platform_key) as http:
        yield Platform(http)
