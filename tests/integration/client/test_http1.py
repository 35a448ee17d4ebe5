"""The lean HTTP/1.1 client against servers that send bytes as they like."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from scrapy_ext.client.http1 import Answer, AnswerError, ConnectError, Connections
from scrapy_ext.compatibility.python import Runner, timeout_after
from tests.support.eventually import eventually_async
from tests.support.handwritten_site import self_signed

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MIB = 2**20


class Server:
    """A server of one function, which remembers its connections."""

    def __init__(self, serve: Serve, tls: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._tls = tls
        self.writers: list[asyncio.StreamWriter] = []
        #: How many of them the client has closed.
        self.ended = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Server]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for writer in self.writers:
                writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            self.ended += 1


async def request_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the head and the body of a request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    return head, await reader.readexactly(length)


def answering(*answers: bytes, heads: list[bytes] | None = None, close: bool = False) -> Serve:
    """Return a server function that gives each request of a connection its answer, the last one again and again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        while True:
            head, _ = await request_of(reader)
            if heads is not None:
                heads.append(head)
            writer.write(answers[min(number, len(answers) - 1)])
            number += 1
            if close:
                await writer.drain()
                writer.close()
                return

    return serve


def answer_of(body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in (f"Content-Length: {len(body)}", *headers))
    return f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode() + body


@asynccontextmanager
async def connections_to(port: int, *, host: str = "127.0.0.1", **options) -> AsyncIterator[Connections]:
    scheme = options.pop("scheme", "http")
    connections = Connections(f"{scheme}://{host}:{port}/v1", {"X-Own": "1"}, **options)
    try:
        yield connections
    finally:
        await connections.close()


async def whole(answer: Answer) -> bytes:
    try:
        if answer.content_length is not None:
            return bytes(await answer.read())
        return b"".join([piece async for piece in answer.pieces()])
    finally:
        answer.close()


async def post(connections: Connections, body: bytes = b"{}") -> bytes:
    async with timeout_after(60):
        return await whole(await connections.request("POST", "/extract", body, connect_timeout=10))


async def test_a_connection_is_used_for_the_next_request():
    heads: list[bytes] = []
    server = Server(answering(answer_of(b"one"), answer_of(b"two"), heads=heads))
    async with server.running(), connections_to(server.port) as connections:
        assert [await post(connections), await post(connections)] == [b"one", b"two"]
    assert len(server.writers) == 1
    assert heads[0].startswith(b"POST /v1/extract HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port)
    assert b"\r\nX-Own: 1\r\n" in heads[0]


@pytest.mark.parametrize("size", [0, 1, 30_000, 40_000, 5 * MIB])
async def test_a_body_with_a_length_comes_whole_in_pieces_of_any_size(size: int):
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = answer_of(body)
        for cut in (len(sent), 1, 40, 70, 20_000):
            await request_of(reader)
            writer.write(sent[:cut])
            await writer.drain()
            await asyncio.sleep(0.01)
            writer.write(sent[cut:])

    server = Server(serve)
    async with server.running(), connections_to(server.port) as connections:
        for _ in range(5):
            assert await post(connections) == body
    assert len(server.writers) == 1


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Last: 1\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (CHUNKED, b"abcde"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + answer_of(b"abc"), b"abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["chunked", "preliminary answers", "no body"],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
async def test_every_form_of_an_answer_is_read_to_its_end(sent: bytes, body: bytes, step: int):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_of(reader)
            for at in range(0, len(sent), step):
                writer.write(sent[at : at + step])
                await asyncio.sleep(0)

    server = Server(serve)
    async with server.running(), connections_to(server.port) as connections:
        assert [await post(connections), await post(connections)] == [body, body]
    assert len(server.writers) == 1


@pytest.mark.parametrize("body", [b"", b"abc", b"x" * 100_000])
async def test_a_body_may_end_with_the_connection(body: bytes):
    server = Server(answering(b"HTTP/1.1 200 OK\r\n\r\n" + body, close=True))
    async with server.running(), connections_to(server.port) as connections:
        assert await post(connections) == body


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 999_999,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabcd",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Filler: 0123456789\r\n" * 10_000,
    ],
    ids=range(11),
)
async def test_less_than_an_answer_is_an_error(sent: bytes):
    server = Server(answering(sent, close=True))
    async with server.running(), connections_to(server.port) as connections:
        with pytest.raises(AnswerError):
            await post(connections)


@pytest.mark.parametrize(
    "first",
    [
        answer_of(b"abc", "Connection: close"),
        answer_of(b"abc") + answer_of(b"evil"),
        answer_of(b"abc") + b"evil",
        b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    ],
    ids=["said", "a second answer", "more bytes", "HTTP/1.0"],
)
async def test_a_connection_that_has_more_or_ends_is_not_used_again(first: bytes):
    server = Server(answering(first))
    async with server.running(), connections_to(server.port) as connections:
        assert [await post(connections) for _ in range(3)] == [b"abc"] * 3
    assert len(server.writers) == 3


async def test_data_without_a_request_ends_a_connection():
    server = Server(answering(answer_of(b"abc")))
    async with server.running(), connections_to(server.port) as connections:
        await post(connections)
        server.writers[0].write(answer_of(b"evil"))
        await eventually_async(lambda: not connections._idle[0].is_usable())
        assert await post(connections) == b"abc"
    assert len(server.writers) == 2


async def test_a_connection_that_the_server_closed_is_replaced():
    server = Server(answering(answer_of(b"abc")))
    async with server.running(), connections_to(server.port) as connections:
        await post(connections)
        server.writers[0].close()
        await eventually_async(lambda: not connections._idle[0].is_usable())
        assert await post(connections) == b"abc"
    assert len(server.writers) == 2


async def test_an_unused_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scrapy_ext.client.http1.connections._KEPT", 0.1)
    server = Server(answering(answer_of(b"abc")))
    async with server.running(), connections_to(server.port) as connections:
        await post(connections)
        await eventually_async(lambda: not connections._idle)
        await eventually_async(lambda: server.ended == 1)


async def test_an_answer_before_the_whole_request_comes_and_ends_the_connection():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer_of(b"too large"))
        await asyncio.Event().wait()  # never reads the rest

    server = Server(serve)
    async with server.running(), connections_to(server.port) as connections:
        assert await post(connections, b"x" * 20 * MIB) == b"too large"
        assert not connections._idle


async def pieces_of(body: bytes, count: list[int]) -> AsyncGenerator[bytes]:
    for at in range(0, len(body), 100_000):
        count[0] += 1
        yield body[at : at + 100_000]


@pytest.mark.parametrize("framing", ["chunked", "with a length"])
async def test_a_body_is_sent_in_pieces_as_fast_as_it_is_read(framing: str):
    sent = bytes(range(256)) * 40_000
    count, received, heads = [0], bytearray(), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        await asyncio.sleep(0.3)
        assert count[0] < 100  # the buffers of the sockets are full
        while len(received) < len(sent):
            size = len(sent)
            if framing == "chunked":
                size = int(await reader.readuntil(b"\r\n"), 16)
            received.extend(await reader.readexactly(size))
            if framing == "chunked":
                await reader.readexactly(2)
        if framing == "chunked":
            assert await reader.readexactly(5) == b"0\r\n\r\n"
        writer.write(answer_of(b"stored"))
        await request_of(reader)
        writer.write(answer_of(b"again"))

    server = Server(serve)
    headers = {} if framing == "chunked" else {"Content-Length": str(len(sent))}
    async with server.running(), connections_to(server.port) as connections:
        answer = await connections.request("POST", "/x", pieces_of(sent, count), headers, connect_timeout=10)
        assert await whole(answer) == b"stored"
        assert received == sent
        assert await post(connections) == b"again"
    assert len(server.writers) == 1
    assert (b"Transfer-Encoding: chunked" in heads[0]) is (framing == "chunked")


async def test_an_upload_ends_with_an_answer_and_its_connection_too():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer_of(b"no"))
        await asyncio.Event().wait()

    count, server = [0], Server(serve)
    async with server.running(), connections_to(server.port) as connections:
        answer = await connections.request("POST", "/x", pieces_of(b"x" * 100 * MIB, count), connect_timeout=10)
        assert await whole(answer) == b"no"
        assert not connections._idle
    assert count[0] < 500


async def test_a_body_that_fails_is_the_error_and_ends_the_connection():
    async def failing() -> AsyncGenerator[bytes]:
        yield b"some"
        raise PermissionError("no file")

    server = Server(answering(answer_of(b"abc")))
    async with server.running(), connections_to(server.port) as connections:
        with pytest.raises(PermissionError):
            await connections.request("POST", "/x", failing(), connect_timeout=10)
        assert await post(connections) == b"abc"
        assert len(server.writers) == 2


async def test_nothing_is_read_before_the_body_is_wanted():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(answer_of(b"x" * 64 * MIB))

    server = Server(serve)
    async with server.running(), connections_to(server.port) as connections:
        answer = await connections.request("POST", "/extract", connect_timeout=10)
        await asyncio.sleep(0.3)
        waiting = server.writers[0].transport.get_write_buffer_size()
        assert waiting > 32 * MIB  # the buffers of the sockets hold the rest
        assert len(await whole(answer)) == 64 * MIB


async def test_no_more_connections_than_the_limit_and_a_cancelled_request_makes_room():
    arrived = asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        arrived.release()
        await asyncio.Event().wait()

    server = Server(serve)
    async with server.running(), connections_to(server.port, limit=2) as connections:
        tasks = [asyncio.ensure_future(post(connections)) for _ in range(4)]
        for _ in range(2):
            await arrived.acquire()
        await asyncio.sleep(0.1)
        assert len(server.writers) == 2
        for task in tasks[:2]:
            task.cancel()
        await asyncio.wait(tasks[:2])
        for _ in range(2):
            await arrived.acquire()
        assert len(server.writers) == 4
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def test_on_the_event_loop_of_uvloop():
    async def ask() -> list[bytes]:
        server = Server(answering(answer_of(b"x" * MIB)))
        async with server.running(), connections_to(server.port, host="localhost") as connections:
            return [await post(connections), await post(connections)]

    with Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(ask()) == [b"x" * MIB] * 2


async def test_no_listener_and_no_name_are_errors_of_connecting():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        async with connections_to(closed.getsockname()[1]) as connections:
            with pytest.raises(ConnectError):
                await post(connections)


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
async def test_a_header_is_no_more_than_its_line(value: str):
    async with connections_to(1) as connections:
        with pytest.raises(ValueError, match="X-Trace"):
            connections._head_of("POST", "/extract", {"X-Trace": value}, b"")


# ── TLS and proxies ──


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server whose certificate the client trusts."""
    context = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    return context


@pytest.mark.parametrize("size", [3, 3 * MIB])
async def test_over_tls(secured: ssl.SSLContext, size: int):
    server = Server(answering(answer_of(b"x" * size)), secured)
    async with server.running(), connections_to(server.port, host="localhost", scheme="https") as connections:
        for _ in range(3):
            assert len(await post(connections)) == size
    assert len(server.writers) == 1


async def test_a_certificate_of_nobody_is_refused(secured: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    server = Server(answering(answer_of(b"abc")), secured)
    async with server.running(), connections_to(server.port, host="localhost", scheme="https") as connections:
        with pytest.raises(ConnectError, match=r"certificate is not trusted \(self.signed.* SSL_CERT_FILE"):
            await post(connections)


def tunnelling(port: int, heads: list[bytes]) -> Serve:
    """Return a proxy's function that connects every tunnel to one port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
            target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    return serve


async def test_through_the_tunnel_of_a_proxy(secured: ssl.SSLContext):
    heads: list[bytes] = []
    server = Server(answering(answer_of(b"x" * MIB)), secured)
    async with server.running():
        proxy = Server(tunnelling(server.port, heads))
        async with (
            proxy.running(),
            connections_to(
                server.port, host="localhost", scheme="https", proxy=f"http://me:p%40ss@127.0.0.1:{proxy.port}"
            ) as connections,
        ):
            assert [len(await post(connections)) for _ in range(2)] == [MIB] * 2
    assert len(heads) == 1
    assert heads[0].startswith(b"CONNECT localhost:%d HTTP/1.1\r\n" % server.port)
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in heads[0]
    assert b"X-Own" not in heads[0]


async def test_a_proxy_gets_the_whole_url_of_a_server_without_tls():
    heads: list[bytes] = []
    proxy = Server(answering(answer_of(b"abc"), heads=heads))
    async with (
        proxy.running(),
        connections_to(80, host="api.example", proxy=f"http://me:pass@127.0.0.1:{proxy.port}") as connections,
    ):
        assert await post(connections) == b"abc"
    assert heads[0].startswith(b"POST http://api.example/v1/extract HTTP/1.1\r\nHost: api.example\r\n")
    assert b"Proxy-Authorization: Basic bWU6cGFzcw==\r\n" in heads[0]


async def test_a_proxy_that_refuses_is_named():
    proxy = Server(answering(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"))
    async with (
        proxy.running(),
        connections_to(443, host="api.example", scheme="https", proxy=f"http://127.0.0.1:{proxy.port}") as connections,
    ):
        with pytest.raises(ConnectError, match="the proxy answers 407"):
            await post(connections)
