"""``/api/comments``: notes on items (platform-api.md, Comments and logs).

The contract gives the paths only, without ``/api``; both forms are served. The rules here:

- ``POST /api/comments/<project>/<spider>/<job>/<item>[/<field>]``, form field ``text``: a comment on an item or on a
  field of it; the answer is the comment: ``id``, ``text``, ``created`` (UTC), ``author``. GET returns the comments,
  oldest first; DELETE deletes them and returns ``{"status", "count"}``.
- ``GET /api/comments/<project>/<spider>/<job>``: an object with those of a job's items: arrays under ``<item>`` and
  ``<item>/<field>``.
- ``GET /api/comments/<project>/stats``: an object with the number of commented items of each job.
- GET, PUT (form field ``text``) and DELETE of ``/api/comments/<id>``. An id is text, ``<project>-<number>``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import found, json, not_found
from scrapy_ext.server.http.call import Call, path_number
from scrapy_ext.server.http.forms import Form, check_name
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.platform.jobs import iso_time
from scrapy_ext.server.store.comments import Comment, CommentSubject

#: Characters of a comment.
MAX_TEXT: Final = 10_000

ROUTES: Final = Routes()

_COMMENT: Final[schemas.Schema] = schemas.whole(
    id=schemas.PATH_PARTS["comment"], text=schemas.STRING, created=schemas.STRING, author=schemas.STRING
)
_COMMENTS: Final[schemas.Schema] = schemas.array(_COMMENT)
_DELETED: Final[schemas.Schema] = schemas.whole(status={"const": "ok"}, count=schemas.COUNTER)
_TEXT: Final = schemas.Body(schemas.FORM, schemas.whole(text={"type": "string", "minLength": 1, "maxLength": MAX_TEXT}))
_JOB: Final = "/api/comments/{project}/{spider}/{job}"
_PLACE: Final = f"{_JOB}/{{item}}[/{{field}}]"
_ONE: Final = "/api/comments/{comment}"


def _shown(comment: Comment) -> dict[str, Any]:
    return {
        "id": f"{comment.subject.item.project}-{comment.number}",
        "text": comment.content,
        "created": iso_time(comment.created),
        "author": comment.author,
    }


@ROUTES.add(
    "GET /api/comments/{project}/stats",
    "Count the items with comments.",
    schemas.value("The number for each job.", {"type": "object", "additionalProperties": schemas.COUNTER}),
)
async def _stats(call: Call) -> Response:
    stats = await call.store.comments.stats(call.project)
    return json({str(job): items for job, items in stats.items()})


@ROUTES.add(
    f"GET {_JOB}",
    "Read the comments on the items of a job.",
    schemas.value("Comments by <item> and <item>/<field>.", {"type": "object", "additionalProperties": _COMMENTS}),
)
async def _of_job(call: Call) -> Response:
    comments: dict[str, list[dict[str, Any]]] = {}
    for comment in await call.store.comments.of_job(call.job):
        item, field = comment.subject.item.number, comment.subject.field
        comments.setdefault(f"{item}/{field}" if field else str(item), []).append(_shown(comment))
    return json(comments)


def _place(call: Call) -> CommentSubject:
    field = call.part("field") if call.has_part("field") else ""
    return CommentSubject(call.job.entity(call.part_number("item")), field)


@ROUTES.add(
    f"GET {_PLACE}", "Read the comments on an item or a field, oldest first.", schemas.value("The comments.", _COMMENTS)
)
async def _at(call: Call) -> Response:
    return json([_shown(comment) for comment in await call.store.comments.at(_place(call))])


@ROUTES.add(
    f"POST {_PLACE}",
    "Comment on an item or a field.",
    schemas.value("The comment.", _COMMENT),
    status=201,
    body=_TEXT,
    action=Action.TAG,
    event=ChangeEvents.COMMENT_CHANGED,
)
async def _add(call: Call) -> Response:
    place = _place(call)
    if place.field:
        check_name("field", place.field)
    added = await call.store.comments.add(place, call.who, await _text(call))
    call.wrote(1)
    return json(_shown(added), 201)


@ROUTES.add(
    f"DELETE {_PLACE}",
    "Delete the comments on an item or a field.",
    schemas.value("The number of them.", _DELETED),
    action=Action.TAG,
    event=ChangeEvents.COMMENT_CHANGED,
)
async def _clear(call: Call) -> Response:
    return json({"status": "ok", "count": await call.store.comments.clear(_place(call))})


@ROUTES.add(f"GET {_ONE}", "Read a comment.", schemas.value("The comment.", _COMMENT))
async def _read(call: Call) -> Response:
    comment = _id(call)
    return json(_shown(found(await call.store.comments.get(*comment), _missing(call))))


@ROUTES.add(
    f"PUT {_ONE}",
    "Replace the text of a comment.",
    schemas.value("The comment.", _COMMENT),
    body=_TEXT,
    action=Action.TAG,
    event=ChangeEvents.COMMENT_CHANGED,
)
async def _replace(call: Call) -> Response:
    comment = _id(call)
    return json(_shown(found(await call.store.comments.replace(*comment, await _text(call)), _missing(call))))


@ROUTES.add(
    f"DELETE {_ONE}",
    "Delete a comment.",
    schemas.value("It is deleted.", _DELETED),
    action=Action.TAG,
    event=ChangeEvents.COMMENT_CHANGED,
)
async def _remove(call: Call) -> Response:
    comment = _id(call)
    if not await call.store.comments.remove(*comment):
        raise not_found(_missing(call))
    return json({"status": "ok", "count": 1})


def _id(call: Call) -> tuple[int, int]:
    """Return the project, after a check of the key, and the number of a comment."""
    text = call.part("comment")
    parts = text.split("-")
    if len(parts) != 2:
        raise refused("comment", f"must be <project>-<number>, got {text[:60]!r}", "Use the id of a comment.")
    project, number = path_number(parts[0], "project"), path_number(parts[1], "comment")
    call.need(project)
    return project, number


async def _text(call: Call) -> str:
    text = (Form(await call.form()).get("text") or "").strip()
    if not 0 < len(text) <= MAX_TEXT or "\0" in text:
        raise refused("text", f"must be 1 to {MAX_TEXT} characters, none of them NUL", "Send the form field text.")
    return text


def _missing(call: Call) -> str:
    return f"There is no comment {call.part('comment')[:60]}. Use an id of the comments of its item."


ROUTES.extend([replace(each, path=each.path.removeprefix("/api")) for each in ROUTES])
