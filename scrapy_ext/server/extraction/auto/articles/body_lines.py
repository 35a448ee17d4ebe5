"""Which lines of the box around an article are its text. Where that is not sure, rather a line too few."""

from __future__ import annotations

import re
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles import phrases
from scrapy_ext.server.extraction.auto.articles.runs import Run
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, letters_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The part of its text that links have, from which a line is one of links; and of its items, from which a list is.
ALL_LINKS: Final = 0.9
MOST_ITEMS: Final = 0.6
#: What a line may have before its link, as in "Read more: the link".
_LABEL = re.compile(r"[^:：]{1,30}[:：]")
#: The part of the prose after which a line may end the text, and the part that must not be lost so.
LATE: Final = 0.5
TOO_MUCH: Final = 0.12
#: Shorter lines, in characters, are hardly prose.
MIN_PROSE: Final = 40
MAX_TURN_LENGTH: Final = 80
#: Quotations that are pulled out of the text have a length between these.
MIN_QUOTATION: Final = 30
MAX_QUOTATION: Final = 400
#: They are looked for in texts with no more lines and characters than these, as that takes time by the product of both.
MAX_RUNS: Final = 2000
MAX_WHOLE: Final = 300_000
#: Lines before the text and after it are no longer.
MAX_HEAD_LENGTH: Final = 120
MAX_TAIL_LENGTH: Final = 60
MAX_HEAD_WORDS: Final = 5
#: The part of the prose above a heading that must stand below it.
BELOW: Final = 0.3

#: Lines without any are ornaments; those of underscores are set between parts of a text by agencies.
_SIGN = re.compile(r"\w")
_LETTER = re.compile(r"[^\W_]")
_SENTENCE_END = re.compile(r"[.!?…:;。！？।؟][\"'”’»)\]」』]*$")
_CELLS: Final = frozenset(("td", "th", "dt", "pre"))
_VOCABULARY: Final = load_vocabulary("article_lines")
_BYLINE = _VOCABULARY.pattern("byline", re.IGNORECASE)


def text_runs(runs: list[Run], heading: HtmlElement | None, headline: str) -> list[Run]:
    """The runs that are of the text, which begins below the heading."""
    runs = _below_heading(runs, heading, headline)
    kept = [not _is_aside(run) for run in runs]
    _leave_out_links(runs, kept)
    _leave_out_repeated(runs, kept)
    _end_at_turn(runs, kept)
    _leave_out_headings(runs, kept)
    return _trimmed([run for run, keep in zip(runs, kept, strict=True) if keep])


def _below_heading(runs: list[Run], heading: HtmlElement | None, headline: str) -> list[Run]:
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


def _prose(run: Run) -> int:
    """The characters of a line outside of links, as far as it is prose."""
    length = len(run.text) - run.linked
    return length if length >= MIN_PROSE else 0


def _is_aside(run: Run) -> bool:
    if not _SIGN.search(run.text):
        return True
    if len(run.text) > phrases.MAX_LENGTH:
        return False
    folded = run.text.casefold()
    if run.tag not in HEADINGS and phrases.ASIDE.match(folded):
        return True
    return phrases.NOTHING.fullmatch(folded.strip(phrases.SIGNS)) is not None


def _leave_out_links(runs: list[Run], kept: list[bool]) -> None:
    """Leave out lines that are nothing but links to other pages of the site, and lists of such."""
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


def _is_link(run: Run) -> bool:
    if 2 * run.away > run.linked:
        return False
    if run.linked >= ALL_LINKS * len(run.text):
        return True
    label = _LABEL.match(run.text)
    return label is not None and run.linked >= ALL_LINKS * (len(run.text) - label.end() - 1) > 0


def _leave_out_repeated(runs: list[Run], kept: list[bool]) -> None:
    """Leave out quotations that are pulled out of the text, as they stand in it as well."""
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


def _end_at_turn(runs: list[Run], kept: list[bool]) -> None:
    """Leave out the lines that lead to other things, and end the text at those with little of it below."""
    prose = [_prose(run) if keep else 0 for run, keep in zip(runs, kept, strict=True)]
    whole = sum(prose)
    seen = 0
    for position, run in enumerate(runs):
        line = run.text.casefold().strip(phrases.SIGNS) if len(run.text) <= MAX_TURN_LENGTH else ""
        to_talk = bool(line and phrases.TALK.fullmatch(line))
        if to_talk or (line and phrases.TURN.fullmatch(line)):
            kept[position] = False
            if seen >= LATE * whole and (to_talk or whole - seen <= TOO_MUCH * whole):
                kept[position:] = [False] * (len(runs) - position)
                return
        seen += prose[position]


def _leave_out_headings(runs: list[Run], kept: list[bool]) -> None:
    """Leave out headings below which all was left out, and those at the end."""
    next_kept: Run | None = None
    for position in range(len(runs) - 1, -1, -1):
        run = runs[position]
        if kept[position] and run.tag in HEADINGS:
            emptied = position + 1 < len(runs) and not kept[position + 1]
            is_last_of_its_part = next_kept is None or (next_kept.tag in HEADINGS and next_kept.tag <= run.tag)
            kept[position] = not (next_kept is None or (emptied and is_last_of_its_part))
        if kept[position]:
            next_kept = run


def _trimmed(runs: list[Run]) -> list[Run]:
    start, end = 0, len(runs)
    while start < end and _is_head_line(runs[start], runs[start + 1 : end]):
        start += 1
    while end > start and _is_tail_line(runs[end - 1]):
        end -= 1
    return runs[start:end]


def _is_head_line(run: Run, below: list[Run]) -> bool:
    """Whether a line at the beginning is a byline, a date, or the name of a section."""
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


def _is_tail_line(run: Run) -> bool:
    """Whether a line at the end is a date, a link, or a heading of what is no more there."""
    text = run.text
    if len(text) > MAX_TAIL_LENGTH:
        return False
    if not _LETTER.search(text):
        return True
    return is_mostly_date(text) or run.linked >= ALL_LINKS * len(text) or run.tag in HEADINGS
