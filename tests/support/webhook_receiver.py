"""A receiver of webhooks on this machine, which checks signatures as the guide shows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from scrapy_ext.compatibility.python import Self
from tests.support.eventually import eventually_async


class Receiver:
    """Keeps what it is sent. ``status`` is what it answers; while ``gate`` is not set, it answers nothing."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        self.gate = asyncio.Event()
        self.gate.set()
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.host = "127.0.0.1:%d" % self._runner.addresses[0][1]  # noqa: UP031
        self.url = f"http://{self.host}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append(({name.lower(): value for name, value in request.headers.items()}, body))
        status = self.status
        await self.gate.wait()
        headers = {"Location": f"http://{self.host}/elsewhere"} if 300 <= status < 400 else {}
        return web.Response(status=status, headers=headers, body=b"x" * 100_000)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies that came."""
        return [json.loads(body) for _, body in self.requests]

    async def has(self, number: int) -> list[dict[str, Any]]:
        """Deliveries that arrived, once there are so many."""
        await eventually_async(lambda: len(self.requests) >= number)
        return self.bodies
