"""``/api/projects/<project>/periodicjobs``: schedules (platform-api.md, Periodic jobs).

What the document leaves open: ``cron`` and ``tasks`` are required, the rest has defaults; what is made is answered
with 201; ``id``, ``project`` and ``type`` may be sent as they are; a task's ``jobq_id`` follows from its name.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.periodic import (
    EDITABLE,
    MAX_PER_PAGE,
    PeriodicJob,
    PeriodicPage,
    Task,
    schedule_faults,
    suggested_hour,
    type_of,
)
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import NotFound, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call, path_number

_PER_PAGE: Final = 100
_READ_ONLY: Final = ("id", "project", "type")
_MAX_BODY: Final = 1024 * 1024


async def periodic(call: Call) -> Response:
    """Answer a call. ``call.path`` is ``projects/<project>/periodicjobs[/<number>]``."""
    project = path_number(call.path, 1, "project")
    match call.path[3:], call.method:
        case [], "GET":
            return await _page(call, project)
        case [], "POST":
            schedule = edited(blank(project), await _fields(call))
            added = await call.store.periodic.add(schedule)
            call.wrote(1)
            return json(added, 201)
        case [], _:
            raise method_not_allowed("GET", "POST")
        case [_], "GET":
            return json(_found(await call.store.periodic.get(project, _number(call))))
        case [_], "PATCH":
            fields = await _fields(call)
            found = await call.store.periodic.edit(project, _number(call), lambda stored: edited(stored, fields))
            return json(_found(found))
        case [_], "DELETE":
            if not await call.store.periodic.remove(project, _number(call)):
                raise NotFound("There is no such periodic job.")
            return Response(status_code=204)
        case [_], _:
            raise method_not_allowed("GET", "PATCH", "DELETE")
        case _:
            raise NotFound


def _number(call: Call) -> int:
    return path_number(call.path, 3, "periodic job")


def _found(schedule: PeriodicJob | None) -> PeriodicJob:
    if schedule is None:
        raise NotFound("There is no such periodic job.")
    return schedule


async def _page(call: Call, project: int) -> Response:
    count = call.number("count", _PER_PAGE) or 0
    offset = call.number("offset", 0) or 0
    if not 1 <= count <= MAX_PER_PAGE:
        raise refused("count", f"must be 1 to {MAX_PER_PAGE}, got {count}", "Ask for several pages.")
    page = await call.store.periodic.page(project, count, offset)

    def link(place: int) -> str:
        return f"{str(call.request.url).partition('?')[0]}?{urlencode({'count': count, 'offset': place})}"

    return json(
        PeriodicPage(
            count=page.total,
            next=link(offset + count) if offset + count < page.total else None,
            previous=link(max(offset - count, 0)) if offset > 0 else None,
            results=page.schedules,
            meta={"suggested_hour": str(suggested_hour(await call.store.periodic.load()))},
        )
    )


async def _fields(call: Call) -> dict[str, Any]:
    fields = await bodies.document(call.request, _MAX_BODY)
    if not isinstance(fields, dict):
        raise refused("body", "must be a JSON object", 'Write {"cron": "30 4 * * *", "tasks": [{"name": "spider"}]}.')
    return fields


def blank(project: int) -> PeriodicJob:
    """A schedule without anything in it."""
    return PeriodicJob(id=0, project=project, disabled=False, type="", description="", cron="", addtags=[], tasks=[])


def edited(schedule: PeriodicJob, fields: dict[str, Any]) -> PeriodicJob:
    """The schedule with fields changed; raises ``ContractError``."""
    for name, value in fields.items():
        if name not in EDITABLE and name not in _READ_ONLY:
            raise refused(name[:60], "is no field of a periodic job", f"The fields are {', '.join(EDITABLE)}.")
        _check_type(name, value)
    known = {name: fields[name] for name in EDITABLE if name in fields}
    changed = msgspec.convert({**msgspec.to_builtins(schedule), **known}, PeriodicJob)
    changed.type = type_of(changed.tasks).value
    faults = list(schedule_faults(changed))
    if faults:
        raise ContractError(faults)
    for name in _READ_ONLY:
        wanted, present = fields.get(name), getattr(changed if name == "type" else schedule, name)
        if wanted is not None and wanted != present:
            raise refused(name, f"is {present!r} and cannot be changed", "Leave it out.")
    return changed


#: What each field must be.
_TYPES: Final = {
    "cron": (str, "text of five fields"),
    "description": (str, "text"),
    "disabled": (bool, "true or false"),
    "addtags": (list[str], "an array of strings"),
    "tasks": (list[Task], 'an array of objects such as {"name": "spider"}'),
}


def _check_type(name: str, value: Any) -> None:
    if name not in _TYPES:
        return
    kind, words = _TYPES[name]
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise refused(name, f"must be {words}: {error}", "Correct the field.") from None
    unknown = {field for task in value for field in task} - set(Task.__struct_fields__) if name == "tasks" else ()
    if unknown:
        raise refused("tasks", f"have no field {min(unknown)[:60]!r}", f"Use {', '.join(Task.__struct_fields__)}.")
