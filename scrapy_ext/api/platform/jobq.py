"""The job queue (platform-api.md, Finished-job queue), with further calls of its real clients."""

from __future__ import annotations

from typing import Any, Final

import msgspec

#: Maximum jobs in an answer of ``list``, and its default.
MAX_LIST: Final = 1000


class QueueEntry(msgspec.Struct, omit_defaults=True):
    """A line of ``/jobq/<project>/list``; ``ts`` is when the job entered its state, in milliseconds.

    ``items``, ``pages`` (request records), ``logs`` and ``errors`` count the job's records.
    """

    key: str
    ts: int
    state: str | None = None
    spider: str | None = None
    elapsed: int | None = None
    pending_time: int | None = None
    running_time: int | None = None
    finished_time: int | None = None
    tags: list[str] | None = None
    close_reason: str | None = None
    version: str | None = None
    items: int | None = None
    pages: int | None = None
    logs: int | None = None
    errors: int | None = None


class PushedJob(msgspec.Struct):
    """A line of the answer of ``/jobq/<project>/push``: the new job, with its token if it is pushed as running."""

    key: str
    auth: str | None = None


class RefusedPush(msgspec.Struct):
    """The line of a job refused because one with the same ``unique`` is active: the request and the error."""

    request: dict[str, Any]
    error: str
