"""Calls of Scrapyd's API about projects, their versions and their spiders: ``addversion.json`` and the others."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.jobs import SCRIPT, SHOWN_STATES
from scrapy_ext.api.platform.keys import is_number
from scrapy_ext.api.platform.projects import name_of_project
from scrapy_ext.api.platform.versions import VersionState
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.deploying import Deploys, Upload, received
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import JSON, Refusal
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.platform.spiders import spiders_of
from scrapy_ext.server.platform.versions import SILENCE, take
from scrapy_ext.server.scrapyd.envelope import (
    ENVELOPE,
    NODE,
    PROJECT,
    VERSION,
    Fields,
    answered,
    asked,
    failed,
    form_of,
    missing,
    posted,
    service,
)
from scrapy_ext.server.scrapyd.naming import Projects
from scrapy_ext.server.store.version_rows import StoredVersion
from scrapy_ext.server.store.versions import InUseError

ROUTES: Final = Routes(tag="scrapyd")
_service = partial(service, ROUTES)


@_service("GET /listprojects.json", "List the projects with a version or with jobs.")
async def _list_projects(call: Call) -> Fields:
    projects = await Projects.of(call)
    counts = await call.store.jobs.states_of_all()
    return {
        "projects": sorted(
            [
                projects.name(each)
                for each in projects.numbers
                if (each in counts and any(counts[each][state] for state in SHOWN_STATES))
                or await call.store.versions.current(each) is not None
            ]
        )
    }


@_service("GET /listversions.json", "List the versions of a project, the newest last.", PROJECT)
async def _list_versions(call: Call) -> Fields:
    project = (await Projects.of(call)).find(call, asked(call, "project"))
    return {"versions": [each.version for each in reversed(await _ready(call, project))]}


async def _ready(call: Call, project: int) -> list[Any]:
    """Return the runnable versions of a project, the newest first."""
    return [each for each in await call.store.versions.listed(project) if each.state is VersionState.READY]


@_service("GET /listspiders.json", "List the spiders of a version.", PROJECT, VERSION)
async def _list_spiders(call: Call) -> Fields:
    project = (await Projects.of(call)).find(call, asked(call, "project"))
    if (version := call.query.get("_version")) is None:
        return {"spiders": sorted(await spiders_of(call, project))}
    await check_version(call, project, version)
    return {"spiders": await _spiders_of_version(call, project, version)}


async def _spiders_of_version(call: Call, project: int, version: str) -> list[str]:
    found = await call.store.versions.spiders(project, version)
    return [each.name for each in found if not each.name.startswith(SCRIPT)]


async def check_version(call: Call, project: int, version: str, field: str = "_version") -> None:
    if version not in {each.version for each in await _ready(call, project)}:
        raise refused(field, f"{version[:60]!r} was not found", "GET /listversions.json lists the versions.")


@ROUTES.add(
    "POST /addversion.json",
    "Deploy an egg, and wait until it is checked. Creates the project with its first version. As in Scrapyd's API.",
    schemas.value(
        "The result.",
        schemas.record({**ENVELOPE, "spiders": schemas.COUNTER, "warning": schemas.STRING}, "node_name", "status"),
    ),
    body=schemas.Body(
        schemas.MULTIPART,
        schemas.record(
            {"project": schemas.STRING, "version": schemas.STRING, "egg": {"type": "string", "format": "binary"}},
            "project",
            "version",
            "egg",
        ),
    ),
    event=ChangeEvents.VERSION_DEPLOYED,
)
async def _add_version(call: Call) -> Response:
    try:
        call.service(Deploys).check(call.grant, call.who)
        upload = await received(call.request, call.query)
        with upload.file:
            project, name, version = await _deployed(call, upload)
    except (ContractError, Refusal) as error:
        return failed(call, error)
    return StreamingResponse(_checked(call, project, name, version), media_type=JSON)


async def _deployed(call: Call, upload: Upload) -> tuple[int, str, StoredVersion]:
    name = upload.fields.get("project")
    if name is None:
        raise missing("project")
    if "version" not in upload.fields:
        raise missing("version")
    project = await _project_of(call, name)
    return project, name, await take(call, project, upload)


async def _project_of(call: Call, name: str) -> int:
    """Return the project that a deploy names, which is created unless it exists."""
    projects = await Projects.of(call)
    try:
        return projects.find(call, name)
    except ContractError:
        if is_number(name):  # the key may use it, and it has no data yet
            return int(name)
        if not call.grant.all_projects:
            raise
    project = await call.store.projects.claim(name_of_project(name, "project"))
    call.need(project)
    return project


async def _checked(call: Call, project: int, name: str, version: StoredVersion) -> AsyncIterator[bytes]:
    """Yield spaces, which JSON allows, so that the client does not give up, and then the result of the check."""
    deploy, sent = version.shown.deploy_id, time.monotonic()
    async for _ in call.service(Deploys).deployments.follow(project, deploy):
        if time.monotonic() - sent > SILENCE:
            sent = time.monotonic()
            yield b" "
    found = await call.store.versions.get(project, deploy)
    if found is None or found.shown.state is not VersionState.READY:
        failed = found is not None and found.shown.state is VersionState.FAILED
        message = found.shown.message if found is not None and failed else "The check was interrupted. Deploy again."
        answer = {"node_name": NODE, "status": "error", "message": message}
    else:
        spiders = await _spiders_of_version(call, project, found.shown.version)
        warning = {"warning": found.shown.message} if found.shown.message else {}
        answer = answered({"project": name, "version": found.shown.version, "spiders": len(spiders), **warning})
    yield msgspec.json.encode(answer) + b"\n"


@_service(
    "POST /delversion.json",
    "Delete a version. An older one becomes current in place of the current one.",
    body=form_of("version", version=schemas.STRING),
    event=ChangeEvents.VERSION_REMOVED,
)
async def _delete_version(call: Call) -> Fields:
    form, _, project = await posted(call, "version")
    version = form.get("version") or ""
    call.noted["version"] = version
    await check_version(call, project, version, "version")
    await _remove(call, project, version, await _ready(call, project))
    return {}


@_service(
    "POST /delproject.json",
    "Delete the versions of a project. Its jobs and their data stay.",
    body=form_of(),
    event=ChangeEvents.VERSION_REMOVED,
)
async def _delete_project(call: Call) -> Fields:
    _, _, project = await posted(call)
    versions = await _ready(call, project)
    if not versions:
        raise refused("project", "has no version", "Deploy one, or delete its jobs.")
    removed = call.noted["versions"] = []
    while versions:
        oldest = versions.pop()
        await _remove(call, project, oldest.version, versions)
        removed.append(oldest.version)
    return {}


async def _remove(call: Call, project: int, version: str, others: list[Any]) -> None:
    newest = next((each.version for each in others if each.version != version), None)
    try:
        if newest is not None and await call.store.versions.current(project) == version:
            await call.store.versions.make_current(project, newest)
        await call.store.versions.remove(project, version)
    except InUseError as error:
        raise Refusal(409, f"Version {version} stays: {error}.") from None
    call.store.deleted.set()
