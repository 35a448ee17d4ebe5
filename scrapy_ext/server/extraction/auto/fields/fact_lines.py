"""Lines of facts about a text, in any language: its author, date, source, counts of views and comments, between signs.

``Por Ana Ruiz | 3 de mayo de 2024 | 1.234 lecturas``. Each part is a date, perhaps behind a word for a change, a name,
a number with a word or two, or a label with its value. One that is none of these makes the line a part of the text.
"""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.fields.dates import WRITTEN, in_ascii_digits, is_mostly_date, time_beside
from scrapy_ext.server.extraction.auto.page.text import is_wide
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longest line and part, in characters.
MAX_LINE_LENGTH: Final = 120
MAX_PART_LENGTH: Final = 40
#: Longest text before the date of a line that is its label.
MAX_LABEL_LENGTH: Final = 20
#: Longest name in scripts without capitals, in characters.
MAX_WIDE_LENGTH: Final = 8
MAX_NAME_WORDS: Final = 5
#: Longest word in small letters in a name: "Ana de la Cruz".
MAX_PARTICLE_LENGTH: Final = 3

_ABOUT_TEXT = load_vocabulary("dates").pattern("about_text", re.IGNORECASE)
_BOUND = re.compile(rf"{load_vocabulary('dates').text('bound_word')}(?![^\W_])", re.IGNORECASE)
_BY = load_vocabulary("authors").pattern("line_leading", re.IGNORECASE)

_PUBLISHED_AT_END = re.compile(rf"(?<=\S)\s+(?:{load_vocabulary('dates').text('published_word')})$", re.IGNORECASE)

_BETWEEN = re.compile(r"\s*[|¦·•●∙»/]\s*|\s+[–—-]\s+|[\t\u3000]+")
_BORDER: Final = " ,()[]–—-"
_DIGIT = re.compile(r"\d")
_SPACE = re.compile(r"\s+")
_COUNT = re.compile(r"(?:[^\W\d_]+\s?[:：]?\s*){0,2}[(+]?\d[\d.,:\s]*[KkMm+)]?(?:\s*[^\W\d_]+){0,2}\.?")
_LABELLED = re.compile(r"[^\W\d_]+(?:\s[^\W\d_]+)?\s?[:：]\s*\S.*")
_WORD_BEFORE = re.compile(r"[^\W\d_]+[.:：]?\s+(?=\S)")
_NOTHING = re.compile(r"[\W_]*")


def facts_of(text: str) -> list[str] | None:
    """Return the parts of a line of facts other than its date; None for any other line.

    A line without a date, or with nothing else, is none.
    """
    if len(text) > MAX_LINE_LENGTH:
        return None
    before, behind, is_dated = _around_date(text)
    label = before if is_dated and len(before) <= MAX_LABEL_LENGTH and not _BETWEEN.search(before) else ""
    before = _PUBLISHED_AT_END.sub("", before)
    parts = [part for each in (before, behind) for part in _parts_of(each)] if not label else _parts_of(behind)
    if any(len(part) > MAX_PART_LENGTH for part in parts):
        return None
    is_line = is_dated and bool(parts) and all(map(_is_fact, parts)) and not (label and is_phrase_of_date(text))
    return [part for part in (label, *parts) if part] if is_line else None


def is_phrase_of_date(text: str) -> bool:
    """Return whether a line is one phrase around a date of something else than the text: ``Since 3 May in Berlin``.

    Behind a word for the publication, such a phrase has the section; behind one such as "by", or a name, an author.
    """
    before, behind, is_dated = _around_date(text)
    if not is_dated or not before or len(before) > MAX_LABEL_LENGTH:
        return False
    if _BOUND.match(before):
        return True
    if f" {behind}" not in text:
        return False
    word, _, name = behind.partition(" ")
    if not word.islower() or not _is_name(name) or _DIGIT.search(name) or _BETWEEN.search(text):
        return False
    is_name = " " in before and _is_name(before)
    return not (is_name or _ABOUT_TEXT.match(before) or _BY.match(behind))


def _is_fact(text: str) -> bool:
    is_stated = _COUNT.fullmatch(text) is not None or _LABELLED.fullmatch(text) is not None
    return is_stated or _may_be_name(text) or is_mostly_date(text)


def _around_date(text: str) -> tuple[str, str, bool]:
    """Return what stands before and behind the first date of a line and its time, and whether it has one."""
    date = WRITTEN.search(in_ascii_digits(text))
    if date is None or not is_mostly_date(date.group()):
        return "", text, False
    time = time_beside(text, date.start(), date.end())
    start = min(date.start(), time.start) if time else date.start()
    end = max(date.end(), time.end) if time else date.end()
    return text[:start].strip(_BORDER), text[end:].strip(_BORDER), True


def _parts_of(text: str) -> list[str]:
    # In scripts without spaces between words, one separates facts.
    between = _SPACE if any(map(is_wide, text)) else _BETWEEN
    return [part for part in between.split(text) if not _NOTHING.fullmatch(part)]


def _may_be_name(text: str) -> bool:
    """Return whether a text is a name, perhaps behind a word such as "by"."""
    if is_wide(text[:1]):
        return len(text) <= MAX_WIDE_LENGTH
    names = (text, _WORD_BEFORE.sub("", text, count=1))
    if not text[0].isupper() and not text[0].islower():
        # In scripts without capitals, only words such as "by" distinguish names.
        return (by := _BY.match(text)) is not None and 0 < len(text[by.end() :].split()) < MAX_NAME_WORDS
    return any(_is_name(name) for name in names)


def _is_name(text: str) -> bool:
    words = text.split()
    are_names = [word[:1].isupper() for word in words]
    if (
        not 0 < len(words) <= MAX_NAME_WORDS
        or not (are_names[0] and are_names[-1])
        or text.endswith((".", "!", "?", ":"))
    ):
        return False
    return all(is_name or len(word) <= MAX_PARTICLE_LENGTH for word, is_name in zip(words, are_names, strict=True))
