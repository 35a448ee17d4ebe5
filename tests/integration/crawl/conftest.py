"""A real platform for the tests of a file, and what a process of a crawl has of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.client.platform.slots import EachSlot
from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.crawl.commit.execution import Finisher
from tests.support.crawl_processes import PROJECT, Process
from tests.support.servers import ForkedServer, RunningServer

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The real server, for all tests of a file."""
    with ForkedServer(tmp_path_factory.mktemp("platform")) as running:
        yield running


@pytest.fixture
async def client(platform: RunningServer) -> AsyncIterator[PlatformClient]:
    urls = PlatformUrls.single(platform.url)
    async with PlatformClient(urls, platform.platform_key, backoff=Backoff(0.001, 0.01)) as client:
        yield client


@pytest.fixture
def frontier() -> str:
    """The name of a frontier that no other test uses."""
    return f"frontier-{next(_NUMBERS)}"


@pytest.fixture
async def job(client: PlatformClient) -> JobKey:
    """A running job of its own."""
    return JobKey.parse((await client.jobq.push(PROJECT, "spider")).key)


@pytest.fixture
def retry() -> Retry:
    """Repeats calls without end, and soon."""
    return Retry(0.0, Backoff(0.001, 0.01))


@pytest.fixture
def finisher(client: PlatformClient, frontier: str, retry: Retry) -> Finisher:
    return Finisher(client, PROJECT, EachSlot(client.frontier, PROJECT, frontier), retry)


@pytest.fixture
def process(client: PlatformClient, frontier: str, retry: Retry) -> Callable[..., Process]:
    """Makes processes of a crawl: ``process(journal, worker)``."""

    def make(journal: str = "commits-a", worker: str = "0/1", client: PlatformClient = client) -> Process:
        return Process(client, frontier, retry, journal, worker)

    return make
