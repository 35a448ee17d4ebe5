"""Deployed versions of a project: ``/api/projects/<project>/versions``, a path of this package, and
``/api/scrapyd/addversion.json``, with which the tools of the hosted platform deploy.

An upload is a form (``multipart/form-data``) with the archive in ``archive`` or ``egg``, or the archive alone. It is
written to a temporary file on arrival, and to the store in pieces.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from tempfile import SpooledTemporaryFile
from typing import Any, Final, NamedTuple, cast

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response, StreamingResponse

from scrapy_ext.api.platform import versions
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http import bodies, schemas
from scrapy_ext.server.http.answers import TEXT, Refusal, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.jobs.versions.archive_kinds import ArchiveError
from scrapy_ext.server.jobs.versions.deployments import Deployments
from scrapy_ext.server.jobs.versions.environments import Environments
from scrapy_ext.server.store.versions.rows import StoredVersion
from scrapy_ext.server.store.versions.versions import InUseError

#: Maximum bytes of an upload beside the archive.
_BESIDE: Final = 1024 * 1024
#: Bytes of an upload in memory.
_HELD: Final = 1024 * 1024
_MAX_PARTS: Final = 20
#: Maximum bytes of the headers of all parts of a form. Browsers and tools send some hundred per part.
_MAX_HEADERS: Final = 64 * 1024
#: Maximum seconds without a line for a client that waits for the end of a check.
SILENCE: Final = 15.0

_NO_ARCHIVE: Final = "Send the archive as the file of a form field, or as the body."


class Upload(NamedTuple):
    """An upload: the archive as an open file, and the other fields."""

    file: Any
    fields: dict[str, str]


ROUTES: Final = Routes()

_FILE: Final[schemas.Schema] = {"type": "string", "format": "binary"}
_ALL: Final = "/api/projects/{project}/versions"
_ONE: Final = f"{_ALL}/{{version}}"
_NOT_HOSTED: Final = "The hosted platform has no such path."


class Deploys(NamedTuple):
    """Acceptance of code. ``allowed`` keys may deploy: ``all`` (keys of all projects), ``project`` or ``none``."""

    deployments: Deployments
    allowed: str = "all"

    def check(self, call: Call) -> None:
        """Refuse a caller without permission to deploy."""
        if self.allowed == "none":
            raise Refusal(403, "Forbidden. This server takes no code (--deploy none).")
        if self.allowed == "all" and not call.grant.all_projects:
            raise Refusal(
                403,
                f"Forbidden. The key {call.who} is limited to projects, and code that is deployed runs with the rights "
                "of the server. Use a key that opens all projects, or start the server with --deploy project.",
            )


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
    call.service(Deploys).check(call)
    upload = await received(call)
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
    call.service(Deploys).check(call)
    project, upload = call.project, await received(call)
    with upload.file:
        taken = await take(call, project, upload)
    return json(taken.shown, 201)


async def take(call: Call, project: int, upload: Upload) -> StoredVersion:
    """Store an upload as a version and start its check; raises :class:`ContractError`."""
    fields = upload.fields
    name, settings = fields.get("version", ""), fields.get("settings", "")
    faults = [*versions.version_faults(name), *(versions.settings_faults(settings) if settings else [])]
    if faults:
        raise ContractError(faults)
    requirements = fields.get("requirements", "")
    try:
        taken = await call.service(Deploys).deployments.take(
            project, name, upload.file, call.who, settings=settings, requirements=requirements
        )
    except ArchiveError as error:
        raise refused("archive", f"cannot be used: {error}", "Build it again.") from None
    call.wrote(1)
    call.noted["version"] = name
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
        answer = {"status": "ok", "project": project, "version": version.version, "spiders": len(spiders)}
    yield msgspec.json.encode(answer) + b"\n"


class _Parts(MultiPartParser):
    """A parser of forms that bounds the headers of parts, whose concatenation takes quadratic time."""

    _headers_left = _MAX_HEADERS

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        super().on_header_field(data, start, end)

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        super().on_header_value(data, start, end)

    def _count(self, size: int) -> None:
        self._headers_left -= size
        if self._headers_left < 0:
            raise MultiPartException(f"the headers of its parts are over {_MAX_HEADERS} bytes")


async def received(call: Call) -> Upload:
    """Return the upload of a call, whose file the caller closes; raises :class:`ContractError` or :class:`Refusal`."""
    kind = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return await _encoded(call)
    if kind == "multipart/form-data":
        return await _form(call)
    bodies.keep(_HELD)
    file = SpooledTemporaryFile(_HELD)  # noqa: SIM115 - its reader closes it
    try:
        async for piece in bodies.passing(call.request, versions.MAX_ARCHIVE):
            file.write(piece)
    except BaseException:
        file.close()
        raise
    return Upload(file, dict(call.query))


async def _encoded(call: Call) -> Upload:
    """Return the upload of a form whose bytes are escaped, as ScrapydWeb sends an egg."""
    fields = dict(await bodies.binary_form(call.request))
    archive = fields.pop(b"egg", b"") or fields.pop(b"archive", b"")
    if not archive:
        raise refused("archive", "is required", _NO_ARCHIVE)
    file = SpooledTemporaryFile(_HELD)  # noqa: SIM115 - its reader closes it
    file.write(archive)
    try:
        texts = {name.decode(): value.decode() for name, value in fields.items()}
    except UnicodeDecodeError:
        file.close()
        raise refused("body", "must be UTF-8 but for the archive", "Encode the fields as UTF-8.") from None
    return Upload(file, texts)


async def _form(call: Call) -> Upload:
    bodies.keep(_MAX_PARTS * max(_HELD, versions.MAX_REQUIREMENTS))
    stream = bodies.passing(call.request, versions.MAX_ARCHIVE + versions.MAX_REQUIREMENTS + _BESIDE)
    parser = _Parts(
        call.request.headers,
        cast("Any", stream),
        max_files=_MAX_PARTS,
        max_fields=_MAX_PARTS,
        max_part_size=versions.MAX_REQUIREMENTS,
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise refused(
            "body", f"is not a form: {getattr(error, 'message', error)}", "Send multipart/form-data."
        ) from None
    file: Any = None
    try:
        fields = {name: text for name, text in call.query.items() if name != "apikey"}
        for name, sent in form.multi_items():
            if isinstance(sent, str):
                fields[name] = sent
            elif name in ("archive", "egg") and file is None:
                file = sent.file
            elif name == "requirements":
                fields[name] = await _text(sent)
            else:
                rule = "is an egg of its own" if name == "eggs" else "is no field of this form"
                raise refused(name[:60], rule, "Name what the project needs in its requirements.")
        if file is None:
            raise refused("archive", "is required", _NO_ARCHIVE)
        if (file.seek(0, 2) or file.tell()) > versions.MAX_ARCHIVE:
            raise Refusal(413, f"The archive is over {versions.MAX_ARCHIVE} bytes. Leave out what is not code.")
        return Upload(file, fields)
    except BaseException:
        await form.close()
        raise
    finally:
        await _close_others(form, file)


async def _close_others(form: FormData, kept: Any) -> None:
    for _, sent in form.multi_items():
        if isinstance(sent, UploadFile) and sent.file is not kept:
            await sent.close()


async def _text(sent: UploadFile) -> str:
    data = await sent.read(versions.MAX_REQUIREMENTS + 1)
    if len(data) > versions.MAX_REQUIREMENTS:
        raise refused("requirements", f"must be at most {versions.MAX_REQUIREMENTS} bytes", "Name fewer packages.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refused("requirements", "must be UTF-8", "Write the file as UTF-8.") from None
    if "\0" in text:
        raise refused("requirements", "must be text", "Send the text of a requirements file.")
    return text


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
        raise Refusal(409, f"Version {name} is {found.shown.state.value}: no job can run it.")
    found = await call.store.versions.named(project, name)
    if found is None:
        raise _no_version(project, name)
    return json(found.shown)


def _no_version(project: int, name: str) -> Refusal:
    return not_found(f"Project {project} has no version {name[:60]}.")
