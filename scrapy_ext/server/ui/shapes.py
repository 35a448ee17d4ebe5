"""What the pages show, in the shape in which they show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
from markupsafe import Markup, escape

from scrapy_ext.api.control_characters import STEERING
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.store.jobs.rows import Counts, StoredJob, tags_of
from scrapy_ext.server.ui.pending_reason import Ground, waiting

_CELL: Final = 160
_LONG: Final = 20_000
#: Not keywords, keyboards, monkeys or authors.
_SECRETS: Final = r"(?:(?<!mon)key(?!word|board)|secret|token|passw|credential|auth(?!or(?!i[sz]))|cookie|dsn|proxy)"
_SECRET: Final = re.compile(_SECRETS, re.IGNORECASE)
#: Texts with something secret in them: a password in an address, name=value of what is called so.
_TELLING: Final = re.compile(
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
    """A job in a line."""

    key: str
    spider: str
    state: str
    outcome: str
    counts: Counts
    started: int | None
    elapsed: int | None
    tags: list[str]
    waiting: str


class Paging(NamedTuple):
    """Where a page of records lies, and where its neighbours start."""

    first: int
    last: int
    total: int
    start: int | None
    previous: int | None
    next: int | None
    end: int | None


def summary(job: StoredJob, now: int, ground: Ground | None = None) -> Summary:
    """A job as lists and headings show it; ``ground`` is what it may wait for."""
    started, finished = _time_of(job, "running_time"), _time_of(job, "finished_time")
    ended = finished if finished is not None else now if job.state is JobState.RUNNING else None
    reason = job.metadata.get("close_reason")
    return Summary(
        key=str(job.key),
        spider=job.spider,
        state=job.state.value,
        outcome=reason if isinstance(reason, str) else "",
        counts=job.counts,
        started=started if started is not None else _time_of(job, "pending_time"),
        elapsed=ended - started if started is not None and ended is not None else None,
        tags=tags_of(job.metadata),
        waiting=waiting(job.metadata, ground) if ground and job.state is JobState.PENDING else "",
    )


def _time_of(job: StoredJob, name: str) -> int | None:
    value = job.metadata.get(name)
    return value if isinstance(value, int) else None


def paging(start: int, size: int, indexes: range) -> Paging:
    """The pages around the one that begins at ``start``, of records with these indexes."""
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
    """What was looked through for a search that began at ``start``, and where it goes on."""
    return Paging(
        first=start,
        last=max(min(following, total) - 1, start),
        total=total,
        start=0 if start > 0 else None,
        previous=None,
        next=None if ended else following,
        end=None,
    )


def columns(counts: Mapping[str, int], records: Sequence[Mapping[str, Any]], most: int) -> list[str]:
    """The fields that a table of items shows: those that most items have, in the order of the items shown."""
    order = list(dict.fromkeys(name for record in records for name in record if not name.startswith("_")))
    kept = sorted(order, key=lambda name: -counts.get(name, 0))[:most]
    return [name for name in order if name in kept]


def when(milliseconds: Any) -> str:
    """A time, in UTC."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (TypeError, ValueError, OverflowError, OSError):  # records hold what their writers wrote
        return "–"


def minute(milliseconds: Any) -> str:
    """A time of which only the minute counts, in UTC."""
    return when(milliseconds)[:16]


def duration(milliseconds: Any) -> str:
    """A length of time: 340 ms, 12.4 s, 3 min 20 s, 2 h 5 min."""
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
    """A count, its thousands apart."""
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else "–"


def plural(count: Any, noun: str) -> str:
    """The noun for a count: ``error`` for 1, else ``errors``."""
    return noun if count == 1 else f"{noun}s"


def size(value: Any) -> str:
    """A number of bytes."""
    if not isinstance(value, int | float):
        return "–"
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def cell(value: Any) -> str:
    """A value in a table: its beginning, when it is long."""
    text = "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = visible(" ".join(text[: _CELL * 4].split()))
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def level(value: Any) -> str:
    """The name of a log level."""
    return _LEVELS.get(value, str(value)) if isinstance(value, int) else "–"


def clipped(value: Any) -> str:
    """A text that is shown as it is, with its line breaks, up to a length."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(text)} characters)"


def visible(text: str) -> str:
    """A text without characters that steer a terminal or turn the direction of what follows: their pictures instead."""
    return STEERING.sub(lambda found: _picture(found[0]), text)


def exact(value: Any) -> Markup:
    """A value of a form, which comes back as it is: the same characters as numeric references."""
    return Markup(STEERING.sub(lambda found: f"&#x{ord(found[0]):x};", str(escape(value))))  # noqa: S704


def as_text(value: Any) -> Any:
    """The text that a template writes, unless it is markup already: without steering characters."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _picture(character: str) -> str:
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\u{code:04x}"


def kind_of(value: Any) -> str:
    """What a field of an item holds, in a word."""
    return _KINDS.get(type(value), "object")


def secret(name: str) -> bool:
    """Whether what is called so is likely to be nobody's business."""
    return _SECRET.search(name) is not None


def hidden(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings or arguments as they may be shown."""
    return {name: HIDDEN if secret(name) or _tells(value) else value for name, value in values.items()}


def _tells(value: Any) -> bool:
    """Whether something secret is in a value."""
    if isinstance(value, dict):
        return any(secret(name) or _tells(name) or _tells(each) for name, each in value.items())
    if isinstance(value, list):
        return any(_tells(each) for each in value)
    return isinstance(value, str) and _TELLING.search(value) is not None


def web_address(value: Any) -> str | None:
    """A value that may become a link: an address of the web, and nothing that runs."""
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        return value
    return None


#: What a page says of a form that was dealt with, by the name that its address gives it.
DONE: Final[Mapping[str, str]] = {
    "scheduled": "The job is scheduled.",
    "stopped": "{n} asked to stop.",
    "rerun": "{n} scheduled again.",
    "deleted": "{n} deleted.",
    "tagged": "The tags are changed.",
    "nothing": "No job was chosen.",
    "saved": "It is saved.",
    "removed": "It is deleted.",
    "renamed": "It is renamed.",
    "put-back": "Queued again: {number}.",
    "schedule-made": "The periodic job is made.",
    "schedule-paused": "It is paused: it does not run until it is resumed.",
    "schedule-resumed": "It runs again at its times.",
    "schedule-run": "{n} scheduled.",
    "schedule-active": "Nothing was scheduled: the jobs of its last run have not ended.",
    "key-removed": "The key is removed: requests with it are refused within seconds.",
    "key-suspended": "The key is suspended: it opens nothing until it is resumed.",
    "key-resumed": "The key opens again what it did.",
}


def done(query: Mapping[str, str]) -> str:
    """What a page says of the form that led to it, "" for nothing. Addresses bring a name and a number, no words."""
    text, number = DONE.get(query.get("done", ""), ""), query.get("n", "")
    jobs = "1 job was" if number == "1" else f"{number} jobs were"
    if number.isascii() and number.isdigit() and len(number) < 8:
        text = text.replace("{n}", jobs).replace("{number}", number)
    return text


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "when": when,
    "minute": minute,
    "duration": duration,
    "number": number,
    "plural": plural,
    "size": size,
    "cell": cell,
    "level": level,
    "web_address": web_address,
    "clipped": clipped,
    "exact": exact,
    "visible": visible,
    "kind_of": kind_of,
    "hidden": hidden,
}
