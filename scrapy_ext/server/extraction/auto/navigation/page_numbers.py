"""Numbers of pages: in URLs, and in rows such as ``1 2 3 … 9`` on a page.

The number in a URL (``?page=2``, ``/page/2/``, ``?start=20``, ``/list-2.html``, ``/topic-s10``) is found in two ways,
as URLs are written in so many: by the usual names of parameters and path segments, and, where those are unknown, by the
rest of two URLs without their common beginning and end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final
from urllib.parse import parse_qsl

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.navigation.links import NUMBER
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.urls import parts_of, same_page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_PARAMETERS: Final = 60
#: Characters of URLs that are compared.
MAX_COMPARED: Final = 600

_VOCABULARY: Final = load_vocabulary("pagination")
KEYS: Final = frozenset(_VOCABULARY.words("keys"))
_OFFSETS: Final = frozenset(_VOCABULARY.words("offsets"))
#: Names of parameters with the position where a page begins. It need not be a number.
_CURSORS: Final = frozenset(_VOCABULARY.words("cursors"))
#: Parameters that do not distinguish pages.
_IDLE: Final = _VOCABULARY.pattern("idle")
_IN_PATH = _VOCABULARY.pattern("in_path", re.IGNORECASE)
#: A number at the end of the URL, which counts where nothing else distinguishes two URLs.
_AT_END = re.compile(r"(?:[/_,~-]|(?<=[a-z])p)(\d{1,4})(?=(?:/|\.\w{2,5})?$)", re.IGNORECASE)
#: Addition to the URL of the first page: a sign, perhaps a short word, and a number.
_ADDED = re.compile(
    r"[/?&;_.,~=:%!+\-]{0,2}(?:[a-z][a-z_-]{0,14})?[/_.,~=:-]?(\d{1,6})(?:[/_,-]|\.\w{2,5})?", re.IGNORECASE
)
_FILLER = re.compile(r"/?(?:index|default|home)?[/?]?", re.IGNORECASE)
_SKIN = re.compile(r"(?:/index|/default)?\.(?:html?|php|aspx?|jsp|cfm)$|/index$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A URL: its path without the number of the page, the number, and its kind."""

    path: str
    number: int | None
    #: Whether the number counts pages, rather than what is on them.
    counts_pages: bool
    #: The whole path; the path without a number at its end, and that number.
    whole: str
    ended: str
    ending: int | None
    cursor: bool
    #: Path and query without parameters that do not distinguish pages.
    line: str

    def is_beside(self, other: Address) -> bool:
        """Return whether two URLs are the same but for the number of a page."""
        return self.path == other.path

    def score_of_next(self, other: Address) -> float:
        """Return how much another URL looks like that of the page after this: 2.5 at best, below zero for no."""
        if self.path == other.path and other.number is not None:
            return self._score_of_number(other)
        if other.ending is not None and other.ended in {self.ended, self.whole}:
            own = self.ending if self.ended == other.ended and self.ending is not None else 1
            return 2.0 if other.ending == own + 1 else -2.0
        score = self._score_of_rest(other)
        if score:
            return score
        if self.path == other.path:
            return 1.5 if other.cursor else 0.5 if self._parameters_apart(other) else 0.0
        if not self.path:
            # The list of a home page continues at another URL.
            return 1.5 if other.cursor or (other.counts_pages and other.number == 2) else -2.0
        if other.counts_pages and other.number == 2 and self.number is None:
            # A second page under another name of this one, as after a redirect.
            return -0.5
        if other.path.startswith(self.path.rstrip("/") + "/"):
            return -1.0
        return -2.0

    def _score_of_number(self, other: Address) -> float:
        number = other.number or 0
        if not other.counts_pages:
            return 1.5 if number > (self.number or 0) else -3.0
        if self.number is None:
            return 2.5 if number == 2 else 1.5 if number == 1 else -2.0
        return 2.5 if number == self.number + 1 else -3.0

    def _score_of_rest(self, other: Address) -> float:
        """Return the score by the rest of two URLs without their common beginning and end."""
        own, following = _rest(self.line, other.line)
        if own.isdecimal() and following.isdecimal() and len(following) <= 6:
            step = int(following) - int(own)
            return 2.0 if step == 1 else 1.0 if step > 1 and step % 5 == 0 else -1.5
        added = _ADDED.fullmatch(following)
        if added and _FILLER.fullmatch(own):
            number = int(added.group(1))
            return 2.0 if number == 2 else 1.0 if number == 1 or number % 5 == 0 else -0.5
        return 0.0

    def _parameters_apart(self, other: Address) -> bool:
        own, following = self.line.partition("?")[2], other.line.partition("?")[2]
        return len(set(own.split("&")) ^ set(following.split("&"))) <= 2


@lru_cache(maxsize=4096)
def address_of(url: str) -> Address:
    """Return the parts of a URL that distinguish one page of a list from another."""
    parts = parts_of(url)
    path, number, counts = parts.path, None, True
    cursor = False
    kept = []
    for name, value in parse_qsl(parts.query[:4000], keep_blank_values=True)[:MAX_PARAMETERS]:
        key = name.lower()
        if not _IDLE.match(key):
            kept.append(f"{key}={value}")
        if key in KEYS and value.isdecimal() and len(value) <= 5:
            number, counts = int(value), True
        elif key in _OFFSETS or key in _CURSORS:
            cursor = cursor or (bool(value) and key in _CURSORS)
            if number is None and key in _OFFSETS and value.isdecimal() and len(value) <= 7:
                number, counts = int(value), False
    match = None if number is not None else _IN_PATH.search(path)
    if match:
        number = int(match.group(2))
        path = path[: match.start()] + path[match.end() :]
    end = _AT_END.search(parts.path)
    return Address(
        path=_bare(path),
        number=number,
        counts_pages=number is not None and counts,
        whole=_bare(parts.path),
        ended=_bare(parts.path[: end.start()]) if end else _bare(parts.path),
        ending=int(end.group(1)) if end else None,
        cursor=cursor,
        line=f"{parts.path.rstrip('/').lower()}?{'&'.join(kept)}"[:MAX_COMPARED].rstrip("?"),
    )


def _rest(first: str, second: str) -> tuple[str, str]:
    """Return the rests of two texts without their common beginning and end, no number cut in two."""
    shorter = min(len(first), len(second))
    start = next((at for at in range(shorter) if first[at] != second[at]), shorter)
    while start and first[start - 1].isdecimal():
        start -= 1
    shorter -= start
    end = next((at for at in range(shorter) if first[-1 - at] != second[-1 - at]), shorter)
    while end and first[-end].isdecimal():
        end -= 1
    return first[start : len(first) - end], second[start : len(second) - end]


def _bare(path: str) -> str:
    return _SKIN.sub("", path).rstrip("/").lower()


# Rows of page numbers: ``1 2 3 … 9``, whatever their names and elements, and which of them is the current one.
#
# A row is a sequence of links with numbers as texts and in their URLs, so that it is found on pages whose names say
# nothing. Rows that are not about the page, as the small ones beside the threads of a forum, are recognised by their
# URLs.


MAX_LINKS: Final = 6_000
MAX_ROWS: Final = 60
#: Links without a number between two with one, as an ellipsis or an arrow.
MAX_BETWEEN: Final = 2
#: Steps up from two links of a row to the element around both.
MAX_CLIMB: Final = 5
#: Elements around a row that are searched for the number without a link.
MAX_WITHIN: Final = 300
#: Larger numbers are years and counts.
LARGEST_ALONE: Final = 1000
_CURRENT_NAME = _VOCABULARY.pattern("current_name")
_ASIDE = _VOCABULARY.pattern("aside", re.IGNORECASE)
#: Other numbers in URLs: stars, sizes, entries per page.
_OTHER_MEASURE = _VOCABULARY.pattern("other_measure", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_IN_TEXT = re.compile(r"(?<![\w.,:/])(\d{1,5})(?![\w.,:/]*\w)")


@dataclass(slots=True, eq=False)
class PageRow:
    """A row of page numbers: the links by number, and the current number, where the row shows it."""

    node: HtmlElement
    links: dict[int, tuple[HtmlElement, str]]
    #: Whether the names of the row, or of the elements around it, are those of such rows.
    named: bool
    current: int | None = None
    counts: bool = False
    _by_url: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_url = {url: number for number, (_, url) in self.links.items()}

    @property
    def following(self) -> str | None:
        """The URL of the page after the current one."""
        found = self.links.get(self.current + 1) if self.current is not None else None
        return found[1] if found else None

    def number_of(self, url: str) -> int | None:
        return self._by_url.get(url)


def rows_of(page: Page, parts: Iterable[HtmlElement]) -> list[PageRow]:
    """Return the rows of page numbers, in the order of the page; ``parts`` are those that the page names so."""
    named = set(parts)
    found = []
    for links in islice(_runs(page), MAX_ROWS):
        node = _common(links)
        around = [node, *islice(node.iterancestors(), 2)]
        is_named = not named.isdisjoint(around)
        numbers = {number: (link, url) for number, link, url in reversed(links) if url and not same_page(url, page.url)}
        if not numbers or min(numbers) >= LARGEST_ALONE:
            continue
        row = PageRow(around[1] if len(links) == 1 and len(around) > 1 else node, numbers, is_named)
        row.current = _current(page, row, links)
        row.counts = _counts(numbers)
        shown = {*numbers, row.current} if row.current is not None else set(numbers)
        in_order = any(number + 1 in shown for number in shown)
        if in_order and (is_named or (row.counts and (min(shown) <= 2 or row.current is not None))):
            found.append(row)
    return found


#: A number, its link, and its URL, None for one without a target.
_Link = tuple[int, HtmlElement, str | None]


def _runs(page: Page) -> Iterator[list[_Link]]:
    run: list[_Link] = []
    between = 0
    for link in islice(page.tree.iter("a"), MAX_LINKS):
        number = number_in(page, link)
        if number is None:
            between += 1
            continue
        entry = (number, link, page.link(link.get("href")))
        if run and (between > MAX_BETWEEN or number <= run[-1][0] or not _near(run[-1][1], link)):
            yield run
            run = []
        run.append(entry)
        between = 0
    if run:
        yield run


def number_in(page: Page, node: HtmlElement) -> int | None:
    """Return the number of a page that is the whole text of a node; None for any other text."""
    pieces = page.outline.first_texts(page.order[node], 5)
    if len(pieces) > 4 or sum(map(len, pieces)) > 60:
        return None
    said = one_line(" ".join(pieces)) or one_line(node.get("aria-label") or node.get("title"))
    if len(pieces) > 1:
        # ``2`` with text for screen readers.
        said = one_line(_ASIDE.sub(" ", said))
    match = NUMBER.fullmatch(said) if _DIGITS.search(said) else None
    return int(match.group(1)) or None if match else None


def _near(first: HtmlElement, second: HtmlElement) -> bool:
    above = {first, *islice(first.iterancestors(), MAX_CLIMB)}
    return any(node in above for node in (second, *islice(second.iterancestors(), MAX_CLIMB)))


def _common(links: list[_Link]) -> HtmlElement:
    first, last = links[0][1], links[-1][1]
    above = set(last.iterancestors())
    return next((node for node in first.iterancestors() if node in above), first)


def _current(page: Page, row: PageRow, links: list[_Link]) -> int | None:
    """Return the current number: of the marked link, of a link without a target, or of the text beside the links."""
    marked = [number for number, link, _ in links if _is_marked(page, link)]
    if len(set(marked)) == 1:
        return marked[0]
    said = _plain_numbers(page, row)
    marked = [number for number, node in said if node is not None and _is_marked(page, node)]
    if len(set(marked)) == 1:
        return marked[0]
    here = {
        number
        for number, link, url in links
        if url is None or same_page(url, page.url) or (link.get("href") or "").strip() in {"", "#"}
    }
    linked = set(row.links)
    if len(here) == 1 and len(links) > 1:
        return here.pop()
    beside = {number for number, _ in said if number not in linked and {number - 1, number + 1} & linked}
    if len(beside) == 1:
        return beside.pop()
    # Two numbers with one missing between them, which the page may show in an image or a field.
    gaps = [low + 1 for low, high in pairwise(sorted(linked)) if high - low == 2]
    return gaps[0] if len(gaps) == 1 and not said else None


def _is_marked(page: Page, node: HtmlElement) -> bool:
    parent = node.getparent()
    alone = parent is not None and next(islice(parent, 1, None), None) is None and parent.tag != "body"
    for one in (node, parent) if alone and parent is not None else (node,):
        if (one.get("aria-current") or "false") != "false" or one.get("aria-selected") == "true":
            return True
        names = f"{page.names(one)} {one.get('data-ui') or ''} {one.get('data-testid') or ''}"
        if _CURRENT_NAME.search(names.lower()):
            return True
    label = (node.get("aria-label") or node.get("title") or "").lower()
    return "current" in label


def _plain_numbers(page: Page, row: PageRow) -> list[tuple[int, HtmlElement | None]]:
    """Return the numbers among the links that are no link, with their elements."""
    linked = {link for link, _ in row.links.values()}
    found: list[tuple[int, HtmlElement | None]] = []
    node = row.node
    for around in (row.node, row.node.getparent()):
        if around is None or around.tag in {"body", "html", "main"}:
            break
        node = around
        found = []
        for part in islice(node.iter("*"), MAX_WITHIN):
            if part is not node and part.tail and (match := _IN_TEXT.search(part.tail)) and len(part.tail) < 40:
                found.append((int(match.group(1)), None))
            if part.tag in {"a", "option", "input"} and part in linked:
                continue
            own = (part.text or "").strip()
            match = _IN_TEXT.search(own) if part.tag not in {"script", "option"} and 0 < len(own) < 30 else None
            if match:
                number = number_in(page, part) if part is not node else None
                number = number if number is not None else int(match.group(1))
                if part.tag != "a" or not (part.get("href") or "").strip(" #"):
                    found.append((number, part if part is not node else None))
        if found:
            break
    return found


def _counts(links: dict[int, tuple[HtmlElement, str]]) -> bool:
    """Return whether the URLs of the links count with their numbers: ``2`` in the second, or ``1``, or ``20``."""
    steps: Counter[float] = Counter()
    shapes: Counter[str] = Counter()
    lines = {number: _line(url) for number, (_, url) in links.items()}
    values = {number: {int(text) for text in _DIGITS.findall(line) if len(text) <= 7} for number, line in lines.items()}
    # A number in all URLs is that of a forum or a category.
    common = set.intersection(*values.values()) if len(values) > 1 else set()
    entries = [number for number in links if number > 1]
    for number in entries:
        shapes[_DIGITS.sub("0", lines[number])] += 1
        own = values[number] - common
        if number in own:
            steps[0] += 1
        elif number - 1 in own:
            steps[1] += 1
        elif number > 2 or len(entries) > 1 or address_of(links[number][1]).number in own:
            steps.update({value / (number - 1) for value in own if value > 2 and value % (number - 1) == 0})
    if not entries or any(_OTHER_MEASURE.search(lines[number]) for number in entries):
        return False
    like = shapes.most_common(1)[0][1] >= 0.6 * len(entries)
    counted = steps.most_common(1)[0][1] if steps else 0
    return like and counted >= max(1, 0.6 * len(entries))


def _line(url: str) -> str:
    parts = parts_of(url)
    return f"{parts.path}?{parts.query}"
