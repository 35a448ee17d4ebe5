"""``POST /mcp``: the Streamable HTTP transport of the protocol, without sessions and with JSON answers.

Each message is a request of its own with a key: that of the platform, of the extraction service, or of both. The SDK
gets the body after the server's own checks, and its whole answer is sent as that of other routes. It is imported for
the first message.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive

from scrapy_ext.api.json_decoder import weight
from scrapy_ext.api.platform.users import Action
from scrapy_ext.server.auth.api_keys import Keyring
from scrapy_ext.server.auth.credentials import key_in
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.http.schemas import JSON, OBJECT, Body, value
from scrapy_ext.server.mcp.loopback import Loopback
from scrapy_ext.server.mcp.services import Agent, Need

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

T = TypeVar("T")

ROUTES: Final = Routes(Access.AGENT, tag="server")

#: The key of the :class:`Agent` in the scope that the SDK gets.
_AGENT: Final = "scrapy_ext.agent"
#: Bytes of a message.
MOST: Final = 256 * 1024
MISSING: Final = "The extra mcp is not installed. Install it with pip install 'scrapy-ext[mcp]', and start again."
_SWITCHED_OFF: Final = "the server was started without --mcp-allow-write."
_NO_PLATFORM: Final = "this key has no access to the platform; see scrapy platform keys add --opens both."
_NO_EXTRACTION: Final = "this key has no access to extraction; see scrapy platform keys add --opens both."
_READ_ONLY: Final = "this key may read, and not write."
_NO_MANAGER: Final = "this key may not change schedules."


class AgentEndpoint:
    """The endpoint of a server. ``app`` is its whole application, which answers the calls of the tools."""

    def __init__(self, app: ASGIApp, keys: Keyring, *, allow_write: bool) -> None:
        self._app = app
        self._keys = keys
        self._allow_write = allow_write
        self._opening = asyncio.Lock()
        self._serving: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[StreamableHTTPSessionManager]

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    async def answer(self, call: Call, body: bytes) -> Response:
        """Return the SDK's answer to a message; raises :class:`Refusal` (501) without the SDK."""
        manager = await self._opened()
        key = key_in(call.header(b"authorization") or "")
        basic = base64.b64encode(f"{key}:".encode()).decode()
        agent = Agent(Loopback(self._app, call.request.scope, f"Basic {basic}"), await self._withheld(call, key))
        own = call.request.scope
        # The answer is JSON in any case, and the key is not for the SDK.
        headers = [(name, text) for name, text in own["headers"] if name not in (b"authorization", b"accept")]
        headers.append((b"accept", b"application/json, text/event-stream"))
        scope = {**own, "headers": headers, "state": {}, _AGENT: agent}
        kept = _KeptAnswer()
        await _unless_gone(manager.handle_request(scope, _receiving(body), kept.send), call.request.receive)
        return kept.response()

    async def _withheld(self, call: Call, key: str) -> dict[Need, str]:
        """Return the reasons for which tools are not offered to the caller."""
        withheld: dict[Need, str] = {}
        if await self._keys.grant(key) is None:
            withheld = dict.fromkeys((Need.READ, Need.RUN, Need.WRITE), _NO_PLATFORM)
        else:
            if not call.grant.may_somewhere(Action.RUN):
                withheld[Need.RUN] = _READ_ONLY
            if not call.grant.may_somewhere(Action.MANAGE):
                withheld[Need.WRITE] = _NO_MANAGER
        caller = await self._keys.caller(key)
        if caller is None or caller.refusal:
            withheld[Need.EXTRACT] = _NO_EXTRACTION
        if not self._allow_write:
            withheld.setdefault(Need.RUN, _SWITCHED_OFF)
            withheld.setdefault(Need.WRITE, _SWITCHED_OFF)
            withheld.setdefault(Need.EXTRACT, _SWITCHED_OFF)
        return withheld

    async def _opened(self) -> StreamableHTTPSessionManager:
        async with self._opening:
            if self._serving is None or self._serving.done():
                try:
                    sdk = await asyncio.to_thread(importlib.import_module, "scrapy_ext.server.mcp.sdk")
                except ImportError as error:
                    raise Refusal(501, MISSING) from error
                self._ready = asyncio.get_running_loop().create_future()
                self._serving = asyncio.create_task(_serve(sdk, self._ready))
        # Others wait for the same, also when this client leaves.
        return await asyncio.shield(self._ready)


async def _serve(sdk: Any, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
    """Keep the task group of the SDK open until the end of the server; the task that enters it must leave it."""
    try:
        manager = sdk.new_manager(_agent_of)
        async with manager.run():
            ready.set_result(manager)
            await asyncio.Event().wait()
    except Exception as error:
        if ready.done():
            raise
        ready.set_exception(error)


def _agent_of(context: Any) -> Agent:
    agent: Agent = context.request.scope[_AGENT]
    return agent


@ROUTES.add(
    "POST /mcp",
    "Answer a message of an agent, by the Model Context Protocol (Streamable HTTP, JSON answers, no sessions).",
    value("A message of JSON-RPC.", OBJECT),
    body=Body(JSON, OBJECT, "A message of JSON-RPC."),
    errors=(415, 501),
)
async def _message(call: Call) -> Response:
    if (call.header(b"content-type") or "").partition(";")[0].strip().lower() != JSON:
        raise Refusal(415, f"Unsupported Media Type. Send one message of JSON-RPC as {JSON}.")
    body = await bodies.whole(call.request, MOST)
    bodies.keep(weight(body))  # the SDK decodes it
    return await call.service(AgentEndpoint).answer(call, body)


def _receiving(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()  # the endpoint itself watches for the end of the connection
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


class _KeptAnswer:
    """The answer of the SDK, which is whole before it is sent."""

    def __init__(self) -> None:
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", ()))
        else:
            self._pieces.append(message.get("body", b""))

    def response(self) -> Response:
        made = Response(b"".join(self._pieces), self._status)
        own = [(name, text) for name, text in self._headers if name.lower() != b"content-length"]
        made.raw_headers = [*made.raw_headers, *own]
        return made


async def _unless_gone(work: Awaitable[T], receive: Receive) -> T:
    """Return the result of the work; cancel it and raise ``ClientDisconnect`` when the client leaves."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
