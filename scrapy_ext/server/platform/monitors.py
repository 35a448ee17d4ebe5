"""Monitors of a project (``/api/projects/<project>/monitors``) and of the server (``/api/monitors``), their results,
and the targets of alerts. These paths are this package's own."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.alerts import AlertMessage, AlertTarget, target_of
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.monitor_checks import MAX_CHECK
from scrapy_ext.api.platform.monitors import (
    FIELDS,
    MAX_CHECKS,
    MAX_SAMPLE,
    Incident,
    Monitor,
    MonitorPreview,
    MonitorResult,
    NewMonitor,
    monitor_of,
)
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import bodies, schemas
from scrapy_ext.server.http.answers import found, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.monitors.item_schemas import check_schema
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.monitors.previews import preview
from scrapy_ext.server.platform.rules import RulePaths, declare, owner_of, projects_of

_MAX_BODY: Final = 64 * 1024
_PER_PAGE: Final = 100
_MAX_PER_PAGE: Final = 1000
_MISSING: Final = "There is no such target."

ROUTES: Final = Routes()

_NEW: Final[schemas.Schema] = schemas.record(
    {
        "name": {"type": "string", "pattern": r"^[A-Za-z0-9 _.\-]{0,100}$"},
        "spider": schemas.NAME,
        "tag": schemas.NAME,
        "args": schemas.OBJECT,
        "checks": schemas.array({"type": "string", "minLength": 1, "maxLength": MAX_CHECK}, most=MAX_CHECKS),
        "schema": {"type": ["object", "boolean"]},
        "sample": {"type": "integer", "minimum": 0, "maximum": MAX_SAMPLE},
        "expect": {"type": "string", "pattern": r"^([1-9][0-9]{0,2}[hd]|schedule)$"},
        "enabled": {"type": "boolean"},
    },
    only=True,
)


class MonitorPaths(RulePaths):
    """Paths about monitors, whose previews have results of jobs."""

    async def preview_of(self, call: Call, rule: Monitor) -> MonitorPreview:
        return await preview(call.store, rule, await projects_of(call))


def _parse(call: Call, fields: dict[str, Any]) -> NewMonitor:
    new = monitor_of(fields, of_server=owner_of(call) is None)
    if new.schema is not None:
        check_schema(new.schema)
    return new


@ROUTES.add(
    "GET /api/projects/{project}/monitors/incidents",
    "Read the monitors that fail for a spider, since when, and the last job.",
    schemas.value("The incidents, oldest first.", schemas.Many(Incident)),
)
async def _incidents(call: Call) -> Response:
    return json(await call.store.monitors.incidents(call.project))


@ROUTES.add(
    "GET /api/projects/{project}/monitors/results",
    "Read the results of monitors for the jobs of a project, newest first.",
    schemas.value("The results.", schemas.Many(MonitorResult)),
    parameters=(
        schemas.page_size(_MAX_PER_PAGE),
        schemas.Parameter("job", "only those of this job", schemas.JOB_KEY),
        schemas.Parameter("monitor", "only those of the monitor with this number", schemas.NUMBER),
        schemas.Parameter("of_server", "the monitor is one of the server", schemas.FLAG),
    ),
)
async def _results(call: Call) -> Response:
    count = call.page_size(_PER_PAGE, _MAX_PER_PAGE, "Ask for fewer.")
    if (job := call.query.get("job")) is not None:
        return json((await call.store.monitors.of_job(own_key(job, call.project, "job")))[:count])
    number = call.query.get("monitor")
    rule = None if number is None else number_of(number, "monitor")
    of_server = call.query.get("of_server") in ("1", "Y")
    return json(await call.store.monitors.results(call.project, rule, count, of_server))


declare(
    ROUTES,
    MonitorPaths(
        name="monitors",
        noun="monitor",
        done="checked",
        body=_NEW,
        fields=FIELDS,
        example='{"spider": "books", "checks": ["items >= 100"]}',
        rule=Monitor,
        preview=MonitorPreview,
        parse=_parse,
        rules=lambda store: store.monitors,
        found="The results that it would have had for the last jobs.",
        has_next=False,
    ),
)

# ── targets of alerts ──

_ALL: Final = "/api/projects/{project}/alerts"
_ONE: Final = f"{_ALL}/{{target}}"
_NEW_TARGET: Final[schemas.Schema] = schemas.record(
    {
        "name": {"type": "string", "pattern": r"^[A-Za-z0-9 _.\-]{1,100}$"},
        "url": {"type": "string", "pattern": r"^(slack|jsons|tgram)://[A-Za-z0-9]{4,40}(/[A-Za-z0-9]{1,40}){0,3}$"},
    },
    "name",
    "url",
    only=True,
)
_CHANGE: Final[schemas.Schema] = schemas.record({"disabled": {"type": "boolean"}}, "disabled", only=True)
_TARGET_EXAMPLE: Final = '{"name": "on-call", "url": "slack://TOKEN_A/TOKEN_B/TOKEN_C"}'


@ROUTES.add(
    f"GET {_ALL}",
    "Read the targets of a project's alerts.",
    schemas.value("The targets, with their addresses masked.", schemas.Many(AlertTarget)),
)
async def _targets(call: Call) -> Response:
    return json(await call.store.alerts.listed(call.project))


@ROUTES.add(
    f"POST {_ALL}",
    "Add a target of alerts: an address of Apprise.",
    schemas.value("The target, with its address masked.", AlertTarget),
    status=201,
    body=schemas.Body(schemas.JSON, _NEW_TARGET),
    event=ChangeEvents.TARGET_CREATED,
)
async def _add(call: Call) -> Response:
    targets = call.store.alerts  # refuses limited keys before the body is read
    new = target_of(await bodies.fields_of(call.request, _TARGET_EXAMPLE, _MAX_BODY))
    added = await targets.add(call.project, new.name, new.url)
    call.wrote(1)
    return json(added, 201)


@ROUTES.add(f"GET {_ONE}", "Read a target of alerts.", schemas.value("The target.", AlertTarget))
async def _target(call: Call) -> Response:
    return json(found(await call.store.alerts.get(*_place(call)), _MISSING))


@ROUTES.add(
    f"PATCH {_ONE}",
    "Disable a target of alerts, which removes its pending messages, or enable it.",
    schemas.value("The target.", AlertTarget),
    body=schemas.Body(schemas.JSON, _CHANGE),
    event=ChangeEvents.TARGET_CHANGED,
)
async def _disable(call: Call) -> Response:
    targets = call.store.alerts  # as above
    fields = await bodies.fields_of(call.request, '{"disabled": true}', _MAX_BODY)
    for name in fields:
        if name != "disabled":
            raise refused(name[:60], "is no field here", "The field is disabled; add another target instead.")
    if not isinstance(fields.get("disabled"), bool):
        raise refused("disabled", "must be true or false", 'Write {"disabled": false}.')
    return json(found(await targets.disable(*_place(call), fields["disabled"]), _MISSING))


@ROUTES.add(
    f"DELETE {_ONE}",
    "Remove a target of alerts.",
    schemas.AnswerShape("It is removed."),
    status=204,
    event=ChangeEvents.TARGET_REMOVED,
)
async def _remove(call: Call) -> Response:
    if not await call.store.alerts.remove(*_place(call)):
        raise not_found(_MISSING)
    return Response(status_code=204)


@ROUTES.add(
    f"POST {_ONE}/test",
    "Send a trial message to a target of alerts; the messages have its result.",
    schemas.value("The message, which is sent now.", AlertMessage),
    status=202,
)
async def _test(call: Call) -> Response:
    target = found(await call.store.alerts.get(*_place(call)), _MISSING)
    text = call.service(Messages).test(target)
    return json(found(await call.store.alerts.test(*_place(call), text), _MISSING), 202)


@ROUTES.add(
    f"GET {_ONE}/messages",
    "Read the recent and pending messages to a target of alerts, newest first.",
    schemas.value("The messages, without their texts.", schemas.Many(AlertMessage)),
    parameters=(schemas.page_size(_MAX_PER_PAGE),),
)
async def _messages(call: Call) -> Response:
    count, place = call.page_size(_PER_PAGE, _MAX_PER_PAGE, "Ask for fewer."), _place(call)
    found(await call.store.alerts.get(*place), _MISSING)
    return json(await call.store.alerts.messages(*place, count))


def _place(call: Call) -> tuple[int, int]:
    return call.project, call.part_number("target")
