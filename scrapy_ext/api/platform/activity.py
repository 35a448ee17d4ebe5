"""Activity messages (platform-api.md, Other records; Events)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from scrapy_ext.api.platform.jobs import JobState

#: The events that the document names; the others are what the platform's real servers send too.
JOB_COMPLETED: Final = "job:completed"
JOB_CANCELLED: Final = "job:cancelled"

#: What is told when a job enters a state.
STATE_EVENTS: Final[Mapping[JobState, str]] = {
    JobState.PENDING: "job:scheduled",
    JobState.RUNNING: "job:started",
    JobState.FINISHED: JOB_COMPLETED,
    JobState.DELETED: "job:deleted",
}
#: A node has given a running job back, or was lost: it waits for another one. The next job:started is of the same job.
JOB_INTERRUPTED: Final = "job:interrupted"

#: What is told of periodic jobs that did not run as planned, or not all of them.
PERIODIC_ACTIVE: Final = "periodicjob:active"
PERIODIC_MISSED: Final = "periodicjob:missed"
PERIODIC_REFUSED: Final = "periodicjob:refused"


class JobEvent(msgspec.Struct):
    """A message that the platform writes itself. Clients may post any JSON object."""

    event: str
    job: str
    user: str


class PeriodicEvent(msgspec.Struct, omit_defaults=True):
    """A message about a periodic job; ``job`` is one that has not ended."""

    event: str
    user: str
    periodic_job_id: int
    message: str
    job: str | None = None
