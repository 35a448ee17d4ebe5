"""The extraction service, served by uvicorn in a thread of the tests, and a caller for it."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction import ExtractionService
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.net.guard import Resolve, system_resolve
from tests.support.eventually import TIMEOUT

KEY = "k" * 32
#: Times as in production: what runs out of them hangs. Tests of a time that is over have a service of their own.
LIMITS = ServiceLimits(body_bytes=1024 * 1024, redirects=5)
#: Who asks with a key.
CALLERS = {
    KEY: Caller("tests", "tests"),
    "second": Caller("second", "tests"),
    "stranger": Caller("stranger", "strangers"),
    "suspended": Caller("suspended", "tests", "This API key is suspended."),
}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Service:
    """A running service. Its own objects (``service.browser``) live in its loop: reach them with :meth:`run`.

    ``memory``: bytes that all requests may hold together, as in the whole server.
    """

    def __init__(
        self,
        *,
        limits: ServiceLimits | None = None,
        resolve: Resolve = system_resolve,
        memory: int | None = None,
        **config: Any,
    ) -> None:
        self.service = ExtractionService(ServerConfig(**config), _caller_of, limits=limits, resolve=resolve)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            self.loop = asyncio.get_running_loop()
            await self.service.start()
            yield
            await self.service.stop()

        app: Any = Starlette(
            routes=[Route(path, self.service.app) for path in ("/v1", "/v1/{rest:path}")], lifespan=lifespan
        )
        if memory is not None:
            app = self.front = RequestMiddleware(app, slow=1000, client_timeout=60)
            self.front.memory.limit = memory
        self._server = uvicorn.Server(
            uvicorn.Config(
                app, host="127.0.0.1", port=0, loop="uvloop", http="httptools", log_config=None, log_level="error"
            )
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Service:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            self._thread.join(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(TIMEOUT)

    def send(
        self,
        method: str = "POST",
        path: str = "/v1/extract",
        body: bytes = b"",
        *,
        key: str | None = KEY,
        **headers: str,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            sent["Authorization"] = "Basic " + base64.b64encode(f"{key}:".encode()).decode()
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **sent})
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, fields, answer.read())
        finally:
            connection.close()

    def extract(self, *, key: str = KEY, **fields: Any) -> Answer:
        return self.send(body=json.dumps(fields).encode(), key=key)

    def result(self, **fields: Any) -> dict[str, Any]:
        """The result of a request that must succeed."""
        answer = self.extract(**fields)
        assert answer.status == 200, answer.body
        result: dict[str, Any] = answer.json
        return result

    def problem(self, status: int, type: str, **fields: Any) -> str:
        """The detail of a request that must end in this problem."""
        answer = self.extract(**fields)
        assert (answer.status, answer.json.get("type")) == (status, type), answer.body[:500]
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == status
        assert answer.json["title"]
        return str(answer.json["detail"])


async def _caller_of(key: str) -> Caller | None:
    return CALLERS.get(key)


def head(*lines: str) -> bytes:
    """The head of a request to extract that a test sends by hand."""
    credentials = base64.b64encode(f"{KEY}:".encode()).decode()
    return "\r\n".join(
        ("POST /v1/extract HTTP/1.1", "Host: x", f"Authorization: Basic {credentials}", *lines, "", "")
    ).encode()
