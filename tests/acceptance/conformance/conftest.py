"""The clients of the hosted platform, from PyPI and unchanged, against the real server."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import pytest
from scrapinghub import HubstorageClient, ScrapinghubClient
from scrapinghub.hubstorage.batchuploader import BatchUploader
from scrapinghub.hubstorage.resourcetype import DownloadableResource

from tests.acceptance.conformance.shop import Shop
from tests.support.servers import ForkedServer, RunningServer

#: Higher than the projects that the clients and the server number by themselves.
_projects = itertools.count(1001)


#: The calls of the clients are tested on SQLite. What the engines do with each call, tests/integration tests on both.
_ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)]


@pytest.fixture(scope="session", params=_ENGINES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all of these tests, each of which has a project of its own; on each engine in turn."""
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    with ForkedServer(tmp_path_factory.mktemp("conformance") / "data", database=database) as server:
        yield server


@pytest.fixture(scope="session")
def shop() -> Iterator[Shop]:
    """Site that the clients of the extraction service fetch."""
    site = Shop()
    yield site
    site.close()


@pytest.fixture(scope="session")
def extraction(tmp_path_factory: pytest.TempPathFactory, shop: Shop) -> Iterator[RunningServer]:
    """One server, and one browser, for the clients of the extraction service."""
    with ForkedServer(tmp_path_factory.mktemp("extraction"), allow_hosts=[shop.host]) as server:
        yield server


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    """Collect what a client leaves open while warnings of that are ignored, so that no other file is warned of it."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients wait seconds between uploads and a minute after a broken read; nothing else of them is changed."""
    monkeypatch.setattr(BatchUploader, "worker_loop_delay", 0.01)
    monkeypatch.setattr(BatchUploader, "worker_min_interval", 0.01)
    monkeypatch.setattr(DownloadableResource, "RETRY_INTERVAL", 0.01)


@pytest.fixture
def project_id() -> int:
    """A project that no other test uses."""
    return next(_projects)


@pytest.fixture(params=[True, False], ids=["msgpack", "json"])
def client(request: pytest.FixtureRequest, server: RunningServer) -> Iterator[ScrapinghubClient]:
    """The client that its documentation shows, reading MessagePack or JSON lines."""
    client = ScrapinghubClient(
        server.platform_key,
        dash_endpoint=f"{server.url}/api/",
        endpoint=f"{server.url}/",
        jobq_endpoint=f"{server.url}/",
        use_msgpack=request.param,
        max_retries=1,
    )
    yield client
    client.close()


@pytest.fixture
def hubstorage(server: RunningServer) -> Iterator[HubstorageClient]:
    """The client underneath, which tools of the platform use directly."""
    client = HubstorageClient(server.platform_key, endpoint=f"{server.url}/", jobq_endpoint=f"{server.url}/")
    yield client
    client.close()
