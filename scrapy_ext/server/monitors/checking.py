"""Evaluation of checks: measures of a job, limits, and sentences that a person understands. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from scrapy_ext.api.platform.comparison import median
from scrapy_ext.api.platform.monitor_checks import Check, shown
from scrapy_ext.api.platform.monitors import FAILED, NOT_APPLICABLE, PASSED, CheckResult
from scrapy_ext.server.store.monitors.facts import JobFacts

_STATUS: Final = "downloader/response_status_count/"
_RELATIONS: Final = {">=": "at least", "<=": "at most", "==": "exactly"}
#: Kind of records that a measure needs.
_KINDS: Final = {"items": "items", "coverage": "items", "requests": "requests", "errors": "logs", "warnings": "logs"}


class Unmeasured(Exception):  # noqa: N818 - an answer, not a failure
    """A job has no value of a measure; the message has the reason."""


def check_result(check: Check, job: JobFacts, earlier: Sequence[JobFacts]) -> CheckResult:
    """Return the result of a check for a job. ``earlier``: runs for its median, newest first."""
    text = str(check)
    try:
        value = measure(check, job)
        limit, runs = _limit(check, earlier)
    except Unmeasured as reason:
        return CheckResult(check=text, outcome=NOT_APPLICABLE, sentence=f"{check.subject}: {reason}")
    holds = check.holds(value, limit)
    return CheckResult(
        check=text,
        outcome=PASSED if holds else FAILED,
        sentence=_sentence(check, value, limit, runs),
        value=_whole(value),
        limit=_whole(limit),
        runs=runs,
    )


def measure(check: Check, job: JobFacts) -> float | str:
    """Return the value of a measure; raise :class:`Unmeasured`."""
    kind = _KINDS.get(check.measure)
    if kind in job.removed:
        raise Unmeasured(f"the {kind} of the job were removed")
    match check.measure:
        case "items" | "requests" | "errors":
            count: int = getattr(job.counts, check.measure)
            return count
        case "warnings":
            return job.warnings
        case "outcome":
            return job.outcome
        case "duration":
            if job.seconds is None:
                raise Unmeasured("the job never ran")
            return job.seconds
        case "coverage":
            if not job.counts.items:
                raise Unmeasured("the job has no items")
            return min(job.fields.get(check.of, 0) / job.counts.items, 1.0)
        case "status" | "share":
            return _responses(check, job)
        case _:
            return _stat(check.of, job)


def _responses(check: Check, job: JobFacts) -> float:
    """Return the number of responses with some status codes, or their share of all."""
    if job.stats is None:
        raise Unmeasured("the job has no stats")
    counts: dict[str, float] = {
        name[len(_STATUS) :]: value
        for name, value in job.stats.items()
        if name.startswith(_STATUS) and _is_number(value)
    }
    wanted = check.of.split("+")
    found = sum(
        value
        for code, value in counts.items()
        if any(code == each or (each.endswith("xx") and len(code) == 3 and code[0] == each[0]) for each in wanted)
    )
    if check.measure == "status":
        return found
    total = sum(counts.values())
    if not total:
        raise Unmeasured("the job has no responses")
    return found / total


def _stat(name: str, job: JobFacts) -> float:
    if job.stats is None:
        raise Unmeasured("the job has no stats")
    value = job.stats.get(name, 0)  # Scrapy leaves out what it has not counted
    if not _is_number(value):
        raise Unmeasured("the stat is not a number")
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _limit(check: Check, earlier: Sequence[JobFacts]) -> tuple[float | str, int | None]:
    """Return the limit, and the number of earlier runs of a median; raise :class:`Unmeasured`."""
    if check.limit is not None:
        return check.limit, None
    values: list[float] = []
    for job in earlier:
        try:
            value = measure(check, job)
        except Unmeasured:
            continue
        if not isinstance(value, str):
            values.append(value)
        if len(values) == check.runs:
            break
    middle = median(values)
    if middle is None or len(values) < check.least:
        number = f"{len(values)} earlier run{'' if len(values) == 1 else 's'} with the same arguments"
        raise Unmeasured(f"{number} finished, and a median needs {check.least}")
    return check.factor * middle, len(values)


def _sentence(check: Check, value: float | str, limit: float | str, runs: int | None) -> str:
    """Return value and limit in words: ``items is 12, expected at least 800 (0.8 x the median of 10 runs)``."""
    noun = f"{check.subject} is {shown(check.measure, _rounded(value))}"
    expected = f"expected {_RELATIONS[check.operator]} {shown(check.measure, _rounded(limit))}"
    if runs is None:
        return f"{noun}, {expected}"
    times = "" if check.factor == 1 else f"{check.factor:g} x "
    return f"{noun}, {expected} ({times}the median of {runs} run{'' if runs == 1 else 's'})"


def _whole(value: float | str) -> float | str:
    """Return a whole number as one, as JSON shows it without a fraction then."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _rounded(value: float | str) -> float | str:
    return value if isinstance(value, str) else round(value, 4)
