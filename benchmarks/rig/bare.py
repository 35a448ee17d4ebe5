"""A bare server on the same stack as the package's, which only receives and sends records.

``POST`` unpacks the body, checks that each line is JSON and throws it away; ``GET /<bytes>`` sends so many bytes, in
pieces, and ``GET /`` a few at once. It says its port when it is ready.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import msgspec
import uvicorn
import uvloop
from isal import isal_zlib
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

_GZIP = 31
_PIECE = b"x" * (256 * 1024)
_SMALL = b"x" * 100

_decode = msgspec.json.Decoder(dict).decode


async def take(request: Request) -> Response:
    body = isal_zlib.decompress(await request.body(), _GZIP)
    for line in body.splitlines():
        _decode(line)
    return Response(b"")


async def say(_request: Request) -> Response:
    return Response(_SMALL, media_type="text/plain")


async def give(request: Request) -> Response:
    async def pieces(left: int) -> AsyncIterator[bytes]:
        while left > 0:
            yield _PIECE[:left]
            left -= len(_PIECE)

    return StreamingResponse(pieces(request.path_params["size"]))


async def run() -> None:
    app = Starlette(routes=[Route("/", take, methods=["POST"]), Route("/", say), Route("/{size:int}", give)])
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http="httptools", ws="none", log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    print(listener.getsockname()[1], flush=True)  # Connections queue until they are accepted.
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    uvloop.run(run())
