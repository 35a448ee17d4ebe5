"""A proxy before the platform that shows faults which no healthy server does, on purpose and at a chosen place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from enum import Enum
from typing import Self

import aiohttp
from aiohttp import web


class Fault(Enum):
    """What becomes of a call."""

    LOST_REQUEST = "the connection breaks before the platform gets it"
    LOST_REPLY = "the platform does it, and the connection breaks before the answer"
    REFUSED = "403, which no repeating mends"
    UNAVAILABLE = "503"


#: Method, path, and how many calls there were before this one of that method and path; None lets it through.
Rule = Callable[[str, str, int], Fault | None]


class FaultProxy:
    """Passes calls on to ``target``, but for those that ``rule`` names a fault for."""

    def __init__(self, target: str, rule: Rule) -> None:
        self._target = target
        self._rule = rule
        self._calls: dict[tuple[str, str], int] = {}
        #: Faults that were shown.
        self.shown: list[tuple[str, str, Fault]] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{path:.*}", self._handle)
        async with aiohttp.ClientSession(auto_decompress=False) as self._session:
            runner = web.AppRunner(app, shutdown_timeout=1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._ready.set()
            await self._stop.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        place = request.method, request.path
        number = self._calls.get(place, 0)
        self._calls[place] = number + 1
        fault = self._rule(*place, number)
        if fault is not None:
            self.shown.append((*place, fault))
        if fault is Fault.LOST_REQUEST:
            return self._broken(request)
        if fault in (Fault.REFUSED, Fault.UNAVAILABLE):
            return web.Response(status=403 if fault is Fault.REFUSED else 503, text="no")
        dropped = ("host", "content-length", "transfer-encoding")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        url = self._target + request.path_qs
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            content = await answer.read()
            if fault is Fault.LOST_REPLY:
                return self._broken(request)
            kept = ("content-type", "content-encoding", "retry-after")
            passed = {name: value for name, value in answer.headers.items() if name.lower() in kept}
            return web.Response(status=answer.status, body=content, headers=passed)

    @staticmethod
    def _broken(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()
