"""Filters of the list of jobs, as its form sends them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Final, NamedTuple, TypeVar

from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState, Outcome, outcome_of
from scrapy_ext.api.platform.verdicts import ATTENTION
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.rows import StoredJob, reason_of
from scrapy_ext.server.ui.frame import Visit, field_errors
from scrapy_ext.server.ui.job_summary import elapsed_of

T = TypeVar("T")

#: Parameters of the filters with their labels. The form shows their values again.
PARAMETERS: Final = {
    "spider": "Spider",
    "tag": "Tag",
    "outcome": "Outcome",
    "from": "From",
    "to": "To",
    "longer": "Took at least",
    "shorter": "Took at most",
}
#: Value of ``state`` for the finished jobs that need somebody.
IN_NEED: Final = "attention"
#: Maximum characters of a typed filter.
MOST_TEXT: Final = 255
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|sec|m|min|h|d)?", re.ASCII)
_UNITS: Final = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
#: Maximum number of spiders that match the searched name.
_SPIDERS: Final = 500


class JobFilters(NamedTuple):
    """Conditions on jobs: those of ``stored``, which the store has indexes for, and others, about each job.

    ``state``: the chosen tab, "" for all; ``longer`` and ``shorter``: bounds of the duration, in milliseconds.
    """

    stored: JobFilter
    state: str
    outcome: Outcome | None
    longer: int | None
    shorter: int | None

    @property
    def of_any_state(self) -> JobFilter:
        """The stored conditions without those of the tab."""
        return self.stored._replace(states=(), worst=None)

    @property
    def in_need(self) -> JobFilter:
        """The stored conditions with that of the tab of jobs that need somebody."""
        return self.stored._replace(states=(JobState.FINISHED,), worst=min(ATTENTION))

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


async def filters_of(visit: Visit, errors: dict[str, str]) -> JobFilters:
    """Return the filters of the address; of each that is wrong, the reason in ``errors``, and nothing else."""

    def read(parse: Callable[[Visit, str], T | None], name: str) -> T | None:
        try:
            return parse(visit, name)
        except ContractError as error:
            errors.update(field_errors(error))
            return None

    text, tag = read(_text, "spider") or "", read(_text, "tag") or ""
    first, last = read(_day, "from"), read(_day, "to")
    before = visit.number("before", -1)
    ends = [each for each in (before if before >= 0 else None, last and _ms(last + timedelta(days=1))) if each]
    state = visit.text("state")
    in_need = state == IN_NEED
    states = tuple(each for each in JobState if each.value == state)
    stored = JobFilter(
        states=(JobState.FINISHED,) if in_need else states or SHOWN_STATES,
        worst=min(ATTENTION) if in_need else None,
        spider_ids=await _spiders(visit, text) if text else None,
        has_tags=(tag,) if tag else (),
        startts=_ms(first) if first else None,
        endts=min(ends) if ends else None,
    )
    shown = state if in_need or states else ""
    return JobFilters(stored, shown, read(_outcome, "outcome"), read(_duration, "longer"), read(_duration, "shorter"))


async def _spiders(visit: Visit, text: str) -> tuple[int, ...]:
    """Return the spiders whose names contain the text."""
    known = await visit.store.spiders.listed(visit.project)
    return tuple(spider.number for spider in known if text.lower() in spider.name.lower())[:_SPIDERS]


def typed(visit: Visit, name: str) -> str:
    """Return a filter as it was typed, for the form."""
    return visit.request.query_params.get(name, "").strip()[:MOST_TEXT]


def _text(visit: Visit, name: str) -> str:
    return visit.text(name)


def _outcome(visit: Visit, name: str) -> Outcome | None:
    text = visit.text(name)
    try:
        return Outcome(text) if text else None
    except ValueError:
        known = ", ".join(outcome.value for outcome in Outcome)
        raise refused(name, f"must be one of {known}, got {text[:40]!r}", "Choose one of them.") from None


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
