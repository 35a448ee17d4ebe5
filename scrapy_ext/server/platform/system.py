"""``/system/ts``: the server's time, for anyone."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from scrapy_ext.server.platform.answers import TEXT
from scrapy_ext.server.store.store import now_ms


async def timestamp(_request: Request) -> Response:
    """The time in milliseconds, as text that is a JSON number too."""
    return Response(str(now_ms()), media_type=TEXT)
