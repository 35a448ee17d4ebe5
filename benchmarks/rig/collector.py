"""A collector that throws away what it receives. ``python -m rig.collector`` says its port."""

from __future__ import annotations

import asyncio

from rig.http1 import head, serve


def _answer(_path: str, _body: bytes) -> tuple[float, list[bytes]]:
    return 0, [head("200 OK", "application/x-protobuf", 0)]


if __name__ == "__main__":
    asyncio.run(serve(_answer))
