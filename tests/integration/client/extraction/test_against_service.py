"""Requests and results through the package's own service: what a site gets, and what comes back of it."""

from __future__ import annotations

import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from scrapy import FormRequest, Request
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse

from scrapy_ext.client.extraction import ExtractClient, ExtractTransport, Limiter
from scrapy_ext.client.extraction.errors import DomainUnreachableError, KeyRefusedError
from scrapy_ext.crawl.extraction.response import to_response
from tests.support.bodies import sent_body
from tests.support.played_server import PlayedServer, Reply
from tests.support.servers import ForkedServer, RunningServer


@pytest.fixture(scope="module")
def listening() -> Iterator[socket.socket]:
    """The socket of the site, so that its port is known before the service starts."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture(scope="module")
def service(tmp_path_factory, listening: socket.socket) -> Iterator[RunningServer]:
    host = f"localhost:{listening.getsockname()[1]}"
    with ForkedServer(tmp_path_factory.mktemp("data"), allow_hosts=[host]) as running:
        yield running


@pytest.fixture
async def site(listening: socket.socket) -> AsyncIterator[PlayedServer]:
    """A site on this machine, known by a name."""
    site = PlayedServer()
    await site.start(listening.dup())
    site.url = f"http://localhost:{listening.getsockname()[1]}"
    yield site
    await site.stop()


@pytest.fixture
async def fetch(service: RunningServer) -> AsyncIterator[Callable[[Request], Awaitable[Response]]]:
    client = ExtractClient(ExtractTransport(f"{service.url}/v1", service.extract_key, 60.0), Limiter(4, 4))

    async def fetch(request: Request) -> Response:
        return to_response(request, await client.extract(sent_body(request), domain="localhost"))

    yield fetch
    await client.close()


async def test_what_a_request_says_reaches_the_site_and_its_answer_comes_back(fetch, site):
    site.script = [
        Reply(
            201,
            gzip.compress("<p>ä</p>".encode("latin-1")),
            "text/html; charset=latin-1",
            {"Content-Encoding": "gzip", "Set-Cookie": "a=1", "X-Many": "1"},
        )
    ]
    request = FormRequest(
        f"{site.url}/form?a=b%20c",
        formdata={"q": "ä b"},
        headers={"X-A": ["1", "2"], "User-Agent": "mine"},
        cookies={"id": "7"},
    )
    response = await fetch(request)
    (sent,) = site.requests
    assert (sent.method, sent.raw_path, sent.body) == ("POST", "/form?a=b%20c", b"q=%C3%A4+b")
    assert sent.headers["content-type"] == "application/x-www-form-urlencoded"
    assert (sent.headers["x-a"], sent.headers["user-agent"], sent.headers["cookie"]) == ("1,2", "mine", "id=7")
    assert isinstance(response, HtmlResponse)
    assert (response.status, response.text, response.url) == (201, "<p>ä</p>", request.url)
    assert response.headers["Set-Cookie"] == b"a=1"
    assert response.flags == ["extract-api"]

    site.script = [Reply(body=b'{"a": "b"}')]
    response = await fetch(Request(f"{site.url}/data"))
    assert isinstance(response, JsonResponse)
    assert response.json() == {"a": "b"}

    site.script = [Reply(body=b"plain words", type=None)]
    response = await fetch(Request(site.url, meta={"extract_api": {"httpResponseHeaders": False}}))
    assert isinstance(response, TextResponse)
    assert response.text == "plain words"


async def test_problems_of_the_service_come_as_their_errors(service, fetch):
    request = Request("http://does-not-exist.invalid/")
    with pytest.raises(DomainUnreachableError) as caught:
        await fetch(request)
    assert caught.value.type == "/website/domain-unreachable"
    wrong = ExtractClient(ExtractTransport(f"{service.url}/v1", "f" * 32, 60.0), Limiter(4, 4))
    with pytest.raises(KeyRefusedError):
        await wrong.extract(sent_body(request), domain="does-not-exist.invalid")
    await wrong.close()
