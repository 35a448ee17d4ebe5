"""``/jobs``: job metadata (platform-api.md, Job metadata; writing as its real clients do it)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.formats import CONTENT_TYPES, Format, choose
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.access import JobTokens
from scrapy_ext.server.http.answers import NotFound, empty, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call, path_number
from scrapy_ext.server.http.formats import Page, result, with_meta
from scrapy_ext.server.store.jobs.rows import PROTECTED


class Metadata:
    """The resource."""

    def __init__(self, tokens: JobTokens) -> None:
        self._tokens = tokens

    async def __call__(self, call: Call) -> Response:
        """Answer a call."""
        match call.path, call.method:
            case (([_] | [_, _]), "GET"):
                return await result(call, _all(call))
            case [_, _, _], "GET":
                return _whole(call, await _read(call))
            case [_, _, _], "POST":
                fields = await bodies.document(call.request)
                if not isinstance(fields, dict):
                    raise refused("body", "must be a JSON object", 'Write {"field": value}.')
                return await _merge(call, fields)
            case [_, _, _], "DELETE":
                await call.store.jobs.delete(call.project, [call.job], call.who)
                return empty()
            case [_, _, _, "auth"], "GET":
                return json(await self._token(call))
            case [_, _, _, field], "GET":
                return json((await _read(call)).get(field))
            case [_, _, _, field], "POST":
                _check_writable(field)
                return await _merge(call, {field: await bodies.document(call.request)})
            case [_, _, _, field], "DELETE":
                _check_writable(field)
                await call.store.jobs.remove_field(call.job, field)
                return empty()
            case (([_] | [_, _]), _):
                raise method_not_allowed("GET")
            case (([_, _, _] | [_, _, _, _]), _):
                raise method_not_allowed("GET", "POST", "DELETE")
            case _:
                raise NotFound

    async def _token(self, call: Call) -> str:
        if not call.grant.job:
            call.need_write(call.project)  # which is what the token does
        if await call.store.jobs.get(call.job) is None:
            raise _unknown(call.job)
        return await self._tokens.token(call.job)


async def _read(call: Call) -> dict[str, Any]:
    """The metadata of a job, empty when there is none: so clients learn that a job does not exist."""
    job = await call.store.jobs.get(call.job)
    return {} if job is None else job.metadata


async def _all(call: Call) -> AsyncIterator[Page]:
    """The metadata of the jobs of a project or a spider, in the order of their keys."""
    spider = path_number(call.path, 1, "spider") if len(call.path) > 1 else None
    meta, left = call.meta("_key"), call.number("count")
    async for jobs in call.store.jobs.scan(call.project, spider):
        shown = jobs if left is None else jobs[:left]
        yield [with_meta(msgspec.json.encode(job.metadata), [(name, str(job.key)) for name in meta]) for job in shown]
        left = None if left is None else left - len(shown)
        if left == 0:
            return


async def _merge(call: Call, fields: dict[str, Any]) -> Response:
    if not await call.store.jobs.merge(call.job, fields):
        raise _unknown(call.job)
    return empty()


def _whole(call: Call, metadata: dict[str, Any]) -> Response:
    """One object, on one line: what it is called depends on who asks."""
    kind = choose(call.query.get("format"), call.header(b"accept") or "")
    kind = kind if kind is Format.JSON else Format.JSON_LINES
    body = msgspec.json.encode(metadata) + b"\n"
    return Response(body, media_type=f"{CONTENT_TYPES[kind]}; charset=UTF-8")


def _unknown(key: JobKey) -> NotFound:
    return NotFound(f"Not Found. There is no job {key}.")


def _check_writable(field: str) -> None:
    if field in PROTECTED:
        raise refused(field, "cannot be written here", "States are changed by POST /jobq/<project>/update.")
