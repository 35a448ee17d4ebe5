"""Deployed versions of a project: ``/api/projects/<project>/versions``, a path of this package, and
``/api/scrapyd/addversion.json``, with which the tools of the hosted platform deploy.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from scrapy_ext.api.platform import versions
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.violations import refused
from scrapy_ext.server.deploying import Deploys, Upload, received
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import TEXT, Refusal, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.jobs.versions.environments import Environments
from scrapy_ext.server.store.version_rows import StoredVersion
from scrapy_ext.server.store.versions import InUseError

#: Maximum seconds without a line for a client that waits for the end of a check.
SILENCE: Final = 15.0

ROUTES: Final = Routes()

_FILE: Final[schemas.Schema] = {"type": "string", "format": "binary"}
_ALL: Final = "/api/projects/{project}/versions"
_ONE: Final = f"{_ALL}/{{version}}"
_NOT_HOSTED: Final = "The hosted platform has no such path."


def environments_of(call: Call) -> Environments | None:
    """Return the environments of the server; None if it accepts no code."""
    deploys: Deploys | None = call.services.get(Deploys)
    return None if deploys is None else deploys.deployments.environments


@ROUTES.add(
    f"GET {_ALL}",
    f"List the versions of a project. {_NOT_HOSTED}",
    schemas.value("The versions, the newest first, without their spiders.", versions.Versions),
)
async def _list(call: Call) -> Response:
    call.service(Deploys)  # the API of a worker has no versions
    return json(versions.Versions(await call.store.versions.listed(call.project)))


@ROUTES.add(
    "POST /api/scrapyd/addversion.json",
    "Deploy a version and wait until it is checked.",
    schemas.AnswerShape(
        'Lines of the check, and a last line of JSON: {"status": "ok", …}, or "error" with a message.',
        {schemas.TEXT: schemas.STRING},
    ),
    body=schemas.Body(
        schemas.MULTIPART,
        schemas.record(
            {"project": schemas.NUMBER, "version": schemas.STRING, "egg": _FILE, "requirements": _FILE},
            "project",
            "version",
            "egg",
        ),
    ),
    event=ChangeEvents.VERSION_DEPLOYED,
)
async def _add_version(call: Call) -> Response:
    call.service(Deploys).check(call.grant, call.who)
    upload = await received(call.request, call.query)
    with upload.file:
        text = upload.fields.get("project")
        if text is None:
            raise refused("project", "is required", "Send the form field project.")
        project = number_of(text, "project")
        call.need(project)
        taken = await take(call, project, upload)
    return StreamingResponse(_progress(call, project, taken.shown), media_type=TEXT)


@ROUTES.add(
    f"POST {_ALL}",
    f"Deploy a version, which becomes current after its check. Read it to see when. {_NOT_HOSTED}",
    schemas.value("The version before its check.", versions.Version),
    status=201,
    body=schemas.Body(
        schemas.MULTIPART,
        schemas.record(
            {
                "version": schemas.STRING,
                "archive": _FILE,
                "settings": schemas.STRING,
                "requirements": schemas.STRING,
            },
            "version",
            "archive",
        ),
        "An archive: a wheel, an egg, a source distribution or a packed folder with scrapy.cfg. It may also be the "
        "whole body, with the other fields as query parameters. requirements: the text of a requirements file; "
        "settings: the settings module, if the archive does not name it.",
    ),
    event=ChangeEvents.VERSION_DEPLOYED,
)
async def _upload(call: Call) -> Response:
    call.service(Deploys).check(call.grant, call.who)
    project, upload = call.project, await received(call.request, call.query)
    with upload.file:
        taken = await take(call, project, upload)
    return json(taken.shown, 201)


async def take(call: Call, project: int, upload: Upload) -> StoredVersion:
    """Store an upload as a version and start its check; raises :class:`ContractError`."""
    taken = await call.service(Deploys).take(project, upload, call.who)
    call.wrote(1)
    call.noted["version"] = taken.shown.version
    return taken


@ROUTES.add(
    f"GET {_ONE}",
    f"Read a version, with its spiders once it is ready. {_NOT_HOSTED}",
    schemas.value("The version.", versions.Version),
    parameters=(schemas.Parameter("deploy_id", "only this deploy of the name", schemas.NUMBER),),
)
async def _show(call: Call) -> Response:
    project, name = call.project, call.part("version")
    number = call.number("deploy_id")
    if number is None:
        found = await call.store.versions.named(project, name)
    else:
        found = await call.store.versions.get(project, number)
    if found is None or found.shown.version != name:
        raise _no_version(project, name)
    shown = await call.service(Deploys).deployments.refreshed(project, found)
    if shown.state is versions.VersionState.READY:
        shown.spiders = await call.store.versions.spiders(project, name)
    return json(shown)


async def _progress(call: Call, project: int, version: versions.Version) -> AsyncIterator[bytes]:
    sent = time.monotonic()
    async for line in call.service(Deploys).deployments.follow(project, version.deploy_id):
        if line or time.monotonic() - sent > SILENCE:
            sent = time.monotonic()
            yield f"{line}\n".encode()
    found = await call.store.versions.get(project, version.deploy_id)
    state = found.shown.state if found else None
    if found is None or state is versions.VersionState.UPLOADED:
        answer: dict[str, Any] = {"status": "error", "message": "The check was interrupted. Deploy again."}
    elif state is versions.VersionState.FAILED:
        yield f"{found.shown.message}\n".encode()
        answer = {"status": "error", "message": found.shown.message.partition("\n")[0]}
    else:
        spiders = await call.store.versions.spiders(project, version.version)
        if found.shown.message:
            yield f"Warning: {found.shown.message}\n".encode()
        answer = {"status": "ok", "project": project, "version": version.version, "spiders": len(spiders)}
    yield msgspec.json.encode(answer) + b"\n"


@ROUTES.add(
    f"DELETE {_ONE}",
    f"Delete a version that no job needs, unless it is the current one of several. {_NOT_HOSTED}",
    schemas.AnswerShape("It is deleted."),
    status=204,
    errors=(409,),
    event=ChangeEvents.VERSION_REMOVED,
)
async def _remove(call: Call) -> Response:
    project, name = call.project, call.part("version")
    try:
        found = await call.store.versions.remove(project, name)
    except InUseError as error:
        raise Refusal(409, f"Version {name} stays: {error}.") from None
    if not found:
        raise _no_version(project, name)
    call.store.deleted.set()
    return Response(status_code=204)


@ROUTES.add(
    f"POST {_ONE}/current",
    f"Make a version the current one, which new jobs run. {_NOT_HOSTED}",
    schemas.value("The version.", versions.Version),
    errors=(409,),
    event=ChangeEvents.VERSION_CHOSEN,
)
async def _make_current(call: Call) -> Response:
    project, name = call.project, call.part("version")
    found = await call.store.versions.named(project, name)
    if found is None:
        raise _no_version(project, name)
    if not await call.store.versions.make_current(project, name):
        raise Refusal(409, versions.not_runnable(name, found.shown.state))
    found = await call.store.versions.named(project, name)
    if found is None:
        raise _no_version(project, name)
    return json(found.shown)


def _no_version(project: int, name: str) -> Refusal:
    return not_found(f"Project {project} has no version {name[:60]}. Use one of the list of them.")
