"""Filters of the list of jobs, as its form sends them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from typing import Final, NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.outcomes import Outcome, outcome_of
from scrapy_ext.api.violations import refused
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.ui.frame import Visit
from scrapy_ext.server.ui.shapes import elapsed_of, reason_of

#: Parameters of the filters. The form shows their values again.
PARAMETERS: Final = ("spider", "tag", "outcome", "from", "to", "longer", "shorter")
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|sec|m|min|h|d)?", re.ASCII)
_UNITS: Final = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
#: Maximum number of spiders that match the searched name.
_SPIDERS: Final = 500


class JobFilters(NamedTuple):
    """Conditions on jobs: those of ``stored``, which the store has indexes for, and others, about each job.

    ``longer`` and ``shorter``: bounds of the duration, in milliseconds.
    """

    stored: JobFilter
    outcome: Outcome | None
    longer: int | None
    shorter: int | None

    @property
    def examines(self) -> bool:
        """True when each job must be read."""
        return not (self.outcome is None and self.longer is None and self.shorter is None)

    def match(self, job: StoredJob, now: int) -> bool:
        """Return true for a job that meets the conditions beside the stored ones."""
        if self.outcome is not None and (
            job.state is not JobState.FINISHED or outcome_of(reason_of(job)) is not self.outcome
        ):
            return False
        if self.longer is None and self.shorter is None:
            return True
        elapsed = elapsed_of(job, now)
        if elapsed is None:
            return False
        return (self.longer is None or elapsed >= self.longer) and (self.shorter is None or elapsed <= self.shorter)


async def filters_of(visit: Visit) -> JobFilters:
    """Return the filters of the address; raises :class:`ContractError` naming the parameter."""
    text, tag, outcome = visit.text("spider"), visit.text("tag"), visit.text("outcome")
    first, last = _day(visit, "from"), _day(visit, "to")
    before = visit.number("before", -1)
    ends = [each for each in (before if before >= 0 else None, last and _ms(last + timedelta(days=1))) if each]
    stored = JobFilter(
        spider_ids=await _spiders(visit, text) if text else None,
        has_tags=(tag,) if tag else (),
        startts=_ms(first) if first else None,
        endts=min(ends) if ends else None,
    )
    found = next((each for each in Outcome if each.value == outcome), None)
    return JobFilters(stored, found, _duration(visit, "longer"), _duration(visit, "shorter"))


async def _spiders(visit: Visit, text: str) -> tuple[int, ...]:
    """Return the spiders whose names contain the text."""
    known = await visit.store.spiders.listed(visit.project)
    return tuple(spider.number for spider in known if text.lower() in spider.name.lower())[:_SPIDERS]


def _day(visit: Visit, name: str) -> date | None:
    text = visit.text(name)
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        _ = day + timedelta(days=1)
    except (ValueError, OverflowError):
        raise refused(name, f"must be a date, got {text[:40]!r}", "Write it as 2026-03-31.") from None
    return day


def _ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=timezone.utc).timestamp() * 1000)


def _duration(visit: Visit, name: str) -> int | None:
    """Return a duration in milliseconds; minutes without a unit."""
    text = visit.text(name).lower()
    if not text:
        return None
    found = _DURATION.fullmatch(text)
    if found is None:
        raise refused(name, f"must be a duration, got {text[:40]!r}", "Write 90s, 10m, 1.5h or 2d.")
    return int(float(found[1]) * _UNITS[found[2] or "m"] * 1000)
