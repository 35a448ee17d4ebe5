"""Spiders: their numbers, tags and last jobs (as the real clients of the API use them).

A spider exists once a job or a schedule names it, or a deployed version has it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.jobs import SCRIPT
from scrapy_ext.api.platform.keys import MAX_NUMBER, is_number
from scrapy_ext.api.platform.projects import Project
from scrapy_ext.api.platform.versions import LOCAL, SpiderInfo
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import Page
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import result
from scrapy_ext.server.http.forms import check_name, check_tags
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.jobs.versions.environments import BuildError, Environments
from scrapy_ext.server.platform.jobs import JOB_LINE, JOBMETA, line, wanted_of
from scrapy_ext.server.platform.versions import environments_of
from scrapy_ext.server.store.spiders import Spider

#: Spiders per read of last jobs.
_PAGE: Final = 200
_NOTHING_TO_DO: Final = 'At least one of "add" or "remove" arguments must not be empty'

ROUTES: Final = Routes()

_PLACE: Final[schemas.Schema] = {"type": "string", "pattern": r"^([0-9]{1,18}/)?[0-9]{1,18}$"}
_TIME: Final[schemas.Schema] = {"type": ["string", "null"]}
_TAGS: Final[schemas.Schema] = schemas.array(schemas.NAME)
_ARGUMENT: Final[schemas.Schema] = schemas.record(
    {
        "name": schemas.STRING,
        "required": {"type": "boolean"},
        "default": schemas.STRING,
        "annotation": schemas.STRING,
        "help": schemas.STRING,
    },
    "name",
)
_LISTED: Final[schemas.Schema] = schemas.record(
    {
        "id": schemas.STRING,
        "tags": schemas.STRINGS,
        "type": schemas.STRING,
        "version": {"type": ["string", "null"]},
        "summary": schemas.STRING,
        "arguments": schemas.array(_ARGUMENT),
    },
    "id",
    "tags",
)
_SPIDER: Final[schemas.Schema] = schemas.record(
    {
        "id": schemas.NUMBER,
        "name": schemas.STRING,
        "tags": schemas.STRINGS,
        "created_at": _TIME,
        "modified_at": _TIME,
    },
    "id",
    "name",
    "tags",
)
_ONE: Final = "/api/v2/projects/{project}/spiders/{spider}"


@ROUTES.add(
    "GET /ids/{project}/spider/{name:path}",
    "Return the number of a spider.",
    schemas.value("The number; null if it has none.", {"type": ["integer", "null"]}),
    parameters=(
        schemas.Parameter("create", "assign a number if it has none; the key needs write access", schemas.FLAG),
    ),
)
async def _number(call: Call) -> Response:
    name = call.part("name")
    if call.query.get("create", "").lower() in ("1", "y", "true"):
        check_name("spider", name)
        call.need_write(call.project)
        return json(await call.store.spiders.add(call.project, name))
    return json(await call.store.spiders.find(call.project, name))


@ROUTES.add(
    "GET /spiders/{project}/lastjobsummary",
    "Return the last finished job of each spider.",
    schemas.lines("The jobs.", JOB_LINE),
    parameters=(
        schemas.Parameter("start", "from this spider on: its number, or <project>/<spider>", _PLACE),
        schemas.Parameter("startafter", "after this spider", _PLACE),
        schemas.COUNT,
        JOBMETA,
        *schemas.SHAPING,
    ),
)
@ROUTES.add(
    "GET /spiders/{project}/{spider}/lastjobsummary",
    "Return the last finished job of a spider.",
    schemas.lines("The job, if any.", JOB_LINE),
    parameters=(schemas.COUNT, JOBMETA, *schemas.SHAPING),
)
async def _last(call: Call) -> Response:
    return await result(call, _last_jobs(call))


async def _last_jobs(call: Call) -> AsyncIterator[Page]:
    project, wanted, left = call.project, wanted_of(call), call.number("count")
    one = call.part_number("spider") if call.has_part("spider") else None
    after = _first(call) - 1
    while left is None or left > 0:
        numbers = [one] if one is not None else []
        if one is None:
            numbers = [spider.number for spider in await call.store.spiders.listed(project, after, _PAGE)]
        jobs = await call.store.jobs.last_finished(project, numbers)
        now = call.store.clock()
        jobs = jobs if left is None else jobs[:left]
        yield [msgspec.json.encode(line(job, now, wanted)) for job in jobs]
        if one is not None or len(numbers) < _PAGE:
            return
        after, left = numbers[-1], None if left is None else left - len(jobs)


def _first(call: Call) -> int:
    """Return the first spider: ``start``, or the one after ``startafter``; a number or ``<project>/<spider>``."""
    for name, more in (("startafter", 1), ("start", 0)):
        text = call.query.get(name)
        if text is None:
            continue
        own, _, number = text.rpartition("/")
        if not is_number(number) or own not in ("", str(call.project)):
            raise refused(
                name,
                f"must be a spider of project {call.project}, got {text[:60]!r}",
                f"Send {call.project}/1, for example.",
            )
        return min(int(number) + more, MAX_NUMBER)
    return 0


@ROUTES.add(
    "GET /api/spiders/list.json",
    "List the spiders of the current version; without one, those that jobs and schedules name.",
    schemas.value("The spiders.", schemas.whole(status={"const": "ok"}, spiders=schemas.array(_LISTED))),
    parameters=(
        schemas.Parameter("project", "the project", schemas.NUMBER, required=True),
        schemas.Parameter("spider", "only spiders with these names", schemas.STRINGS),
        schemas.Parameter(
            "described", "with the summary and the arguments of each spider, if its code is known", schemas.FLAG
        ),
    ),
)
async def _list(call: Call) -> Response:
    project = call.asked_project()
    named = set(call.all("spider"))
    tags = {spider.name: spider.tags for spider in await call.store.spiders.listed(project)}
    is_described = call.query.get("described") in ("1", "Y")
    spiders: list[dict[str, Any]] = []
    for name, (version, code) in (await spiders_of(call, project)).items():
        if not named or name in named:
            spiders.append({"id": name, "tags": tags.get(name, []), "type": "manual", "version": version})
            if is_described and code is not None:
                spiders[-1] |= {"summary": code.summary, "arguments": code.arguments}
    return json({"status": "ok", "spiders": spiders})


_Known = tuple[str | None, SpiderInfo | None]


async def spiders_of(call: Call, project: int) -> dict[str, _Known]:
    """Return the spiders of the current version, with its name and what its check read; without one, known names and
    the spiders of the server's local project."""
    version = await call.store.versions.current(project)
    if version is not None:
        found = await call.store.versions.spiders(project)
        return {spider.name: (version, spider) for spider in found if not spider.name.startswith(SCRIPT)}
    named: dict[str, _Known] = {spider.name: (None, None) for spider in await call.store.spiders.listed(project)}
    return named | {spider.name: (LOCAL, spider) for spider in await _local(environments_of(call), project)}


async def _local(environments: Environments | None, project: int) -> list[SpiderInfo]:
    if environments is None:
        return []
    try:
        return [each for each in await environments.spiders(project) if not each.name.startswith(SCRIPT)]
    except BuildError:  # reported to the caller that runs a job of it
        return []


@ROUTES.add(f"GET {_ONE}", "Read a spider.", schemas.value("The spider.", _SPIDER))
async def _read(call: Call) -> Response:
    return await _answer(call, await call.store.spiders.get(call.project, call.part_number("spider")))


@ROUTES.add(
    f"PATCH {_ONE}/tags",
    "Add tags to a spider and remove tags.",
    schemas.value("The spider.", _SPIDER),
    body=schemas.Body(schemas.JSON, schemas.record({"add": _TAGS, "remove": _TAGS}), "One of the two, or both."),
    event=ChangeEvents.SPIDER_CHANGED,
)
async def _tag(call: Call) -> Response:
    number, change = call.part_number("spider"), await json_bodies.document(call.request)
    add, remove = _tags(change, "add"), _tags(change, "remove")
    if not add and not remove:
        return json({"status": "badrequest", "message": _NOTHING_TO_DO, "non_field_errors": [_NOTHING_TO_DO]}, 400)
    return await _answer(call, await call.store.spiders.tag(call.project, number, add=add, remove=remove))


async def _answer(call: Call, found: Spider | None) -> Response:
    if found is None:
        raise not_found(f"There is no spider {call.project}/{call.part_number('spider')}. Use one of the list of them.")
    return json(_shown(Project(call.project, (await call.store.projects.names()).get(call.project)), found))


def _tags(change: object, name: str) -> tuple[str, ...]:
    tags = (change.get(name) or []) if isinstance(change, dict) else None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise refused(name, "must be an array of strings", 'Write {"add": ["a"], "remove": ["b"]}.')
    return check_tags(name, tags)


def _shown(project: Project, spider: Spider) -> dict[str, Any]:
    return {
        "id": spider.number,
        "jobq_id": spider.number,
        "name": spider.name,
        "tags": spider.tags,
        "type": "manual",
        "version": None,
        "settings": {},
        "archived": False,
        "deleted": False,
        "created_at": _time(spider.created),
        "modified_at": _time(spider.modified),
        "project": {"id": project.id, "name": project.name or str(project.id)},
    }


def _time(milliseconds: int) -> str | None:
    if not milliseconds:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="seconds")
