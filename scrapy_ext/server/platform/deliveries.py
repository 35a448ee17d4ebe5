"""Delivery rules of a project (``/api/projects/<project>/deliveries``) and of the server (``/api/deliveries``), the
deliveries of jobs, and restores (``/api/jobs/restore.json``). These paths are this package's own."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.platform.deliveries import (
    COMPRESSIONS,
    FIELDS,
    MAX_TARGET,
    DeliveryList,
    DeliveryRule,
    JobRestore,
    NewDeliveryRule,
    RestoreList,
    is_within,
    rule_of,
)
from scrapy_ext.api.platform.formats import Format
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.rules import KINDS, JobsPreview
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import Compression, MissingLibraryError, check_installed
from scrapy_ext.server.delivery.restoring import Restores
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import found, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import Form, own_key
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.platform.rules import CONDITIONS, RulePaths, declare

#: Maximum jobs of a call.
_MOST: Final = 100

ROUTES: Final = Routes()

_NEW: Final[schemas.Schema] = schemas.record(
    {
        "target": {
            "type": "string",
            "pattern": r"^(s3|gs|az)://[a-z0-9][a-z0-9\-]{1,60}(/[A-Za-z0-9_\-]{1,50}){0,3}$",
            "maxLength": MAX_TARGET,
        },
        "what": schemas.array({"enum": [*KINDS]}, least=1, most=len(KINDS)),
        **CONDITIONS,
        "compression": {"enum": [*COMPRESSIONS]},
        "parquet": {"type": "boolean"},
    },
    "target",
    only=True,
)
_JOBS: Final = (
    schemas.Parameter("project", "the project", schemas.NUMBER, required=True),
    schemas.Parameter("job", "the jobs", schemas.array(schemas.JOB_KEY, least=1), required=True),
)


class ArchiveTargets(NamedTuple):
    """The URLs that the operator allows rules to deliver to."""

    urls: tuple[str, ...]


def _parse(call: Call, fields: dict[str, Any]) -> NewDeliveryRule:
    """Return a new rule that this server can apply; raise :class:`ContractError`."""
    new = rule_of(fields)
    allowed = call.service(ArchiveTargets).urls
    if not is_within(new.target, allowed):
        remedy = f"Targets of this server: {', '.join(allowed)}." if allowed else "Its operator adds --archive-target."
        raise refused("target", "is not one that this server may deliver to", remedy)
    try:
        check_installed(Format.JSON_LINES, Compression(new.compression))
        if new.parquet:
            check_installed(Format.PARQUET, Compression.NONE)
    except MissingLibraryError as error:
        raise refused("parquet", "is not supported by this server", str(error)) from None
    return new


declare(
    ROUTES,
    RulePaths(
        name="deliveries",
        noun="delivery rule",
        done="delivered",
        body=_NEW,
        fields=FIELDS,
        example='{"target": "s3://bucket/prefix", "older_than": 30}',
        rule=DeliveryRule,
        preview=JobsPreview,
        parse=_parse,
        rules=lambda store: store.deliveries,
    ),
)


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
    return [found(await call.store.restores.state(key), f"There is no job {key}.") for key in keys]


def _keys(call: Call) -> list[JobKey]:
    project = call.asked_project()
    return _some([own_key(text, project, "job") for text in call.all("job")])


def _some(keys: list[JobKey]) -> list[JobKey]:
    if not 1 <= len(keys) <= _MOST:
        raise refused("job", f"must be given 1 to {_MOST} times", "Name the jobs.")
    return list(dict.fromkeys(keys))
