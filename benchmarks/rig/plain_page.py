"""A site that answers every path ``/N`` with a page of N bytes. ``python -m rig.plain_page`` says its port."""

from __future__ import annotations

import asyncio
from functools import lru_cache

from rig.http1 import head, serve


@lru_cache
def _page(size: int) -> bytes:
    return head("200 OK", "text/html; charset=utf-8", size) + b"<p>text</p>\n" * (size // 12) + b"x" * (size % 12)


def _answer(path: str, _body: bytes) -> tuple[float, list[bytes]]:
    return 0, [_page(int(path[1:]))]


if __name__ == "__main__":
    asyncio.run(serve(_answer))
