"""A relay that records the calls between a crawl and its server: what a crawl sends, as it is on the wire."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True)
class Exchange:
    """A call and its answer. ``at``: seconds on the monotonic clock; ``body``: uncompressed; ``sent``, ``received``:
    bytes of the bodies on the wire."""

    at: float
    method: str
    path: str
    query: dict[str, str]
    body: bytes
    status: int
    answer: bytes
    sent: int
    received: int


@dataclass
class Recording:
    """The calls so far, and the port that a crawl uses instead of the server's."""

    port: int = 0
    exchanges: list[Exchange] = field(default_factory=list)

    def kinds(self) -> dict[str, list[Exchange]]:
        """Return the calls by kind, see :func:`kind_of`."""
        found: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            found.setdefault(kind_of(exchange.method, exchange.path), []).append(exchange)
        return found


def kind_of(method: str, path: str) -> str:
    """Return the kind of a call: its method and its resource, without the numbers and names of a job.

    The journal of a process is a slot of its frontier, with a name of its own.
    """
    first, *parts = path.strip("/").split("/")
    if first == "hcf":
        slot, rest = parts[3] if len(parts) > 3 else "", parts[4:]
        return " ".join(filter(None, (method, "journal" if slot.startswith("commit") else "frontier", *rest)))
    if first == "collections":
        return " ".join((method, "collection", *parts[3:4]))
    if first == "jobq":
        return " ".join((method, first, *parts[1:]))
    return f"{method} {first}" + (" field" if first == "jobs" and len(parts) > 3 else "")


@contextmanager
def recording(target: int) -> Generator[Recording]:
    """Relay to the port ``target`` of this machine."""
    found, ready, loop = Recording(), threading.Event(), asyncio.new_event_loop()

    async def relay() -> None:
        server = await asyncio.start_server(lambda *ends: _relay(found, target, *ends), "127.0.0.1", 0, limit=_LIMIT)
        found.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await server.serve_forever()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task = loop.create_task(relay())
        loop.run_until_complete(asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED))
        for each in asyncio.all_tasks(loop):
            each.cancel()
        loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
        # Connections are closed in the next step of the loop.
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    ended: asyncio.Future[None] = loop.create_future()
    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(ended.set_result, None)
        thread.join()


async def _relay(found: Recording, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    there, back = await asyncio.open_connection("127.0.0.1", target, limit=_LIMIT)
    try:
        while True:
            line, headers, body, raw = await _message(reader)
            at = time.monotonic()
            back.write(raw)
            answer_line, answer_headers, answer, raw = await _message(there)
            writer.write(raw)
            method, address, _ = line.split(" ", 2)
            path, _, query = address.partition("?")
            found.exchanges.append(
                Exchange(
                    at,
                    method,
                    path,
                    dict(parse_qsl(query)),
                    _plain(headers, body),
                    int(answer_line.split()[1]),
                    _plain(answer_headers, answer),
                    len(body),
                    len(answer),
                )
            )
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
        back.close()


def _plain(headers: dict[str, str], body: bytes) -> bytes:
    return gzip.decompress(body) if "gzip" in headers.get("content-encoding", "") and body else body


async def _message(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes, bytes]:
    """Return the first line, the headers and the body of a message, and all its bytes."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        pieces = [piece async for piece in _chunks(reader)]
        body, raw = b"".join(piece for piece, _ in pieces), b"".join(raw for _, raw in pieces)
        return first, headers, body, head + raw
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return first, headers, body, head + body


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line, 16)
        data = await reader.readexactly(size + 2)
        yield data[:-2], line + data
        if not size:
            return


def per_hundred(exchanges: Iterable[Exchange], pages: int) -> dict[str, float]:
    """Return the calls of each kind for 100 pages."""
    found: dict[str, float] = {}
    for exchange in exchanges:
        kind = kind_of(exchange.method, exchange.path)
        found[kind] = found.get(kind, 0) + 100 / pages
    return found
