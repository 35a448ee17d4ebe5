"""Writes of workers to their streams, over HTTP and by the client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import StreamPlaces, StreamRequestRecord
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.client.platform.errors import AttemptOver, BadRequest, Forbidden
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.server.auth.tokens import AttemptTokens
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from tests.support.attempts import add_workers, end_worker
from tests.support.http import Http
from tests.support.servers import RunningServer


class Workers(NamedTuple):
    """A job with two workers, of attempts 1 and 2."""

    store: Store
    key: JobKey
    tokens: tuple[str, str]


@pytest.fixture
async def workers(server: RunningServer, project: int) -> AsyncIterator[Workers]:
    store, key = await Store.open(server.where), JobKey(project, 1, 1)
    await add_workers(store, key, (1, 2))
    first, second = [await AttemptTokens(store).token(Attempt(key, number)) for number in (1, 2)]
    yield Workers(store, key, (first, second))
    for number in (1, 2):
        await end_worker(store, key, number)
    await store.close()


REQUEST = b'{"time": 1, "url": "http://a", "status": 200, "duration": 1, "rs": 1, "parent": "%s"}'
#: Query and headers, body, what the answer says.
REFUSED: dict[str, tuple[str, str, dict[str, str], bytes, str]] = {
    "without the index": ("items", "writer=1", {}, b"{}", "start: is required with writer"),
    "with an index in the job": (
        "items",
        "writer=1&start=0",
        {"Content_Range": "items 0-/*"},
        b"{}",
        "Content-Range: is an index in the job",
    ),
    "with a gap": ("items", "writer=1&start=1", {}, b"{}", "Send the records from index 0 on first"),
    "of no number": ("items", "writer=a&start=0", {}, b"{}", "writer: must be a whole number"),
    "with a parent of another form": ("requests", "writer=1&start=0", {}, REQUEST % b"1:", "$.parent"),
    "without a writer, with a parent of a stream": ("requests", "start=0", {}, REQUEST % b"1:0", "$.parent"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_write_is_refused_with_the_reason(workers: Workers, server: RunningServer, what: str) -> None:
    kind, query, headers, body, message = REFUSED[what]
    async with Http(server.url, workers.tokens[0]) as http:
        answer = await http.post(f"/{kind}/{workers.key}?{query}", body, **headers)
        assert (answer.status, message in answer.text) == (400, True), answer.text
        assert (await http.get(f"/{kind}/{workers.key}")).text == ""


@pytest.mark.parametrize("kind", ["items", "requests", "logs", "samples"])
async def test_every_kind_of_records_has_streams(workers: Workers, server: RunningServer, kind: str) -> None:
    body = {
        "requests": REQUEST % b"1:0",
        "logs": b'{"time": 1, "level": 20, "message": "a"}',
        "samples": b"[1, 2]",
    }.get(kind, b'{"a": 1}')
    async with Http(server.url, workers.tokens[0]) as http:
        for _ in range(2):
            answer = await http.post(f"/{kind}/{workers.key}?writer=1&start=0", body)
            assert answer.json == {"places": [[0, 0]], "parents_unknown": 0}
        assert (await http.post(f"/{kind}/{workers.key}?writer=2&start=0", body)).status == 403
        assert len((await http.get(f"/{kind}/{workers.key}")).lines) == 1
        assert (await http.post(f"/{kind}/{workers.key}?start=1", body.replace(b'"1:0"', b"0"))).text == ""
    async with Http(server.url, server.platform_key) as http:
        assert (await http.post(f"/{kind}/{workers.key}?writer=1&start=0", body)).status == 403


async def test_the_client_returns_the_places(workers: Workers, server: RunningServer) -> None:
    key, urls = workers.key, PlatformUrls.single(server.url)
    child = StreamRequestRecord(time=1, url="http://a", status=200, duration=1, rs=1, parent="1:1")
    async with PlatformClient(urls, workers.tokens[0]) as one, PlatformClient(urls, workers.tokens[1]) as two:
        assert await one.items.write_stream(key, 1, encode([{"a": 0}, {"a": 1}]), 0) == StreamPlaces([(0, 0)])
        assert await two.items.write_stream(key, 2, encode([{"b": 0}]), 0) == StreamPlaces([(0, 2)])
        assert await one.items.write_stream(key, 1, encode([{"a": 1}, {"a": 2}]), 1) == StreamPlaces([(1, 1), (2, 3)])
        assert await two.requests.write_stream(key, 2, encode([child]), 0) == StreamPlaces([(0, 0)], 1)
        with pytest.raises(Forbidden) as caught:
            await two.items.write_stream(key, 1, encode([{}]), 0)
        assert not isinstance(caught.value, AttemptOver)
        await end_worker(workers.store, key, 1)
        with pytest.raises(AttemptOver):
            await one.items.write_stream(key, 1, encode([{}]), 3)
        assert await two.items.write_stream(key, 1, encode([{"a": 3}]), 3) == StreamPlaces([(3, 4)])
        with pytest.raises(BadRequest):
            await two.items.write_stream(key, 2, encode([{}]), 2)
        assert [item async for item in two.items.iter(key)] == [{"a": 0}, {"a": 1}, {"b": 0}, {"a": 2}, {"a": 3}]
