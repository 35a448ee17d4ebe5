"""The server of a worker's ``--status-address``: its health and metrics, for a supervisor on another machine.

A worker listens for the processes of its jobs on 127.0.0.1 only. This second server in the same event loop answers
``/healthz``, ``/readyz`` and ``/metrics`` alone. It lasts through the drain of the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from scrapy_ext.server.http import limits
from scrapy_ext.server.http.connections import Connections
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.http.protocol import bounded

#: Connections, and bytes of the requests; a supervisor needs few.
_CONNECTIONS: Final = 64
_MEMORY: Final = 8 * limits.MIB
_SLOW_SECONDS: Final = 10.0
_KEEP_ALIVE_SECONDS: Final = 75
_LAST_SECONDS: Final = 1


class StatusServer:
    """The server on ``listener``, from :meth:`start` until :meth:`stop`."""

    def __init__(self, listener: socket.socket, client_timeout: float) -> None:
        self._listener = listener
        self._client_timeout = client_timeout
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    def start(self, app: ASGIApp) -> None:
        middleware = RequestMiddleware(app, slow=_SLOW_SECONDS, client_timeout=self._client_timeout, memory=_MEMORY)
        middleware.connections = Connections(_CONNECTIONS)
        protocol = bounded(self._client_timeout, middleware.metrics, middleware.memory, middleware.connections)
        self._server = _Server(
            uvicorn.Config(
                middleware,
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_LAST_SECONDS,
            )
        )
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))

    async def stop(self) -> None:
        """Close all connections; do nothing before :meth:`start`."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals to the worker."""
        yield
