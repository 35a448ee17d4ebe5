"""TCP connections that can be cut, held, slowed, and led elsewhere: proxies on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

_PIECE = 65536


class Links:
    """All proxies of a run, in one thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()
        self._made: list[Link] = []

    def make(self, target: int) -> Link:
        """A proxy on a free port, before a port of this machine."""
        link = asyncio.run_coroutine_threadsafe(Link.listen(self._loop, target), self._loop).result(10)
        self._made.append(link)
        return link

    def close(self) -> None:
        for link in self._made:
            link.close()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @staticmethod
    async def _end() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # transports that were aborted close in the next rounds of the loop


class Link:
    """One proxy. Its methods may be called in any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: int) -> None:
        self._loop = loop
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._delay = 0.0
        self._refuses = False
        self._transports: set[asyncio.WriteTransport] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @classmethod
    async def listen(cls, loop: asyncio.AbstractEventLoop, target: int) -> Link:
        made = cls(loop, target)
        made._server = await asyncio.start_server(made._pass_on, "127.0.0.1", 0)
        made.port = made._server.sockets[0].getsockname()[1]
        return made

    def move(self, target: int) -> None:
        """Lead new connections to another port, and break those that there are."""
        self._soon(self._move, target)

    def cut(self) -> None:
        """Break all connections, and refuse new ones, until :meth:`mend`."""
        self._soon(self._cut)

    def hold(self) -> None:
        """Let nothing come through, either way, until :meth:`mend`; what was sent waits."""
        self._soon(self._open.clear)

    def slow(self, seconds: float) -> None:
        """Keep every piece back for so long, until :meth:`mend`."""
        self._soon(setattr, self, "_delay", seconds)

    def mend(self) -> None:
        self._soon(self._mend)

    def close(self) -> None:
        self._soon(self._cut)
        if self._server is not None:
            self._soon(self._server.close)

    def _soon(self, act: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(act, *arguments)

    def _move(self, target: int) -> None:
        self._target = target
        self._break()

    def _cut(self) -> None:
        self._refuses = True
        self._break()

    def _break(self) -> None:
        for transport in list(self._transports):
            transport.abort()

    def _mend(self) -> None:
        self._refuses, self._delay = False, 0.0
        self._open.set()

    async def _pass_on(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        self._transports.add(to_client.transport)
        try:
            await self._open.wait()
            if self._refuses:
                return
            try:
                server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            except OSError:
                return
            self._transports.add(to_server.transport)
            try:
                await asyncio.gather(self._one_way(client, to_server), self._one_way(server, to_client))
            finally:
                self._transports.discard(to_server.transport)
                to_server.transport.abort()
        finally:
            self._transports.discard(to_client.transport)
            to_client.transport.abort()

    async def _one_way(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(_PIECE):
                await self._open.wait()
                if self._delay:
                    await asyncio.sleep(self._delay)
                target.write(piece)
                await target.drain()
            await self._open.wait()
            await target.drain()
        # Whichever side has ended: neither protocol goes on one way.
        target.close()
