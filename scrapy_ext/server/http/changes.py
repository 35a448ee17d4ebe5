"""Activity messages about changes by the API, for routes that declare an event (``Route.event``).

They follow the change, in a transaction of their own: when the database fails in between, the change has no message,
and the log has a warning. Changes by the process of a job have none: they belong to the crawl.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import change_event
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.store import StoreError
from scrapy_ext.server.store.activity import SERVER

logger = logging.getLogger(__name__)


class _Created(msgspec.Struct):
    id: int | str


_created: Final = msgspec.json.Decoder(_Created).decode


async def note_change(call: Call, answer: Response) -> None:
    """Write the message about a change to the activity of its project, or of the server."""
    route = call.route
    if route is None or call.has_failed or call.grant.job or call.grant.attempt is not None:
        return
    # The declaration names what changed: /api/periodic/{project}/{schedule}.
    fields: dict[str, Any] = {name: _shown(call.part(name)) for name in route.places if name != "project"}
    if answer.status_code == 201:
        fields |= _id_of(answer)
    event = change_event(route.event, call.who, fields | call.noted)
    project = SERVER if call.changed is None else call.changed
    try:
        await call.store.activity.add(project, [event])
    except StoreError as error:
        logger.warning("The activity has no message about a change (%s by %s): %s", route.event, call.who, error)


def _shown(part: str) -> int | str:
    return int(part) if part.isascii() and part.isdigit() and len(part) <= 18 else part


def _id_of(answer: Response) -> dict[str, Any]:
    try:
        return {"id": _created(bytes(answer.body)).id}
    except msgspec.MsgspecError:
        return {}
