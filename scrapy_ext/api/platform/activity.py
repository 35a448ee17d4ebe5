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


class JobEvent(msgspec.Struct):
    """A message that the platform writes itself. Clients may post any JSON object."""

    event: str
    job: str
    user: str
