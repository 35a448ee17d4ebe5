"""A minimal site: page ``n`` of ``PAGES`` has a heading and ``LINKS`` links.

``python -m rig.site PAGES LINKS`` says its port and ends with its standard input. Page ``n`` links to the pages
``n * LINKS + 1`` to ``n * LINKS + LINKS`` (modulo ``PAGES``), so that a crawl from page 0 finds each of them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import lru_cache

from rig.processes import python


@contextmanager
def site(pages: int, links: int = 20) -> Generator[str]:
    """Run the site; return its URL."""
    with python("-m", "rig.site", str(pages), str(links)) as running:
        yield f"http://127.0.0.1:{running.said}"


class _Pages(asyncio.Protocol):
    def __init__(self, answer: Callable[[int], bytes]) -> None:
        self._rest = b""
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1]
            self._transport.write(self._answer(int(path.rsplit(b"/", 1)[1])))


def _answer(number: int, pages: int, links: int) -> bytes:
    steps = range(number * links + 1, number * links + links + 1)
    anchors = "".join(f'<a href="/page/{step % pages}">x</a>' for step in steps)
    body = f"<html><body><h1>{number}</h1>{anchors}</body></html>".encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def serve(pages: int, links: int) -> None:
    loop = asyncio.get_running_loop()
    answer = lru_cache(maxsize=30_000)(lambda number: _answer(number, pages, links))
    server = await loop.create_server(lambda: _Pages(answer), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
