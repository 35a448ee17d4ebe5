"""``/system/ts``: the server's time, for anyone."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import plain_text
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.http.schemas import COUNTER, AnswerShape
from scrapy_ext.server.store.store import now_ms

ROUTES: Final = Routes(tag="server")


@ROUTES.add(
    "GET /system/ts",
    "Return the server's time.",
    AnswerShape("Milliseconds since 1970.", {schemas.TEXT: COUNTER}),
    access=Access.ANYONE,
)
async def _time(_: Call) -> Response:
    return plain_text(str(now_ms()))
