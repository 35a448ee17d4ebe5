"""``/imports``: projects that are copied from another platform. The hosted platform does not have these calls.

They store jobs under given keys and records with given times, which no other call can. They need an API key that may
write to the project; the tokens of jobs do not suffice.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform import imports
from scrapy_ext.api.platform.collections import check_name as check_collection
from scrapy_ext.api.platform.collections import parse_type
from scrapy_ext.api.platform.imports import BegunImport, FinishedImport, ImportedSpider, TimeRun
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.platform.records import LogRecord, RequestRecord
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import Refusal, empty, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import check_name, check_tags
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.platform import ingestion
from scrapy_ext.server.platform.jobs import answer
from scrapy_ext.server.store.collections.selections import Collection
from scrapy_ext.server.store.collections.writes import Copy, checked
from scrapy_ext.server.store.jobs.imported import ImportedRecords
from scrapy_ext.server.store.records.records import RecordStore

#: Maximum length of the name of a source, and of a comment.
_MAX_SOURCE: Final = 400
_MAX_TEXT: Final = 10_000

ROUTES: Final = Routes()

_JOB: Final = "/imports/{project}/{spider}/{job}"
_TIMES: Final = schemas.Parameter(
    imports.TIMES_HEADER,
    "the times of the records: <records>:<milliseconds> for each run of equal ones, joined by commas",
    {"type": "string", "pattern": r"^[1-9][0-9]{0,8}:[0-9]{1,18}(,[1-9][0-9]{0,8}:[0-9]{1,18})*$"},
    "header",
)
_CHECKERS: Final = {
    "items": (ingestion.ITEM, schemas.OBJECT),
    "requests": (ingestion.REQUEST, RequestRecord),
    "logs": (ingestion.LOG, LogRecord),
    "samples": (ingestion.SAMPLE, {"type": "array"}),
}


@ROUTES.add(
    "POST /imports/{project}/spiders",
    "Add spiders with their tags. A new one gets the number of the source if it is free.",
    schemas.lines("The spiders with their numbers here.", ImportedSpider),
    parameters=schemas.SHAPING,
    body=schemas.json_lines(
        schemas.record({"name": schemas.NAME, "number": schemas.NUMBER, "tags": schemas.array(schemas.NAME)}, "name"),
        f"At most {imports.MAX_SPIDERS} spiders.",
    ),
)
async def _spiders(call: Call) -> Response:
    project, spiders = call.project, list[ImportedSpider]()
    for number, _, record in await json_bodies.objects(call.request, most=imports.MAX_SPIDERS):
        spider = _converted(record, ImportedSpider, f"line {number}")
        check_name(f"line {number}: name", spider.name)
        check_tags(f"line {number}: tags", spider.tags)
        if spider.number is not None and not 0 <= spider.number <= MAX_NUMBER:
            raise refused(
                f"line {number}: number", f"must be 0 to {MAX_NUMBER}", "Send such a number, or leave it out."
            )
        spiders.append(spider)
    numbers = await call.store.imports.add_spiders(project, spiders)
    return await answer(
        call, [ImportedSpider(each.name, number) for each, number in zip(spiders, numbers, strict=True)]
    )


@ROUTES.add(
    f"POST {_JOB}",
    "Add a job of a source under this key, or continue its import.",
    schemas.value("The job, and the first and the next index of its records by kind.", BegunImport),
    body=schemas.Body(
        schemas.JSON,
        schemas.record({"source": schemas.NAME, "reserved": schemas.COUNTER}, "source"),
        "source: host and key of the job there. reserved: free job numbers after this one (default: "
        f"{imports.RESERVED}).",
    ),
    errors=(409,),
)
async def _begin(call: Call) -> Response:
    fields = await json_bodies.fields_of(call.request, '{"source": "app.example.com/1/2/3"}')
    source, reserved = _source(fields.get("source")), fields.get("reserved", imports.RESERVED)
    if isinstance(reserved, bool) or not isinstance(reserved, int) or not 0 <= reserved <= imports.MAX_RESERVED:
        raise refused("reserved", f"must be a whole number, 0 to {imports.MAX_RESERVED}", "Send 0 to reserve none.")
    job, origin, indexes = await call.store.imports.begin(call.job, source, reserved, call.who)
    ranges = {kind: (found.start, found.stop) for kind, found in indexes.items()}
    return json(BegunImport(str(job.key), job.state.value, origin.copied, ranges))


def _source(given: object) -> str:
    if not isinstance(given, str) or not 0 < len(given) <= _MAX_SOURCE or not given.isprintable():
        raise refused("source", f"must be 1 to {_MAX_SOURCE} characters", "Send the host and the key of the job there.")
    return given


def _declare(kind: str) -> None:
    checker, shape = _CHECKERS[kind]
    ROUTES.add(
        f"POST {_JOB}/{kind}",
        f"Store {kind} of an imported job, with their times.",
        schemas.DONE,
        parameters=(
            schemas.Parameter("start", "the number of the first record", schemas.COUNTER, required=True),
            _TIMES,
        ),
        body=schemas.json_lines(shape),
        errors=(409,),
    )(partial(_write, kind, checker))


async def _write(kind: str, checker: ingestion.RecordChecker, call: Call) -> Response:
    key, start = call.job, call.number("start")
    if start is None:
        raise refused("start", "is required", "Send the number of the first record.")
    store: RecordStore = getattr(call.store, kind)
    times = _times(call)
    chunks = await ingestion.packed(call.request, checker, store.kind)
    records = sum(chunk.records for chunk in chunks)
    _check_times(times, records)
    await call.store.imports.write(store.kind, key, ImportedRecords(start, chunks, times))
    call.wrote(records)
    return empty()


def _times(call: Call) -> list[TimeRun]:
    header = call.header(imports.TIMES_HEADER.lower().encode())
    return [] if header is None else imports.parse_times(header)


def _check_times(times: list[TimeRun], records: int) -> None:
    if times and sum(run.records for run in times) != records:
        rule = f"has the times of {sum(run.records for run in times)} records, and the body has {records}"
        raise refused(imports.TIMES_HEADER, rule, "Send a time for each record.")


for _kind in imports.RECORD_KINDS:
    _declare(_kind)


@ROUTES.add(
    f"POST {_JOB}/finish",
    "Complete an imported job: it gets the metadata, the state and the times of its source.",
    schemas.DONE,
    body=schemas.Body(schemas.JSON, FinishedImport),
    errors=(409,),
)
async def _finish(call: Call) -> Response:
    fields = await json_bodies.fields_of(call.request, '{"source": "…", "metadata": {}, "copied": ["items"]}')
    end = _converted(fields, FinishedImport, "body")
    _source(end.source)
    for comment in end.comments:
        if min(comment.item, comment.created) < 0 or max(comment.item, comment.created) > MAX_NUMBER:
            raise refused(
                "comments",
                "have an item or a time that is no number of either",
                "Send the index of the item, and milliseconds since 1970.",
            )
        if comment.field:
            check_name("comments: field", comment.field)
        if not 0 < len(comment.text) <= _MAX_TEXT or "\0" in comment.text + comment.author:
            raise refused(
                "comments", f"must be 1 to {_MAX_TEXT} characters, none of them NUL", "Send the text of each comment."
            )
    for name, kinds in (("copied", end.copied), ("missing", end.missing)):
        if not set(kinds) <= {*imports.RECORD_KINDS, imports.COMMENTS}:
            raise refused(
                name, f"must have only {', '.join(imports.RECORD_KINDS)} and comments", "Leave out the others."
            )
    await call.store.imports.finish(call.job, end, call.who)
    call.wrote(1)
    return empty()


def _converted(fields: dict[str, Any], kind: type[Any], place: str) -> Any:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise refused(
            place, f"is not as expected: {error}", "Send the fields of the OpenAPI document, /openapi.json."
        ) from None


@ROUTES.add(
    "POST /imports/{project}/collections/{type}/{collection}",
    "Store records of a collection with their times. Lines with the same key are its copies, the oldest first. Newer "
    "records that are stored already remain.",
    schemas.DONE,
    parameters=(_TIMES,),
    body=schemas.json_lines(schemas.whole(_key=schemas.NAME)),
)
async def _write_collection(call: Call) -> Response:
    name = call.part("collection")
    check_collection(name)
    which, times = Collection(call.project, parse_type(call.part("type")), name), _times(call)
    given = checked(await json_bodies.objects(call.request, most=imports.MAX_RECORDS), None)
    _check_times(times, len(given))
    if not times:
        raise Refusal(
            400, f"Bad Request. The header {imports.TIMES_HEADER} is required. Send <records>:<milliseconds> in it."
        )
    records: dict[bytes, list[Copy]] = {}
    stored_at = (run.ts for run in times for _ in range(run.records))
    for (key, value), ts in zip(given, stored_at, strict=True):
        records.setdefault(key, []).append((ts, value))
    await call.store.collection_imports.write(which, records)
    call.wrote(len(given))
    return empty()
