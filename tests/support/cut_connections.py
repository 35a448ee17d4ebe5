"""Connections to a database that break at the worst moment."""

from __future__ import annotations

import asyncio
import contextlib


class Cutter:
    """Stands between store and database, and breaks the connection at a COMMIT: before or after it gets there."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self.before = self.after = 0
        self.cut = 0
        self.dark = False
        self.dark_after_cut = False
        self._clients: set[asyncio.StreamWriter] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def sever(self) -> None:
        """Break all connections, and refuse new ones until ``dark`` is False."""
        self.dark = True
        for client in self._clients:
            client.transport.abort()

    def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self.dark:
            to_client.transport.abort()
            return
        self._clients.add(to_client)
        server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        drop = asyncio.Event()  # the answers, from now on

        async def back() -> None:
            with contextlib.suppress(ConnectionError):
                while piece := await server.read(65536):
                    if drop.is_set():
                        break
                    to_client.write(piece)
            to_client.transport.abort()

        answers = asyncio.create_task(back())
        with contextlib.suppress(ConnectionError):
            while piece := await client.read(65536):
                if b"COMMIT\0" in piece and (self.before or self.after):
                    self.cut += 1
                    self.dark = self.dark_after_cut
                    if self.before:
                        self.before -= 1
                        break
                    self.after -= 1
                    drop.set()
                to_server.write(piece)
        to_server.close()
        to_client.transport.abort()
        with contextlib.suppress(ConnectionError):
            await answers
        self._clients.discard(to_client)
