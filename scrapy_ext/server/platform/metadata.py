"""``/jobs``: job metadata (platform-api.md, Job metadata; writes as those of its real clients)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.formats import CONTENT_TYPES, Format
from scrapy_ext.api.platform.jobs import JobState, fields_named
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import Page
from scrapy_ext.server.auth.tokens import JobTokens
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import BytesResponse, Refusal, empty, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import format_of, limited, result, with_meta
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.store.jobs.rows import PROTECTED
from scrapy_ext.server.store.records.removal import deletion_error

ROUTES: Final = Routes(Access.JOB)

_JSON, _JSON_LINES = (
    ((b"content-type", f"{CONTENT_TYPES[kind]}; charset=UTF-8".encode()),) for kind in (Format.JSON, Format.JSON_LINES)
)

_JOB: Final = "/jobs/{project}/{spider}/{job}"
_FIELD: Final = f"{_JOB}/{{field:path}}"
_LISTING: Final = (
    schemas.COUNT,
    schemas.Parameter("meta", "what to add to each", schemas.array({"const": "_key"})),
    *schemas.SHAPING,
)


@ROUTES.add(
    "GET /jobs/{project}[/{spider}]",
    "Read the metadata of the jobs of a project or a spider, in the order of their keys.",
    schemas.lines("An object for each job.", schemas.OBJECT),
    parameters=_LISTING,
)
async def _list(call: Call) -> Response:
    return await result(call, _all(call))


@ROUTES.add(
    f"GET {_JOB}",
    "Read the metadata of a job.",
    schemas.AnswerShape(
        "One object, on one line.", {schemas.JSON_LINES: schemas.Many(schemas.OBJECT), schemas.JSON: schemas.OBJECT}
    ),
    parameters=(schemas.Parameter("format", "json, else JSON lines", {"enum": ["json", "jl"]}),),
)
async def _metadata(call: Call) -> Response:
    types = _JSON if format_of(call) is Format.JSON else _JSON_LINES
    body = msgspec.json.encode(await _read(call)) + b"\n"
    return BytesResponse(body, types)


@ROUTES.add(
    f"POST {_JOB}",
    "Write fields of the metadata; other fields are unchanged.",
    schemas.DONE,
    body=schemas.Body(schemas.JSON, schemas.OBJECT),
)
async def _write(call: Call) -> Response:
    return await _merge(call, await json_bodies.fields_of(call.request, '{"field": value}'))


@ROUTES.add(f"DELETE {_JOB}", "Delete a job.", schemas.DONE, access=Access.KEY)
async def _delete(call: Call) -> Response:
    await call.store.jobs.delete(call.project, [call.job], call.who)
    return empty()


@ROUTES.add(f"GET {_JOB}/auth", "The token of a job.", schemas.value("The token.", schemas.STRING))
async def _token(call: Call) -> Response:
    if not call.grant.job:
        call.need_write(call.project)  # the token gives write access
    job = await call.store.jobs.get(call.job)
    if job is None:
        raise _unknown(call.job)
    if job.state is JobState.DELETED:
        raise deletion_error(call.job)
    return json(await call.service(JobTokens).token(call.job))


@ROUTES.add(f"GET {_FIELD}", "Read a field; null if absent.", schemas.value("Its value.", schemas.ANY))
async def _field(call: Call) -> Response:
    field = call.part("field")
    return json(fields_named(await _read(call), (field,)).get(field))


@ROUTES.add(f"POST {_FIELD}", "Write a field.", schemas.DONE, body=schemas.Body(schemas.JSON, schemas.ANY))
async def _write_field(call: Call) -> Response:
    field = call.part("field")
    _check_writable(field)
    return await _merge(call, {field: await json_bodies.document(call.request)})


@ROUTES.add(f"DELETE {_FIELD}", "Remove a field.", schemas.DONE)
async def _remove_field(call: Call) -> Response:
    field = call.part("field")
    _check_writable(field)
    await call.store.jobs.remove_field(call.job, field, call.attempt)
    return empty()


async def _read(call: Call) -> dict[str, Any]:
    """Return the metadata of a job; empty for an unknown one, which clients detect by that."""
    job = await call.store.jobs.get(call.job)
    return {} if job is None else job.metadata


async def _all(call: Call) -> AsyncIterator[Page]:
    """Yield the metadata of the jobs of a project or a spider, in the order of their keys."""
    spider = call.part_number("spider") if call.has_part("spider") else None
    meta = call.meta("_key")
    async for jobs in limited(call.store.jobs.scan(call.project, spider), call.number("count")):
        yield [with_meta(msgspec.json.encode(job.metadata), [(name, str(job.key)) for name in meta]) for job in jobs]


async def _merge(call: Call, fields: dict[str, Any]) -> Response:
    if not await call.store.jobs.merge(call.job, fields, call.attempt):
        raise _unknown(call.job)
    return empty()


def _unknown(key: JobKey) -> Refusal:
    return not_found(f"Not Found. There is no job {key}. Use one of /jobq/{key.project}/list.")


def _check_writable(field: str) -> None:
    if field in PROTECTED:
        raise refused(field, "cannot be written here", "States are changed by POST /jobq/<project>/update.")
