"""Dates of a job relative to the day of the download: ``Posted 3 days ago``."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Final

from scrapy_ext.server.extraction.auto.fields.dates import Date
from scrapy_ext.server.extraction.auto.page import Focus, Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Greatest distance from the heading, in elements.
NEAR: Final = 80
MAX_LENGTH: Final = 50
MAX_LINES: Final = 5_000

_RELATIVE: Final = load_vocabulary("jobs").pattern("relative_date", re.IGNORECASE)
#: Units of less than a day, and of a day, by their first letters. What is longer names no day.
_HOURS: Final = ("min", "h", "stunde")
_DAYS: Final = ("d", "tag", "jour", "giorn")


def relative_date(page: Page, focus: Focus) -> Date | None:
    """Return the date of the line by the heading that is one, nearest first; without a day, the line alone counts."""
    best: tuple[int, str] | None = None
    for node, text in page.lines[:MAX_LINES]:
        distance = focus.distance(node)
        if len(text) > MAX_LENGTH or not -NEAR // 4 <= distance <= NEAR or (best and abs(distance) >= best[0]):
            continue
        if _RELATIVE.fullmatch(text) and not focus.elsewhere(node):
            best = (abs(distance), text)
    if best is None:
        return None
    return Date(_day(best[1]) or "", best[1])


def _day(text: str) -> str | None:
    match = _RELATIVE.fullmatch(text)
    if match is None:
        return None
    now = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    days = 1 if match["yesterday"] else 0
    if match["unit"]:
        unit = match["unit"].lower()
        number = int(match["number"]) if match["number"].isdigit() else 1
        if unit.startswith(_DAYS):
            days = number
        elif not unit.startswith(_HOURS) or unit.startswith("heute"):
            return None
    return (now - timedelta(days=days)).isoformat()
