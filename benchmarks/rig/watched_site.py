"""A site that notes when each request arrives, and how many are open then.

``python -m rig.watched_site`` says its port and ends with its standard input. The line ``begin SECONDS EVERY AFTER``
forgets the requests so far, and lets each answer take some seconds; every so many seconds (0: never), one request gets
the status 429 with that ``Retry-After``. ``end`` returns the notes, as JSON of :class:`Visits`. A request says in the
header ``X-Sent`` when it was sent, on the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import msgspec

from rig.processes import Running, python

_SENT: Final = re.compile(rb"\r\nx-sent: ([0-9.]+)", re.IGNORECASE)
_BODY: Final = b"<html><body>page</body></html>"


class Visit(msgspec.Struct, array_like=True):
    """A request: seconds on the monotonic clock when it was sent and when it arrived, those open then with it, and
    whether it got the 429."""

    sent: float
    arrived: float
    open: int
    is_refused: bool


class Visits(msgspec.Struct):
    """Requests in the order of their arrival."""

    visits: list[Visit]


class WatchedSite:
    """The site as a process. ``url``: of its pages, without a path."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.url = f"http://127.0.0.1:{running.said}"

    def begin(self, seconds: float = 0.0, every: float = 0.0, after: int = 0) -> None:
        """Forget the requests so far. ``seconds``: of an answer; a 429 with ``Retry-After`` ``after`` ``every`` so many
        seconds."""
        self._running.ask(f"begin {seconds} {every} {after}")

    def visits(self) -> list[Visit]:
        """Return the requests since then."""
        return msgspec.json.decode(self._running.ask("end"), type=Visits).visits


@contextmanager
def watched_site() -> Generator[WatchedSite]:
    """Run the site."""
    with python("-m", "rig.watched_site") as running:
        yield WatchedSite(running)


class _Site:
    """The notes, and how requests are answered."""

    def __init__(self) -> None:
        self.open = 0
        self.begin(0.0, 0.0, 0)

    def begin(self, seconds: float, every: float, after: int) -> None:
        self.visits: list[Visit] = []
        self.seconds, self._every, self._after = seconds, every, after
        self._next_refusal = 0.0

    def arrived(self, head: bytes) -> bytes:
        """Note a request; return its answer."""
        now, found = time.monotonic(), _SENT.search(head)
        if not self._next_refusal:
            self._next_refusal = now + self._every
        is_refused = bool(self._every) and now >= self._next_refusal
        self.visits.append(Visit(float(found[1]) if found else now, now, self.open, is_refused))
        if not is_refused:
            return _answer("200 OK", "")
        # The next interval begins when the pause is over.
        self._next_refusal = now + self._after + self._every
        return _answer("429 Too Many Requests", f"Retry-After: {self._after}\r\n")


def _answer(status: str, header: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{header}Content-Length: {len(_BODY)}\r\n\r\n"
    return head.encode() + _BODY


class _Connection(asyncio.Protocol):
    def __init__(self, site: _Site) -> None:
        self._site = site
        self._rest = b""
        self._answers: deque[asyncio.TimerHandle] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        # The requests of a killed process end with their connections.
        for timer in self._answers:
            timer.cancel()
        self._site.open -= len(self._answers)
        self._answers.clear()

    def data_received(self, data: bytes) -> None:
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._site.open += 1
            answer = self._site.arrived(request)
            # Answers follow one another as the requests do.
            self._answers.append(asyncio.get_running_loop().call_later(self._site.seconds, self._send, answer))

    def _send(self, answer: bytes) -> None:
        self._answers.popleft()
        self._site.open -= 1
        self._transport.write(answer)


async def _serve() -> None:
    loop, site = asyncio.get_running_loop(), _Site()
    server = await loop.create_server(lambda: _Connection(site), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command, *numbers = line.split()
        if command == "begin":
            site.begin(float(numbers[0]), float(numbers[1]), int(numbers[2]))
            print("begun", flush=True)
        else:
            print(msgspec.json.encode(Visits(site.visits)).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve())
