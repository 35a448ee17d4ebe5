"""Activity messages (platform-api.md, Other records; Events)."""

from __future__ import annotations

from typing import Final

import msgspec

JOB_COMPLETED: Final = "job:completed"
JOB_CANCELLED: Final = "job:cancelled"


class JobEvent(msgspec.Struct):
    """A message that the platform writes itself. Clients may post any JSON object."""

    event: str
    job: str
    user: str
