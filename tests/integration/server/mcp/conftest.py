"""A server that offers agents all tools, and a site for them to fetch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.handwritten_site import Target
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer


@pytest.fixture(scope="session")
def pages() -> Iterator[Target]:
    target = Target().start()
    yield target
    target.stop()


@pytest.fixture(scope="session")
def offering(tmp_path_factory: pytest.TempPathFactory, pages: Target) -> Iterator[RunningServer]:
    """One server for all of these tests; each uses a project of its own."""
    options = ["--mcp-allow-write", "--no-runner"]
    data = tmp_path_factory.mktemp("agents") / "data"
    with ForkedServer(data, allow_hosts=[pages.host], options=options) as server:
        yield server


@pytest.fixture
async def platform(offering: RunningServer) -> AsyncIterator[Http]:
    """The same platform, for what the agent does not do itself."""
    async with Http(offering.url, offering.platform_key) as http:
        yield http
