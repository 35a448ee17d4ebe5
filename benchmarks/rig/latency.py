"""A TCP proxy that adds latency, and can interrupt the connection.

``python -m rig.latency PORT SECONDS`` passes connections on to ``PORT``, says its own port, and ends with its standard
input. Each direction takes half of ``SECONDS`` and carries as much as it would otherwise: what arrives waits in a queue
with the time when it is due, and more may arrive meanwhile. A connection takes one round trip to open.

A line on standard input sets what it does, and is repeated when that is so: ``pass``; ``hold`` (connections stay, and
nothing gets through until the next ``pass``); ``refuse`` (connections break, and new ones are refused).
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import sys
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from weakref import WeakSet

from rig.processes import Running, python
from scrapy_ext.compatibility.python import Runner


class Latency:
    """A proxied service: its port and its current behaviour."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.port = int(running.said)

    def become(self, mode: str) -> None:
        """Set ``pass``, ``hold`` or ``refuse``; return once it is in force."""
        answer = self._running.ask(mode)
        assert answer == mode, answer


@contextmanager
def latency(port: int, seconds: float) -> Generator[Latency]:
    """Proxy ``port`` with a round-trip time of ``seconds``."""
    with python("-m", "rig.latency", str(port), str(seconds)) as running:
        yield Latency(running)


class _Direction:
    """Bytes queued for one end of a connection; ``None`` is its end."""

    def __init__(self, proxy: _Proxy, opened: float) -> None:
        self._proxy = proxy
        self._opened = opened
        self._queue: deque[tuple[float, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._target: asyncio.Transport | None = None

    def arrives_at(self, target: asyncio.Transport) -> None:
        self._target = target
        self.move()

    def put(self, data: bytes | None) -> None:
        start = max(self._proxy.loop.time(), self._opened)
        self._queue.append((start + self._proxy.delay, data))
        if self._timer is None:
            self.move()

    def move(self) -> None:
        """Write due bytes, and schedule the next call for the rest."""
        self._timer = None
        if self._target is None or self._proxy.holds:
            return
        while self._queue and self._queue[0][0] <= self._proxy.loop.time():
            data = self._queue.popleft()[1]
            if data is None:
                self._target.close()
            else:
                self._target.write(data)
        if self._queue:
            self._timer = self._proxy.loop.call_at(self._queue[0][0], self.move)


class _End(asyncio.Protocol):
    """One end of a connection, which forwards received bytes to the other."""

    def __init__(self, proxy: _Proxy, out: _Direction, back: _Direction) -> None:
        self._proxy = proxy
        self._out = out
        self._back = back

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._proxy.transports.add(transport)
        self._back.arrives_at(transport)

    def data_received(self, data: bytes) -> None:
        self._out.put(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._proxy.transports.discard(self._transport)
        self._out.put(None)


class _Proxy:
    def __init__(self, target: int, seconds: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.delay = seconds / 2
        self.holds = False
        self.transports: set[asyncio.Transport] = set()
        self._target = target
        self._directions: WeakSet[_Direction] = WeakSet()
        self._connecting: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def listen(self) -> None:
        self._server = await self.loop.create_server(self._accept, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def become(self, mode: str) -> None:
        self.holds = mode == "hold"
        if mode == "refuse" and self._server is not None:
            self._server.close()
            self._server = None
            for transport in list(self.transports):
                transport.abort()
        elif mode == "pass" and self._server is None:
            await self.listen()
        for direction in list(self._directions):
            direction.move()

    def _accept(self) -> _End:
        opened = self.loop.time() + 2 * self.delay
        there, back = _Direction(self, opened), _Direction(self, opened)
        self._directions.update((there, back))
        connecting = self.loop.create_task(self._connect(back, there))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        return _End(self, there, back)

    async def _connect(self, out: _Direction, back: _Direction) -> None:
        try:
            await self.loop.create_connection(lambda: _End(self, out, back), "127.0.0.1", self._target)
        except OSError:
            out.put(None)


async def serve(target: int, seconds: float) -> None:
    proxy = _Proxy(target, seconds)
    await proxy.listen()
    print(proxy.port, flush=True)
    while line := (await proxy.loop.run_in_executor(None, sys.stdin.readline)).strip():
        await proxy.become(line)
        print(line, flush=True)


def _exact_loop() -> asyncio.AbstractEventLoop:
    # epoll rounds its waits up to milliseconds, which is much for a short latency.
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt), Runner(loop_factory=_exact_loop) as runner:
        runner.run(serve(int(sys.argv[1]), float(sys.argv[2])))
