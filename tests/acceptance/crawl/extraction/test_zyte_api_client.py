"""The zyte-api client of PyPI works with the package's own server: what was written for the one runs with the other."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator

import pytest
from zyte_api import AsyncZyteAPI, RequestError

from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Site

PAGES = 8


@pytest.fixture(scope="module")
def pages() -> Iterator[Site]:
    site = Site(PAGES)
    yield site
    site.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory, pages) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("server"), allow_hosts=[pages.host]) as server:
        yield server


@pytest.fixture
def client(server) -> AsyncZyteAPI:
    return AsyncZyteAPI(api_key=server.extract_key, api_url=f"{server.url}/v1/")


@pytest.fixture
async def session(client) -> AsyncIterator:
    async with client.session() as session:
        yield session


async def test_a_page_comes_with_body_headers_and_what_was_echoed(session, pages):
    query = {"url": f"{pages.url}/page/3", "httpResponseBody": True, "httpResponseHeaders": True, "echoData": {"n": 3}}
    result = await session.get(query)
    assert base64.b64decode(result["httpResponseBody"]) == pages.page(3)
    assert result["echoData"] == {"n": 3}
    assert result["statusCode"] == 200
    assert result["url"] == query["url"]
    assert {"name": "Content-Type", "value": pages.content_type} in [
        {"name": header["name"].title(), "value": header["value"]} for header in result["httpResponseHeaders"]
    ]


async def test_what_is_extracted_automatically_comes_under_its_name(session, pages):
    query = {"url": f"{pages.url}/page/3", "pageContent": True, "extractFrom": "httpResponseBody"}
    result = await session.get(query)
    assert result["pageContent"]["url"] == query["url"]


async def test_many_pages_come_through_one_session_as_they_are_ready(session, pages):
    queries = [{"url": f"{pages.url}/page/{n}", "httpResponseBody": True, "echoData": n} for n in range(PAGES)]
    results = [await result for result in session.iter(queries)]
    assert sorted(result["echoData"] for result in results) == list(range(PAGES))


@pytest.mark.parametrize(
    ("query", "status", "kind"),
    [
        ({"url": "http://does-not-exist.invalid/", "httpResponseBody": True}, 421, "/website/domain-unreachable"),
        ({"url": "https://a.example/", "httpResponseBody": True, "browserHtml": True}, 422, "/request/unprocessable"),
        ({"url": "https://a.example/", "browserHTML": True}, 400, "/request/invalid"),
        ({"url": "https://127.0.0.1/", "httpResponseBody": True}, 400, "/request/invalid"),
    ],
)
async def test_problems_come_as_its_errors_with_type_and_status(session, query, status, kind):
    with pytest.raises(RequestError) as caught:
        await session.get(query)
    assert (caught.value.status, caught.value.parsed.type) == (status, kind)


async def test_a_wrong_key_is_refused(server):
    client = AsyncZyteAPI(api_key="f" * 32, api_url=f"{server.url}/v1/")
    with pytest.raises(RequestError) as caught:
        await client.get({"url": "https://a.example/", "httpResponseBody": True})
    assert caught.value.status == 401
    assert caught.value.parsed.type.startswith("/auth/")
