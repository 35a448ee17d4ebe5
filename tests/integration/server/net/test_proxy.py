from __future__ import annotations

import asyncio
import contextlib

import pytest

from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.net.proxy import FAILURE_HEADER, PageProxy
from tests.support.eventually import eventually_async
from tests.support.handwritten_site import Call, Target


def guard_for(target: Target) -> Guard:
    return Guard([target.host])


async def speak(proxy: PageProxy, request: str, then: bytes = b"") -> bytes:
    """Send a request by hand and read until the proxy closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    writer.write(request.replace("\n", "\r\n").encode() + then)
    try:
        async with timeout_after(60):
            return await reader.read()
    finally:
        writer.close()


async def test_a_plain_request_is_passed_on_without_the_headers_of_the_hop(target: Target) -> None:
    target.page("/plain", "hello")
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(
            proxy,
            f"GET {target.url('/plain')}?q=1 HTTP/1.1\nHost: {target.host}\nProxy-Connection: keep-alive\n"
            "Proxy-Authorization: Basic x\nX-Kept: 1\n\n",
        )
    assert answer.endswith(b"\r\n\r\nhello")
    assert b"Connection: close" in answer
    call = target.calls_of("/plain")[-1]
    assert call.path == "/plain?q=1"
    assert (call.header("x-kept"), call.header("connection")) == ("1", "close")
    assert call.header("proxy-connection") is call.header("proxy-authorization") is None


async def test_a_body_is_passed_on_up_to_its_length_and_nothing_after_it(target: Target) -> None:
    target.page("/upload", "ok")
    before = len(target.calls)
    smuggled = b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n"
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        request = f"POST {target.url('/upload')} HTTP/1.1\nHost: x\nContent-Length: 4\n\n"
        assert b" 200 " in await speak(proxy, request, b"data" + smuggled)
    assert [(call.path, call.body) for call in target.calls[before:]] == [("/upload", b"data")]


async def test_a_page_without_a_request_has_no_connections(target: Target) -> None:
    target.page("/early", "hello")
    before = len(target.calls)
    proxy = PageProxy(guard_for(target), ServiceLimits())
    await proxy.start()
    try:
        request = f"GET {target.url('/early')} HTTP/1.1\nHost: {target.host}\n\n"
        with contextlib.suppress(ConnectionResetError):
            assert await speak(proxy, request) == b""
        assert len(target.calls) == before
        proxy.serve(None)
        assert (await speak(proxy, request)).endswith(b"hello")
    finally:
        await proxy.close()


async def test_a_proxy_that_refuses_keeps_its_port_and_ends_what_is_open(target: Target) -> None:
    async def endless(call: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nbegun")
        await asyncio.sleep(30)

    url = target.handle("/endless", endless)
    request = f"GET {url} HTTP/1.1\nHost: x\n\n"
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        reading = asyncio.ensure_future(speak(proxy, request))
        await eventually_async(lambda: bool(target.calls_of("/endless")))
        await proxy.refuse()
        await reading
        before = len(target.calls)
        with contextlib.suppress(ConnectionResetError):
            assert await speak(proxy, request) == b""
        assert len(target.calls) == before


@pytest.mark.parametrize(("method", "is_answered"), [("GET", False), ("HEAD", False), ("POST", True), ("DELETE", True)])
async def test_what_may_not_be_sent_twice_is_answered_where_the_site_ends_the_connection(
    target: Target, method: str, is_answered: bool
) -> None:
    async def nothing(call: Call, writer: asyncio.StreamWriter) -> None:
        writer.close()

    url = target.handle("/order", nothing)
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(proxy, f"{method} {url} HTTP/1.1\nHost: x\nContent-Length: 0\n\n")
    assert (answer.startswith(b"HTTP/1.1 502 "), FAILURE_HEADER.encode() in answer) == (is_answered, is_answered)
    assert is_answered or not answer


async def test_a_tunnel_carries_both_ways(target: Target) -> None:
    target.page("/tunnel", "through")
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(
            proxy,
            f"CONNECT {target.host} HTTP/1.1\nHost: {target.host}\n\n",
            b"GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        )
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"through" in answer


@pytest.mark.parametrize("form", ["CONNECT {host} HTTP/1.1\n\n", "GET http://{host}/ HTTP/1.1\nHost: x\n\n"])
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433"])
async def test_private_addresses_are_refused_in_either_form_and_the_reason_is_kept(
    forbidden: Target, form: str, name: str
) -> None:
    host = f"{name}:{forbidden.port}"
    async with PageProxy(Guard(), ServiceLimits()) as proxy:
        answer = await speak(proxy, form.format(host=host))
        failure = proxy.failure(f"http://{host}/")
        lines = answer.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        assert proxy.is_own_answer(headers)
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert failure is not None
    assert failure.problem.status == 421
    assert forbidden.connections == 0


@pytest.mark.parametrize(
    "request_text",
    [
        "GET / HTTP/1.1\nHost: localhost\n\n",
        "GET https://{host}/ HTTP/1.1\n\n",
        "GET ftp://{host}/ HTTP/1.1\n\n",
        "GET file:///etc/passwd HTTP/1.1\n\n",
        "GET http://user@{host}/ HTTP/1.1\n\n",
        "GET http:///x HTTP/1.1\n\n",
        "CONNECT / HTTP/1.1\n\n",
        "CONNECT localhost HTTP/1.1\n\n",
        "CONNECT user@{host} HTTP/1.1\n\n",
        "CONNECT {host} HTTP/2.0\n\n",
        "nonsense\n\n",
        "POST http://{host}/ HTTP/1.1\nTransfer-Encoding: chunked\n\n0\n\n",
        "POST http://{host}/ HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n\nab",
        "POST http://{host}/ HTTP/1.1\nContent-Length: +1\n\na",
    ],
)
@pytest.mark.long(keep=4)
async def test_anything_else_is_refused_before_a_connection_is_made(target: Target, request_text: str) -> None:
    before = target.connections
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(proxy, request_text.format(host=target.host))
    assert answer.startswith(b"HTTP/1.1 4")
    assert FAILURE_HEADER.encode() in answer
    assert target.connections == before


async def test_a_head_without_end_is_refused(target: Target) -> None:
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(proxy, f"GET {target.url('/')} HTTP/1.1\nX: ", b"x" * 400_000)
    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_an_answer_that_is_not_http_is_not_passed_on(target: Target) -> None:
    url = target.raw("/ssh", b"SSH-2.0-x\r\n\r\n", then_close=True)
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(proxy, f"GET {url} HTTP/1.1\nHost: x\n\n")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"SSH" not in answer


async def test_interim_answers_are_passed_over(target: Target) -> None:
    url = target.raw("/hints", b"HTTP/1.1 103 Early\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(proxy, f"GET {url} HTTP/1.1\nHost: x\n\n")
    assert answer.startswith(b"HTTP/1.1 200 OK")


async def test_interim_answers_without_an_end_are_refused(target: Target) -> None:
    async def interim(call: Call, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 102 Processing\r\n\r\n" * 1000)
            await writer.drain()

    url = target.handle("/interim", interim)
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        answer = await speak(proxy, f"GET {url} HTTP/1.1\nHost: x\n\n")
    assert answer.startswith(b"HTTP/1.1 502 ")


async def test_bytes_are_limited_over_all_connections_of_a_page(target: Target) -> None:
    url = target.page("/large", "x" * 60_000)
    async with PageProxy(guard_for(target), ServiceLimits(page_bytes=100_000)) as proxy:
        first = await speak(proxy, f"GET {url} HTTP/1.1\nHost: x\n\n")
        second = await speak(proxy, f"GET {url} HTTP/1.1\nHost: x\n\n")
        assert len(first) > 60_000 > len(second)
        assert proxy.is_over_limit


async def test_connections_are_limited(target: Target) -> None:
    before = target.connections
    async with PageProxy(guard_for(target), ServiceLimits(page_connections=2)) as proxy:
        port = int(proxy.url.rpartition(":")[2])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        with contextlib.suppress(ConnectionResetError):
            assert await speak(proxy, f"GET {target.url('/')} HTTP/1.1\nHost: x\n\n") == b""
        for _, writer in idle:
            writer.close()
    assert target.connections == before


async def test_nothing_outlives_the_page(target: Target) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hold(call: Call, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.02)
        finally:
            loop.call_soon_threadsafe(ended.set)

    url = target.handle("/kept", hold)
    async with PageProxy(guard_for(target), ServiceLimits()) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        writer.write(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await eventually_async(lambda: target.calls_of("/kept"))
    assert await reader.read() == b""
    await asyncio.wait_for(ended.wait(), 60)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    writer.close()
