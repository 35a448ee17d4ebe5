"""Server-sent events: a response that ends with its client, with the server, or after ``_LONGEST`` seconds.

Browsers reconnect by themselves; their key is checked again then.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.request_context import context_of

#: Seconds between two polls, between two keep-alive comments, and until the client has to reconnect.
POLL_INTERVAL: Final = 1.0
_KEEPALIVE: Final = 15.0
_LONGEST: Final = 60.0
#: Maximum number of simultaneous streams of one server.
MAX_STREAMS: Final = 100
_RETRY: Final = b"retry: 1000\n\n"


class ServerSentEvent(NamedTuple):
    """An event; ``id`` is the position from which a reconnecting client continues."""

    name: str
    data: object
    id: int

    def encoded(self) -> bytes:
        """Return the wire format. JSON has no line breaks."""
        return b"event: %b\nid: %d\ndata: %b\n\n" % (self.name.encode(), self.id, msgspec.json.encode(self.data))


class Streams:
    def __init__(self) -> None:
        self.open = 0


class Live(Response):
    """A response that sends the events that each poll yields, until the polls end."""

    media_type = "text/event-stream"

    def __init__(
        self,
        polls: AsyncIterator[list[ServerSentEvent]],
        ending: Callable[[], bool],
        streams: Streams,
        headers: dict[str, str],
    ) -> None:
        if streams.open >= MAX_STREAMS:
            raise Refusal(503, "Too many live pages are open. Reload the page to see new lines.")
        super().__init__(None, 200, {**headers, "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._polls = polls
        self._ending = ending
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context_of(scope).lasts = True
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
        began = sent = time.monotonic()
        async for events in self._polls:
            now = time.monotonic()
            if events or now - sent >= _KEEPALIVE:
                sent = now
                yield b"".join(event.encoded() for event in events) or b": still here\n\n"
            if now - began >= _LONGEST or self._ending():
                return
            with contextlib.suppress(*TIMEOUT_ERRORS):
                await asyncio.wait_for(asyncio.shield(gone), POLL_INTERVAL)
            if gone.done() or self._ending():
                return


async def _gone(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
