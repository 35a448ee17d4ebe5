"""``/jobq``: the job queue (platform-api.md, Finished-job queue; pushing and updating as its real clients do it)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobq import MAX_LIST, PushedJob, QueueEntry
from scrapy_ext.api.platform.jobs import DEFAULT_PRIORITY, DEFAULT_UNITS, JobState
from scrapy_ext.server.platform import bodies
from scrapy_ext.server.platform.access import JobTokens
from scrapy_ext.server.platform.answers import JSON, NotFound, method_not_allowed, refused
from scrapy_ext.server.platform.calls import Call
from scrapy_ext.server.platform.formats import Page as Lines
from scrapy_ext.server.platform.formats import result
from scrapy_ext.server.platform.jobs import job_filter, own_key, parse_state
from scrapy_ext.server.store.job_queries import JobFilter, Page, StoredJob, tags_of
from scrapy_ext.server.store.jobs import Change, DuplicateJobError

_FINISHED = (JobState.FINISHED,)


class JobQueue:
    """The resource."""

    def __init__(self, tokens: JobTokens) -> None:
        self._tokens = tokens

    async def __call__(self, call: Call) -> Response:
        """Answer a call."""
        match call.path, call.method:
            case [_, "count"], "GET":
                count = await call.store.jobs.count(call.project, _filter(call))
                return Response(str(count), media_type=JSON)
            case [_, "list"], "GET":
                return await _list(call)
            case [_, "push"], "POST":
                return await self._push(call)
            case [_, "update"], "POST":
                return await _update(call)
            case [_, "count" | "list"], _:
                raise method_not_allowed("GET")
            case [_, "push" | "update"], _:
                raise method_not_allowed("POST")
            case _:
                raise NotFound

    async def _push(self, call: Call) -> Response:
        project = call.project
        requests = [(number, record) for number, _, record in await bodies.objects(call.request)]
        for number, record in requests:  # all are checked before the first is stored
            _check_push(record, f"line {number}")
        pushed = [await self._push_one(call, project, record) for _, record in requests]

        async def pages() -> AsyncIterator[Lines]:
            yield [msgspec.json.encode(line) for line in pushed]

        return await result(call, pages())

    async def _push_one(self, call: Call, project: int, record: dict[str, Any]) -> PushedJob | dict[str, Any]:
        state = JobState(record.get("state", JobState.PENDING.value))
        unique = record.get("unique")
        metadata = {
            "priority": DEFAULT_PRIORITY,
            "units": DEFAULT_UNITS,
            **{name: value for name, value in record.items() if name not in ("spider", "state", "unique")},
        }
        unique_key = None if unique is None else f"push {unique}"
        try:
            key = await call.store.jobs.add(
                project, record["spider"], state, metadata, by=call.who, unique_key=unique_key
            )
        except DuplicateJobError as error:
            return {"request": record, "error": str(error)}
        return PushedJob(str(key), await self._tokens.token(key) if state is JobState.RUNNING else None)


def _check_push(record: dict[str, Any], place: str) -> None:
    spider = record.get("spider")
    if not isinstance(spider, str) or not 0 < len(spider) <= 255:
        raise refused(place, "spider must be a name of 1 to 255 characters", "Name the spider.")
    parse_state(record.get("state", JobState.PENDING.value), f"{place}: state")
    tags = record.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise refused(place, "tags must be an array of strings", 'Write "tags": ["a"].')


def _filter(call: Call) -> JobFilter:
    """Finished jobs, unless states are named: the queue is of those."""
    return job_filter(call, _FINISHED)


async def _list(call: Call) -> Response:
    project, stop = call.project, call.query.get("stop")
    keys = tuple(own_key(text, project, "key") for text in call.all("key"))
    which = job_filter(call, tuple(JobState) if keys else _FINISHED)._replace(keys=keys)
    page = Page(
        min(call.number("count", MAX_LIST) or 0, MAX_LIST),
        call.number("start", 0) or 0,
        own_key(stop, project, "stop") if stop is not None else None,
    )
    jobs = await call.store.jobs.listed(project, which, page)
    now = call.store.clock()

    async def pages() -> AsyncIterator[Lines]:
        yield [msgspec.json.encode(_entry(job, now)) for job in jobs]

    return await result(call, pages())


def _entry(job: StoredJob, now: int) -> QueueEntry:
    metadata = job.metadata

    def time(name: str) -> int | None:
        value = metadata.get(name)
        return value if isinstance(value, int) else None

    reason = metadata.get("close_reason")
    return QueueEntry(
        key=str(job.key),
        ts=job.changed,
        state=job.state.value,
        spider=job.spider,
        elapsed=now - job.changed,
        pending_time=time("pending_time"),
        running_time=time("running_time"),
        finished_time=time("finished_time"),
        tags=tags_of(metadata) or None,
        close_reason=reason if isinstance(reason, str) else None,
    )


async def _update(call: Call) -> Response:
    changes = []
    for number, _, record in await bodies.objects(call.request):
        key = own_key(str(record.get("key", "")), call.project, f"line {number}: key")
        state = parse_state(record["state"], f"line {number}: state") if "state" in record else None
        changes.append(Change(key, state, record))
    previous = await call.store.jobs.change(changes, call.who)
    lines = [
        msgspec.json.encode({"prevstate": state.value, "key": str(change.key)})
        for change, state in zip(changes, previous, strict=True)
        if state is not None
    ]

    async def pages() -> AsyncIterator[Lines]:
        yield lines

    return await result(call, pages())
