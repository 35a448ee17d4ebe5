"""``/api/projects/<project>/periodicjobs``: schedules (platform-api.md, Periodic jobs).

Rules that the contract leaves open: ``cron`` and ``tasks`` are required, other fields have defaults; a new one gets the
status 201; ``id``, ``project`` and ``type`` may be sent unchanged; a task's ``jobq_id`` follows from its name.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from scrapy_ext.api.platform import periodic
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import found, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.jobs.versions.runnable import check_tasks
from scrapy_ext.server.platform.versions import environments_of

_PER_PAGE: Final = 100
_MAX_BODY: Final = 1024 * 1024

ROUTES: Final = Routes()

_CHANGE: Final = schemas.some_of(periodic.NewSchedule, "ScheduleChange")
_ANSWER: Final = schemas.value("The periodic job.", periodic.PeriodicJob)
_ALL: Final = "/api/projects/{project}/periodicjobs"
_ONE: Final = f"{_ALL}/{{schedule}}"


@ROUTES.add(
    f"POST {_ALL}",
    "Add a periodic job.",
    _ANSWER,
    status=201,
    body=schemas.Body(schemas.JSON, periodic.NewSchedule),
    event=ChangeEvents.SCHEDULE_CREATED,
)
async def _add(call: Call) -> Response:
    schedule = periodic.edited(periodic.blank(call.project), await _fields(call))
    await check_tasks(call.store, environments_of(call), schedule)
    added = await call.store.periodic.add(schedule)
    call.wrote(1)
    return json(added, 201)


@ROUTES.add(f"GET {_ONE}", "Read a periodic job.", _ANSWER)
async def _read(call: Call) -> Response:
    return json(found(await call.store.periodic.get(call.project, call.part_number("schedule")), _missing(call)))


@ROUTES.add(
    f"PATCH {_ONE}",
    "Change fields of a periodic job; other fields are unchanged.",
    _ANSWER,
    body=schemas.Body(schemas.JSON, _CHANGE),
    event=ChangeEvents.SCHEDULE_CHANGED,
)
async def _change(call: Call) -> Response:
    fields, number = await _fields(call), call.part_number("schedule")
    stored = found(await call.store.periodic.get(call.project, number), _missing(call))
    await check_tasks(call.store, environments_of(call), periodic.edited(stored, fields), stored)
    changed = await call.store.periodic.edit(call.project, number, lambda stored: periodic.edited(stored, fields))
    return json(found(changed, _missing(call)))


@ROUTES.add(
    f"DELETE {_ONE}",
    "Remove a periodic job.",
    schemas.AnswerShape("It is removed."),
    status=204,
    event=ChangeEvents.SCHEDULE_REMOVED,
)
async def _remove(call: Call) -> Response:
    if not await call.store.periodic.remove(call.project, call.part_number("schedule")):
        raise not_found(_missing(call))
    return Response(status_code=204)


@ROUTES.add(
    f"GET {_ALL}",
    "Read the periodic jobs of a project, by pages.",
    schemas.value("A page; its next and previous are addresses.", periodic.PeriodicPage),
    parameters=(
        schemas.page_size(periodic.MAX_PER_PAGE),
        schemas.Parameter("offset", "leave out so many", schemas.COUNTER),
    ),
)
async def _page(call: Call) -> Response:
    count = call.page_size(_PER_PAGE, periodic.MAX_PER_PAGE, "Ask for several pages.")
    offset = call.number("offset", 0) or 0
    page = await call.store.periodic.page(call.project, count, offset)

    def link(place: int) -> str:
        return f"{str(call.request.url).partition('?')[0]}?{urlencode({'count': count, 'offset': place})}"

    return json(
        periodic.PeriodicPage(
            count=page.total,
            next=link(offset + count) if offset + count < page.total else None,
            previous=link(max(offset - count, 0)) if offset > 0 else None,
            results=page.schedules,
            meta={"suggested_hour": str(periodic.suggested_hour(await call.store.periodic.load()))},
        )
    )


async def _fields(call: Call) -> dict[str, Any]:
    example = '{"cron": "30 4 * * *", "tasks": [{"name": "spider"}]}'
    return await json_bodies.fields_of(call.request, example, _MAX_BODY, by_hand=True)


def _missing(call: Call) -> str:
    return f"There is no periodic job {call.part('schedule')[:60]}. Use an id of the list of them."
