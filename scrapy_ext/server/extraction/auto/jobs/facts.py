"""Lines of facts by the heading of a job, with signs between them: ``Leeds · Posted 02/03/2026 · Closes 01/04/2026``.

A part of such a line is read as a line of its own. Which of its words are a place is decided by the other words of the
page: departments and employers stand there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import chain, islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.dates import (
    WRITTEN,
    Date,
    in_ascii_digits,
    is_mostly_date,
    read,
    words_before_date,
)
from scrapy_ext.server.extraction.auto.fields.page_dates import is_label_of_page
from scrapy_ext.server.extraction.auto.fields.prices import currency_in
from scrapy_ext.server.extraction.auto.jobs.places import (
    is_place,
    is_place_by_words,
    parts_between_bars,
    parts_of_line,
)
from scrapy_ext.server.extraction.auto.jobs.terms import employment_type, is_relative_date, remote_status
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.labelled import Labels
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longest line of facts, and longest part of one that is a date, in characters.
MAX_LINE_LENGTH: Final = 200
MAX_PART_LENGTH: Final = 80
MAX_PLACE_LENGTH: Final = 40
#: Greatest distance of a line of facts from the heading, in elements.
NEAR: Final = 120
#: Greatest distance of the line of facts that has a place.
BESIDE: Final = 12
#: Elements around and inside of one with a date that may be the value of a label.
MAX_AROUND: Final = 3
MAX_INSIDE: Final = 12

_VOCABULARY: Final = load_vocabulary("jobs")
_BEFORE_PLACE: Final = _VOCABULARY.text("before_place")
_POSTED: Final = re.compile(rf"\b(?:{_VOCABULARY.text('posted')})(?!\w)", re.IGNORECASE)
#: Between the dates of a period.
_TO: Final = re.compile(r"\W*(?:(?:to|till|until|bis|au|al|até|hasta|tot|do|t\.?o\.?m|t/m|til)\W+)?", re.IGNORECASE)
#: Labels of dates in the element around a date.
_OTHER_DATES: Final = ("start", "deadline")


def is_fact(text: str) -> bool:
    """Return whether a part of a line is a date, a kind of work or an amount, rather than a name."""
    return (
        any(map(str.isdigit, text))
        or is_relative_date(text)
        or currency_in(text) is not None
        or employment_type(text, whole=True) is not None
        or remote_status(text, whole=True) is not None
    )


class DatedLine(NamedTuple):
    """A part of a line by the heading with a date, and the words before that."""

    node: HtmlElement
    text: str
    before: str


def dated_lines(focus: Focus) -> list[DatedLine]:
    """Return the parts of the lines by the heading that have words before a date: ``Apply by December 3, 2019``."""
    return [
        DatedLine(node, part, before)
        for node, text in focus.lines(NEAR, NEAR)
        if len(text) <= MAX_LINE_LENGTH and any(map(str.isdigit, text))
        for part in _dated_parts(text)
        if (before := words_before_date(part))
    ]


def date_in_lines(page: Page, focus: Focus, lines: list[DatedLine], labels: Labels, name: str) -> Date | None:
    """Return the date of the lines whose words before it are this label. Several dates are those of several jobs."""
    found: dict[str, Date] = {}
    for line in lines:
        if labels.means(name, line.before) and not is_of_another(focus, line.node):
            date = read(line.text, page)
            if date is not None:
                found.setdefault(date.iso, date)
    return next(iter(found.values())) if len(found) == 1 else None


def _dated_parts(text: str) -> Iterator[str]:
    """Yield the parts of a line with a date each, from the end of the date before it."""
    for part in dict.fromkeys((text, *parts_of_line(text))):
        if len(part) <= MAX_PART_LENGTH:
            ends = [match.end() for match in WRITTEN.finditer(in_ascii_digits(part))]
            yield part
            yield from (part[end:].lstrip(" ,;.") for end in ends[:-1])


class LabelledDates:
    """The elements whose dates have labels: those of other things are not the publication of the job.

    A name of the job is no label of the date beside it: ``<strong>Acme</strong> <time>1 May 2026</time>``.
    """

    def __init__(self, page: Page, labels: Labels, *names: str | None) -> None:
        self._page = page
        self._labels = labels
        self._known = {letters_of(name) for name in names if name}
        self._labels_of: dict[HtmlElement, list[str]] = {}
        for pair in chain(page.labelled.pairs, labels.pairs()):
            is_dated = len(pair.value) <= MAX_PART_LENGTH and WRITTEN.search(in_ascii_digits(pair.value))
            if is_dated and letters_of(pair.label) not in self._known:
                self._labels_of.setdefault(pair.node, []).append(pair.label)

    def is_of_other(self, node: HtmlElement) -> bool:
        """Return whether the label of the date of an element is neither of its publication nor of a change.

        Without a label, a day to come and the days of a period are those of something else.
        """
        around = islice(node.iterancestors(), MAX_AROUND)
        labels = [
            label
            for each in chain(islice(node.iter("*"), MAX_INSIDE), around)
            for label in self._labels_of.get(each, ())
        ]
        if labels:
            return not any(map(_is_of_page, labels))
        own, outer = (_label_in(each) for each in (node, node.getparent()))
        if own and letters_of(own) not in self._known and not _is_of_page(own):
            return True
        if any(self._labels.means(name, outer) for name in _OTHER_DATES):
            return True
        dates = (node, node.getparent(), *islice(node.iter("time"), 1))
        return not own and (self._is_to_come(node) or any(map(_is_period, dates)))

    def _is_to_come(self, node: HtmlElement) -> bool:
        text = node_text(node, MAX_PART_LENGTH + 1)
        date = read(text, self._page) if len(text) <= MAX_PART_LENGTH else None
        return date is not None and is_to_come(date)


def is_to_come(date: Date) -> bool:
    """Return whether a date is after the day that it is anywhere on earth."""
    return date.iso[:10] > (datetime.now(timezone.utc) + timedelta(days=1)).date().isoformat()


def _is_period(node: HtmlElement | None) -> bool:
    """Return whether an element has or is one of two dates with hardly anything between: ``1 May – 3 June 2026``."""
    if node is None:
        return False
    before = node.getprevious()
    for time, following in ((before, node), (node, node.getnext())):
        if time is not None and following is not None and time.tag == following.tag == "time":
            return _TO.fullmatch(time.tail or "") is not None
    return _has_period(node_text(node, MAX_PART_LENGTH + 1))


def _has_period(text: str) -> bool:
    text = in_ascii_digits(text)
    dates = list(islice(WRITTEN.finditer(text), 2)) if len(text) <= MAX_PART_LENGTH else []
    return len(dates) > 1 and _TO.fullmatch(text, dates[0].end(), dates[1].start()) is not None


def date_in_facts(page: Page, focus: Focus) -> Date | None:
    """Return the only date without words before it that is a part of a line of facts below the heading."""
    found: list[Date] = []
    for node, text in focus.lines(0, BESIDE):
        parts = parts_between_bars(text)
        if node is focus.heading or len(parts) == 1 or len(text) > MAX_LINE_LENGTH or is_of_another(focus, node):
            continue
        if any(map(_has_period, parts)):
            return None
        bare = (part for part in parts if is_mostly_date(part, page.language) and not words_before_date(part))
        found += [date for part in bare if (date := read(part, page))]
    return found[0] if len(found) == 1 and not is_to_come(found[0]) else None


def _is_of_page(label: str) -> bool:
    return _POSTED.search(label) is not None or is_label_of_page(label)


def _label_in(node: HtmlElement | None) -> str:
    """Return the words right before the date of a short text, without a sign between: ``Talks on 3 May``."""
    text = node_text(node, MAX_PART_LENGTH + 1) if node is not None else ""
    before = words_before_date(text) if len(text) <= MAX_PART_LENGTH else None
    if not before or not before[-1].isalnum() or text.partition(before)[2].lstrip().startswith(","):
        return ""
    return before


def is_of_another(focus: Focus, node: HtmlElement) -> bool:
    """Return whether a line belongs to another job or to another part of the page."""
    return focus.elsewhere(node) or focus.in_card(node) or focus.in_linked_item(node)


def place_in_facts(page: Page, focus: Focus, description: str) -> str | None:
    """Return the only part of a line of facts below the heading that is none, where the page calls it a place."""
    for node, text in focus.lines(0, BESIDE):
        if node is focus.heading or len(text) > MAX_LINE_LENGTH or is_of_another(focus, node):
            continue
        parts = parts_of_line(text)
        names = [part for part in parts if not is_fact(part)]
        is_one = len(parts) > 1 and len(names) == 1
        # A word that the text has in small letters as well is a department: "in Engineering", "engineering skills".
        if is_one and may_be_place(names[0]) and not has_word(description, names[0].lower()):
            return names[0] if is_called_place(names[0], page.title or "", description) else None
    return None


def has_word(text: str, word: str) -> bool:
    return word != word.upper() and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def may_be_place(text: str) -> bool:
    """Return whether the form of a part of a line is that of a place: short, without digits, not in small letters."""
    is_name = len(text) <= MAX_PLACE_LENGTH and not text[:1].islower() and not is_fact(text)
    return is_place(text) and (is_name or is_place_by_words(text))


def is_called_place(name: str, *texts: str) -> bool:
    """Return whether a preposition of places stands before a name in one of the texts."""
    words = re.compile(rf"(?<!\w)(?:{_BEFORE_PLACE})\s+{re.escape(name)}(?!\w)")
    return any(map(words.search, texts))
