"""The services for the tools of a server: requests to the application of the same process, with the caller's key.

So each call has the checks, limits, measures and log lines of the same call from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlencode

import msgspec
from starlette.types import ASGIApp, Message, Scope

from scrapy_ext.server.http.request_context import context_of
from scrapy_ext.server.mcp.services import JSON, MOST_EXTRACTED, ApiAnswer, ApiCall, ApiError, message_of

_EXTRACT: Final = "/v1/extract"


class Loopback:
    """The services of the caller of one request; ``authorization`` has its key."""

    def __init__(self, app: ASGIApp, scope: Scope, authorization: str) -> None:
        self._app = app
        self._scope = scope
        self._authorization = authorization

    async def call(self, call: ApiCall) -> ApiAnswer:
        """Make a call to the platform; raises :class:`ApiError`."""
        answer = _Answer(call.limit)
        await self._request(call, answer)
        if answer.status >= 400:
            raise ApiError(message_of(answer.body) or "The server gave no reason.", answer.status)
        body = answer.body
        # It is kept, and a decoded copy of it, until the message is answered.
        if not context_of(self._scope).hold(2 * len(body)):
            raise ApiError("The memory for requests is full. Try again later, or ask for less.", 503)
        return ApiAnswer(body, is_whole=not answer.is_full)

    async def extract(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of an extraction request; raises :class:`ApiError`."""
        body = msgspec.json.encode(fields)
        answer = await self.call(ApiCall(method="POST", path=_EXTRACT, body=body, limit=MOST_EXTRACTED))
        if not answer.is_whole:
            raise ApiError(
                f"The result has over {MOST_EXTRACTED} bytes, which is more than a tool reads. Request less."
            )
        return msgspec.json.decode(answer.body, type=dict[str, Any])

    async def _request(self, call: ApiCall, answer: _Answer) -> None:
        """Run the application for a call, in a task, and so in a context, of its own."""
        sent = False

        async def receive() -> Message:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()  # the caller does not disconnect; it cancels the task
            sent = True
            return {"type": "http.request", "body": call.body, "more_body": False}

        running = asyncio.ensure_future(self._app(self._scope_of(call), receive, answer.send))
        full = asyncio.ensure_future(answer.full.wait())
        try:
            await asyncio.wait((running, full), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (running, full):
                task.cancel()
            outcome = (await asyncio.gather(running, full, return_exceptions=True))[0]
        if not (answer.has_ended or answer.is_full) or (isinstance(outcome, Exception) and not answer.is_full):
            raise ApiError("The server failed to handle this call. Ask the operator: its log has the error.", 500)

    def _scope_of(self, call: ApiCall) -> Scope:
        own = self._scope
        headers = {
            "host": "localhost",
            "authorization": self._authorization,
            "accept": call.accept,
            "content-length": str(len(call.body)),
            # One id for the log lines of a tool and of its calls.
            "x-request-id": context_of(own).id,
        }
        if call.body:
            headers["content-type"] = call.kind or JSON
        return {
            "type": "http",
            "asgi": own["asgi"],
            "http_version": "1.1",
            "method": call.method,
            "scheme": own["scheme"],
            "path": unquote(call.path),
            "raw_path": call.path.encode(),
            "query_string": urlencode(call.query).encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": own.get("client"),
            "server": own.get("server"),
        }


class _Answer:
    """The answer of the application, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.status = 0
        self.has_ended = False
        self.full = asyncio.Event()
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def is_full(self) -> bool:
        """True when more was sent than is kept."""
        return self._size > self._limit

    @property
    def body(self) -> bytes:
        return b"".join(self._pieces)[: self._limit]

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        piece = bytes(message.get("body", b""))
        self._size += len(piece)
        self._pieces.append(piece)
        self.has_ended = not message.get("more_body", False)
        if self.is_full:
            self.full.set()
            await asyncio.sleep(0)  # the reader cancels the work
