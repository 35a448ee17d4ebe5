"""A plain HTTP client: what goes over the wire, and nothing of the package between it and the server."""

from __future__ import annotations

import asyncio
import io
import json
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from scrapy_ext.compatibility.python import Self
from tests.support.eventually import TIMEOUT


class Answer(NamedTuple):
    """An answer, its body decoded on demand."""

    status: int
    headers: Any
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """The values of a JSON lines body."""
        assert b"\n\n" not in self.body
        return [json.loads(line) for line in self.body.splitlines()]


class Http:
    def __init__(self, url: str, key: str | None, password: str = "") -> None:
        self._url = url
        credentials = b64encode(f"{key}:{password}".encode()).decode()
        self._headers = {} if key is None else {"Authorization": f"Basic {credentials}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # As bare as curl: no header that this test file does not name.
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            skip_auto_headers=["Content-Type", "Accept-Encoding"],
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """``body``: bytes as they are, a dict as a form, a list as JSON lines."""
        assert self._session is not None
        if isinstance(body, list):
            body = lines(body)
        if isinstance(body, bytes) and len(body) > 2**20:
            body = io.BytesIO(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        url = URL(self._url + path, encoded=True)
        async with self._session.request(method, url, data=body, headers=named) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, body: Any = b"", **headers: str) -> Answer:
        return await self.call("POST", path, body, **headers)

    async def delete(self, path: str) -> Answer:
        return await self.call("DELETE", path)


def lines(records: list[Any]) -> bytes:
    """Records as JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


async def longest_wait(http: Http, send: Callable[[], Awaitable[Answer]]) -> float:
    """The longest time that others waited for an answer while a request was answered, as a part of its whole time.

    The least of three: another process may take the machine for a while, and a server that is blocked is so each time.
    """
    parts = []
    for _ in range(3):
        begun, longest = time.perf_counter(), 0.0
        answering = asyncio.ensure_future(send())
        while not answering.done():
            asked = time.perf_counter()
            await http.get("/system/ts")
            longest = max(longest, time.perf_counter() - asked)
        assert (await answering).status == 200
        parts.append(longest / (time.perf_counter() - begun))
    return min(parts)
