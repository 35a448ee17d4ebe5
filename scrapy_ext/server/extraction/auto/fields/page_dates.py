"""The dates of publication and change that a page states or shows.

Structured data and metadata count first, then dates near the heading, by the words and names beside them; last, the day
of publication in the address of the page, and the sentence about its last change below it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.bylines import behind_date, byline_in, is_of_event
from scrapy_ext.server.extraction.auto.fields.dates import (
    BEFORE_DAY,
    MAX_TEXT_LENGTH,
    WRITTEN,
    Date,
    in_ascii_digits,
    is_mostly_date,
    machine_date,
    read,
    time_beside,
)
from scrapy_ext.server.extraction.auto.fields.fact_lines import is_phrase_of_date
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import Parts
from scrapy_ext.server.extraction.auto.page.sources import lowest, origin
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("dates")
#: Lines without a name are dates when they are no longer than this.
MAX_LINE_LENGTH: Final = 50
#: A line that begins as the names of authors do and is longer is a sentence.
MAX_BYLINE_LENGTH: Final = 100
_BYLINE = load_vocabulary("authors").pattern("line_leading", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
#: Elements that may show a date.
MAX_NODES: Final = 60
#: Greatest distance from the heading, in elements, of a date in an element that is not named so.
NEAR: Final = 40
#: The same for an element that is named a date, where the text has not begun: buttons to share, an image and a summary
#: may stand before it.
FAR: Final = 80
_DATE_NAME = re.compile(r"\b(?:date|time|datum|fecha|datetime)\b")
_TITLED: Final = frozenset({"abbr", "span", "time"})
_NAME_BEFORE_DATE = re.compile(r"(\D{1,60}?)(?:,|\s[|·•–—-])\s(?=\d)")
#: Two dates have at least two numbers each.
_THREE_NUMBERS = re.compile(r"\d\D+\d+\D+\d")
#: Most words of a name before a date.
MAX_NAME_WORDS: Final = 4
#: Most dates of a line, and what stands around their labels.
MAX_DATES: Final = 8
_BORDERS: Final = " :;,.|/·•–—-"
#: Most words between two dates of a line beside the word for a change.
MAX_WORDS_BETWEEN: Final = 2
#: Longest label of a date, in characters.
MAX_LABEL_LENGTH: Final = 30

_PUBLISHED_METAS, _MODIFIED_METAS = map(_VOCABULARY.words, ("published_metas", "modified_metas"))
_DATE_NAMES: Final = _VOCABULARY.words("date_names")
_PUBLISHED_NAME, _MODIFIED_NAME = _VOCABULARY.patterns("published_name", "modified_name")
_MODIFIED_WORD, _PUBLISHED_WORD = _VOCABULARY.patterns("modified_word", "published_word", flags=re.IGNORECASE)
_RECEIVED_WORD: Final = _VOCABULARY.pattern("received_word", re.IGNORECASE)
_DATE_LABELS: Final = frozenset(_VOCABULARY.words("date_labels"))
#: Words for the last day of something before its date, perhaps with the day of the week between.
_DEADLINE = re.compile(rf"\b(?:{load_vocabulary('jobs').text('deadline')})\W{{0,3}}(?:\w+\W{{0,3}})?$", re.IGNORECASE)
_PAGE_CHANGED = _VOCABULARY.pattern("page_changed", re.IGNORECASE)
#: The day in an address, in steps of the path or in one, before the step of the article.
_DAY_OF_PATH = re.compile(r"/((?:19|20)\d\d)([/-])(\d\d)\2(\d\d)/[^/]+")


class Dates:
    """The dates of an article or a job: of structured data, metadata, or near the heading of its page.

    The elements that may show them are the same for both, and are searched once. Those with ``is_of_other`` show the
    date of something else.
    """

    def __init__(
        self,
        page: Page,
        article: Thing | None,
        focus: Focus,
        is_of_other: Callable[[HtmlElement], bool] = lambda _: False,
    ) -> None:
        self._page = page
        self._article = article
        self._focus = focus
        self._is_of_other = is_of_other
        #: Messages and texts that a page quotes have dates of their own.
        self._quotes = Parts(lambda node: node.tag == "blockquote", ends=focus.path.__contains__)

    @cached_property
    def published(self) -> Date | None:
        """The date of publication."""
        return self._chosen(("datePublished", "dateCreated", "uploadDate"), _PUBLISHED_METAS, modified=False)

    @cached_property
    def modified(self) -> Date | None:
        """The date of the last change."""
        return self._chosen(("dateModified",), _MODIFIED_METAS, modified=True)

    def _chosen(self, names: tuple[str, ...], metas: Iterable[str], *, modified: bool) -> Date | None:
        """Return the first stated date, else the shown one; another statement of its day with a time is more exact."""
        page, article = self._page, self._article
        stated = _dates(page, article.texts(*names) if article else ())
        of_metas = _dates(page, _contents(page, metas))
        first = page.sources.first(
            "dateModified" if modified else "datePublished",
            (origin(article, *names), lambda: next(iter(stated), None)),
            ("meta", lambda: next(iter(of_metas), None)),
            ("shown date", lambda: lowest(self._shown(modified=modified))),
            ("sentence about the page", self._of_page) if modified else ("address", self._of_address),
            form=lambda date: date.iso,
        )
        if first is None or first.has_time:
            return first
        others = (*stated, *of_metas, *self._exact_times(modified=modified))
        return next((date for date in others if date.has_time and date.iso[:10] == first.iso[:10]), first)

    def _of_address(self) -> Date | None:
        """Return the day in the address of the page."""
        match = _DAY_OF_PATH.search(parts_of(self._page.url).path)
        return machine_date("-".join(match.group(1, 3, 4))) if match else None

    def _of_page(self) -> Date | None:
        """Return the date of the sentence that says when the page was changed, wherever it stands."""
        for _, text in self._page.numbered_lines:
            if _PAGE_CHANGED.match(text) and (date := read(text, self._page)):
                return date
        return None

    def _shown(self, *, modified: bool) -> Iterator[tuple[float, Date]]:
        """Yield the dates that the page shows and names as wanted, with their distances from the heading."""
        page, focus = self._page, self._focus
        far = focus.text_begins(FAR)
        for node in self._nodes:
            sure = _is_wanted(page, node, modified=modified)
            distance = abs(focus.distance(node))
            if sure is None or not (sure or distance <= NEAR or (distance <= far and _names_date(page.names(node)))):
                continue
            date = _changed_at(node, page) if modified else None
            texts = () if date else _texts(node, modified=modified)
            date = date or next((date for text in texts if (date := read(text, page))), None)
            if date:
                yield distance - (NEAR if sure else 0), date

    @cached_property
    def _nodes(self) -> list[HtmlElement]:
        """The nodes that may show a date: those named so, and short lines that are a date and little else."""
        page, focus = self._page, self._focus
        lines = [
            node
            for node, text in page.numbered_lines
            if len(text) <= MAX_BYLINE_LENGTH
            and (
                (len(text) <= MAX_LINE_LENGTH and is_mostly_date(text, page.language))
                or _BYLINE.match(text)
                or byline_in(text)
                or states_both(text)
                or _published_among(text)
                or (_is_behind_name(text) and not self._is_of_event(text))
            )
            # A line that begins with its date has no other words before it.
            and (text[0].isdigit() or not (is_of_event(text) or is_phrase_of_date(text)))
        ]
        begin, near = focus.text_begins(FAR), islice(focus.lines(FAR, FAR), 2 * FAR)
        lines += [
            node
            for node, text in near
            if (behind_date(text) and focus.distance(node) <= begin) or _is_behind_label(text)
        ]
        candidates = dict.fromkeys([*page.tree.iter("time"), *page.named(*_DATE_NAMES), *lines])
        return [
            node
            for node in sorted(candidates, key=lambda node: abs(focus.distance(node)))[:MAX_NODES]
            if len(node_text(node, MAX_TEXT_LENGTH + 1)) <= MAX_TEXT_LENGTH and not self._is_of_another(node)
        ]

    def _is_of_event(self, text: str) -> bool:
        """Return whether the words before the date of a line are in the text of the page, and not side by side there.

        Then they are an event and its place, and no author: ``Konzert Stadthalle, 03.05.2024, 20:00 Uhr``.
        """
        words = _name_before_date(text)
        prose = self._near_text.replace(text, " ")
        return all(word in prose for word in words) and " ".join(words) not in prose

    @cached_property
    def _near_text(self) -> str:
        """The lines right behind the heading, in one text."""
        return " ".join(line for _, line in islice(self._focus.lines(0, NEAR), NEAR))

    def _exact_times(self, *, modified: bool) -> Iterator[Date]:
        page = self._page
        for node in islice(page.tree.iter("time"), MAX_NODES):
            date = machine_date(one_line(node.get("datetime"))[:MAX_TEXT_LENGTH])
            is_wanted = _is_wanted(page, node, modified=modified) is not None
            if date and is_wanted and (modified or not _is_of_change(node)) and not self._is_of_another(node):
                yield date

    def _is_of_another(self, node: HtmlElement) -> bool:
        focus = self._focus
        # The line below a post is of it, where its element has the classes of a microformat.
        own = "published" in (node.get("class") or "").split() and _titled(node) is not None
        if (focus.elsewhere(node) and not own) or focus.in_card(node):
            return True
        if focus.in_comments(node) or self._quotes.hold(node) or self._is_of_other(node):
            return True
        return focus.in_list_aside(node) and focus.in_linked_item(node)


def _dates(page: Page, texts: Iterable[str]) -> list[Date]:
    return [date for text in texts if (date := read(text, page))]


def _contents(page: Page, names: Iterable[str]) -> Iterator[str]:
    return (content for name in names for content in page.metas.get(name, ())[:1])


def _names_date(names: str) -> bool:
    return _DATE_NAME.search(names) is not None and "event" not in names


def _changed_at(node: HtmlElement, page: Page) -> Date | None:
    """Return the change of a text such as ``May 5, 2024 10:00, Updated 12:00``: on the day that it names before."""
    text = node_text(node, MAX_TEXT_LENGTH)
    change = _MODIFIED_WORD.search(text) if _has_both(text) else None
    first = read(text[: change.start()], page) if change else None
    if not change or not first or WRITTEN.search(in_ascii_digits(text), change.end()):
        return None
    day = first.iso[:10]
    found = read(f"{day} {text[change.end() :].strip(' :')}", page)
    return found._replace(raw=text[change.start() :]) if found and found.has_time and found.iso[:10] == day else None


def _texts(node: HtmlElement, *, modified: bool) -> tuple[str, ...]:
    """Return the texts of a node that may be its date, the more exact ones first."""
    text = node_text(node, MAX_TEXT_LENGTH)
    if not modified and (among := _published_among(text)):
        return (among,)
    if modified and _has_both(text):
        change = _MODIFIED_WORD.search(text)
        own = node.get("datetime", "") if _is_of_change(node) else ""
        return (own, text[change.start() :]) if change else ()
    if not modified and _has_both(text) and any(map(_is_of_change, (node, *node.iter("time")))):
        return (text,)  # The other values are those of the change.
    inner = [time.get("datetime") for time in node.iter("time") if time.get("datetime")]
    # Several times in it are those of several things.
    own = inner[0] if len(inner) == 1 else node.get("datetime")
    # Blogs write the time of day, and the whole date in the title: ``<abbr class=published title=...>``.
    titled = _titled(node)
    return (own or "", node.get("content") or "", titled.raw if titled else "", text)


def _titled(node: HtmlElement) -> Date | None:
    return machine_date(one_line(node.get("title"))[:MAX_TEXT_LENGTH]) if node.tag in _TITLED else None


def _is_of_change(node: HtmlElement) -> bool:
    return _MODIFIED_NAME.search(node.get("itemprop", "").lower()) is not None


def _is_wanted(page: Page, node: HtmlElement, *, modified: bool) -> bool | None:
    """Return True for a node named as the wanted date, False for just a date, None for the other one."""
    names, text = page.names(node), node_text(node, MAX_TEXT_LENGTH)
    both = _has_both(text)
    if _is_of_deadline(node, text):
        return None
    if not modified and (among := _is_among_received(node, text)) is not None:
        return among or None
    is_modified = not both and bool(_MODIFIED_NAME.search(names) or _MODIFIED_WORD.search(text))
    if modified:
        return True if both or is_modified else None
    if is_modified:
        return None
    named = bool(_PUBLISHED_NAME.search(names)) or node.get("pubdate") is not None
    if named or _is_behind_label(text):
        return True
    return any(_is_published_label(each) for each in (_label_of(node), _before_date(text)))


def _is_of_deadline(node: HtmlElement, text: str) -> bool:
    """Return whether the first date of a node is the last day of something: ``Application deadline: 3 May 2024``."""
    date = WRITTEN.search(in_ascii_digits(text))
    label = text[: date.start()] or _label_of(node) if date else ""
    return _DEADLINE.search(label[-MAX_LABEL_LENGTH:]) is not None


def _has_both(text: str) -> bool:
    """Return whether a text has a date, and behind it the word for a change with another date or time."""
    date = WRITTEN.search(in_ascii_digits(text))
    change = _MODIFIED_WORD.search(text, date.end()) if date else None
    if not date or not change:
        return False
    time = time_beside(text, date.start(), date.end())
    return _DIGIT.search(text, max(date.end(), time.end if time else 0)) is not None


def states_both(text: str) -> bool:
    """Return whether a line has the dates of publication and change, the first at its start or behind its label."""
    # Most lines have neither so many numbers nor such a word, which are found much faster than their date.
    is_likely = _THREE_NUMBERS.search(text) is not None and _MODIFIED_WORD.search(text) is not None
    date = WRITTEN.search(in_ascii_digits(text)) if is_likely else None
    if date is None or not _has_both(text):
        return False
    before = text[: date.start()].strip()
    if BEFORE_DAY.fullmatch(before):
        return _is_terse(text)
    return not before or any(map(_is_published_label, _ends_of(before)))


def has_both_alone(text: str) -> bool:
    """Return whether such a line has hardly a word beside its dates and their labels.

    A sentence has more: ``On 3 May 2024 the plan was published, and it was revised on 4 May 2025``.
    """
    return states_both(text) and _is_terse(text)


def _is_terse(text: str) -> bool:
    date = WRITTEN.search(in_ascii_digits(text))
    change = _MODIFIED_WORD.search(text, date.end()) if date else None
    if date is None or change is None:
        return False
    time = time_beside(text, date.start(), date.end())
    number = _DIGIT.search(text, change.end())
    between = text[max(date.end(), time.end if time else 0) : change.start()]
    behind = text[change.end() : number.start() if number else None]
    return all(len(words.split()) <= MAX_WORDS_BETWEEN for words in (between, behind))


def _published_among(text: str) -> str:
    """Return the part with the day of publication of a line of several days: ``Received: 3 May; Published: 9 June``.

    Each day has a label of few words, and one that of the publication.
    """
    if len(text) > 2 * MAX_BYLINE_LENGTH or not _THREE_NUMBERS.search(text):
        return ""
    dates = list(islice(WRITTEN.finditer(in_ascii_digits(text)), MAX_DATES))
    ends = (0, *(date.end() for date in dates))
    labels = [text[end : date.start()].strip(_BORDERS) for end, date in zip(ends, dates, strict=False)]
    if not 2 <= len(dates) < MAX_DATES or any(map(_DIGIT.search, labels)):
        return ""
    found = [date for label, date in zip(labels, dates, strict=True) if _is_published_label(label)]
    are_received = any(map(_RECEIVED_WORD.fullmatch, labels))
    return text[found[0].start() :][: len(found[0].group())] if len(found) == 1 and are_received else ""


def _is_among_received(node: HtmlElement, text: str) -> bool | None:
    """Return whether a node has the publication of a manuscript, or False for its receipt; None for other nodes."""
    if _published_among(text):
        return True
    labels = (each.rstrip(" :") for each in (_label_of(node), _before_date(text)))
    return False if any(map(_RECEIVED_WORD.fullmatch, labels)) else None


def _is_behind_name(text: str) -> bool:
    """Return whether a line is a name, a sign, and a date with its time: ``Ada Berg, 03.05.24, 10:15 Uhr``.

    Without a sign between, the words are as often those of an event: ``Doors Open 3 May 2024, 18:00``.
    """
    words = _name_before_date(text)
    if not 2 <= len(words) <= MAX_NAME_WORDS or not all(word[:1].isupper() for word in words):
        return False
    name = _NAME_BEFORE_DATE.match(text)
    date = WRITTEN.match(in_ascii_digits(text), name.end() if name else 0)
    time = time_beside(text, date.start(), date.end()) if date else None
    return time is not None and not text[time.end :].strip()


def _name_before_date(text: str) -> list[str]:
    name = _NAME_BEFORE_DATE.match(text)
    return name.group(1).split() if name else []


def _is_behind_label(text: str) -> bool:
    """Return whether a line is a word for its publication, the day of the week, and a date, perhaps with its time:
    ``Published on Tuesday, 27 October 2015 at 9.30``.

    Behind the words for a date itself is as often another date: ``Date limite 3 mai 2024``.
    """
    if len(text) > MAX_BYLINE_LENGTH or not _DIGIT.search(text):
        return False
    date = WRITTEN.search(in_ascii_digits(text))
    label, _, day = text[: date.start()].strip(" ,").rpartition(" ") if date else ("", "", "")
    if not date or not day.isalpha() or label.strip(" :").lower() in _DATE_LABELS or not _is_published_label(label):
        return False
    time = time_beside(text, date.start(), date.end())
    return not text[time.end if time and time.start > date.start() else date.end() :].strip(" .")


def _ends_of(text: str) -> Iterator[str]:
    """Yield the last words of a text, up to three of them."""
    words = text.split()
    return (" ".join(words[-count:]) for count in (1, 2, 3))


def _before_date(text: str) -> str:
    date = WRITTEN.search(in_ascii_digits(text))
    return text[: date.start()].strip() if date and date.start() <= MAX_LABEL_LENGTH else ""


def is_label_of_page(text: str) -> bool:
    """Return whether a text is a label of the date of publication or of the last change."""
    return _is_published_label(text) or _MODIFIED_WORD.search(text) is not None


def _is_published_label(text: str) -> bool:
    return bool(text) and _PUBLISHED_WORD.fullmatch(text) is not None


def _label_of(node: HtmlElement) -> str:
    """Return the short text right before a node, beside it."""
    before = node.getprevious()
    if before is None:
        parent = node.getparent()
        text = (parent.text or "") if parent is not None else ""
    else:
        text = before.tail if before.tail and before.tail.strip() else node_text(before, MAX_LABEL_LENGTH + 1)
    label = one_line(text)
    # With digits, it is another date.
    return label if len(label) <= MAX_LABEL_LENGTH and not _DIGIT.search(label) else ""
