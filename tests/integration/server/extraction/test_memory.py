"""The memory of all requests together is bounded, and released when their answers were sent."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor

from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction import ExtractionService
from scrapy_ext.server.extraction.routes import PIECE
from tests.support.eventually import TIMEOUT, eventually
from tests.support.extraction_service import CALLERS, KEY, Service
from tests.support.handwritten_site import Call, Target

KIB = 1024


def test_what_does_not_fit_beside_others_is_503_and_small_pages_are_not(target: Target) -> None:
    begun, release = threading.Event(), threading.Event()
    half = b"x" * (400 * KIB)

    async def hold(call: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * len(half)) + half)
        await writer.drain()
        begun.set()
        await asyncio.to_thread(release.wait, 60)
        writer.write(half)

    large = target.handle("/large", hold)
    other = target.page("/other", "y" * (700 * KIB))
    coded = target.page("/coded", gzip.compress(b"z" * (700 * KIB)), Content_Encoding="gzip")
    small = target.page("/small", "small")
    with Service(allow_hosts=(target.host,), memory=900 * KIB) as running, ThreadPoolExecutor(1) as pool:
        first = pool.submit(running.result, url=large, httpResponseBody=True)
        assert begun.wait(60)
        try:
            eventually(lambda: running.front.memory.held >= 300 * KIB)
            for url in (other, coded):
                answer = running.extract(url=url, httpResponseBody=True)
                assert (answer.status, answer.json["type"]) == (503, "/limits/over-global-limit")
                assert int(answer.headers["retry-after"]) > 0
            assert running.result(url=small, httpResponseBody=True)["statusCode"] == 200
        finally:
            release.set()
        assert len(base64.b64decode(first.result(TIMEOUT)["httpResponseBody"])) == 2 * len(half)
        assert running.result(url=other, httpResponseBody=True)["statusCode"] == 200
        assert running.front.memory.held == 0


async def answer_to(site: Target, url: str, limits: ServiceLimits, wait: asyncio.Event | None = None) -> list[bytes]:
    """The pieces of an answer; with ``wait``, its reader takes no more than the first until then."""
    config = ServerConfig(allow_hosts=(site.host,))

    async def caller_of(key: str) -> object:
        return CALLERS.get(key)

    service = ExtractionService(config, caller_of, limits=limits)  # type: ignore[arg-type]
    body = json.dumps({"url": url, "httpResponseBody": True}).encode()
    authorization = b"Basic " + base64.b64encode(f"{KEY}:".encode())
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/extract",
        "headers": [(b"authorization", authorization)],
    }
    messages = [{"type": "http.request", "body": body}]
    pieces: list[bytes] = []

    async def receive() -> dict[str, object]:
        return messages.pop() if messages else await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.body":
            pieces.append(message["body"])  # type: ignore[arg-type]
            if wait is not None:
                await wait.wait()

    await service.start()
    try:
        await service.app(scope, receive, send)  # type: ignore[arg-type]
    finally:
        await service.stop()
    return pieces


async def test_a_long_answer_goes_out_in_pieces_so_that_slow_readers_are_seen_to_read(target: Target) -> None:
    pieces = await answer_to(target, target.page("/long", "x" * (700 * KIB)), ServiceLimits())
    assert len(b"".join(pieces)) > 900 * KIB
    assert max(map(len, pieces)) == PIECE
    assert json.loads(b"".join(pieces))["statusCode"] == 200


async def test_a_client_that_does_not_read_its_answer_is_given_up(target: Target) -> None:
    pieces = await answer_to(
        target, target.page("/unread", "x" * (700 * KIB)), ServiceLimits(answer=0.05), asyncio.Event()
    )
    assert len(pieces) == 1
