"""Formatting of values for the pages."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup, escape

from scrapy_ext.api import masking
from scrapy_ext.api.platform.error_groups import parse_error
from scrapy_ext.api.platform.where import written
from scrapy_ext.api.violations import CONTROL_CHARACTERS
from scrapy_ext.server.ui.field_names import job_word, request_word

_CELL: Final = 160
_LONG: Final = 20_000
#: Maximum characters of an address that becomes a link: a page of requests with a megabyte each had 65 MB of links.
_LINK: Final = 8_192
HIDDEN: Final = "••••••"
MINUS: Final = "\N{MINUS SIGN}"
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


class Paging(NamedTuple):
    """Position of a page of records, and where its neighbours start."""

    first: int
    last: int
    total: int
    start: int | None
    previous: int | None
    next: int | None
    end: int | None


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


def iso(milliseconds: object) -> str:
    """Format a time (ms) as the attribute ``datetime`` of HTML needs it."""
    text = when(milliseconds)
    return f"{text.replace(' ', 'T')}Z" if text != "–" else ""


def at(milliseconds: object) -> Markup:
    """Return a time (ms) as an element in UTC; the script shows it in the browser's time zone, and UTC on hover."""
    text = iso(milliseconds)
    return Markup('<time datetime="{}">{} UTC</time>').format(text, when(milliseconds)) if text else Markup("–")


#: The first time that cannot be formatted (ms).
_YEAR_10000: Final = 253_402_300_800_000
#: Lengths of time in seconds, with their names.
_UNITS: Final = ((31_536_000, "year"), (2_592_000, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"))


def ago(milliseconds: object, now: int) -> str:
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


def minute(milliseconds: object) -> str:
    """Format a time (ms) in UTC, to the minute."""
    return when(milliseconds)[:16]


def when_in_words(milliseconds: int) -> str:
    """Format a time (ms) in UTC with its day of the week: Mon 2026-11-30 04:30."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%a %Y-%m-%d %H:%M")


def weekday(milliseconds: int) -> str:
    """Format the day of a time (ms) in UTC: Mon 30."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%a %-d")


def duration(milliseconds: object) -> str:
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


def number(value: object) -> str:
    """Format an integer with thousands separators."""
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else "–"


#: The size below which a number would have more zeros than a reader counts.
_TINY: Final = 1e-6
_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def quantity(value: object) -> str:
    """Format a number; one that is not whole with three digits, and only one nearest to 0 as ``1.5 × 10⁻¹²``."""
    if not isinstance(value, float) or not math.isfinite(value):
        return number(value)
    if abs(value) >= 100 or value == round(value):
        return number(round(value))
    if abs(value) < _TINY:
        digits, power = f"{value:.2e}".split("e")
        return f"{_trimmed(digits)} × 10{str(int(power)).translate(_RAISED)}"
    return _trimmed(f"{value:.{2 - math.floor(math.log10(abs(value)))}f}")


def _trimmed(decimals: str) -> str:
    return decimals.rstrip("0").rstrip(".")


def difference(value: float) -> str:
    """Format the difference of two numbers with its sign; "" for none."""
    text = quantity(abs(value))
    return "" if text == "0" else f"{'+' if value > 0 else MINUS}{text}"


def percent(share: float) -> str:
    """Format per cent, to the unit: no share of some is 0 %, and none without all is 100 %."""
    if 0 < share < 1:
        return "under 1 %"
    return "over 99 %" if 99 < share < 100 else f"{number(round(share))} %"


def change(before: float, after: float) -> str:
    """Format a change in per cent: ``+12 %``, ``−3 %``; "" when there is none, ``new`` when there was nothing."""
    if before == after:
        return ""
    if not before:
        return "new"
    share = abs(after - before) / abs(before) * 100
    return f"{'+' if after > before else MINUS}{f'{number(round(share))} %' if round(share) else 'under 1 %'}"


#: Stats that are times: Scrapy's datetimes, which the platform stores as milliseconds.
TIMES: Final = ("start_time", "finish_time")


def stat(name: str, value: object) -> str:
    """Format a stat of a crawl."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else cell(value)
    return at(value) if name in TIMES else quantity(value)


def plural(count: object, noun: str) -> str:
    """Return the noun in the form for a count: ``error`` for 1, else ``errors``."""
    return noun if count == 1 else f"{noun}s"


def size(value: object) -> str:
    """Format a number of bytes."""
    if not isinstance(value, int | float):
        return "–"
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def cell(value: object) -> str:
    """Format a value for a table, cut after ``_CELL`` characters."""
    text = "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = visible(" ".join(text[: _CELL * 4].split()))
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def level(value: object) -> str:
    """Return the name of a log level."""
    return _LEVELS.get(value, str(value)) if isinstance(value, int) else "–"


def clipped(value: object) -> str:
    """Return a text with its line breaks, cut after ``_LONG`` characters."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(text)} characters)"


def visible(text: str) -> str:
    """Replace characters that control a terminal or the text direction with visible symbols."""
    return CONTROL_CHARACTERS.sub(lambda found: _picture(found[0]), text)


def exact(value: object) -> Markup:
    """Escape a form value so that it is sent back unchanged: control characters become numeric references."""
    return Markup(CONTROL_CHARACTERS.sub(lambda found: f"&#x{ord(found[0]):x};", str(escape(value))))  # noqa: S704


def as_text(value: object) -> Any:
    """Make control characters visible in text that a template writes, except in markup."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _picture(character: str) -> str:
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\u{code:04x}"


def kind_of(value: object) -> str:
    """Return the type of a value in one word."""
    return _KINDS.get(type(value), "object")


def hidden(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings or arguments with secret values hidden."""
    return masking.hidden(values, HIDDEN)


class Folded(NamedTuple):
    """Shown text of a line of a log; ``is_shortened``: of a traceback, without frames of installed packages."""

    text: str
    is_shortened: bool = False


def folded(message: object) -> Folded:
    """Return a line of a log, of a traceback its exception and the frames of the project's own code."""
    if not isinstance(message, str) or "Traceback (" not in message:
        return Folded(clipped(message))
    error = parse_error(message)
    own = error.own_frames
    if not error.exception or len(own) == len(error.frames):
        return Folded(clipped(message))
    frames = [f"  {frame.place} in {frame.function}" + (f": {frame.code}" if frame.code else "") for frame in own]
    return Folded(clipped("\n".join(filter(None, (error.lead, *frames, error.exception)))), True)


#: Places after which a URL may be broken: slashes, but for the one before another, and the marks of a query.
_BREAKS: Final = re.compile(r"(?<=[/?&])(?!/)")


def broken(text: str) -> Markup:
    """Return a text that is broken at the slashes of its URLs, in narrow places, and nowhere else if it can be."""
    return Markup("<wbr>").join(_BREAKS.split(as_text(text)))


def web_address(value: object) -> str | None:
    """Return a value if it is an http(s) URL, which may become a link. Few sites accept longer ones than ``_LINK``."""
    if isinstance(value, str) and len(value) <= _LINK and value[:8].lower().startswith(("http://", "https://")):
        return value
    return None


def without_field(name: str) -> str:
    """Return the query of the page of items for those without a field."""
    return "?" + urlencode({"where": written(name, "is missing", "")})


#: Confirmations after a form, by the name in the URL's ``done`` parameter.
DONE: Final[Mapping[str, str]] = {
    "scheduled": "The job is scheduled. This is its page.",
    "again": "The new job is scheduled. This is its page.",
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
    "restoring": "The records are being restored.",
    "version-uploaded": "The archive is stored and is being checked. If the check passes, new jobs run this version.",
    "version-chosen": "New jobs run this version from now on.",
    "resent": "It is sent again. Its outcome appears below.",
    "webhook-test": "The test is sent. The deliveries have its outcome.",
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
        *(when, at, iso, ago, minute, when_in_words, weekday, duration),
        *(number, difference, percent, plural, size, cell, level),
        *(web_address, clipped, exact, visible, kind_of, hidden, without_field, parse_error, folded),
        *(broken, job_word, request_word),
    )
}
