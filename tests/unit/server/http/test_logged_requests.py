"""Lines of the log about requests: polls have one when their state changes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.http.request_context import context_of


class Answering:
    """An application that answers with a status, to a caller with a name."""

    status = 200

    async def __call__(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        context = context_of(scope)
        context.who = "somebody"
        await context.send({"type": "http.response.start", "status": self.status, "headers": []})
        await context.send({"type": "http.response.body", "body": b""})


async def requested(middleware: RequestMiddleware, path: str, method: str = "GET") -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Message) -> None:
        pass

    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "extensions": {},
    }
    await middleware(scope, receive, send)


@pytest.mark.parametrize(
    ("path", "wrong"), [("/readyz", 503), ("/readyz/", 503), ("/metrics", 403), ("/hcf/7/news/feed", 404)]
)
async def test_a_poll_is_logged_when_its_state_changes(path: str, wrong: int, caplog: pytest.LogCaptureFixture) -> None:
    app = Answering()
    middleware = RequestMiddleware(app, slow=60, client_timeout=60)
    with caplog.at_level("INFO"):
        for app.status in (200, 200, wrong, wrong, wrong, 200, wrong, 500, 500):
            await requested(middleware, path)
    lines = [record.getMessage().split(" who=")[0].split()[:3] for record in caplog.records]
    assert lines == [["GET", path, str(status)] for status in (wrong, wrong, 500)]


async def test_other_requests_are_logged_each(caplog: pytest.LogCaptureFixture) -> None:
    app = Answering()
    middleware = RequestMiddleware(app, slow=60, client_timeout=60)
    app.status = 404
    with caplog.at_level("INFO"):
        for _ in "12":
            await requested(middleware, "/items/7/1/1")
            await requested(middleware, "/hcf/7/news/feed", "POST")
    assert len(caplog.records) == 4


async def test_polls_of_many_paths_are_not_all_remembered(caplog: pytest.LogCaptureFixture) -> None:
    app = Answering()
    middleware = RequestMiddleware(app, slow=60, client_timeout=60)
    app.status = 404
    for number in range(1500):
        await requested(middleware, f"/hcf/7/news{number}/feed")
    with caplog.at_level("INFO"):
        await requested(middleware, "/hcf/7/news1499/feed")
        assert caplog.records == []
        await requested(middleware, "/hcf/7/news0/feed")
    assert len(caplog.records) == 1


async def test_long_paths_of_strangers_take_no_memory() -> None:
    app = Answering()
    app.status = 401
    middleware = RequestMiddleware(app, slow=60, client_timeout=60)
    tracemalloc.start()
    try:
        for number in range(200):
            await requested(middleware, f"/hcf/{number:060000}/news/feed")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 4_000_000
