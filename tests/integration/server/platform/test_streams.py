"""Long results: they flow in constant memory, and one that breaks does not look complete."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import sqlite3
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
import requests

from scrapy_ext.api import compression
from tests.support.http import Http, lines
from tests.support.servers import RunningServer

FORMATS = ["format=jl", "format=json", "format=xml", "format=csv&fields=n,text", "format=msgpack"]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose database has a damaged chunk behind many that are whole."""
    with RunningServer(tmp_path_factory.mktemp("broken") / "data") as server:
        asyncio.run(_fill(server))
        _damage(server.data / "platform.db")
        yield server


async def _fill(server: RunningServer) -> None:
    chance = random.Random(5)
    records = [{"n": n, "text": f"{chance.getrandbits(3200):x}"} for n in range(6000)]
    async with Http(server.url, server.platform_key) as http:
        assert (await http.post("/items/1/1/1", gzip.compress(lines(records)), Content_Encoding="gzip")).status == 200


def _damage(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        assert connection.execute("UPDATE record_chunks SET body = x'00' WHERE start = 4000").rowcount == 1
    connection.close()


def opened(server: RunningServer) -> aiohttp.ClientSession:
    """A client that asks for no compression by itself."""
    credentials = b64encode(f"{server.platform_key}:".encode()).decode()
    return aiohttp.ClientSession(
        server.url,
        headers={"Authorization": f"Basic {credentials}"},
        skip_auto_headers=["Accept-Encoding"],
        auto_decompress=False,
    )


@pytest.fixture
async def session(broken: RunningServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with opened(broken) as session:
        yield session


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("query", FORMATS)
@pytest.mark.long(keep=3)
async def test_a_stream_that_breaks_is_an_error_to_its_client(
    session: aiohttp.ClientSession, query: str, coding: str
) -> None:
    received, failed = b"", False
    async with session.get(f"/items/1/1/1?{query}", headers={"Accept-Encoding": coding}) as response:
        assert response.status == 200
        assert response.headers.get("Content-Encoding", "identity") == coding
        try:
            async for piece in response.content.iter_any():
                received += piece
        except aiohttp.ClientPayloadError:
            failed = True
    assert failed
    assert len(received) > 100_000
    if coding == "gzip":  # nor does what came look like a whole file
        inflater = zlib.decompressobj(31)
        inflater.decompress(received)
        assert not inflater.eof


async def test_what_comes_before_the_break_is_whole_and_the_rest_can_be_read(session: aiohttp.ClientSession) -> None:
    async with session.get("/items/1/1/1?count=4000") as response:
        assert len((await response.read()).splitlines()) == 4000
    async with session.get("/items/1/1/1?start=1/1/1/5000") as response:
        assert [json.loads(line)["n"] for line in (await response.read()).splitlines()] == list(range(5000, 6000))


async def test_a_fault_before_anything_is_sent_has_a_status(session: aiohttp.ClientSession) -> None:
    async with session.get("/items/1/1/1?start=1/1/1/4000") as response:
        assert response.status == 500
        assert "damaged" in (await response.json())["message"]


@pytest.mark.long
async def test_a_long_result_takes_no_memory(server: RunningServer, http: Http, project: int) -> None:
    text = "x" * 1000
    body = gzip.compress(lines([{"n": n, "text": text} for n in range(20_000)]), 1)
    for part in range(5):
        path = f"/items/{project}/1/1?start={part * 20_000}"
        assert (await http.post(path, body, Content_Encoding="gzip")).status == 200
    # Once to warm up, then the same again: what a hundred megabytes take must not be seen.
    for ask in (("?meta=_key", "identity"), ("", "identity"), ("", "gzip")):
        assert await _read(server, project, *ask) > 100_000_000
        before = _peak(server)
        assert await _read(server, project, *ask) > 100_000_000
        assert _peak(server) - before < 20_000_000
    # Nor does a client that reads nothing make the server take in what it may ask for later.
    before = _peak(server)
    async with opened(server) as session, session.get(f"/items/{project}") as response:
        for _ in range(20):
            assert (await http.get(f"/items/{project}/1/1?count=1")).status == 200
        assert _peak(server) - before < 20_000_000
        response.close()


async def _read(server: RunningServer, project: int, query: str, coding: str) -> int:
    """Read everything; returns how long it is."""
    length, inflater = 0, zlib.decompressobj(31)
    async with (
        opened(server) as session,
        session.get(f"/items/{project}{query}", headers={"Accept-Encoding": coding}) as response,
    ):
        async for piece in response.content.iter_any():
            length += len(inflater.decompress(piece) if coding == "gzip" else piece)
    # One gzip stream: many clients stop where the first ends.
    assert coding == "identity" or (inflater.eof and not inflater.unused_data)
    return length


@pytest.mark.parametrize("query", FORMATS)
async def test_a_long_result_is_the_same_whether_compressed_or_not(http: Http, project: int, query: str) -> None:
    chance = random.Random(7)
    records = [{"n": n, "text": f"{chance.getrandbits(4000):x}"} for n in range(2500)]
    for start in (0, 1700):
        body = lines(records[start:][:1700])
        assert (await http.post(f"/items/{project}/1/1?start={start}", body)).status == 200
    plain = await http.get(f"/items/{project}/1/1?{query}")
    packed = await http.get(f"/items/{project}/1/1?{query}", Accept_Encoding="gzip")
    assert len(plain.body) > 2_000_000
    assert packed.headers["Content-Encoding"] == "gzip"
    inflater = zlib.decompressobj(31)
    assert inflater.decompress(packed.body) == plain.body
    assert inflater.eof
    assert not inflater.unused_data
    if query == "format=jl":
        assert plain.lines == records


@pytest.mark.parametrize("order", range(4))
async def test_compressed_lines_are_passed_on_as_they_came_in_whatever_is_between(
    http: Http, project: int, order: int
) -> None:
    """Bodies that the package's client compresses are sent as they came in; the rest is compressed for the answer."""
    chance, path, sent = random.Random(order), f"/items/{project}/1/1", list[bytes]()
    ways = [compression.gzip, lambda text: compression.gzip(text[:-1]), lambda text: gzip.compress(text, 6), bytes]
    passed_on = []
    for number in range(10):
        way = ways[(number // 2 + order) % 4]
        each = [f'{{"n":{n},"text":"{chance.getrandbits(1200):x}"}}\n'.encode() for n in range((200, 1000)[number % 2])]
        body = way(b"".join(each))
        coding = "identity" if way is bytes else "gzip"
        assert (await http.post(f"{path}?start={len(sent)}", body, Content_Encoding=coding)).status == 200
        if len(each) == 1000 and way in ways[:2]:
            passed_on.append(body[10:-10])
        sent += each
    for query, low, high in (
        ("", 0, None),
        ("?count=650", 0, 650),
        (f"?start={project}/1/1/950&count=3000", 950, 3950),
    ):
        packed = await http.get(path + query, Accept_Encoding="gzip")
        inflater = zlib.decompressobj(31)
        assert inflater.decompress(packed.body) == b"".join(sent[low:high])
        assert inflater.eof
        assert not inflater.unused_data
        if not query:
            assert passed_on
            assert all(body in packed.body for body in passed_on)
        assert (await http.get(path + query)).body == b"".join(sent[low:high])


async def test_http_libraries_read_a_long_compressed_result(server: RunningServer, http: Http, project: int) -> None:
    chance = random.Random(8)
    records = [{"n": n, "text": f"{chance.getrandbits(4000):x}"} for n in range(2500)]
    assert (await http.post(f"/items/{project}/1/1", records)).status == 200
    url, credentials = f"{server.url}/items/{project}/1/1", (server.platform_key, "")
    answer = await asyncio.to_thread(requests.get, url, auth=credentials, timeout=60)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.content == lines(records)
    headers = {"Authorization": "Basic " + b64encode(":".join(credentials).encode()).decode()}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert await response.read() == lines(records)


def _peak(server: RunningServer) -> int:
    """The most memory (bytes) that the server has used."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


async def test_head_answers_without_reading_everything(session: aiohttp.ClientSession) -> None:
    async with session.head("/items/1/1/1") as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "application/x-jsonlines; charset=UTF-8"
