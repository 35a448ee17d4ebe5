"""Formatting of values for the pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup, escape

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.outcomes import Outcome, outcome_of
from scrapy_ext.api.platform.where import written
from scrapy_ext.api.violations import CONTROL_CHARACTERS
from scrapy_ext.server.store.jobs.rows import Counts, StoredJob, importing_from, priority_of, tags_of
from scrapy_ext.server.ui.pending_reason import Capacity, waiting

_CELL: Final = 160
_LONG: Final = 20_000
#: The lookarounds exclude keyword, keyboard, monkey and author.
_SECRETS: Final = r"(?:(?<!mon)key(?!word|board)|secret|token|passw|credential|auth(?!or(?!i[sz]))|cookie|dsn|proxy)"
_SECRET: Final = re.compile(_SECRETS, re.IGNORECASE)
#: Texts that contain a secret: a password in a URL, or name=value with a secret name.
_SECRET_TEXT: Final = re.compile(
    rf"://[^/\s:@]*:[^/\s@]+@|{_SECRETS}[\w-]*['\"]?\s?[=:]\s?['\"]?[^\s=]|-[\w-]*{_SECRETS}[\w-]*\s+\S",
    re.IGNORECASE,
)
HIDDEN: Final = "••••••"
_KINDS: Final[Mapping[type, str]] = {
    str: "text",
    int: "number",
    float: "number",
    bool: "yes/no",
    list: "list",
    dict: "object",
    type(None): "nothing",
}
_LEVELS: Final[Mapping[int, str]] = {10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR", 50: "CRITICAL"}


class Summary(NamedTuple):
    """One row for a job."""

    key: str
    spider: str
    state: str
    outcome: str
    counts: Counts
    started: int | None
    elapsed: int | None
    tags: list[str]
    waiting: str
    #: True while the job is copied from another platform: no process runs it.
    importing: bool
    #: Time (ms) of the last change of state.
    changed: int
    priority: int
    version: str


class Paging(NamedTuple):
    """Position of a page of records, and where its neighbours start."""

    first: int
    last: int
    total: int
    start: int | None
    previous: int | None
    next: int | None
    end: int | None


def summary(job: StoredJob, now: int, capacity: Capacity | None = None) -> Summary:
    """Return the row of a job; ``capacity`` explains why a pending one waits."""
    source, version = importing_from(job), job.metadata.get("version")
    return Summary(
        key=str(job.key),
        spider=job.spider,
        state=job.state.value,
        outcome=reason_of(job),
        counts=job.counts,
        started=started_of(job),
        elapsed=elapsed_of(job, now) if source is None else None,
        tags=tags_of(job.metadata),
        waiting=_waiting(job, source, capacity),
        importing=source is not None,
        changed=job.changed,
        priority=priority_of(job.metadata),
        version=version if isinstance(version, str) else "",
    )


def reason_of(job: StoredJob) -> str:
    """Return the close reason of a job, "" without one."""
    reason = job.metadata.get("close_reason")
    return reason if isinstance(reason, str) else ""


def started_of(job: StoredJob) -> int | None:
    """Return when a job started to run (ms), or was scheduled if it did not."""
    started = _time_of(job, "running_time")
    return started if started is not None else _time_of(job, "pending_time")


def elapsed_of(job: StoredJob, now: int) -> int | None:
    """Return how long a job ran (ms), or has run so far; None for one that did not run."""
    started, finished = _time_of(job, "running_time"), _time_of(job, "finished_time")
    ended = finished if finished is not None else now if job.state is JobState.RUNNING else None
    return ended - started if started is not None and ended is not None else None


def _waiting(job: StoredJob, source: str | None, capacity: Capacity | None) -> str:
    if source is not None:
        return f"being imported from {source}; if the import was interrupted, repeat it"
    since = _time_of(job, "waits_since")
    if job.state is JobState.RUNNING and since is not None:
        return f"waits for requests since {when(since)} UTC"
    return waiting(job.metadata, capacity) if capacity and job.state is JobState.PENDING else ""


def _time_of(job: StoredJob, name: str) -> int | None:
    value = job.metadata.get(name)
    return value if isinstance(value, int) else None


def paging(start: int, size: int, indexes: range) -> Paging:
    """Return the paging around the page that begins at ``start``, of records with these indexes."""
    first, end = indexes.start, indexes.stop
    return Paging(
        first=start,
        last=min(start + size, end) - 1,
        total=end,
        start=first if start > first else None,
        previous=max(start - size, first) if start > first else None,
        next=start + size if start + size < end else None,
        end=first + (len(indexes) - 1) // size * size if start + size < end else None,
    )


def searched(start: int, following: int, total: int, *, ended: bool) -> Paging:
    """Return the range that a search from ``start`` covered, and where it continues."""
    return Paging(
        first=start,
        last=max(min(following, total) - 1, start),
        total=total,
        start=0 if start > 0 else None,
        previous=None,
        next=None if ended else following,
        end=None,
    )


def when(milliseconds: Any) -> str:
    """Format a time (ms) in UTC."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    # Records contain whatever their writers sent.
    except (TypeError, ValueError, OverflowError, OSError):
        return "–"


def iso(milliseconds: Any) -> str:
    """Format a time (ms) as the attribute ``datetime`` of HTML needs it."""
    text = when(milliseconds)
    return f"{text.replace(' ', 'T')}Z" if text != "–" else ""


#: The first time that cannot be formatted (ms).
_YEAR_10000: Final = 253_402_300_800_000
#: Lengths of time in seconds, with their names.
_UNITS: Final = ((31_536_000, "year"), (2_592_000, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"))


def ago(milliseconds: Any, now: int) -> str:
    """Format a time (ms) relative to ``now``: 3 hours ago, in 2 days, just now."""
    if not isinstance(milliseconds, int | float) or not 0 <= milliseconds < _YEAR_10000:
        return "–"
    seconds = (now - milliseconds) / 1000
    for length, name in _UNITS:
        if abs(seconds) >= length:
            count = int(abs(seconds) // length)
            text = f"{count} {plural(count, name)}"
            return f"{text} ago" if seconds > 0 else f"in {text}"
    return "just now" if seconds >= 0 else "in a moment"


def outcome_kind(reason: str) -> str:
    """Return the class of the style sheet for the outcome of a finished job, "" for a good one."""
    outcome = outcome_of(reason)
    return "" if outcome is Outcome.OK else "odd" if outcome is Outcome.OTHER else outcome.value


def minute(milliseconds: Any) -> str:
    """Format a time (ms) in UTC, to the minute."""
    return when(milliseconds)[:16]


def when_in_words(milliseconds: int) -> str:
    """Format a time (ms) in UTC with its day of the week: Mon 2026-11-30 04:30."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%a %Y-%m-%d %H:%M")


def duration(milliseconds: Any) -> str:
    """Format milliseconds: 340 ms, 12.4 s, 3 min 20 s, 2 h 5 min."""
    if not isinstance(milliseconds, int) or isinstance(milliseconds, bool):
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds_left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds_left} s"
    return f"{minutes // 60} h {minutes % 60} min"


def number(value: Any) -> str:
    """Format an integer with thousands separators."""
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else "–"


def plural(count: Any, noun: str) -> str:
    """Return the noun in the form for a count: ``error`` for 1, else ``errors``."""
    return noun if count == 1 else f"{noun}s"


def size(value: Any) -> str:
    """Format a number of bytes."""
    if not isinstance(value, int | float):
        return "–"
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def cell(value: Any) -> str:
    """Format a value for a table, cut after ``_CELL`` characters."""
    text = "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = visible(" ".join(text[: _CELL * 4].split()))
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def level(value: Any) -> str:
    """Return the name of a log level."""
    return _LEVELS.get(value, str(value)) if isinstance(value, int) else "–"


def clipped(value: Any) -> str:
    """Return a text with its line breaks, cut after ``_LONG`` characters."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(text)} characters)"


def visible(text: str) -> str:
    """Replace characters that control a terminal or the text direction with visible symbols."""
    return CONTROL_CHARACTERS.sub(lambda found: _picture(found[0]), text)


def exact(value: Any) -> Markup:
    """Escape a form value so that it is sent back unchanged: control characters become numeric references."""
    return Markup(CONTROL_CHARACTERS.sub(lambda found: f"&#x{ord(found[0]):x};", str(escape(value))))  # noqa: S704


def as_text(value: Any) -> Any:
    """Make control characters visible in text that a template writes, except in markup."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _picture(character: str) -> str:
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\u{code:04x}"


def kind_of(value: Any) -> str:
    """Return the type of a value in one word."""
    return _KINDS.get(type(value), "object")


def is_secret(name: str) -> bool:
    """Return true when a value of this name is probably secret."""
    return _SECRET.search(name) is not None


def hidden(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings or arguments with secret values hidden."""
    return {name: HIDDEN if is_secret(name) or _has_secret(value) else value for name, value in values.items()}


def _has_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return any(is_secret(name) or _has_secret(name) or _has_secret(each) for name, each in value.items())
    if isinstance(value, list):
        return any(_has_secret(each) for each in value)
    return isinstance(value, str) and _SECRET_TEXT.search(value) is not None


def web_address(value: Any) -> str | None:
    """Return a value if it is an http(s) URL, which may become a link."""
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        return value
    return None


def without_field(name: str) -> str:
    """Return the query of the page of items for those without a field."""
    return "?" + urlencode({"where": written(name, "is missing", "")})


#: Confirmations after a form, by the name in the URL's ``done`` parameter.
DONE: Final[Mapping[str, str]] = {
    "scheduled": "The job is scheduled.",
    "stopped": "{n} asked to stop.",
    "rerun": "{n} scheduled again.",
    "deleted": "{n} deleted.",
    "tagged": "The tags were changed.",
    "nothing": "No job was chosen.",
    "two": "Choose exactly two jobs to compare them.",
    "columns": "The columns were changed, for this browser.",
    "saved": "Saved.",
    "removed": "Deleted.",
    "renamed": "Renamed.",
    "put-back": "Requests queued again: {number}.",
    "pushed": "New requests: {number}. The frontier knew the others, if any.",
    "schedule-made": "The periodic job was created.",
    "schedules-made": "{number} periodic jobs were created, one for each cron expression.",
    "schedule-paused": "The periodic job is paused until it is resumed.",
    "schedule-resumed": "The periodic job runs on schedule again.",
    "schedule-run": "{n} scheduled.",
    "schedule-active": "Nothing was scheduled: the jobs of its last run have not ended.",
    "alert-test": "The test is sent. The last messages of the target have its outcome.",
    "key-removed": "The key was removed. Requests with it are refused within seconds.",
    "key-suspended": "The key is suspended. Requests with it are refused until it is resumed.",
    "key-resumed": "The key is active again.",
    "role-given": "The role was given.",
    "role-removed": "The role was removed.",
    "user-disabled": "The user is disabled and logged out.",
    "user-enabled": "The user may log in again.",
    "user-removed": "The user was removed.",
}


def done(query: Mapping[str, str]) -> str:
    """Return the confirmation that a URL asks for, "" for none. URLs carry a name and a number, never text."""
    text, number = DONE.get(query.get("done", ""), ""), query.get("n", "")
    jobs = "1 job was" if number == "1" else f"{number} jobs were"
    if number.isascii() and number.isdigit() and len(number) < 8:
        text = text.replace("{n}", jobs).replace("{number}", number)
    return text


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (
        *(when, iso, ago, minute, outcome_kind, duration, number, plural, size, cell, level),
        *(web_address, clipped, exact, visible, kind_of, hidden, without_field),
    )
}
