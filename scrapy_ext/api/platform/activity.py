"""Activity messages (platform-api.md, Other records; Events)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from scrapy_ext.api.platform.jobs import JobState

#: Events that the contract names; the others are those of the platform's real servers.
JOB_COMPLETED: Final = "job:completed"
JOB_CANCELLED: Final = "job:cancelled"

#: Event of a job that enters a state.
STATE_EVENTS: Final[Mapping[JobState, str]] = {
    JobState.PENDING: "job:scheduled",
    JobState.RUNNING: "job:started",
    JobState.FINISHED: JOB_COMPLETED,
    JobState.DELETED: "job:deleted",
}
#: A node returned a running job to the queue, or was lost. The job starts again on another node.
JOB_INTERRUPTED: Final = "job:interrupted"

#: Events of periodic jobs that did not run as planned, or not completely.
PERIODIC_ACTIVE: Final = "periodicjob:active"
PERIODIC_MISSED: Final = "periodicjob:missed"
PERIODIC_REFUSED: Final = "periodicjob:refused"


class JobEvent(msgspec.Struct, omit_defaults=True):
    """A message written by the platform itself. Clients may post any JSON object."""

    event: str
    job: str
    user: str
    #: Only for a finished job.
    close_reason: str | None = None


class PeriodicEvent(msgspec.Struct, omit_defaults=True):
    """A message about a periodic job; ``job`` is one that is still active."""

    event: str
    user: str
    periodic_job_id: int
    message: str
    job: str | None = None
