"""A web site on loopback whose answers are written by hand, down to the byte, and which remembers who called."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Call:
    """One request that arrived."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    #: Time of the clock ``time.monotonic``.
    time: float = field(default_factory=time.monotonic)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


Handler = Callable[[Call, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Target:
    """The site. ``connections`` counts every one that was opened, whatever came of it."""

    ssl: Any = None
    calls: list[Call] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    #: Seconds until each answer.
    latency: float = 0
    _handlers: dict[str, Handler] = field(default_factory=dict)
    _listener: socket.socket | None = None

    def start(self) -> Target:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(60)
        return self

    def start_on_a_web_port(self) -> Target:
        """Start on a port that is open for public hosts, so that nothing but the address is in the way."""
        for port in random.sample(range(8100, 8900), 800):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                # Kept: whoever looked for a free port by connecting would be counted by another test's target.
                listener.bind(("127.0.0.1", port))
                listener.listen(100)
            except OSError:
                listener.close()
                continue
            self._listener = listener
            return self.start()
        raise AssertionError("no free port from 8100 to 8899")

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"{'https' if self.ssl else 'http'}://{self.host}{path}"

    def page(self, path: str, body: str | bytes, status: int = 200, **headers: str) -> str:
        """Answer a path with a page; its URL."""
        data = body.encode() if isinstance(body, str) else body
        sent = {"Content-Type": "text/html; charset=utf-8"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return self.raw(path, f"HTTP/1.1 {status} X\r\n{lines}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    def raw(self, path: str, answer: bytes, *, then_close: bool = False) -> str:
        """Answer a path with these bytes."""

        async def handler(call: Call, writer: asyncio.StreamWriter) -> None:
            writer.write(answer if call.method != "HEAD" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
            await writer.drain()
            if then_close:
                writer.close()

        return self.handle(path, handler)

    def handle(self, path: str, handler: Handler) -> str:
        self._handlers[path] = handler
        return self.url(path)

    def calls_of(self, path: str) -> list[Call]:
        return [call for call in self.calls if call.path.partition("?")[0] == path]

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if self._listener is None:
            server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self.ssl)
        else:
            server = await asyncio.start_server(self._accept, sock=self._listener, ssl=self.ssl)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not writer.is_closing():
                call = await _read_call(reader)
                if call is None:
                    writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                    return
                self.calls.append(call)
                await asyncio.sleep(self.latency)
                await self._handlers.get(call.path.partition("?")[0], _not_found)(call, writer)
                if call.header("connection") == "close":
                    return
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _read_call(reader: asyncio.StreamReader) -> Call | None:
    first = await reader.readexactly(1)
    if not first.isalpha():
        return None  # TLS, perhaps
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = line.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    call = Call(method, path, headers, b"")
    call.body = await reader.readexactly(int(call.header("content-length") or 0))
    return call


async def _not_found(_: Call, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nnone")
    await writer.drain()


def self_signed(folder: Path) -> ssl.SSLContext:
    """TLS with a certificate that nobody signed, for ``localhost``."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
