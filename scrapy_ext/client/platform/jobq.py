"""The job queue (platform-api.md, Finished-job queue), with ``push`` and ``update``, which its clients need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.jobq import PushedJob, QueueEntry
from scrapy_ext.client.platform.answers import Answer
from scrapy_ext.client.platform.calls import ClientCall, get
from scrapy_ext.client.platform.errors import NotFound, UnexpectedAnswer
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import Value, path

Strings = str | Sequence[str] | None


class JobQueue:
    """The jobs of projects by state."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def push(self, project: int, spider: str, *, state: str = "running", **metadata: Any) -> PushedJob:
        """Make a job in this state (``running`` or ``pending``), with further metadata such as ``spider_args``,
        ``tags``, ``priority``. Sent once: a second try could make a second job."""
        call = self._post(project, "push", {"spider": spider, "state": state, **metadata}, repeatable=False)
        return await self._transport.read(call, lambda answer: _pushed(call, answer))

    async def update(self, project: int, key: JobKey, **fields: Any) -> str | None:
        """Set ``state`` and any metadata of a job. Returns the state it was in; raises
        :class:`~scrapy_ext.client.platform.errors.NotFound` for a job that does not exist."""
        call = self._post(project, "update", {"key": str(key), **fields})
        changed = await self._transport.read(call, lambda answer: answer.lines(dict))
        if not changed:
            raise call.error(NotFound, f"there is no job {key}", 404)
        state = changed[0].get("prevstate")
        return state if isinstance(state, str) else None

    async def list(
        self,
        project: int,
        *,
        spider: str | None = None,
        state: Strings = None,
        startts: int | None = None,
        endts: int | None = None,
        count: int | None = None,
        start: int | None = None,
        stop: JobKey | None = None,
        key: Sequence[JobKey | str] = (),
        has_tag: Strings = None,
        lacks_tag: Strings = None,
    ) -> list[QueueEntry]:
        """Jobs from the most recent to the oldest, finished ones unless ``state`` says else; at most 1000 a call."""
        call = get(
            Host.JOBQ,
            path("jobq", project, "list"),
            *_filters(spider=spider, state=state, startts=startts, endts=endts, has_tag=has_tag, lacks_tag=lacks_tag),
            ("count", count),
            ("start", start),
            ("stop", None if stop is None else str(stop)),
            ("key", [str(one) for one in key]),
        )
        return await self._transport.read(call, lambda answer: answer.lines(QueueEntry))

    async def count(
        self,
        project: int,
        *,
        spider: str | None = None,
        state: Strings = None,
        startts: int | None = None,
        endts: int | None = None,
        has_tag: Strings = None,
        lacks_tag: Strings = None,
    ) -> int:
        """How many jobs there are, finished ones unless ``state`` says else."""
        filters = _filters(
            spider=spider, state=state, startts=startts, endts=endts, has_tag=has_tag, lacks_tag=lacks_tag
        )
        call = get(Host.JOBQ, path("jobq", project, "count"), *filters, accept="text/plain")
        return await self._transport.read(call, lambda answer: answer.json(int))

    @staticmethod
    def _post(project: int, action: str, body: dict[str, Any], *, repeatable: bool = True) -> ClientCall:
        return ClientCall(
            method="POST",
            host=Host.JOBQ,
            path=path("jobq", project, action),
            body=msgspec.json.encode(body) + b"\n",
            repeatable=repeatable,
        )


def _pushed(call: ClientCall, answer: Answer) -> PushedJob:
    pushed = answer.lines(dict)
    if not pushed:
        raise call.error(UnexpectedAnswer, "no job in the answer", answer.status)
    if pushed[0].get("error"):
        raise answer.error(str(pushed[0]["error"]))
    try:
        return msgspec.convert(pushed[0], PushedJob)
    except msgspec.ValidationError as error:
        raise call.error(UnexpectedAnswer, f"no job in the answer: {error}", answer.status) from None


def _filters(
    *,
    spider: str | None,
    state: Strings,
    startts: int | None,
    endts: int | None,
    has_tag: Strings,
    lacks_tag: Strings,
) -> tuple[tuple[str, Value], ...]:
    return (
        ("spider", spider),
        ("state", state),
        ("startts", startts),
        ("endts", endts),
        ("has_tag", has_tag),
        ("lacks_tag", lacks_tag),
    )
