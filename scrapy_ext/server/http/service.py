"""A table of routes as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from scrapy_ext.server.http import limits
from scrapy_ext.server.http.access import CallerCheck
from scrapy_ext.server.http.answers import answer_of, method_not_allowed, not_found, refusal_of
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import accepts_gzip, compress_whole, hold_answer
from scrapy_ext.server.http.routes import Route, Router, host_of
from scrapy_ext.server.store import Store

#: The order in which the methods of a path are listed.
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Service:
    """The application. ``check`` refuses callers without access; ``services`` are other parts for handlers, by type."""

    def __init__(
        self, routes: Iterable[Route], store: Store, check: CallerCheck, services: Mapping[type, Any] | None = None
    ) -> None:
        self.router = Router(routes)
        self._store = store
        self._check = check
        self._services = {Router: self.router, **(services or {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        call: Call | None = None
        try:
            # The raw path is parsed: a record's key may hold an escaped slash.
            call = Call(scope, receive, self._store, self._services)
            async with asyncio.timeout(limits.REQUEST):
                call.route = self.router.find(call.parts, call.method)
                if call.route is None:
                    await self._refuse(call)
                await self._check(call)
                response = await self.router.answer(call)
            if accepts_gzip(call) and not isinstance(response, StreamingResponse):
                compress_whole(response)
            if not isinstance(response, StreamingResponse) and len(response.body) > limits.SEND_BUFFER:
                hold_answer(call.context, len(response.body))
        except ClientDisconnect:
            return  # in the middle of its body: nothing was stored, and nobody waits for an answer
        except Exception as error:
            trusted = call is not None and call.grant.all_projects
            response = answer_of(refusal_of(error, trusted=trusted), host_of(scope["path"].split("/", 2)[1]))
        await response(scope, receive, send)

    async def _refuse(self, call: Call) -> None:
        """Refuse a call without a route; an unknown caller does not learn which paths exist."""
        others = self.router.at(call.parts)
        call.route = others[0] if others else self.router.resource(call.parts[0])
        await self._check(call)
        if not others:
            raise not_found()
        raise method_not_allowed(*sorted((route.method for route in others), key=_METHODS.index))
