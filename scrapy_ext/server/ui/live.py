"""Server-sent events: an answer that goes on while something happens, and ends with its client, with the server, or
after a while. Browsers come back by themselves then, and are let in only if their key still is.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.request_context import exchange_of

#: Seconds between two looks, between two signs of life, and after which the client has to ask again.
LOOK: Final = 1.0
_SIGN: Final = 15.0
_LONGEST: Final = 60.0
#: Answers of one server that go on at the same time.
MOST: Final = 100
_RETRY: Final = b"retry: 1000\n\n"


class Event(NamedTuple):
    """Something that has happened; ``id`` is where a client that comes back goes on."""

    name: str
    data: Any
    id: int

    def encoded(self) -> bytes:
        """As it is sent. JSON has no line breaks."""
        return b"event: %b\nid: %d\ndata: %b\n\n" % (self.name.encode(), self.id, msgspec.json.encode(self.data))


class Streams:
    """How many there are."""

    def __init__(self) -> None:
        self.open = 0


class Live(Response):
    """Sends what ``looks`` yields: at each look the events since the last one, and nothing after its end."""

    media_type = "text/event-stream"

    def __init__(
        self, looks: AsyncIterator[list[Event]], ending: Callable[[], bool], streams: Streams, headers: dict[str, str]
    ) -> None:
        if streams.open >= MOST:
            raise Refusal(503, "Too many pages are live at once. Reload the page to see what is new.")
        super().__init__(None, 200, {**headers, "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._looks = looks
        self._ending = ending
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        exchange_of(scope).lasts = True
        self._streams.open += 1
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": _RETRY, "more_body": True})
            async for text in self._texts(gone):
                await send({"type": "http.response.body", "body": text, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams.open -= 1
            gone.cancel()

    async def _texts(self, gone: asyncio.Future[None]) -> AsyncIterator[bytes]:
        began = told = time.monotonic()
        async for events in self._looks:
            now = time.monotonic()
            if events or now - told >= _SIGN:
                told = now
                yield b"".join(event.encoded() for event in events) or b": still here\n\n"
            if now - began >= _LONGEST or self._ending():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(gone), LOOK)
            if gone.done() or self._ending():
                return


async def _gone(receive: Receive) -> None:
    """Until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
