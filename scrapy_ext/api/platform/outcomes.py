"""Outcomes of finished jobs: their close reasons in a few groups, by which pages colour and filter them."""

from __future__ import annotations

from enum import Enum
from typing import Final

from scrapy_ext.api.platform.jobs import FAILED, FINISHED, SHUTDOWN


class Outcome(str, Enum):
    """Group of close reasons; the value is that of filters."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LIMIT = "limit"
    OTHER = "other"


#: The groups in words.
OUTCOME_NAMES: Final = {
    Outcome.OK: "finished",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "cancelled or interrupted",
    Outcome.LIMIT: "over a limit",
    Outcome.OTHER: "another reason",
}
_BY_REASON: Final = {
    **dict.fromkeys(("", FINISHED), Outcome.OK),
    **dict.fromkeys(("cancelled", SHUTDOWN), Outcome.CANCELLED),
    **dict.fromkeys(
        ("timed out", "killed by oom", "memusage_exceeded", "extract_api_max_requests", "extract_api_max_cost"),
        Outcome.LIMIT,
    ),
    **dict.fromkeys(
        (FAILED, "spider_not_found", "script_not_found", "no_version", "build_failed", "node_lost"), Outcome.FAILED
    ),
}
#: Beginnings of other reasons: Scrapy's CloseSpider extension, signals, and failures of this package.
_BY_START: Final = {
    "closespider_": Outcome.LIMIT,
    "killed by ": Outcome.FAILED,
    "extract_api_": Outcome.FAILED,
    "platform_": Outcome.FAILED,
    "frontier_": Outcome.FAILED,
}


def outcome_of(reason: str | None) -> Outcome:
    """Return the group of a close reason; a job without one has finished."""
    text = reason or ""
    if (known := _BY_REASON.get(text)) is not None:
        return known
    return next((outcome for start, outcome in _BY_START.items() if text.startswith(start)), Outcome.OTHER)
