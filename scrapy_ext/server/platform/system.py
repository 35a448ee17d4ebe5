"""``/system/ts``: the server's time, for anyone."""

from __future__ import annotations

from starlette.responses import Response

from scrapy_ext.server.http.answers import TEXT, NotFound, method_not_allowed
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.store.store import now_ms


async def system(call: Call) -> Response:
    """Answer a call with the time in milliseconds, as text that is a JSON number too."""
    if call.path != ["ts"]:
        raise NotFound
    if call.method != "GET":
        raise method_not_allowed("GET")
    return Response(str(now_ms()), media_type=TEXT)
