"""The job queue (platform-api.md, Finished-job queue), with the calls that its real clients need beside it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

#: ``list`` answers with at most this many jobs, also when no ``count`` is given.
MAX_LIST: Final = 1000


class QueueEntry(msgspec.Struct, omit_defaults=True):
    """A line of ``/jobq/<project>/list``; ``ts`` is when the job entered its state, in milliseconds.

    ``items``, ``pages`` (request records), ``logs`` and ``errors`` count what the job has stored.
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
    """A line of the answer of ``/jobq/<project>/push``: the new job, and its token when it is pushed as running."""

    key: str
    auth: str | None = None


class RefusedPush(msgspec.Struct):
    """The line of a job that was not made because one like it (``unique``) is active: what was sent, and why not."""

    request: dict[str, Any]
    error: str
