"""``/api/comments``: what people note on items (platform-api.md, Comments and logs).

The document gives the paths and leaves the rest open. Here it is so:

- ``POST /api/comments/<project>/<spider>/<job>/<item>[/<field>]``, form field ``text``: a comment on an item or on a
  field of it; the answer is the comment: ``id``, ``text``, ``created`` (UTC), ``author``. GET gives the comments there,
  oldest first; DELETE deletes them and answers ``{"status", "count"}``.
- ``GET /api/comments/<project>/<spider>/<job>``: an object with those of a job's items: arrays under ``<item>`` and
  ``<item>/<field>``.
- ``GET /api/comments/<project>/stats``: an object with the number of commented items of each job.
- GET, PUT (form field ``text``) and DELETE of ``/api/comments/<id>``. An id is text, ``<project>-<number>``.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.http.answers import NotFound, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call, path_number
from scrapy_ext.server.platform.jobs import Form, check_name, iso_time
from scrapy_ext.server.store.comments import Comment, Place

#: Characters of a comment.
MAX_TEXT: Final = 10_000


async def comments(call: Call) -> Response:
    """Answer a call. ``call.path`` begins with ``comments``."""
    match call.path[1:]:
        case [_]:
            return await _one(call)
        case [_, "stats"]:
            if call.method != "GET":
                raise method_not_allowed("GET")
            project = path_number(call.path, 1, "project")
            call.need(project)
            stats = await call.store.comments.stats(project)
            return json({str(job): items for job, items in stats.items()})
        case [_, _, _]:
            if call.method != "GET":
                raise method_not_allowed("GET")
            return await _of_job(call)
        case [_, _, _, _, *rest] if len(rest) < 2:
            return await _at(call, rest[0] if rest else "")
        case _:
            raise NotFound


def _shown(comment: Comment) -> dict[str, Any]:
    return {
        "id": f"{comment.place.item.project}-{comment.number}",
        "text": comment.content,
        "created": iso_time(comment.created),
        "author": comment.author,
    }


def _job(call: Call) -> JobKey:
    key = JobKey(*(path_number(call.path, place, name) for place, name in enumerate(("project", "spider", "job"), 1)))
    call.need(key.project)
    return key


async def _of_job(call: Call) -> Response:
    found: dict[str, list[dict[str, Any]]] = {}
    job = _job(call)
    for comment in await call.store.comments.of_job(job):
        item, field = comment.place.item.number, comment.place.field
        found.setdefault(f"{item}/{field}" if field else str(item), []).append(_shown(comment))
    return json(found)


async def _at(call: Call, field: str) -> Response:
    place = Place(_job(call).entity(path_number(call.path, 4, "item")), field)
    match call.method:
        case "GET":
            return json([_shown(comment) for comment in await call.store.comments.at(place)])
        case "POST":
            if field:
                check_name("field", field)
            added = await call.store.comments.add(place, call.who, await _text(call))
            call.wrote(1)
            return json(_shown(added), 201)
        case "DELETE":
            return json({"status": "ok", "count": await call.store.comments.clear(place)})
        case _:
            raise method_not_allowed("GET", "POST", "DELETE")


async def _one(call: Call) -> Response:
    project, number = _id(call.path[1])
    call.need(project)
    match call.method:
        case "GET":
            comment = await call.store.comments.get(project, number)
        case "PUT":
            comment = await call.store.comments.replace(project, number, await _text(call))
        case "DELETE":
            if not await call.store.comments.remove(project, number):
                raise _absent()
            return json({"status": "ok", "count": 1})
        case _:
            raise method_not_allowed("GET", "PUT", "DELETE")
    if comment is None:
        raise _absent()
    return json(_shown(comment))


def _absent() -> NotFound:
    return NotFound("There is no such comment.")


def _id(text: str) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) != 2:
        raise refused("comment", f"must be <project>-<number>, got {text[:60]!r}", "Use the id of a comment.")
    return path_number(parts, 0, "project"), path_number(parts, 1, "comment")


async def _text(call: Call) -> str:
    text = (Form(await call.form()).get("text") or "").strip()
    if not 0 < len(text) <= MAX_TEXT or "\0" in text:
        raise refused("text", f"must be 1 to {MAX_TEXT} characters, none of them NUL", "Send the form field text.")
    return text
