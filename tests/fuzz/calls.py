"""Requests to the platform that never went over a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.requests import Request

from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.request_context import SCOPE_KEY, RequestContext, RequestMemory

T = TypeVar("T")

#: Bytes that the bodies of one request may become in memory.
MEMORY = 32 * 1024 * 1024
_PIECE = 700
_loop: asyncio.AbstractEventLoop | None = None


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop that all inputs share."""
    global _loop  # noqa: PLW0603 - a new one for each input would be most of its time
    if _loop is None:
        _loop = asyncio.new_event_loop()
    return _loop.run_until_complete(coroutine)


def scope_of(path: bytes = b"/", query: bytes = b"", coding: str = "identity") -> dict[str, Any]:
    """The scope of a request with a body."""
    headers = [(b"content-encoding", coding.encode()), (b"transfer-encoding", b"chunked")]
    scope: dict[str, Any] = {"type": "http", "method": "POST", "raw_path": path, "query_string": query}
    return scope | {"headers": headers, "path": path.decode("latin-1")}


def request_of(body: bytes, coding: str = "identity") -> Request:
    """A request whose body comes in pieces."""
    pieces = [body[at : at + _PIECE] for at in range(0, len(body), _PIECE)] or [b""]
    waiting = iter([*[(piece, True) for piece in pieces[:-1]], (pieces[-1], False)])

    async def receive() -> Any:
        piece, more = next(waiting, (b"", False))
        return {"type": "http.request", "body": piece, "more_body": more}

    async def send(_message: Any) -> None:
        raise AssertionError("nothing is answered here")

    scope = scope_of(coding=coding)
    exchange = RequestContext(scope, receive, send, RequestMemory(MEMORY), 60.0)
    scope[SCOPE_KEY] = exchange
    return Request(scope, exchange.receive)


def call_of(query: list[tuple[str, str]], path: str = "/items/1") -> Call:
    """A call with these parameters."""
    text = "&".join(f"{quote(name, safe='')}={quote(value, safe='', errors='replace')}" for name, value in query)
    store: Any = None

    async def receive() -> Any:
        raise AssertionError("nothing is read here")

    return Call(scope_of(path.encode(), text.encode()) | {"method": "GET"}, receive, store, {})
