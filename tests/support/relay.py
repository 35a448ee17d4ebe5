"""A relay in front of a real server, which sees each request first, and may answer it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import aiohttp
from aiohttp import web
from yarl import URL

from scrapy_ext.compatibility.python import Self

#: Called with method and path before a request is forwarded; a status is the answer instead.
Seen = Callable[[str, str], int | None]


class Relay:
    """A server on a free port that forwards requests to another one, in a thread of its own."""

    def __init__(self, url: str, seen: Seen | None = None) -> None:
        self._target = url
        self._seen = seen
        #: Method and path of each request.
        self.requests: list[tuple[str, str]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        application = web.Application(client_max_size=2**30)
        application.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(application, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _forward(self, request: web.Request) -> web.Response:
        self.requests.append((request.method, request.raw_path))
        if self._seen is not None and (status := self._seen(request.method, request.raw_path)) is not None:
            return web.Response(status=status, text="Not Found")
        body = await request.read()
        dropped = ("host", "content-length", "transfer-encoding")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        url = URL(self._target + request.raw_path, encoded=True)
        async with self._session.request(request.method, url, data=body or None, headers=headers) as answer:
            kept = ("content-type", "content-encoding", "retry-after")
            passed = {name: value for name, value in answer.headers.items() if name.lower() in kept}
            return web.Response(status=answer.status, body=await answer.read(), headers=passed)
