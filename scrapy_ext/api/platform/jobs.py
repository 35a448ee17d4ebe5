"""Jobs: states, the record of the job list, job metadata (platform-api.md, Job; Job metadata; Jobs)."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

MIN_PRIORITY: Final = 0
MAX_PRIORITY: Final = 4
DEFAULT_PRIORITY: Final = 2
MIN_UNITS: Final = 1
MAX_UNITS: Final = 6
DEFAULT_UNITS: Final = 1
#: Maximum characters of a spider's name, and of a tag.
MAX_NAME: Final = 255
#: Prefix of the name of a script, and the pattern of the file name that follows.
SCRIPT: Final = "py:"
SCRIPT_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}"
#: Close reasons of a complete job, a failed one, and an interrupted crawl (``cancelled`` if the job was cancelled).
FINISHED: Final = "finished"
FAILED: Final = "failed"
SHUTDOWN: Final = "shutdown"
#: Member of a job's metadata with the stats of its crawl.
CRAWL_STATS: Final = "frameworkstats"
#: The setting that limits the run time of a job (s).
JOB_TIMEOUT: Final = "PLATFORM_JOB_TIMEOUT"
#: Message (403) for an attempt that the job has left.
ATTEMPT_OVER: Final = "is over: its node was lost, or its process has ended"
#: Settings that the node sets for a job: service URLs, keys, and the job's identity.
RESERVED_SETTINGS: Final = frozenset(
    {
        "PLATFORM_URL",
        "PLATFORM_APP_URL",
        "PLATFORM_STORAGE_URL",
        "PLATFORM_JOBQ_URL",
        "PLATFORM_API_KEY",
        "PLATFORM_PROJECT",
        "PLATFORM_JOB",
    }
)
#: Environment variables that the node sets; clients of the hosted platform read ``SHUB_`` and ``SH_``.
RESERVED_ENVIRONMENT: Final = RESERVED_SETTINGS | {
    "EXTRACT_API_URL",
    "EXTRACT_API_KEY",
    "SHUB_JOBKEY",
    "SHUB_APIURL",
    "SHUB_STORAGE",
    "SHUB_JOBQ",
    "SH_APIKEY",
}
#: Parameters of ``run.json`` that are not spider arguments.
RUN_PARAMETERS: Final = (
    "project",
    "spider",
    "jobq_id",
    "add_tag",
    "priority",
    "job_settings",
    "units",
    "meta",
    "environment",
    "cmd_args",
    "apikey",
)


def is_name(text: str) -> bool:
    """Return true for a possible name of a spider or tag. Databases cannot store NUL."""
    return 0 < len(text) <= MAX_NAME and "\0" not in text


class JobState(str, Enum):
    PENDING = "pending"
    RUNNING = "running"
    FINISHED = "finished"
    DELETED = "deleted"


#: States of the jobs that lists show.
SHOWN_STATES: Final = (JobState.PENDING, JobState.RUNNING, JobState.FINISHED)
#: Allowed state changes. A cancelled pending job finishes directly. An interrupted job is finished and runs again when
#: it is resumed.
TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.FINISHED, JobState.DELETED}),
    JobState.RUNNING: frozenset({JobState.FINISHED, JobState.DELETED}),
    JobState.FINISHED: frozenset({JobState.RUNNING, JobState.DELETED}),
    JobState.DELETED: frozenset(),
}


class Job(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A row of ``/api/jobs/list.json``. Times are UTC without a zone; ``elapsed`` is in milliseconds."""

    id: str
    spider: str
    spider_type: str | None = None
    state: str
    close_reason: str | None = None
    priority: int
    tags: list[str]
    version: str | None = None
    started_time: str | None = None
    updated_time: str
    elapsed: int | None = None
    responses_received: int
    items_scraped: int
    logs: int
    errors_count: int
    spider_args: dict[str, Any] | None = None


class JobList(msgspec.Struct):
    """The answer of ``/api/jobs/list.json``: ``count`` jobs of ``total``."""

    status: str
    count: int
    total: int
    jobs: list[Job]


class JobMetadata(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Metadata fields that the contract shows; further ones are kept. Times are milliseconds since the epoch."""

    project: int
    spider: str
    state: str
    spider_type: str | None = None
    spider_args: dict[str, Any] | None = None
    priority: int = DEFAULT_PRIORITY
    units: int = DEFAULT_UNITS
    tags: list[str] | None = None
    version: str | None = None
    deploy_id: int | None = None
    pending_time: int | None = None
    running_time: int | None = None
    finished_time: int | None = None
    close_reason: str | None = None
    scheduled_by: str | None = None
    started_by: str | None = None
    completed_by: str | None = None
    frameworkstats: dict[str, Any] | None = None


# ── the job queue (platform-api.md, Finished-job queue), with further calls of its real client ──

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
