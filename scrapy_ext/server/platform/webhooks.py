"""``/api/projects/<project>/webhooks``: receivers of the project's activity. These paths are this package's own."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.webhooks import MAX_EVENTS, MAX_URL, Delivery, Webhook, webhook_faults
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http import bodies, schemas
from scrapy_ext.server.http.answers import found, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.webhooks.signing import new_secret

_MAX_BODY: Final = 64 * 1024
_PER_PAGE: Final = 100
_MAX_PER_PAGE: Final = 1000
_MISSING: Final = "There is no such webhook."
_EXAMPLE: Final = '{"url": "https://hooks.example.com/jobs", "events": ["job:completed"]}'

ROUTES: Final = Routes()

_NEW: Final[schemas.Schema] = schemas.record(
    {
        "url": {
            "type": "string",
            "pattern": r"^https?://[A-Za-z0-9.\-]+(:[1-9][0-9]{0,3})?/[0-9A-Za-z%/._~?=&\-]*$",
            "maxLength": MAX_URL,
        },
        "events": schemas.array(
            {"type": "string", "pattern": r"^([A-Za-z0-9_.:\-]{1,100}\*?|\*)$"}, least=1, most=MAX_EVENTS
        ),
    },
    "url",
    "events",
    only=True,
)
_CHANGE: Final[schemas.Schema] = schemas.record({"disabled": {"type": "boolean"}}, "disabled", only=True)
_ALL: Final = "/api/projects/{project}/webhooks"
_ONE: Final = f"{_ALL}/{{webhook}}"


@ROUTES.add(
    f"GET {_ALL}",
    "Read the webhooks of a project.",
    schemas.value("The webhooks, without their secrets.", schemas.Many(Webhook)),
)
async def _list(call: Call) -> Response:
    return json(await call.store.webhooks.listed(call.project))


@ROUTES.add(f"GET {_ONE}", "Read a webhook.", schemas.value("The webhook, without its secret.", Webhook))
async def _read(call: Call) -> Response:
    return json(found(await call.store.webhooks.get(*_place(call)), _MISSING))


@ROUTES.add(
    f"DELETE {_ONE}",
    "Remove a webhook.",
    schemas.AnswerShape("It is removed."),
    status=204,
    event=ChangeEvents.WEBHOOK_REMOVED,
)
async def _remove(call: Call) -> Response:
    if not await call.store.webhooks.remove(*_place(call)):
        raise not_found(_MISSING)
    return Response(status_code=204)


@ROUTES.add(
    f"POST {_ONE}/test",
    "Send a test to a webhook; the deliveries have its result.",
    schemas.value("The delivery, which is sent now.", Delivery),
    status=202,
)
async def _test(call: Call) -> Response:
    return json(found(await call.store.webhooks.test(*_place(call)), _MISSING), 202)


def _place(call: Call) -> tuple[int, int]:
    return call.project, call.part_number("webhook")


@ROUTES.add(
    f"POST {_ALL}",
    "Add a webhook.",
    schemas.value("The webhook, with its secret, which is not shown again.", Webhook),
    status=201,
    body=schemas.Body(schemas.JSON, _NEW),
    event=ChangeEvents.WEBHOOK_CREATED,
)
async def _add(call: Call) -> Response:
    fields = await _fields(call, "url", "events")
    faults = list(webhook_faults(fields.get("url"), fields.get("events")))
    if faults:
        raise ContractError(faults)
    secret = new_secret()
    events = list(dict.fromkeys(fields["events"]))
    added: Webhook = await call.store.webhooks.add(call.project, fields["url"], events, secret=secret)
    call.wrote(1)
    return json(msgspec.structs.replace(added, secret=secret), 201)


@ROUTES.add(
    f"PATCH {_ONE}",
    "Disable a webhook, which removes its pending deliveries, or enable it.",
    schemas.value("The webhook.", Webhook),
    body=schemas.Body(schemas.JSON, _CHANGE),
    event=ChangeEvents.WEBHOOK_CHANGED,
)
async def _disable(call: Call) -> Response:
    disabled = (await _fields(call, "disabled")).get("disabled")
    if not isinstance(disabled, bool):
        raise refused("disabled", "must be true or false", 'Write {"disabled": false}.')
    return json(found(await call.store.webhooks.disable(*_place(call), disabled), _MISSING))


@ROUTES.add(
    f"GET {_ONE}/deliveries",
    "Read the recent and pending deliveries of a webhook, newest first.",
    schemas.value("The deliveries.", schemas.Many(Delivery)),
    parameters=(schemas.page_size(_MAX_PER_PAGE),),
)
async def _deliveries(call: Call) -> Response:
    count, place = call.page_size(_PER_PAGE, _MAX_PER_PAGE, "Ask for fewer."), _place(call)
    found(await call.store.webhooks.get(*place), _MISSING)
    return json(await call.store.webhooks.deliveries(*place, count))


async def _fields(call: Call, *known: str) -> dict[str, Any]:
    fields = await bodies.fields_of(call.request, _EXAMPLE, _MAX_BODY)
    for name in fields:
        if name not in known:
            raise refused(name[:60], "is no field here", f"The fields are {', '.join(known)}.")
    return fields
