"""Clients that send too much, too slowly or nonsense get an error each, and the others do not notice."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import os
import re
import resource
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from scrapy_ext.server.http import limits
from scrapy_ext.server.http.memory import RequestMemory
from scrapy_ext.server.http.request_context import RequestContext
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import Cluster
from tests.support.raw_connection import Raw
from tests.support.servers import ForkedServer, RunningServer

SLOW_CLIENTS = 1000


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that waits for clients only for a moment."""
    with ForkedServer(tmp_path_factory.mktemp("strict"), options=["--client-timeout", "1.5"]) as server:
        yield server


@pytest.fixture
async def others(server: RunningServer, http: Http) -> AsyncIterator[None]:
    """Calls of well-behaved clients at the same time succeed."""
    ended = asyncio.Event()

    async def work() -> None:
        for number in itertools.count():
            assert (await http.post("/collections/88/s/others", [{"_key": str(number)}])).status == 200
            assert (await http.get("/hcf/88/list")).status == 200
            if ended.is_set():
                return

    working = asyncio.create_task(work())
    yield
    ended.set()
    await working


async def memory(http: Http) -> int:
    text = (await http.get("/metrics")).text
    found = re.search(r"^process_resident_memory_bytes (\d+)$", text, re.MULTILINE)
    assert found
    return int(found[1])


async def test_a_body_of_10_gb_is_refused_before_it_is_read(server: RunningServer, others: None) -> None:
    for path in (
        "/items/1/1/1",
        "/collections/1/s/big",
        "/hcf/1/f/s/0",
        "/api/run.json",
        "/v1/extract",
        "/jobq/1/push",
    ):
        key = server.extract_key if path.startswith("/v1") else server.platform_key
        async with Raw(server.url, key) as raw:
            await raw.head("POST", path, Content_Length=str(10**10))
            answer = await raw.answer()
            assert answer.status == 413, path
            assert answer.headers["connection"] == "close"


async def test_a_body_without_end_is_cut_off_with_an_answer(server: RunningServer, http: Http, others: None) -> None:
    before = await memory(http)
    record = b'{"_key":"' + b"k" * 60_000 + b'"}\n'
    async with Raw(server.url, server.platform_key) as raw:
        await raw.head("POST", "/collections/1/s/endless", Transfer_Encoding="chunked")
        answer, sent = asyncio.create_task(raw.answer()), 0
        while not answer.done() and await raw.chunk(record):
            sent += len(record)
            assert sent < 10**9
        assert (await answer).status == 413
    assert await memory(http) - before < 300_000_000
    assert (await http.get("/collections/1/s/endless")).body == b""


@pytest.mark.parametrize(
    ("filling", "megabytes"),
    [(b"a", 300), (b"\n", 300), (b'{"a":1}\n', 30)],
    ids=["one line", "empty lines", "records"],
)
@pytest.mark.long(keep=1)
async def test_a_bomb_is_defused(
    server: RunningServer, http: Http, others: None, filling: bytes, megabytes: int
) -> None:
    before = await memory(http)
    piece = filling * (1_000_000 // len(filling))
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(compressor.compress(piece) for _ in range(megabytes)) + compressor.flush()
    assert len(bomb) < 2_000_000
    for path in ("/items/1/1/9", "/collections/1/s/bomb"):
        answer = await http.post(path, bomb, Content_Encoding="gzip")
        assert answer.status == 413, path
    assert await memory(http) - before < 600_000_000


async def test_damaged_gzip_is_refused(http: Http) -> None:
    whole = gzip.compress(b'{"a":1}\n' * 1000)
    for damaged in (whole[:-9], b"\x1f\x8b" + os.urandom(100), whole[:20] + b"\0\0\0\0" + whole[24:]):
        assert (await http.post("/items/1/1/8", damaged, Content_Encoding="gzip")).status == 400
    assert (await http.get("/items/1/1/8")).body == b""


async def test_a_client_that_stalls_in_its_body_is_given_up(strict: RunningServer) -> None:
    async with Raw(strict.url, strict.platform_key) as raw:
        await raw.head("POST", "/items/1/1/1", Content_Length="100000")
        await raw.send(b'{"a": 1}\n')
        answer = await raw.answer()
    assert answer.status == 408
    assert "1.5 s" in answer.body.decode()
    async with Http(strict.url, strict.platform_key) as http:
        assert (await http.get("/items/1/1/1")).body == b""


async def test_a_client_that_drips_is_given_up(strict: RunningServer) -> None:
    async with Raw(strict.url, strict.platform_key) as raw:
        await raw.head("POST", "/items/1/1/1", Content_Length="100000")
        answer = asyncio.create_task(raw.answer())
        await eventually_async(lambda: raw.send(b" "), lambda value: answer.done() or not value)
        assert (await answer).status == 408


async def test_headers_that_never_end_are_given_up(strict: RunningServer) -> None:
    async with Raw(strict.url) as silent, Raw(strict.url) as raw:
        await raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half")
        assert (await raw.answer()).status == 408
        assert await raw.rest() == b""
        assert await silent.rest() == b""


async def test_a_client_that_does_not_read_is_given_up(strict: RunningServer) -> None:
    async with Http(strict.url, strict.platform_key) as http:
        blob = os.urandom(300_000).hex()
        for number in range(40):
            assert (await http.post(f"/items/1/1/2?start={number}", [{"blob": blob}])).status == 200
        async with Raw(strict.url, strict.platform_key) as raw:
            await raw.head("GET", "/items/1/1/2")
            await raw.reader.readexactly(1)
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await eventually_async(
                lambda: http.get("/metrics"), lambda answer: "requests_under_way 2" not in answer.text
            )
            raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
            with contextlib.suppress(ConnectionError):
                assert not (await raw.rest()).endswith(b"0\r\n\r\n")


def allow_files(wanted: int) -> None:
    """Let this process open so many, if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))


@pytest.mark.full
async def test_a_thousand_slow_clients_disturb_nobody_on_postgresql(tmp_path: Path, postgresql: Cluster) -> None:
    options = ["--client-timeout", "1.5"]
    with ForkedServer(tmp_path, database=postgresql.database(), options=options) as strict:
        await test_a_thousand_slow_clients_disturb_nobody(strict)


async def test_a_thousand_slow_clients_disturb_nobody(strict: RunningServer) -> None:
    allow_files(SLOW_CLIENTS * 2 + 200)
    async with contextlib.AsyncExitStack() as stack:
        slow = []
        for number in range(SLOW_CLIENTS):
            slow.append(raw := await stack.enter_async_context(Raw(strict.url, strict.platform_key)))
            # In one piece: on a busy machine the time of those that come first is over before the last has come.
            if number % 2:
                await raw.send(b"POST /items/1/1/3 HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            else:
                await raw.head("POST", f"/items/1/1/{number + 10}", then=b'{"a": 1}\n', Content_Length="100000")
        async with Http(strict.url, strict.platform_key) as http:
            for number in range(20):
                assert (await http.post(f"/items/2/1/1?start={number}", [{"n": number}])).status == 200
        answers = await asyncio.gather(*(raw.answer() for raw in slow))
    assert {answer.status for answer in answers} == {408}


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        ("/items/1?x=" + "a" * limits.TARGET, {}, 414),
        ("/" + "a" * limits.TARGET * 4, {}, 414),
        ("/items/1", {"X-Large": "a" * (limits.HEADERS + 1)}, 431),
        ("/items/1", {"X-Huge": "a" * limits.HEADERS * 8}, 431),
        ("/items/1", {f"X-{number}": "a" for number in range(limits.HEADER_COUNT + 1)}, 431),
        ("/items/1?" + "&".join(["p=1"] * (limits.PARAMETERS + 1)), {}, 400),
    ],
    ids=["query", "path", "header", "huge header", "headers", "parameters"],
)
async def test_what_is_too_large_before_the_body(
    server: RunningServer, others: None, request_line: str, headers: dict[str, str], status: int
) -> None:
    async with Raw(server.url, server.platform_key) as raw:
        await raw.head("GET", request_line, **headers)
        answer = await raw.answer()
    assert answer.status == status
    assert answer.body.endswith(b".\n")


@pytest.mark.parametrize(
    ("query", "headers", "type", "status"),
    [
        ("x=" + "a" * limits.TARGET, {}, "about:blank", 414),
        ("x=1", {"X-Large": "a" * (limits.HEADERS + 1)}, "about:blank", 431),
        ("&".join(["p=1"] * (limits.PARAMETERS + 1)), {}, "/request/invalid", 400),
    ],
    ids=["query", "header", "parameters"],
)
async def test_what_is_too_large_for_extraction_is_a_problem(
    server: RunningServer, query: str, headers: dict[str, str], type: str, status: int
) -> None:
    async with Raw(server.url, server.extract_key) as raw:
        await raw.head("POST", f"/v1/extract?{query}", **headers)
        answer = await raw.answer()
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = json.loads(answer.body)
    assert (problem["type"], problem["status"]) == (type, status)


async def test_what_is_not_http_gets_400(server: RunningServer) -> None:
    for nonsense in (b"\x16\x03\x01\x02\x00\x01\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 5000):
        async with Raw(server.url) as raw:
            await raw.send(nonsense)
            assert (await raw.answer()).status == 400


async def test_a_query_with_characters_beyond_ascii_is_refused_with_the_remedy(server: RunningServer) -> None:
    async with Raw(server.url, server.platform_key) as raw:
        await raw.send("GET /collections/1/s/books?key=é HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        answer = await raw.answer()
    assert (answer.status, b"such as %C3%A9" in answer.body) == (400, True)


async def test_the_same_is_a_problem_for_extraction_also_in_a_connection_that_is_used_again(
    server: RunningServer,
) -> None:
    async with Raw(server.url, server.extract_key) as raw:
        await raw.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await raw.answer()).status == 200
        await raw.send("POST /v1/extract?é HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".encode())
        answer = await raw.answer()
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    problem = json.loads(answer.body)
    assert (problem["type"], problem["status"], "%C3%A9" in problem["detail"]) == ("/request/invalid", 400, True)


async def test_a_client_that_leaves_in_its_body_stores_nothing(server: RunningServer, http: Http) -> None:
    for number in range(20):
        async with Raw(server.url, server.platform_key) as raw:
            await raw.head("POST", "/items/77/1/1", Content_Length="100000")
            await raw.send(b'{"a": 1}\n' * number)
    assert (await http.get("/items/77/1/1")).body == b""


async def test_an_unread_short_body_leaves_the_connection_usable(server: RunningServer) -> None:
    async with Raw(server.url) as raw:
        for _ in range(3):
            await raw.head("POST", "/items/1/1/1", Content_Length="9")
            await raw.send(b'{"a": 1}\n')
            answer = await raw.answer()
            assert (answer.status, "connection" in answer.headers) == (401, False)


def test_bodies_hold_memory_together_and_give_it_back() -> None:
    held = RequestMemory(1000)
    one, two = (RequestContext({"type": "http", "headers": []}, None, None, held, 1.0) for _ in range(2))  # type: ignore[arg-type]
    assert one.hold(600)
    assert not two.hold(600)
    one.ended()
    assert two.hold(600)
