"""Names in the lines that say who wrote: ``By Jane Doe and John Roe, PhD | 3 May``."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.fields.datelines import AGENCY, agency_of_dateline
from scrapy_ext.server.extraction.auto.fields.dates import (
    BEFORE_DAY,
    WRITTEN,
    in_ascii_digits,
    is_mostly_date,
    words_before_date,
)
from scrapy_ext.server.extraction.auto.fields.fact_lines import facts_of
from scrapy_ext.server.extraction.auto.page import one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NAME_LENGTH: Final = 120
#: Longest text with names that is read, in characters.
MAX_TEXT_LENGTH: Final = 300
#: A line that begins with "by" and is longer is a sentence.
MAX_LINE_LENGTH: Final = 100
MAX_LABEL_LENGTH: Final = 15
#: Most words of a name in a line that nothing names.
MAX_LINE_WORDS: Final = 4

_VOCABULARY: Final = load_vocabulary("authors")
LEADING, LINE_LEADING, NAMED_LEADING = _VOCABULARY.patterns(
    "leading", "line_leading", "named_leading", flags=re.IGNORECASE
)
#: Text behind a name in the same line.
_TRAILING = _VOCABULARY.pattern("trailing")
_SEPARATORS = _VOCABULARY.pattern("separators")
#: Qualifications belong to the name before them.
_QUALIFICATION = _VOCABULARY.pattern("qualification", re.IGNORECASE)
#: Job titles right behind a name, often in an element beside it.
_TITLE_BEHIND = _VOCABULARY.pattern("title_behind")
_TITLE_BEFORE = _VOCABULARY.pattern("title_before", re.IGNORECASE)
_TITLE_AFTER_COMMA = _VOCABULARY.pattern("title_after_comma", re.IGNORECASE)
_TITLE, _OF_PICTURES = _VOCABULARY.patterns("title", "of_pictures", flags=re.IGNORECASE)
_DATED_LEADING = _VOCABULARY.pattern("dated_leading")
_VENUE, _PUBLIC_BODY, _EVENT = _VOCABULARY.patterns("venue", "public_body", "event", flags=re.IGNORECASE)
_OFFICE, _NO_NAME = _VOCABULARY.patterns("office", "no_name", flags=re.IGNORECASE)
_DESK = _VOCABULARY.pattern("desk", re.IGNORECASE)
_WEEKDAY = _VOCABULARY.pattern("weekdays")
_IN_PLACE = _VOCABULARY.pattern("in_place")
_MAIL, _HANDLE = _VOCABULARY.patterns("mail", "handle")
HAN_BYLINE, _HAN_AUTHOR, _HAN_BETWEEN = _VOCABULARY.patterns("han_byline", "han_author", "han_between")
#: Words in names that begin with small letters.
_PARTICLES: Final = frozenset(_VOCABULARY.words("particles"))
_TEXT_BY = re.compile(r"te(?:x|ks)ti?\s+(?!(?:av|af|von|by)\s)", re.IGNORECASE)
_BEHIND_NUMBER = re.compile(r"\d\D*\b(?:by|von|par|por|door|av|af)\b", re.IGNORECASE)
_PUBLISHED_WORD = load_vocabulary("dates").pattern("published_word", re.IGNORECASE)
_ABOUT_TEXT = load_vocabulary("dates").pattern("about_text", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
#: The end of a sentence, not of an abbreviation.
_FULL_STOP = re.compile(r"(?<=[^\W\d_]{3})(?<!\bInc)(?<!\bLtd)(?<!\bPty)(?<!\bEsq)(?<!\bCorp)(?<!\bBros)\.$")
_BETWEEN_FACTS = re.compile(r"[|·•]")
_READING = re.compile(r"(?<=[\u3400-\u9fff々])\s?[(（][\u3041-\u30ff\s・]{1,20}[)）]")
_BEHIND_NAME = re.compile(r"[,(|]|\s[–—-]\s|\s(?:at|of the|from the)\s")
#: Signs of footnotes behind a name of two words, or more: ``Jane Doe 1,2``.
_FOOTNOTE = re.compile(
    r"(?P<name>[^\W\d_]\S*(?:\s\S+){0,2}\s[^\W\d_]\S*[^\W\d_])\s?(?:\d{1,2}|[*†‡§¶])(?:\s?,?\s?(?:\d{1,2}|[*†‡§¶]))*"
)
_COLON = re.compile("[:：]")
#: A surname that may be the day of the week before a date: ``By Robinson Sunday, 3 May``.
_NAMED_AS_DAY = re.compile(rf"\s+(?P<day>{_VOCABULARY.text('weekdays')})(?!\w)")


def is_of_event(line: str) -> bool:
    """Return whether a line says where or when something takes place: ``Concert, Town Hall, 3 May 2024``."""
    date = WRITTEN.search(in_ascii_digits(line)) if _DIGIT.search(line) else None
    if date is None or NAMED_LEADING.match(line):
        return False
    place = line[: date.start()]
    return _EVENT.match(line) is not None or _VENUE.search(_BEHIND_NAME.split(place, 1)[0]) is not None


def words_of(name: str) -> int:
    """Return the number of words of a name without the qualifications behind it."""
    first, *others = re.split(r",\s*", name)
    return len((first if all(map(_QUALIFICATION.fullmatch, others)) else name).split())


def byline_in(text: str) -> str | None:
    """Return the part of a line of facts that says who wrote: ``3 мая 2024 | Автор: Иван Петров | Просмотров: 12``."""
    if len(text) > MAX_LINE_LENGTH or not _DIGIT.search(text) or not _BETWEEN_FACTS.search(text):
        return None
    return next(filter(LINE_LEADING.match, facts_of(text) or ()), None)


def names_of_line(text: str) -> list[str]:
    """Return the names, of several words each, of a line that surely says who wrote: ``By Jane Doe • 3 May``."""
    # "Text" begins headlines as well: "Text message scam".
    if len(text) > MAX_LINE_LENGTH or not (LINE_LEADING.match(text) or behind_date(text)) or _TEXT_BY.match(text):
        return []
    # Behind a comma is the medium or a degree.
    names = [name.partition(",")[0] for name in names_in(text, LINE_LEADING, shown=True)]
    return names if all(map(is_whole_name, names)) else []


def part_with(line: str, names: list[str]) -> str:
    """Return the part of a line of facts, between bars or dots, that has all of the names; else the line."""
    parts = (part.strip() for part in _BETWEEN_FACTS.split(line))
    return next((part for part in parts if all(name in part for name in names)), line)


def name_before_date(text: str) -> str:
    """Return the name before the date of a line with little else; nothing where that is a word for the publication."""
    date = WRITTEN.search(text)
    before = text[: date.start()].strip(" ,|·•–—-") if date else ""
    return "" if _ABOUT_TEXT.match(before) or not (is_whole_name(before) or names_of_line(before)) else before


def is_whole_name(name: str) -> bool:
    words = name.split()
    return 2 <= len(words) <= MAX_LINE_WORDS and (all(map(_of_name, words)) or _DESK.fullmatch(name) is not None)


def behind_date(text: str) -> str:
    """Return the names behind the day of publication in a line: ``Posted on May 3, 2024 by Jane Doe``; else nothing.

    A day behind another word is that of something else: ``Adopted on May 3, 2024 by the Council``. So may a bare day be
    that stands before a public body or a venue.
    """
    # Most lines have no such word behind a number, and this is found much faster than that they have no date.
    likely = len(text) <= MAX_LINE_LENGTH and _BEHIND_NUMBER.search(text) is not None
    match = _DATED_LEADING.match(text) if likely else None
    names = text[match.end() :] if match else ""
    if match is None or not names[:1].isupper():
        return ""
    if match["ago"]:
        return names
    label = words_before_date(match["day"])
    if label is None or not is_mostly_date(match["day"].removeprefix(label)):
        return ""
    if not label or BEFORE_DAY.fullmatch(label):
        # Behind a comma is the employer of a person.
        return "" if _is_institution(_BEHIND_NAME.split(names, 1)[0]) else names
    return names if _PUBLISHED_WORD.fullmatch(label) else ""


def _is_institution(name: str) -> bool:
    return _PUBLIC_BODY.search(name) is not None or _VENUE.search(name) is not None


def _of_name(word: str) -> bool:
    return word[:1].isupper() or word in _PARTICLES


def begins_name(name: str, line: str) -> bool:
    """Return whether a text begins as a name; in scripts without capitals only behind a colon or before a date."""
    if name[:1].isupper() or _DESK.fullmatch(name):
        return True
    is_labelled = _COLON.search(line[:MAX_LABEL_LENGTH]) is not None
    return not name[:1].islower() and (is_labelled or _is_before_date(name, line))


def _is_before_date(name: str, line: str) -> bool:
    """Return whether a line has only the words "by", a name of several words, a word for the publication and a day."""
    before = words_before_date(line)
    if before is None or not 2 <= len(name.split()) <= MAX_LINE_WORDS or name not in before:
        return False
    first, _, last = before.partition(name)
    last = last.strip(" ,")
    is_of_date = not last or (_PUBLISHED_WORD.fullmatch(last) or _WEEKDAY.fullmatch(last)) is not None
    return len(first) <= MAX_LABEL_LENGTH and is_of_date


def names_in(raw: str, leading: re.Pattern[str] = LEADING, *, shown: bool = False) -> list[str]:
    """Return the names in a text such as ``By Jane Doe and John Roe, PhD | 3 May``.

    ``leading`` matches the words before them. Only ``shown`` bylines have the places of reporters behind names.
    """
    raw = without_readings(raw) if "://" not in raw else ""
    if not raw.isascii() and (in_han := _in_han_byline(one_line(raw)[:MAX_TEXT_LENGTH])):
        return in_han
    if shown:
        raw = _MAIL.sub("", _HANDLE.sub("", raw)) or raw
    text = one_line(raw)[:MAX_TEXT_LENGTH].strip(" ,;:|")
    if shown and (agency := agency_of_dateline(text)):
        return [agency]
    text = _without_begin(text, leading) if shown else leading.sub("", text)
    placed = [_IN_PLACE.fullmatch(part) for part in _SEPARATORS.split(text)] if shown else []
    if len(placed) > 1 and all(placed):
        return [match["name"] for match in placed if match]
    text, behind = _without_trailing(text)
    if not text:
        return []
    titled = _TITLE_AFTER_COMMA.search(text) if shown else None
    if titled is not None and _are_names(_SEPARATORS.split(text[: titled.start()])):
        text = text[: titled.start()]
    parts = _parts_of(text, behind, shown=shown)
    names: list[str] = []
    for part in parts:
        if names and _QUALIFICATION.fullmatch(part) and not AGENCY.fullmatch(part):
            names[-1] += f", {part}"
            continue
        if names and (_DIGIT.search(part) or (shown and _is_institution(part))):
            continue  # A date, the number of others, or the employer of a person.
        name = _without_title(part)
        if shown:
            name = _FULL_STOP.sub("", name)
        if 0 < len(name) <= MAX_NAME_LENGTH and _LETTER.search(name) and not _NO_NAME.search(name):
            names.append(name)
    return names


def _parts_of(text: str, behind: str, *, shown: bool) -> list[str]:
    """Return the names of a text without its begin and end; ``behind`` is the end that it had."""
    parts = [part.strip(" ,;:|•·–—-") for part in _SEPARATORS.split(text)]
    if shown and _DIGIT.search(behind) and _is_name_and_place(text):
        parts = _SEPARATORS.split(text.rpartition(", ")[0])
    if shown and any(map(_TITLE.fullmatch, parts[1:])):
        parts = _without_titles(parts) or [text]
    if not _are_names(parts) or _OFFICE.search(" ".join(parts)):
        parts = [text]
    if shown and _FOOTNOTE.fullmatch(parts[0]):
        parts = [match["name"] if (match := _FOOTNOTE.fullmatch(part)) else part for part in parts]
    return parts


def _without_begin(text: str, leading: re.Pattern[str]) -> str:
    """Return a byline without the words and the day before its names."""
    if names := behind_date(text):
        return names
    text = leading.sub("", text)
    dated = _DATED_LEADING.match(text)
    is_dated = dated is not None and (dated["ago"] or is_mostly_date(dated["day"]))
    return text[dated.end() :] if dated is not None and is_dated else text


def _without_trailing(text: str) -> tuple[str, str]:
    """Return a text without what stands behind its names, and that; nothing where a surname may be a day."""
    match = _TRAILING.search(text)
    if match is None:
        return text.strip(" ,;:|"), ""
    names, behind = text[: match.start()], text[match.start() :]
    # The expression may leave the space before the day on either side of its match.
    border = len(names.rstrip())
    day = _NAMED_AS_DAY.match(text, border)
    if day is not None and day["day"][0].isupper() and len(names.split()) == 1 and names.rstrip()[-1:].isalpha():
        # "Anna Sonntag, 3. Mai" is as likely Anna, on a Sunday.
        return ("", behind) if _DIGIT.search(behind) else (text[: day.end()] + _TRAILING.sub("", text[day.end() :]), "")
    return names.strip(" ,;:|"), behind


def _is_name_and_place(text: str) -> bool:
    """Return whether a text is names of several words, a comma, and one word, as of a place before a date."""
    name, _, place = text.rpartition(", ")
    is_place = place.isalpha() and place.istitle() and not (_QUALIFICATION.fullmatch(place) or AGENCY.fullmatch(place))
    return is_place and all(map(is_whole_name, _SEPARATORS.split(name)))


def _without_titles(parts: list[str]) -> list[str]:
    """Return the names of a list without the job titles behind them, and without makers of pictures."""
    names: list[str] = []
    for part in filter(None, parts):
        if not _TITLE.fullmatch(part):
            names.append(part)
        elif names and _OF_PICTURES.search(part):
            names.pop()
    return names


def without_readings(text: str) -> str:
    """Return a line without the readings of Han signs in kana: ``山田(やまだ)太郎``."""
    return text if text.isascii() else _READING.sub("", text)


def _in_han_byline(text: str) -> list[str]:
    """Return the names of a byline of a Chinese or Japanese paper, such as ``記者王大文／台北報導``."""
    match = _HAN_AUTHOR.search(text)
    names = next(filter(None, match.groups()), "") if match else ""
    return [name for name in _HAN_BETWEEN.split(names) if name]


def _without_title(text: str) -> str:
    """Return a name without the job title before or behind it; unchanged where a comma separates them."""
    name = _TITLE_BEFORE.sub("", _TITLE_BEHIND.sub("", text))
    return name if "," not in text and len(name.split()) >= 2 else text


def _are_names(parts: list[str]) -> bool:
    """Return whether the parts of a text between commas are all names, rather than a name and a job title."""
    return all(
        _QUALIFICATION.fullmatch(part) or AGENCY.fullmatch(part) or 2 <= len(part.split()) <= 4 for part in parts
    )
