"""Choice of the lines of the box around an article that are its text. A doubtful line is left out."""

from __future__ import annotations

import re
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.body_lines import TextRun
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.fields.fact_lines import facts_of, is_phrase_of_date
from scrapy_ext.server.extraction.auto.fields.page_dates import has_both_alone
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, letters_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

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

#: Lines below the text of a newsletter, which ends there.
_OF_MAIL = _VOCABULARY.pattern("of_mail")

_LEADS_ON = _VOCABULARY.pattern("leads_on", re.IGNORECASE)

#: Short lines above the comments of readers.
_TALK = _VOCABULARY.pattern("talk")


#: A line is one of links with this share of its text in links (not all: commas and arrows stand between them), and a
#: list with this share of such items (some have a date or a count instead).
ALL_LINKS: Final = 0.9
MOST_ITEMS: Final = 0.6
#: Shortest paragraph, in characters, that may be a link as a whole.
MIN_LINKED: Final = 100
#: Label before a link, as in "Read more: the link".
_LABEL = re.compile(r"[^:：]{1,30}[:：]")
#: A line may end the text behind this share of the prose: "Related" in the first half leads to a box in the text. No
#: more than the second share may be lost so, as the text goes on behind such a box.
LATE: Final = 0.5
TOO_MUCH: Final = 0.12
#: Shorter lines, in characters, are hardly prose: half a line of print, as captions, bylines and buttons are.
MIN_PROSE: Final = 40
MAX_TURN_LENGTH: Final = 80
#: Shortest and longest pull quote, in characters: shorter texts are in any paragraph, longer ones are no display.
MIN_QUOTATION: Final = 30
MAX_QUOTATION: Final = 400
#: Longest text, in lines and characters, in which pull quotes are searched: it takes time by the product of both.
MAX_RUNS: Final = 2000
MAX_WHOLE: Final = 300_000
#: Longest lines before the text (a byline with a place and a date) and after it (a date, a link).
MAX_HEAD_LENGTH: Final = 120
MAX_TAIL_LENGTH: Final = 60
MAX_HEAD_WORDS: Final = 5
#: The share of the prose above a heading that must be below it: less is a teaser above the text of another article.
BELOW: Final = 0.3

#: The least number of headings of one level that are sentences.
FEWEST_CAPTIONS: Final = 3

#: Lines without any are ornaments; agencies put lines of underscores between parts of a text.
_SIGN = re.compile(r"\w")
_LETTER = re.compile(r"[^\W_]")
_SENTENCE_END = re.compile(r"[.!?…:;。！？।؟][\"'”’»)\]」』]*$")
_CELLS: Final = frozenset(("td", "th", "dt", "pre"))
_BYLINE = _VOCABULARY.pattern("byline", re.IGNORECASE)
_AGENCY = load_vocabulary("authors").pattern("agency", re.IGNORECASE)
_BETWEEN_SIGNS = re.compile(r"\s*[/,+&|·-]\s*|\s+")
#: Longest sign of a reporter, in characters.
MAX_SIGN: Final = 4


def text_runs(runs: list[TextRun], heading: HtmlElement | None, headline: str) -> list[TextRun]:
    """Return the lines that are of the text, which begins below the heading."""
    runs = _below_heading(runs, heading, headline)
    kept = [not _is_aside(run) for run in runs]
    _leave_out_links(runs, kept)
    _leave_out_pull_quotes(runs, kept)
    _end_at_turn(runs, kept)
    _leave_out_headings(runs, kept)
    return _trimmed([run for run, keep in zip(runs, kept, strict=True) if keep])


def _below_heading(runs: list[TextRun], heading: HtmlElement | None, headline: str) -> list[TextRun]:
    """Return the lines below the heading, or below the last line equal to the headline that stands before all prose.

    Further down such a line is a part of the text, as the refrain of a song that is named after it.
    """
    begin = _place_of_heading(runs, heading, headline)
    below = sum(map(_prose, runs[begin:]))
    return runs[begin:] if begin and below > BELOW * sum(map(_prose, runs[: begin - 1])) else runs


def _place_of_heading(runs: list[TextRun], heading: HtmlElement | None, headline: str) -> int:
    """Return the number of lines up to the heading; 0 where it is not among them."""
    inside = set(heading.iter()) if heading is not None else set()
    places = [place for place, run in enumerate(runs, 1) if run.node in inside]
    if places:
        return places[-1]
    key = letters_of(headline)
    found = 0
    for place, run in enumerate(runs, 1) if len(key) > 12 else ():
        if run.letters == key:
            found = place
        elif _prose(run):
            break
    return found


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
        elif run.tag not in HEADINGS and _is_link(run) and not _is_linked_paragraph(runs, position):
            kept[position] = False
    for positions in lists.values():
        links = sum(_is_link(runs[position]) for position in positions)
        if links >= MOST_ITEMS * len(positions) and not _is_announced(runs, positions):
            for position in positions:
                kept[position] = False


def _is_announced(runs: list[TextRun], positions: list[int]) -> bool:
    """Return whether a list belongs to the sentence before it, which ends in a colon, and the text goes on below."""
    before = runs[positions[0] - 1] if positions[0] else None
    after = runs[positions[-1] + 1] if positions[-1] + 1 < len(runs) else None
    if before is None or after is None or before.tag in HEADINGS or _LEADS_ON.search(before.text):
        return False
    return before.text.endswith((":", "：")) and _prose(before) > 0 and _prose(after) > 0


def _is_linked_paragraph(runs: list[TextRun], position: int) -> bool:
    """Return whether a link is a paragraph between others: as long as one, of whole sentences, as titles are not."""
    text = runs[position].text
    if runs[position].tag != "p" or len(text) < MIN_LINKED or not text.endswith(".") or text.endswith(".."):
        return False
    return all(0 <= beside < len(runs) and _prose(runs[beside]) > 0 for beside in (position - 1, position + 1))


def _is_link(run: TextRun) -> bool:
    if 2 * run.away > run.linked:
        return False
    if run.linked >= ALL_LINKS * len(run.text):
        return True
    label = _LABEL.match(run.text)
    return label is not None and run.linked >= ALL_LINKS * (len(run.text) - label.end() - 1) > 0


def _leave_out_pull_quotes(runs: list[TextRun], kept: list[bool]) -> None:
    """Leave out pull quotes: a longer paragraph outside of quotes has all of their words.

    They are known by their place. A text that is only equal to another is left where it stands, as in a song.
    """
    quoted = [run.tag == "blockquote" or _is_in_quote(run.node) for run in runs]
    if not any(quoted) or len(runs) > MAX_RUNS:
        return
    whole = "\n".join(run.letters for run, is_quoted in zip(runs, quoted, strict=True) if not is_quoted)
    if len(whole) > MAX_WHOLE:
        return
    paragraphs = set(whole.split("\n"))
    for position, (run, is_quoted) in enumerate(zip(runs, quoted, strict=True)):
        if is_quoted and MIN_QUOTATION <= len(run.text) <= MAX_QUOTATION and run.letters not in paragraphs:
            kept[position] = kept[position] and run.letters not in whole


def _is_in_quote(node: HtmlElement) -> bool:
    return next(node.iterancestors("blockquote"), None) is not None


def _end_at_turn(runs: list[TextRun], kept: list[bool]) -> None:
    """Leave out the lines that lead to other things, and end the text at those with little of it below."""
    prose = [_prose(run) if keep else 0 for run, keep in zip(runs, kept, strict=True)]
    whole = sum(prose)
    seen = 0
    for position, run in enumerate(runs):
        line = run.text.casefold().strip(_END_SIGNS) if len(run.text) <= MAX_TURN_LENGTH else ""
        to_talk = bool(line and _TALK.fullmatch(line)) or _is_of_mail(run)
        if to_talk or (line and _TURN.fullmatch(line)):
            kept[position] = False
            if seen >= LATE * whole and (to_talk or whole - seen <= TOO_MUCH * whole):
                kept[position:] = [False] * (len(runs) - position)
                return
        seen += prose[position]


def _is_of_mail(run: TextRun) -> bool:
    """Return whether a line says why a letter was sent, or how to get no more: it has a link for that."""
    return bool(run.linked) and len(run.text) <= MAX_PHRASE_LENGTH and _OF_MAIL.match(run.text.casefold()) is not None


def _leave_out_headings(runs: list[TextRun], kept: list[bool]) -> None:
    """Leave out headings with no line left below them, and those at the end."""
    next_kept: TextRun | None = None
    captions = _captions_in_headings(runs)
    for position in range(len(runs) - 1, -1, -1):
        run = runs[position]
        if kept[position] and run.tag in HEADINGS:
            emptied = position + 1 < len(runs) and not kept[position + 1]
            is_last_of_its_part = next_kept is None or (next_kept.tag in HEADINGS and next_kept.tag <= run.tag)
            dropped = next_kept is None or (emptied and is_last_of_its_part)
            kept[position] = not dropped or position in captions
        if kept[position]:
            next_kept = run


def _captions_in_headings(runs: list[TextRun]) -> set[int]:
    """Return the positions of headings of one level that are sentences, as those of a list of pictures are."""
    by_tag: dict[str, list[int]] = {}
    for position, run in enumerate(runs):
        if _is_sentence_in_heading(run):
            by_tag.setdefault(run.tag, []).append(position)
    return {position for positions in by_tag.values() if len(positions) >= FEWEST_CAPTIONS for position in positions}


def _is_sentence_in_heading(run: TextRun) -> bool:
    is_sentence = run.text.endswith((".", "。")) and not run.text.endswith("..")
    return run.tag in HEADINGS and is_sentence and len(run.text) >= MIN_PROSE and not run.linked


def _trimmed(runs: list[TextRun]) -> list[TextRun]:
    start, end = 0, len(runs)
    while start < end and _is_head_line(runs[start], runs[start + 1 : end]):
        start += 1
    while end > start and _is_tail_line(runs[end - 1]):
        end -= 1
    return runs[start:end]


def _is_head_line(run: TextRun, below: list[TextRun]) -> bool:
    """Return whether a line at the beginning has facts about the text, or is the name of a section."""
    text = run.text
    if len(text) > MAX_HEAD_LENGTH or run.tag in HEADINGS:
        return False
    if run.linked >= ALL_LINKS * len(text) or (is_mostly_date(text) and not is_phrase_of_date(text)):
        return True
    if below and (facts_of(text) is not None or has_both_alone(text)):
        return True
    if _SENTENCE_END.search(text):
        return False
    if len(text) <= MAX_TAIL_LENGTH and _BYLINE.match(text):
        return True
    if run.tag in ("p", "li", "blockquote") or (below and below[0].node is run.node):
        return False
    return len(text.split()) <= MAX_HEAD_WORDS and len(text) < MIN_PROSE


def _is_tail_line(run: TextRun) -> bool:
    """Return whether a line at the end is a date, a link, the sign of an agency, or a heading without text below it."""
    text = run.text
    if len(text) > MAX_TAIL_LENGTH:
        return False
    if not _LETTER.search(text):
        return True
    if is_mostly_date(text) or run.linked >= ALL_LINKS * len(text):
        return True
    return (run.tag in HEADINGS and not _is_sentence_in_heading(run)) or _is_of_agency(text)


def _is_of_agency(text: str) -> bool:
    """Return whether a line has the signs of reporters and agencies only: ``jbe/dpa``."""
    signs = _BETWEEN_SIGNS.split(text.strip("()[] ."))
    if not any(_AGENCY.fullmatch(sign) for sign in signs):
        return False
    return all(_AGENCY.fullmatch(sign) or (len(sign) <= MAX_SIGN and sign.islower()) for sign in signs)
