"""Lines of the box around an article, and the choice of those that are its text.

A line is text between the borders of two blocks. A doubtful line is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.prose import BLOCKS
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, letters_of, lines
from scrapy_ext.server.extraction.auto.page.urls import site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_TABLE_CELLS: Final = ("td", "th")
#: Blocks that follow each other line by line in a list or table.
_ROWS: Final = ("li", "dt", "dd", *_TABLE_CELLS)
_GROUPS: Final = ("ul", "ol", "dl", "table")
_SPACE = re.compile(r"\s+")


@dataclass(slots=True, eq=False)
class TextRun:
    """A line of text of one block. Two line breaks in a row end it, as some pages separate paragraphs so.

    ``linked`` is the number of its characters in links, ``away`` in links to other sites; ``pieces`` are the elements
    whose text (False) or tail (True) it consists of.
    """

    node: HtmlElement
    text: str = ""
    lines: str = ""
    linked: int = 0
    away: int = 0
    pieces: list[tuple[HtmlElement, bool]] = field(default_factory=list)

    @property
    def tag(self) -> str:
        return str(self.node.tag)


def runs_of(page: Page, box: HtmlElement, noise: AbstractSet[HtmlElement]) -> list[TextRun]:
    """Return the lines of a box in the order of the page, without those of noise."""
    collector = _Collector(page, noise)
    collector.walk(box, box, None)
    collector.close(box)
    return collector.runs


def text_of(runs: Iterable[TextRun]) -> str:
    """Return the text of lines: paragraphs with an empty line between them, items and rows line by line."""
    pieces: list[str] = []
    last: TextRun | None = None
    for run in runs:
        if last is not None:
            pieces.append(_between(last, run))
        pieces.append(run.lines)
        last = run
    return "".join(pieces)


def _between(first: TextRun, second: TextRun) -> str:
    if first.node is second.node or first.tag not in _ROWS or second.tag not in _ROWS:
        return "\n\n"
    if first.tag in _TABLE_CELLS and second.tag in _TABLE_CELLS and first.node.getparent() is second.node.getparent():
        return " "
    return "\n" if _group(first) is _group(second) else "\n\n"


def _group(run: TextRun) -> HtmlElement | None:
    return next((up for up in run.node.iterancestors() if up.tag in _GROUPS), None)


class _Collector:
    def __init__(self, page: Page, noise: AbstractSet[HtmlElement]) -> None:
        self.runs: list[TextRun] = []
        self._page = page
        self._noise = noise
        self._site = site_of(page.url)
        self._parts: list[str] = []
        self._run: TextRun | None = None

    def walk(self, node: HtmlElement, block: HtmlElement, link: HtmlElement | None) -> None:
        """Read an element of a block, in a link or not."""
        is_block = node.tag in BLOCKS
        if node in self._noise:
            if is_block:
                self.close(block)
            return
        if node.tag == "br":
            self._break(block)
        if is_block:
            self.close(node)
        inner = node if is_block else block
        if node.tag == "a":
            link = node
        self._add(node, False, inner, link)
        for child in node:
            self.walk(child, inner, link)
            self._add(child, True, inner, link)
        if is_block:
            self.close(block)

    def close(self, block: HtmlElement) -> None:
        """End a line; the next one is of another block."""
        text = lines("".join(self._parts))
        if text and self._run is not None:
            self._run.lines, self._run.text = text, one_line(text)
            self.runs.append(self._run)
        self._parts.clear()
        self._run = TextRun(block)

    def _break(self, block: HtmlElement) -> None:
        said = next((part for part in reversed(self._parts) if not part.isspace() or part == "\n"), None)
        if said == "\n":
            self.close(block)
        else:
            self._parts.append("\n")

    def _add(self, node: HtmlElement, tail: bool, block: HtmlElement, link: HtmlElement | None) -> None:
        text = node.tail if tail else node.text
        if not text:
            return
        if self._run is None:
            self._run = TextRun(block)
        self._parts.append(text if block.tag == "pre" else _SPACE.sub(" ", text))
        self._run.pieces.append((node, tail))
        if link is not None:
            length = len(one_line(text))
            self._run.linked += length
            url = self._page.link(link.get("href"))
            if url is not None and site_of(url) != self._site:
                self._run.away += length


#: Longer lines are prose, whatever their first words.
MAX_PHRASE_LENGTH: Final = 160
#: Signs at the end of lines that are ignored.
_END_SIGNS: Final = " :.!…»›→?"


_VOCABULARY: Final = load_vocabulary("article_lines")
#: Lines without any content of their own.
_NOTHING = _VOCABULARY.pattern("nothing")

#: Beginnings of short lines with requests to readers, or credits.
_ASIDE = _VOCABULARY.pattern("aside")

#: Short lines that lead to other things; the lines below them are left out as well.
_TURN = _VOCABULARY.pattern("turn")

#: Short lines above the comments of readers.
_TALK = _VOCABULARY.pattern("talk")


#: The share of text in links from which a line is one of links, and of such items from which a list is.
ALL_LINKS: Final = 0.9
MOST_ITEMS: Final = 0.6
#: Label before a link, as in "Read more: the link".
_LABEL = re.compile(r"[^:：]{1,30}[:：]")
#: The share of the prose after which a line may end the text, and the share that must not be lost so.
LATE: Final = 0.5
TOO_MUCH: Final = 0.12
#: Shorter lines, in characters, are hardly prose.
MIN_PROSE: Final = 40
MAX_TURN_LENGTH: Final = 80
#: Shortest and longest pull quote, in characters.
MIN_QUOTATION: Final = 30
MAX_QUOTATION: Final = 400
#: Longest text, in lines and characters, in which pull quotes are searched: it takes time by the product of both.
MAX_RUNS: Final = 2000
MAX_WHOLE: Final = 300_000
#: Longest lines before the text and after it.
MAX_HEAD_LENGTH: Final = 120
MAX_TAIL_LENGTH: Final = 60
MAX_HEAD_WORDS: Final = 5
#: The share of the prose above a heading that must be below it.
BELOW: Final = 0.3

#: Lines without any are ornaments; agencies put lines of underscores between parts of a text.
_SIGN = re.compile(r"\w")
_LETTER = re.compile(r"[^\W_]")
_SENTENCE_END = re.compile(r"[.!?…:;。！？।؟][\"'”’»)\]」』]*$")
_CELLS: Final = frozenset(("td", "th", "dt", "pre"))
_BYLINE = _VOCABULARY.pattern("byline", re.IGNORECASE)


def text_runs(runs: list[TextRun], heading: HtmlElement | None, headline: str) -> list[TextRun]:
    """Return the lines that are of the text, which begins below the heading."""
    runs = _below_heading(runs, heading, headline)
    kept = [not _is_aside(run) for run in runs]
    _leave_out_links(runs, kept)
    _leave_out_repeated(runs, kept)
    _end_at_turn(runs, kept)
    _leave_out_headings(runs, kept)
    return _trimmed([run for run, keep in zip(runs, kept, strict=True) if keep])


def _below_heading(runs: list[TextRun], heading: HtmlElement | None, headline: str) -> list[TextRun]:
    inside = set(heading.iter()) if heading is not None else set()
    key = letters_of(headline)
    above = sum(map(_prose, runs))
    below = 0
    for position in range(len(runs) - 1, -1, -1):
        run = runs[position]
        prose = _prose(run)
        above -= prose
        is_heading = run.node in inside or (len(key) > 12 and letters_of(run.text) == key)
        if is_heading and below > BELOW * above:
            return runs[position + 1 :]
        below += prose
    return runs


def _prose(run: TextRun) -> int:
    """Return the number of characters of a line outside of links, 0 for a line that is no prose."""
    length = len(run.text) - run.linked
    return length if length >= MIN_PROSE else 0


def _is_aside(run: TextRun) -> bool:
    if not _SIGN.search(run.text):
        return True
    if len(run.text) > MAX_PHRASE_LENGTH:
        return False
    folded = run.text.casefold()
    if run.tag not in HEADINGS and _ASIDE.match(folded):
        return True
    return _NOTHING.fullmatch(folded.strip(_END_SIGNS)) is not None


def _leave_out_links(runs: list[TextRun], kept: list[bool]) -> None:
    """Leave out lines that are only links to other pages of the site, and lists of such."""
    lists: dict[HtmlElement, list[int]] = {}
    for position, run in enumerate(runs):
        if run.tag in _CELLS:
            continue
        item = next((up for up in (run.node, *run.node.iterancestors("li")) if up.tag == "li"), None)
        if item is not None:
            lists.setdefault(item.getparent(), []).append(position)
        elif run.tag not in HEADINGS and _is_link(run):
            kept[position] = False
    for positions in lists.values():
        links = sum(_is_link(runs[position]) for position in positions)
        if links >= MOST_ITEMS * len(positions):
            for position in positions:
                kept[position] = False


def _is_link(run: TextRun) -> bool:
    if 2 * run.away > run.linked:
        return False
    if run.linked >= ALL_LINKS * len(run.text):
        return True
    label = _LABEL.match(run.text)
    return label is not None and run.linked >= ALL_LINKS * (len(run.text) - label.end() - 1) > 0


def _leave_out_repeated(runs: list[TextRun], kept: list[bool]) -> None:
    """Leave out pull quotes, as the text contains them as well."""
    keys = [letters_of(run.text) for run in runs]
    whole = "\n".join(keys)
    if len(keys) > MAX_RUNS or len(whole) > MAX_WHOLE:
        return
    seen: set[str] = set()
    for position, (run, key) in enumerate(zip(runs, keys, strict=True)):
        is_block = run.tag not in HEADINGS and run.tag not in _CELLS and run.tag != "li"
        if is_block and MIN_QUOTATION <= len(run.text) <= MAX_QUOTATION and whole.count(key) > 1:
            alone = sum(key == other for other in keys)
            kept[position] = kept[position] and whole.count(key) == alone and key not in seen
        seen.add(key)


def _end_at_turn(runs: list[TextRun], kept: list[bool]) -> None:
    """Leave out the lines that lead to other things, and end the text at those with little of it below."""
    prose = [_prose(run) if keep else 0 for run, keep in zip(runs, kept, strict=True)]
    whole = sum(prose)
    seen = 0
    for position, run in enumerate(runs):
        line = run.text.casefold().strip(_END_SIGNS) if len(run.text) <= MAX_TURN_LENGTH else ""
        to_talk = bool(line and _TALK.fullmatch(line))
        if to_talk or (line and _TURN.fullmatch(line)):
            kept[position] = False
            if seen >= LATE * whole and (to_talk or whole - seen <= TOO_MUCH * whole):
                kept[position:] = [False] * (len(runs) - position)
                return
        seen += prose[position]


def _leave_out_headings(runs: list[TextRun], kept: list[bool]) -> None:
    """Leave out headings with no line left below them, and those at the end."""
    next_kept: TextRun | None = None
    for position in range(len(runs) - 1, -1, -1):
        run = runs[position]
        if kept[position] and run.tag in HEADINGS:
            emptied = position + 1 < len(runs) and not kept[position + 1]
            is_last_of_its_part = next_kept is None or (next_kept.tag in HEADINGS and next_kept.tag <= run.tag)
            kept[position] = not (next_kept is None or (emptied and is_last_of_its_part))
        if kept[position]:
            next_kept = run


def _trimmed(runs: list[TextRun]) -> list[TextRun]:
    start, end = 0, len(runs)
    while start < end and _is_head_line(runs[start], runs[start + 1 : end]):
        start += 1
    while end > start and _is_tail_line(runs[end - 1]):
        end -= 1
    return runs[start:end]


def _is_head_line(run: TextRun, below: list[TextRun]) -> bool:
    """Return whether a line at the beginning is a byline, a date, or the name of a section."""
    text = run.text
    if len(text) > MAX_HEAD_LENGTH or run.tag in HEADINGS:
        return False
    if is_mostly_date(text) or run.linked >= ALL_LINKS * len(text):
        return True
    if _SENTENCE_END.search(text):
        return False
    if len(text) <= MAX_TAIL_LENGTH and _BYLINE.match(text):
        return True
    if run.tag in ("p", "li", "blockquote") or (below and below[0].node is run.node):
        return False
    return len(text.split()) <= MAX_HEAD_WORDS and len(text) < MIN_PROSE


def _is_tail_line(run: TextRun) -> bool:
    """Return whether a line at the end is a date, a link, or a heading without text below it."""
    text = run.text
    if len(text) > MAX_TAIL_LENGTH:
        return False
    if not _LETTER.search(text):
        return True
    return is_mostly_date(text) or run.linked >= ALL_LINKS * len(text) or run.tag in HEADINGS
