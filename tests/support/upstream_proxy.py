"""An operator's proxy on loopback (HTTP, HTTPS or SOCKS5), which remembers what it was asked for."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import threading

from scrapy_ext.compatibility.python import Self

CREDENTIALS = "user-7:pass%40word"


class Upstream:
    """Answers CONNECT with ``status``; a tunnel, where that is 200. Use as a context manager.

    With ``lie`` it answers with these bytes instead, the last of them without end where ``endless``, and tunnels
    nothing. ``scheme`` is http, https (with ``tls``) or socks5, where ``status`` is the code of its reply (0: a
    tunnel). With ``is_open`` it wants no credentials. ``source`` is the address from which it connects to sites.
    """

    def __init__(
        self,
        status: int = 200,
        lie: bytes | None = None,
        endless: bytes = b"",
        *,
        scheme: str = "http",
        tls: ssl.SSLContext | None = None,
        is_open: bool = False,
        source: str = "127.0.0.1",
    ) -> None:
        self.status = status
        self.scheme = scheme
        self._tls = tls
        self._is_open = is_open
        self._source = source
        self.lie = lie
        self.endless = endless
        #: Targets (``address:port``) to which CONNECT gets 502.
        self.unreached: set[str] = set()
        #: What was asked for: ``address:port``.
        self.asked: list[str] = []
        self.port = 0

    @property
    def address(self) -> str:
        credentials = "" if self._is_open else f"{CREDENTIALS}@"
        return f"{self.scheme}://{credentials}127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.scheme == "socks5":
                await self._socks(reader, writer)
                return
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.partition("\r\n")[0].split(" ")
            assert method == "CONNECT"
            expected = base64.b64encode(b"user-7:pass@word").decode()
            known = self._is_open or f"Proxy-Authorization: Basic {expected}\r\n" in head
            status = 407 if not known else 502 if target in self.unreached else self.status
            self.asked.append(target)
            if self.lie is not None:
                writer.write(self.lie)
                await writer.drain()
                while self.endless:
                    writer.write(self.endless * 1000)
                    await writer.drain()
                await reader.read()  # until the server has enough of it
                return
            writer.write(f"HTTP/1.1 {status} X\r\nVia: 1.1 test\r\n\r\n".encode())
            if status == 200:
                host, _, port = target.rpartition(":")
                await self._tunnel(reader, writer, host, int(port))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """SOCKS5 (RFC 1928), with a user name and a password (RFC 1929) unless it is open."""
        _, methods = await reader.readexactly(2)
        offered = await reader.readexactly(methods)
        wanted = 0 if self._is_open else 2
        if wanted not in offered:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes((5, wanted)))
        if wanted:
            _, length = await reader.readexactly(2)
            user = await reader.readexactly(length)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            known = (user, password) == (b"user-7", b"pass@word")
            writer.write(bytes((1, not known)))
            if not known:
                return
        _, command, _, kind = await reader.readexactly(4)
        assert command == 1
        # An address, never a name.
        family = {1: socket.AF_INET, 4: socket.AF_INET6}[kind]
        host = socket.inet_ntop(family, await reader.readexactly(4 if kind == 1 else 16))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host}:{port}")
        if self.lie is not None:
            writer.write(self.lie)
            await reader.read()
            return
        code = 0 if self.status == 200 else self.status
        writer.write(bytes((5, code, 0, 1, 0, 0, 0, 0, 0, 0)))
        if not code:
            await self._tunnel(reader, writer, host, port)

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        there, back = await asyncio.open_connection(host, port, local_addr=(self._source, 0))
        await asyncio.gather(_carry(reader, back), _carry(there, writer))


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
    finally:
        sink.close()
