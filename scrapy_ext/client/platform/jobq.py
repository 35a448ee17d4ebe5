"""The job queue (platform-api.md, Finished-job queue), with ``push`` and ``update``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack, cast

import msgspec

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import PushedJob, QueueEntry
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.platform.answers import Answer
from scrapy_ext.client.platform.calls import ClientCall, Value, get, path, post
from scrapy_ext.client.platform.errors import NotFound, UnexpectedAnswer
from scrapy_ext.client.platform.resource import Resource

Strings = str | Sequence[str] | None


class JobFilters(TypedDict, total=False):
    """Conditions on jobs. ``state``: without it, finished jobs."""

    spider: str | None
    state: Strings
    startts: int | None
    endts: int | None
    has_tag: Strings
    lacks_tag: Strings


class JobQueue(Resource):
    """The jobs of projects by state."""

    async def push(self, project: int, spider: str, *, state: str = "running", **metadata: Any) -> PushedJob:
        """Create a job in this state (``running`` or ``pending``), with further metadata such as ``spider_args``,
        ``tags``, ``priority``. Sent once: a second attempt could create a second job."""
        call = self._post(project, "push", {"spider": spider, "state": state, **metadata}, repeatable=False)
        return await self._transport.read(call, lambda answer: _pushed(call, answer))

    async def update(self, project: int, key: JobKey, **fields: Any) -> str | None:
        """Set ``state`` and any metadata of a job. Returns its former state; raises
        :class:`~scrapy_ext.client.platform.errors.NotFound` for a job that does not exist."""
        call = self._post(project, "update", {"key": str(key), **fields})
        changed = await self._lines(call, dict)
        if not changed:
            raise call.error(NotFound, f"there is no job {key}", 404)
        state = changed[0].get("prevstate")
        return state if isinstance(state, str) else None

    async def list(
        self,
        project: int,
        *,
        count: int | None = None,
        start: int | None = None,
        stop: JobKey | None = None,
        key: Sequence[JobKey | str] = (),
        **filters: Unpack[JobFilters],
    ) -> list[QueueEntry]:
        """Return jobs from the most recent to the oldest; at most 1000 a call."""
        call = get(
            Host.JOBQ,
            path("jobq", project, "list"),
            *_parameters(filters),
            ("count", count),
            ("start", start),
            ("stop", None if stop is None else str(stop)),
            ("key", [str(one) for one in key]),
        )
        return await self._lines(call, QueueEntry)

    async def count(self, project: int, **filters: Unpack[JobFilters]) -> int:
        call = get(Host.JOBQ, path("jobq", project, "count"), *_parameters(filters), accept="text/plain")
        return await self._json(call, int)

    @staticmethod
    def _post(project: int, action: str, body: dict[str, Any], *, repeatable: bool = True) -> ClientCall:
        where = path("jobq", project, action)
        return post(Host.JOBQ, where, msgspec.json.encode(body) + b"\n", repeatable=repeatable)


def _parameters(filters: JobFilters) -> tuple[tuple[str, Value], ...]:
    return tuple(cast("dict[str, Value]", filters).items())


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
