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
#: Characters of a spider's name, and of a tag.
MAX_NAME: Final = 255
#: What the name of a script begins with, and what follows: the name of a file, without a folder.
SCRIPT: Final = "py:"
SCRIPT_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}"
#: Close reasons: of a job that did all it had to, of one that did not, and of a crawl that was asked to stop (of a
#: cancelled job, it becomes ``cancelled``).
FINISHED: Final = "finished"
FAILED: Final = "failed"
SHUTDOWN: Final = "shutdown"
#: The member of a job's metadata that has the stats of its crawl.
CRAWL_STATS: Final = "frameworkstats"
#: The setting of a job that bounds how long it runs (s).
JOB_TIMEOUT: Final = "PLATFORM_JOB_TIMEOUT"
#: What the platform answers (403) to an attempt at a job that the job is no longer in.
ATTEMPT_OVER: Final = "is over: its node was lost, or its process has ended"
#: Settings that the node gives to a job itself: where the services are, what opens them, and which job it is.
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
#: And environment variables; ``SHUB_`` and ``SH_`` are what clients of the hosted platform read.
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
    """Whether this can be a spider's name or a tag. Databases have no place for the character NUL."""
    return 0 < len(text) <= MAX_NAME and "\0" not in text


class JobState(str, Enum):
    """The states of a job."""

    PENDING = "pending"
    RUNNING = "running"
    FINISHED = "finished"
    DELETED = "deleted"


#: States of the jobs that lists show.
SHOWN_STATES: Final = (JobState.PENDING, JobState.RUNNING, JobState.FINISHED)
#: Changes that a job can make. A pending job can finish directly (it was cancelled). One that stopped before its
#: end is finished, and runs again when it is resumed.
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
    """The fields of a job's metadata that the document shows. Further ones may exist; they are kept.

    Times are milliseconds since the epoch.
    """

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
