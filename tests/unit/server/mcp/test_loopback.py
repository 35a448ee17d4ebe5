"""Calls to the application of the same process: its whole answer, the beginning of a long one, or an error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapy_ext.server.http.memory import RequestMemory
from scrapy_ext.server.http.request_context import SCOPE_KEY, RequestContext
from scrapy_ext.server.mcp.loopback import Loopback
from scrapy_ext.server.mcp.services import ApiCall, ApiError

MIB = 2**20


def answering(*messages: dict[str, Any], then: Callable[[], object] = lambda: None) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        for message in messages:
            await send(message)
        then()

    return app


def start(status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": []}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def loopback(app: ASGIApp, memory: int = 100 * MIB) -> Loopback:
    scope: Scope = {"type": "http", "asgi": {}, "scheme": "http", "headers": [(b"x-request-id", b"one")]}
    limited = RequestMemory(memory)
    scope[SCOPE_KEY] = RequestContext(scope, app, app, limited, 60)  # type: ignore[arg-type]
    return Loopback(app, scope, "Basic a2V5Og==")


async def test_the_application_gets_the_call_with_the_key_and_the_id_of_the_message() -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        received = await receive()
        await send(start())
        await send(body(received["body"]))

    call = ApiCall(method="POST", path="/items/a%2Fb", query=(("q", "ä b"), ("q", "c")), body=b"{}", kind="x/y")
    assert await loopback(app).call(call) == (b"{}", True)
    (scope,) = scopes
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == (
        "/items/a/b",
        b"/items/a%2Fb",
        b"q=%C3%A4+b&q=c",
    )
    headers = dict(scope["headers"])
    assert headers[b"authorization"] == b"Basic a2V5Og=="
    assert (headers[b"x-request-id"], headers[b"content-length"], headers[b"content-type"]) == (b"one", b"2", b"x/y")


async def test_no_more_than_the_limit_is_read_and_the_work_ends() -> None:
    ended = False

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal ended
        try:
            await send(start())
            while True:
                await send(body(b"x" * 100, more=True))
                await asyncio.sleep(0)
        finally:
            ended = True

    answer = await loopback(endless).call(ApiCall(path="/", limit=950))
    assert (answer.body, answer.is_whole, ended) == (b"x" * 950, False, True)


def fails() -> None:
    raise OSError("the disk")


@pytest.mark.parametrize(
    ("app", "message", "status"),
    [
        (answering(start(403), body(b"Forbidden. No.\n")), "Forbidden. No.", 403),
        (answering(start(422), body(b'{"detail":"bad \\u001b field"}')), "bad \\u001b field", 422),
        (answering(start(500), body(b"")), "The server gave no reason.", 500),
        (answering(), "The server failed", 500),
        (answering(then=fails), "The server failed", 500),
        # A stream that breaks off is no short answer.
        (answering(start(), body(b"half", more=True), then=fails), "The server failed", 500),
        (answering(start(), body(b"half", more=True)), "The server failed", 500),
    ],
)
async def test_an_answer_that_is_none_is_an_error(app: ASGIApp, message: str, status: int) -> None:
    with pytest.raises(ApiError) as failed:
        await loopback(app).call(ApiCall(path="/"))
    assert message in str(failed.value)
    assert failed.value.status == status


async def test_an_answer_without_room_in_the_memory_for_requests_is_an_error() -> None:
    with pytest.raises(ApiError, match="memory for requests is full"):
        await loopback(answering(start(), body(b"x" * MIB)), memory=MIB).call(ApiCall(path="/"))


async def test_a_tool_that_ends_early_ends_its_call() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    calling = asyncio.ensure_future(loopback(slow).call(ApiCall(path="/")))
    await begun.wait()
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    assert ended.is_set()
