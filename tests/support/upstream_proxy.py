"""An operator's proxy on loopback, which does CONNECT and remembers what it was asked for."""

from __future__ import annotations

import asyncio
import base64
import threading

from scrapy_ext.compatibility.python import Self

CREDENTIALS = "user-7:pass%40word"


class Upstream:
    """Answers CONNECT with ``status``; a tunnel, where that is 200. Use as a context manager.

    With ``lie`` it answers with these bytes instead, the last of them without end where ``endless``, and tunnels
    nothing.
    """

    def __init__(self, status: int = 200, lie: bytes | None = None, endless: bytes = b"") -> None:
        self.status = status
        self.lie = lie
        self.endless = endless
        #: What was asked for: ``address:port``.
        self.asked: list[str] = []
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://{CREDENTIALS}@127.0.0.1:{self.port}"

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
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.partition("\r\n")[0].split(" ")
            assert method == "CONNECT"
            expected = base64.b64encode(b"user-7:pass@word").decode()
            status = self.status if f"Proxy-Authorization: Basic {expected}\r\n" in head else 407
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
                there, back = await asyncio.open_connection(host, int(port))
                await asyncio.gather(_carry(reader, back), _carry(there, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
    finally:
        sink.close()
