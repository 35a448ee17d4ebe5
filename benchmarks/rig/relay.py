"""A bare relay on aiohttp: fetches the URL of a POST, and returns its body as Base64 in JSON.

It checks nothing: neither who asks, nor what, nor where that leads. ``python -m rig.relay`` says its port and ends with
its standard input.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys

import aiohttp
import uvloop
from aiohttp import web


async def run() -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def extract(request: web.Request) -> web.Response:
            url = json.loads(await request.read())["url"]
            async with session.get(url) as response:
                body = base64.b64encode(await response.read()).decode()
                answer = {"url": str(response.url), "statusCode": response.status, "httpResponseBody": body}
            return web.Response(text=json.dumps(answer), content_type="application/json")

        app = web.Application()
        app.router.add_post("/v1/extract", extract)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(run())
