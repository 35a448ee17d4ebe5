"""Why a job has ended, as its ``close_reason`` says it."""

from __future__ import annotations

import signal
from typing import Final

from scrapy_ext.api.platform.jobs import FAILED, FINISHED
from scrapy_ext.jobprocess.messages import NO_SPIDER

SPIDER_NOT_FOUND: Final = "spider_not_found"
SCRIPT_NOT_FOUND: Final = "script_not_found"
NO_VERSION: Final = "no_version"
BUILD_FAILED: Final = "build_failed"
TIMED_OUT: Final = "timed out"
OUT_OF_MEMORY: Final = "killed by oom"


def reason_of(status: int, *, script: bool) -> str | None:
    """The reason by the exit status of the process; None: what the process has said itself, if anything."""
    if status == NO_SPIDER and not script:
        return SPIDER_NOT_FOUND
    if status < 0:
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"
    if script:  # which has no platform to tell
        return FAILED if status else FINISHED
    return None
