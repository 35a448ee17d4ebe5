"""``/api/projects/<project>/webhooks``: who is told of the project's activity. These paths are this package's own."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.webhooks import Webhook, webhook_faults
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import NotFound, Refusal, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call, path_number
from scrapy_ext.server.webhooks.signing import new_secret

_MAX_BODY: Final = 64 * 1024
_PER_PAGE: Final = 100
_MAX_PER_PAGE: Final = 1000
_FORM: Final = 'Write {"url": "https://hooks.example.com/jobs", "events": ["job:completed"]}.'


async def webhooks(call: Call) -> Response:
    """Answer a call. ``call.path`` is ``projects/<project>/webhooks[/<number>[/test|/deliveries]]``."""
    project = path_number(call.path, 1, "project")
    match call.path[3:], call.method:
        case [], "GET":
            return json(await call.store.webhooks.listed(project))
        case [], "POST":
            return await _add(call, project)
        case [_], "GET":
            return json(_found(await call.store.webhooks.get(project, _number(call))))
        case [_], "PATCH":
            return await _disable(call, project)
        case [_], "DELETE":
            if not await call.store.webhooks.remove(project, _number(call)):
                raise _missing()
            return Response(status_code=204)
        case [_, "test"], "POST":
            return json(_found(await call.store.webhooks.test(project, _number(call))), 202)
        case [_, "deliveries"], "GET":
            return await _deliveries(call, project)
        case _:
            raise _unanswered(call.path[3:])


#: What each path takes.
_METHODS: Final = {
    (): ("GET", "POST"),
    ("*",): ("GET", "PATCH", "DELETE"),
    ("*", "test"): ("POST",),
    ("*", "deliveries"): ("GET",),
}


def _unanswered(path: list[str]) -> Refusal:
    methods = _METHODS.get(("*", *path[1:]) if path else ())
    return method_not_allowed(*methods) if methods else NotFound()


def _number(call: Call) -> int:
    return path_number(call.path, 3, "webhook")


def _missing() -> NotFound:
    return NotFound("There is no such webhook.")


def _found(found: Any) -> Any:
    if found is None:
        raise _missing()
    return found


async def _add(call: Call, project: int) -> Response:
    fields = await _fields(call, "url", "events")
    faults = list(webhook_faults(fields.get("url"), fields.get("events")))
    if faults:
        raise ContractError(faults)
    secret = new_secret()
    events = list(dict.fromkeys(fields["events"]))
    added: Webhook = await call.store.webhooks.add(project, fields["url"], events, secret)
    call.wrote(1)
    return json(msgspec.structs.replace(added, secret=secret), 201)


async def _disable(call: Call, project: int) -> Response:
    disabled = (await _fields(call, "disabled")).get("disabled")
    if not isinstance(disabled, bool):
        raise refused("disabled", "must be true or false", 'Write {"disabled": false}.')
    return json(_found(await call.store.webhooks.disable(project, _number(call), disabled)))


async def _deliveries(call: Call, project: int) -> Response:
    count = call.number("count", _PER_PAGE) or 0
    if not 1 <= count <= _MAX_PER_PAGE:
        raise refused("count", f"must be 1 to {_MAX_PER_PAGE}, got {count}", "Ask for fewer.")
    number = _number(call)
    _found(await call.store.webhooks.get(project, number))
    return json(await call.store.webhooks.deliveries(project, number, count))


async def _fields(call: Call, *known: str) -> dict[str, Any]:
    fields = await bodies.document(call.request, _MAX_BODY)
    if not isinstance(fields, dict):
        raise refused("body", "must be a JSON object", _FORM)
    for name in fields:
        if name not in known:
            raise refused(name[:60], "is no field here", f"The fields are {', '.join(known)}.")
    return fields
