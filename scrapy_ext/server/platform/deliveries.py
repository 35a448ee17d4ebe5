"""Delivery rules of a project (``/api/projects/<project>/deliveries``) and of the server (``/api/deliveries``), the
deliveries of jobs, and restores (``/api/jobs/restore.json``). These paths are this package's own."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.deliveries import (
    SORT,
    DeliveryList,
    DeliveryPreview,
    JobRestore,
    NewDeliveryRule,
    RestoreList,
)
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import refused
from scrapy_ext.server.delivery.restoring import Restores
from scrapy_ext.server.delivery.targets import ArchiveTargets
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import found, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import Form, own_key
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.platform.rules import RulePaths, declare

#: Maximum jobs of a call.
_MOST: Final = 100

ROUTES: Final = Routes()

_JOBS: Final = (
    schemas.Parameter("project", "the project", schemas.NUMBER, required=True),
    schemas.Parameter("job", "the jobs", schemas.array(schemas.JOB_KEY, least=1), required=True),
)


class DeliveryPaths(RulePaths, frozen=True):
    """Paths about delivery rules, which name only what this server can deliver, and where it may."""

    def parse(self, call: Call, fields: dict[str, Any]) -> NewDeliveryRule:
        return call.service(ArchiveTargets).rule_of(fields)

    async def preview_of(self, call: Call, rule: NewDeliveryRule) -> DeliveryPreview:
        return await call.service(ArchiveTargets).preview(rule, await super().preview_of(call, rule))


declare(ROUTES, DeliveryPaths(SORT, rules=lambda store: store.deliveries))


@ROUTES.add(
    "GET /api/jobs/deliveries.json",
    "Read the complete deliveries of jobs, newest first.",
    schemas.value("The deliveries: an object for each kind of records.", DeliveryList),
    parameters=_JOBS,
)
async def _deliveries(call: Call) -> Response:
    listed = [each for key in _keys(call) for each in await call.store.deliveries.of_job(key)]
    return json(DeliveryList(deliveries=listed))


@ROUTES.add(
    "GET /api/jobs/restore.json",
    "Read whether the records of jobs can be read, are archived, or are being restored.",
    schemas.value("The jobs.", RestoreList),
    parameters=_JOBS,
)
async def _state(call: Call) -> Response:
    return json(RestoreList(jobs=await _states(call, _keys(call))))


@ROUTES.add(
    "POST /api/jobs/restore.json",
    "Bring back the records of archived jobs.",
    schemas.value("The jobs, whose records can be read once their state is available.", RestoreList),
    status=202,
    body=schemas.Body(
        schemas.FORM,
        schemas.record({"project": schemas.NUMBER, "job": schemas.array(schemas.JOB_KEY, least=1)}, "project", "job"),
    ),
    errors=(409, 410),
)
async def _restore(call: Call) -> Response:
    keys = _some(Form(await call.form()).jobs())
    for key in keys:
        await call.service(Restores).start(key)
    call.wrote(len(keys))
    return json(RestoreList(jobs=await _states(call, keys)), 202)


async def _states(call: Call, keys: list[JobKey]) -> list[JobRestore]:
    return [
        found(await call.store.restores.state(key), f"There is no job {key}. Use one of /jobq/{key.project}/list.")
        for key in keys
    ]


def _keys(call: Call) -> list[JobKey]:
    project = call.asked_project()
    return _some([own_key(text, project, "job") for text in call.all("job")])


def _some(keys: list[JobKey]) -> list[JobKey]:
    if not 1 <= len(keys) <= _MOST:
        raise refused("job", f"must be given 1 to {_MOST} times", "Name the jobs.")
    return list(dict.fromkeys(keys))
