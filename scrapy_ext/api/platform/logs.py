"""Log records. The contract names only their path; the record is that of real clients."""

from __future__ import annotations

from typing import Final

import msgspec

#: Python's log levels, DEBUG to CRITICAL.
LEVELS: Final = (10, 20, 30, 40, 50)


class LogRecord(msgspec.Struct, kw_only=True):
    """A line of a job's log; ``time`` in milliseconds."""

    time: int
    level: int
    message: str
