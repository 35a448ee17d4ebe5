"""Acceptance of code: who may deploy, and the upload of a version, by the API, a page or a tool of Scrapyd.

An upload is a form (``multipart/form-data``) with the archive in ``archive`` or ``egg``, or the archive alone. It is
written to a temporary file on arrival, and to the store in pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Final, NamedTuple, cast

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from scrapy_ext.api.platform import versions
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.form_bodies import binary_form
from scrapy_ext.server.jobs.versions.contents import ArchiveError
from scrapy_ext.server.jobs.versions.deployments import Deployments
from scrapy_ext.server.store.version_rows import StoredVersion

#: Maximum bytes of an upload beside the archive.
_BESIDE: Final = 1024 * 1024
#: Bytes of an upload in memory.
_HELD: Final = 1024 * 1024
_MAX_PARTS: Final = 20
#: Maximum bytes of the headers of all parts of a form. Browsers and tools send some hundred per part.
_MAX_HEADERS: Final = 64 * 1024
_NO_ARCHIVE: Final = "Send a file in this field of a form, or as the whole body."


class Upload(NamedTuple):
    """An upload: the archive as an open file, and the other fields."""

    file: Any
    fields: dict[str, str]


class Deploys(NamedTuple):
    """Acceptance of code. ``allowed`` keys may deploy: ``all`` (keys of all projects), ``project`` or ``none``."""

    deployments: Deployments
    allowed: str = "all"

    def refusal(self, grant: Grant, who: str) -> str:
        """Return why a caller may not deploy, "" for one who may."""
        if self.allowed == "none":
            return "Forbidden. This server takes no code (--deploy none)."
        if self.allowed == "all" and not grant.all_projects:
            return (
                f"Forbidden. The key {who} is limited to projects, and this server takes code from such keys with "
                "--deploy project alone. Use a key that opens all projects."
            )
        return ""

    def check(self, grant: Grant, who: str) -> None:
        """Refuse a caller without permission to deploy."""
        if refusal := self.refusal(grant, who):
            raise Refusal(403, refusal)

    async def take(self, project: int, upload: Upload, who: str) -> StoredVersion:
        """Store an upload as a version and start its check; raises :class:`ContractError`."""
        fields = upload.fields
        name, settings = fields.get("version", ""), fields.get("settings", "")
        faults = [*versions.version_faults(name), *(versions.settings_faults(settings) if settings else [])]
        if faults:
            raise ContractError(faults)
        requirements = fields.get("requirements", "")
        try:
            return await self.deployments.take(
                project, name, upload.file, who, settings=settings, requirements=requirements
            )
        except ArchiveError as error:
            raise refused("archive", f"cannot be used: {error}", "Then deploy it again.") from None


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


async def received(request: Request, query: Mapping[str, str], texts: dict[str, str] | None = None) -> Upload:
    """Return the upload of a request, whose file the caller closes; raises ``ContractError`` or ``Refusal``.

    ``query``: the parameters of its URL; ``texts``: gets the texts of a form, also before an error.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return await _encoded(request)
    if kind == "multipart/form-data":
        return await _form(request, query, {} if texts is None else texts)
    bodies.keep(_HELD)
    file = SpooledTemporaryFile(_HELD)  # noqa: SIM115 - its reader closes it
    try:
        async for piece in bodies.passing(request, versions.MAX_ARCHIVE):
            file.write(piece)
    except BaseException:
        file.close()
        raise
    return Upload(file, dict(query))


async def _encoded(request: Request) -> Upload:
    """Return the upload of a form whose bytes are escaped, as ScrapydWeb sends an egg."""
    fields = dict(await binary_form(request))
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


async def _form(request: Request, query: Mapping[str, str], fields: dict[str, str]) -> Upload:
    bodies.keep(_MAX_PARTS * max(_HELD, versions.MAX_REQUIREMENTS))
    stream = bodies.passing(request, versions.MAX_ARCHIVE + versions.MAX_REQUIREMENTS + _BESIDE)
    parser = _Parts(
        request.headers,
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
    file: BinaryIO | None = None
    try:
        fields.update((name, text) for name, text in query.items() if name != "apikey")
        fields.update((name, text) for name, text in form.multi_items() if isinstance(text, str))
        for name, sent in form.multi_items():
            if isinstance(sent, str):
                continue
            if name in ("archive", "egg") and file is None:
                file = sent.file
            elif name == "requirements":
                fields[name] = await _text(sent)
            else:
                rule = "is an egg of its own" if name == "eggs" else "is no field of this form"
                raise refused(name[:60], rule, "Name what the project needs in its requirements.")
        size = 0 if file is None else file.seek(0, 2)
        # A browser sends an empty file for none.
        if file is None or not size:
            raise refused("archive", "is required", _NO_ARCHIVE)
        if size > versions.MAX_ARCHIVE:
            raise Refusal(413, f"The archive is over {versions.MAX_ARCHIVE} bytes. Leave out what is not code.")
        return Upload(file, fields)
    except BaseException:
        await form.close()
        raise
    finally:
        await _close_others(form, file)


async def _close_others(form: FormData, kept: object) -> None:
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
