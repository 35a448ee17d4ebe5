"""Calls of public reports, by the client of the hosted platform from PyPI and over HTTP, return what they should."""

from __future__ import annotations

import base64
import http.client
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapinghub import ScrapinghubClient

from tests.outside.cases import Call, cases_of, parameters
from tests.support.extraction_service import Answer
from tests.support.servers import RunningServer
from tests.support.stores import ENGINES

CASES: list[Call] = cases_of("calls")
_projects = itertools.count(1)


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all of these tests, each of which has a project of its own; on each engine in turn."""
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    with RunningServer(tmp_path_factory.mktemp("calls") / "data", database=database, options=["--no-runner"]) as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[ScrapinghubClient]:
    client = ScrapinghubClient(
        server.platform_key,
        dash_endpoint=f"{server.url}/api/",
        endpoint=f"{server.url}/",
        jobq_endpoint=f"{server.url}/",
        max_retries=1,
    )
    yield client
    client.close()


@pytest.mark.parametrize("case", parameters(CASES))
@pytest.mark.long(keep=30)
def test_call(case: Call, server: RunningServer, client: ScrapinghubClient, tmp_path: Path) -> None:
    number = next(_projects)

    def http_call(method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        return _call(server, method, path, body, headers)

    names: dict[str, Any] = {
        "client": client,
        "project": client.get_project(number),
        "number": number,
        "http": http_call,
        "server": server,
        "folder": tmp_path,
    }
    exec(compile(case.code, case.name, "exec"), names)
    assert names["result"] == case.right


def _call(server: RunningServer, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
    """Send a path as it is written, which the client libraries would normalise."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, {"Authorization": _basic(server.platform_key), **sent})
        answer = connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, fields, answer.read())
    finally:
        connection.close()


def _basic(key: str) -> str:
    return "Basic " + base64.b64encode(f"{key}:".encode()).decode()
