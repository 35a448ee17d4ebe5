"""Dates and times: read as people and machines write them, written as ISO 8601, never guessed.

A date without a time gets midnight and, like a time without a zone, no zone. Of several statements of one day, one with
a time counts. Where day and month are ambiguous, the day of the week beside them decides, else the language or country
of the page, else other dates of the page; else there is no date.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime, timedelta, timezone
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.fields.calendars import ERAS, day_of, is_month, is_sure_month, solar_day
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.urls import host_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("dates")

# ── times of day beside dates: ``04:16 PM EST (-05:00)``, ``um 16.16 Uhr``, ``16h16``, ``下午4:16`` ──
#
# A time is read where it is surely one: beside its date, or with ``PM``, a zone or a word for the clock.

_MORNING, _AFTERNOON = map(_VOCABULARY.text, ("morning", "afternoon"))
_BEFORE_NOON, _AFTER_NOON = map(_VOCABULARY.text, ("before_noon", "after_noon"))
_JOINING, _CLOCK, _BEFORE_DATE = map(_VOCABULARY.text, ("before_time", "clock", "before_date"))
_WEEKDAY, _WEEKDAY_SIGN = map(_VOCABULARY.text, ("weekday", "weekday_sign"))
_OTHER_WEEKDAYS: Final = _VOCABULARY.text("other_weekdays")
_VIETNAMESE: Final = frozenset({"SA", "CH"})
#: Hours from UTC of the zones with one meaning, by their names.
_ZONES: Final = {zone: int(hours) for hours, zones in _VOCABULARY.groups("zones").items() for zone in zones}
_OFFSET: Final = r"[+-]\d{2}:?\d{2}|(?<=GMT|UTC)[+-]\d{1,2}(?!\d)"
_TIME: Final = rf"""
    (?:(?P<am>{_MORNING})|(?P<pm>{_AFTERNOON}))?\s?
    (?<!\d)(?P<hour>\d\d?)
    (?:\s?[:：h時时시]\s?(?P<minute>\d\d)(?!\d)|\.(?P<dotted>\d\d)(?!\d|\.\d)|(?=\s?[apAP]\.?\s?[mM]\b))
    (?:[:分분]\s?(?P<second>\d\d)(?!\d)(?:[.,]\d{{1,9}})?)?[分분]?
    (?:\s?(?P<half>[apAP])\.?\s?[mM]\b\.?|\s?(?P<early>{_BEFORE_NOON})(?!\w)|\s?(?P<late>{_AFTER_NOON})(?!\w))?
    (?:\s?(?P<clock>{_CLOCK})(?!\w))?
    (?:(?:\s?\((?=GMT|UTC))?\s?(?P<zone>[A-Za-z]{{1,4}}(?![\w/]))?\s?\(?(?P<offset>{_OFFSET})?\)?)?
"""
#: Day of the week between a date and its time: ``星期五``, ``(金)``.
_DAY: Final = (
    rf"(?:[\s,，]{{0,2}}(?:[（(](?:{_WEEKDAY_SIGN}|{_WEEKDAY})[）)]|{_WEEKDAY}|(?i:(?:{_OTHER_WEEKDAYS})(?!\w))))?"
)
#: A time right after a date; with another sign between, it must show that it is one.
_AFTER = re.compile(rf"{_DAY}(?P<far>\s*[|·•–—/-])?[\s,T]{{0,3}}(?P<joining>{_JOINING})?\s*{_TIME}", re.VERBOSE)
_DAY_NAME: Final = _VOCABULARY.text("weekday_name")
_BEFORE = re.compile(rf"{_TIME}[\s,]{{1,3}}(?:{_BEFORE_DATE})?\s*(?:(?i:{_DAY_NAME}),?)?\s*$", re.VERBOSE)
_SURE_PARTS: Final = ("half", "early", "late", "am", "pm", "clock", "offset", "joining")
#: Characters before a date that may hold its time.
MAX_BEFORE: Final = 40
#: A word for the publication right before a date.
MAX_LABEL: Final = 30
_PUBLISHED_BEFORE = re.compile(rf"(?<![^\W\d_])(?:{_VOCABULARY.text('published_word')})\s*$", re.IGNORECASE)
_WEEKDAY_BEFORE = re.compile(rf"\b({_DAY_NAME}),?\s*$", re.IGNORECASE)
#: Characters before a date that may hold its day of the week.
MAX_WEEKDAY: Final = 14


class ClockTime(NamedTuple):
    """Time of day in 24 hours, its zone (None: unknown), and where it stands in the text."""

    hour: int
    minute: int
    second: int
    zone: timezone | None
    start: int
    end: int


def time_beside(text: str, start: int, end: int, language: str | None = None) -> ClockTime | None:
    """Return the time right after the date at ``start`` to ``end`` of a text, else that right before it."""
    after = _AFTER.match(text, end)
    # ``Fri, 07/14/2023 - 10:30`` is a moment, whatever the sign between.
    sure = (
        _WEEKDAY_BEFORE.search(text, max(0, start - MAX_WEEKDAY), start) is not None
        or _PUBLISHED_BEFORE.search(text, max(0, start - MAX_LABEL), start) is not None
    )
    if after is not None and (found := _clock_time(after, language, sure=sure)) is not None:
        return found
    before = _BEFORE.search(text, max(0, start - MAX_BEFORE), start)
    return _clock_time(before, language) if before is not None else None


def _clock_time(match: re.Match[str], language: str | None, *, sure: bool = False) -> ClockTime | None:
    parts = match.groupdict()
    if language != "vi":
        # In other languages the letters of its halves of the day are codes of countries.
        parts.update({name: None for name in ("early", "late") if parts[name] in _VIETNAMESE})
    sure = sure or any(parts.get(name) for name in _SURE_PARTS) or _zone(parts) is not None
    if (parts["dotted"] or parts.get("far")) and not sure:
        # ``5 May 2024 · 3:45`` may be the length of a film.
        return None
    hour, minute, second = int(parts["hour"]), int(parts["minute"] or parts["dotted"] or 0), int(parts["second"] or 0)
    half = (parts["half"] or "").lower()
    if (half == "p" or parts["pm"] or parts["late"]) and hour < 12:
        hour += 12
    elif (half == "a" or parts["am"] or parts["early"]) and hour == 12:
        hour = 0
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ClockTime(hour, minute, second, _zone(parts), match.start(), match.end())


def _zone(parts: dict[str, str | None]) -> timezone | None:
    """Return the zone: that of the offset, which is more exact than a name before it."""
    offset = parts["offset"]
    if offset:
        digits = offset[1:].replace(":", "")
        hours, minutes = (int(digits[:2]), int(digits[2:])) if len(digits) == 4 else (int(digits), 0)
        if hours > 14 or minutes > 59:
            return None
        difference = timedelta(hours=hours, minutes=minutes)
        return _of(-difference if offset[0] == "-" else difference)
    hours_of_name = _ZONES.get((parts["zone"] or "").lower())
    return None if hours_of_name is None else _of(timedelta(hours=hours_of_name))


def _of(difference: timedelta) -> timezone:
    return timezone(difference) if difference else timezone.utc


# ── dates ──

#: Texts with a date are no longer.
MAX_TEXT_LENGTH: Final = 200
#: A line that is mostly a date has no more characters than this beside it.
MAX_WORDS_LENGTH: Final = 20
#: No date is written with more characters.
MAX_DATE_LENGTH: Final = 60
#: Earlier years are placeholders.
EARLIEST_YEAR: Final = 1971
#: The furthest date in the future that is believed.
LATEST: Final = timedelta(days=366)

#: A letter or a mark of a letter, which scripts of India write as signs of their own. The micro sign is not excluded:
#: without regard to case it equals a Greek letter.
_LETTER: Final = "[^\\s\\d\\x21-\\x40\\x5b-\\x60\\x7b-\\xb4\\xb6-\\xbf\\u2010-\\u2027\\u060c\\u061b\\u3000-\\u303f|]"
_MONTH: Final = rf"(?:(?:كانون|تشرين)\s{_LETTER}{{4,6}}|[ก-ฮ]{_LETTER}?\.[ก-ฮ]\.|{_LETTER}{{2,14}})\.?"
_YEAR: Final = r"(?:19|20)\d\d"
#: Years of the Persian and the Thai calendar as well.
_ANY_YEAR: Final = r"(?:19|20|1[34]|25)\d\d"
#: Two digits are a year only beside the name of a month, and where no unit follows them.
_SURE_MONTH: Final = _VOCABULARY.text("month")
_SHORT_YEAR: Final = (
    rf"['’]?\d\d(?!\d|[:.,/-]\d|, \d|\s?[%&]|\s?[ap]\.?m\b|\s(?!(?:at|um|à)\b|{_JOINING}\s?\d)[^\W\d_])"
)
#: Dates as people write them.
WRITTEN = re.compile(
    rf"""
      (?<!\d)(?P<iso>{_YEAR}\.\s\d\d?\.\s\d\d?(?!\d)\.?|{_YEAR}\s?[-/.]\s?\d\d?\s?[-/.]\s?\d\d?(?!\d)(?:\.(?=\s))?)
    | (?<!\d)(?P<solar>1[34]\d\d[-/]\d\d?[-/]\d\d?)(?!\d)
    | (?P<han>{_YEAR}\s?[年년]\s?\d\d?\s?[月월]\s?\d\d?\s?[日일]?)
    | (?P<era>(?:{"|".join(ERAS)})\s?(?:\d{{1,3}}|元)\s?年\s?\d\d?\s?月\s?\d\d?\s?日)
    | (?<!\d)(?P<numeric>\d\d?(?:\s/\s\d\d?\s/\s{_YEAR}|[-/.]\s?\d\d?[-/.]\s?(?:{_YEAR}|\d\d(?!\d|:\d))))(?!\d)
    | (?<!\d)(?P<viet>\d\d?\s?tháng\s?\d\d?(?:,|\s?năm)?\s?{_YEAR})(?!\d)
    | (?<!\d)(?P<year_first>{_YEAR}(?:[.,]|ko)?\s(?:(?:m|gada)\.?\s)?
        (?:\d\d?\.?\s{_MONTH}|{_MONTH}\s\d\d?(?:an?\b)?(?![\d:])(?:\.|\sd\.)?))
    | (?<!\d)(?P<day_first>\d\d?(?:st|nd|rd|th|er|º|°|ª|\.|-а|-го)?(?:\s?(?:de\s|of\s|d['’]))?\s?{_MONTH},?\s
        (?:de\s|del\s|พ\.ศ\.\s)?{_ANY_YEAR})(?!\d)
    | (?<!\d)(?P<hyphened>\d\d?-{_MONTH}-{_YEAR})(?!\d)
    | (?P<month_first>{_MONTH}\s\d\d?(?:st|nd|rd|th)?,?\s{_YEAR})(?!\d)
    | (?<![\w:.,/-])(?P<short_day_first>\d\d?(?:\.?\s|-){_SURE_MONTH}(?:,?\s|-){_SHORT_YEAR})
    | \b(?P<short_month_first>{_SURE_MONTH}\s\d\d?(?:st|nd|rd|th)?(?:,\s?|\s(?=['’])){_SHORT_YEAR})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MONTH_FIRST_KINDS: Final = frozenset({"month_first", "short_month_first"})
#: The kinds of them with a word for the month.
_WITH_NAME: Final = _MONTH_FIRST_KINDS | {"year_first", "day_first", "hyphened", "short_day_first"}
#: The name of the month of such a date, and its numbers.
_NAME = re.compile(_MONTH)
_JOINING_WORD = re.compile(
    r"(?<=[\d.])(?:st|nd|rd|th|er|-го|-а|ko|an?)(?!\w)|\b(?:de|of|del|m|gada|d(?=\.))\b\.?|พ\.ศ\.|\bd['’]",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?=$|[T ])")
#: What may follow a date for machines: the name of its zone in brackets.
_ISO_END = re.compile(r"\s*(?:\[[\w/+-]{1,40}\])?")
_COMPACT = re.compile(rf"({_YEAR})(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?(Z|[+-]\d\d:?\d\d)?)?", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+")
_QUOTES: Final = "'’"
_REGION = re.compile(r"[-_]([A-Za-z]{2})\b")
#: Countries where the month comes first in numbers.
_MONTH_FIRST: Final = frozenset({"us", "ph"})
#: Languages that are written in one order everywhere. English is not.
_DAY_FIRST_LANGUAGES: Final = frozenset(_VOCABULARY.words("day_first_languages"))
#: Countries that write English with the day first.
_ENGLISH_DAY_FIRST: Final = frozenset(_VOCABULARY.words("english_day_first"))


class Date(NamedTuple):
    """A date in ISO 8601, and as the page writes it."""

    iso: str
    raw: str

    @property
    def has_time(self) -> bool:
        """True for a date with a time; midnight without a zone stands for none."""
        return not self.iso.endswith("T00:00:00")


def read(text: str | None, page: Page) -> Date | None:
    """Return the first date in a short text; None where there is none, or only ambiguous ones."""
    raw = one_line(text if not text or text.isascii() else text.translate(_DIRECTIONS))[:MAX_TEXT_LENGTH]
    return machine_date(raw) or _of_people(raw, page)


def machine_date(raw: str) -> Date | None:
    """Return a date that is written for machines, in ISO 8601 or nearly so."""
    moment = _of_machine(raw)
    return None if moment is None else Date(_formatted(moment), raw)


def _of_machine(text: str) -> datetime | None:
    text = _spelled_out(text)
    match = _ISO_DATE.match(text)
    if match is None:
        return None
    day = _moment([int(part) for part in match.groups()])
    if day is None or match.end() == len(text):
        return day
    time = time_beside(text, 0, match.end())
    return _at(day, time) if time is not None and _ISO_END.fullmatch(text, time.end) else None


def _spelled_out(text: str) -> str:
    """Return ``2024-07-09T17:30Z`` for ``20240709T1730Z``; other texts as they are."""
    compact = _COMPACT.fullmatch(text)
    if compact is None:
        return text
    day, clock = "-".join(compact.groups()[:3]), ":".join(filter(None, compact.groups()[3:6]))
    return f"{day}T{clock}{compact[7] or ''}" if clock else day


def _at(day: datetime, time: ClockTime) -> datetime:
    return day.replace(hour=time.hour, minute=time.minute, second=time.second, tzinfo=time.zone)


def _moment(parts: list[int]) -> datetime | None:
    """Return the moment of year, month, day and so on; None for one that does not exist or is implausible."""
    try:
        year, month, day, hour, minute, second = [*parts, 0, 0, 0][:6]
        return _plausible(datetime(year, month, day, hour, minute, second))  # noqa: DTZ001 (the zone is unknown)
    except ValueError:
        return None


def _plausible(moment: datetime) -> datetime | None:
    return moment if EARLIEST_YEAR <= moment.year <= (datetime.now(timezone.utc) + LATEST).year else None


def _of_people(text: str, page: Page) -> Date | None:
    shown, text = text, in_ascii_digits(text)
    for match in WRITTEN.finditer(text):
        kind, found = match.lastgroup, match.group()
        numbers = [int(number) for number in _NUMBERS.findall(found)]
        if kind in {"iso", "han"}:
            moment = _moment(numbers)
        elif kind == "solar":
            moment = _at_midnight(solar_day(*numbers)) if page.language == "fa" else None
        elif kind == "era":
            year = ERAS[found[:2]] + (1 if "元" in found else numbers[0])
            moment = _moment([year, *numbers[-2:]])
        elif kind == "viet":
            moment = _moment(numbers[::-1])
        elif kind == "numeric":
            moment = _numeric(found, page, text[max(0, match.start() - MAX_WEEKDAY) : match.start()])
        elif kind in {"short_day_first", "short_month_first"}:
            moment = _with_short_year(found, page)
        else:
            moment = _with_month_name(found, page)
        if moment is not None and not _is_in_name(match, page.language):
            language = "vi" if kind == "viet" else page.language
            time = time_beside(text, match.start(), match.end(), language)
            if time is None:
                return Date(_formatted(moment), shown[match.start() : match.end()])
            start, end = min(match.start(), time.start), max(match.end(), time.end)
            return Date(_formatted(_at(moment, time)), shown[start:end].strip(" ,("))
    return None


def _numeric(text: str, page: Page, before: str) -> datetime | None:
    first, second, year = (int(number) for number in _NUMBERS.findall(text))
    year = year if year >= 100 else _full_year(year)
    if first > 12 or first == second:
        return _moment([year, second, first])
    if second > 12:
        return _moment([year, first, second])
    day_first, month_first = _moment([year, second, first]), _moment([year, first, second])
    order = _order(page)
    if weekday := _WEEKDAY_BEFORE.search(before):
        named = _WEEKDAYS.index(weekday.group(1)[:3].lower())
        fitting = [moment for moment in (day_first, month_first) if moment and moment.weekday() == named]
        # Themes declare a country that is not the one of their users; the day of the week is of this date.
        if len(fitting) == 1 or order is None:
            return fitting[0] if len(fitting) == 1 else None
    if order == "DMY" or (order is None and "." in text):
        return day_first
    return {"DMY": day_first, "MDY": month_first}.get(order or page.order_of_dates or "")


_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _with_short_year(text: str, page: Page) -> datetime | None:
    """Return the moment of ``Jan 12, 24``; None for ``Jan 12, 13``, which may as well be two days."""
    rest, year = text[:-2], int(text[-2:])
    if year == int(_NUMBERS.findall(rest)[0]) + 1 and rest[-1:] == " ":
        return None
    return _with_month_name(f"{rest.rstrip(_QUOTES)} {_full_year(year)}", page)


def _full_year(year: int) -> int:
    return year + (2000 if year < 70 else 1900)


def _order(page: Page) -> str | None:
    """Return the order of day and month in numeric dates of the page, as far as language and country decide it."""
    if page.language in _DAY_FIRST_LANGUAGES:
        return "DMY"
    country = host_of(page.url).rpartition(".")[2]
    regions = {region.lower() for region in _REGION.findall(f"{page.tree.get('lang')} {page.meta('og:locale')}")}
    if country in _ENGLISH_DAY_FIRST or regions & _ENGLISH_DAY_FIRST:
        return "DMY"
    return "MDY" if country in _MONTH_FIRST or regions & _MONTH_FIRST else None


def _with_month_name(text: str, page: Page) -> datetime | None:
    first, second = (int(number) for number in _NUMBERS.findall(text))
    name = _month_name(text)
    year, day = (first, second) if first > second else (second, first)
    return _at_midnight(day_of(year, name, day, page.language)) if name else None


def _month_name(text: str) -> str | None:
    """Return the word of a date that is the name of its month, if it is a date with a name."""
    name = _NAME.search(_JOINING_WORD.sub("", text))
    return name.group() if name else None


#: A word right before or behind a date.
_WORD_BEFORE, _WORD_BEHIND = re.compile(r"[^\W\d_]\s$"), re.compile(r"\s[^\W\d_]")


def _is_in_name(match: re.Match[str], language: str | None) -> bool:
    """Return whether a date is rather a part of a name, as in ``MacBook Pro 14 2023``, where no language is known."""
    kind, name = match.lastgroup, _month_name(match.group())
    if kind not in _WITH_NAME or not name or is_sure_month(name, language) or not name[0].isupper():
        return False
    start, end = match.span()
    if time_beside(match.string, start, end) is not None:
        return False
    before = kind in _MONTH_FIRST_KINDS and _WORD_BEFORE.search(match.string, max(0, start - 2), start) is not None
    return before or kind == "year_first" or _WORD_BEHIND.match(match.string, end) is not None


def _at_midnight(day: date | None) -> datetime | None:
    return _moment([day.year, day.month, day.day]) if day else None


#: Decimal digits of all scripts, by their codes, as those of ASCII.
_ASCII_DIGITS: Final = {
    code: str(value) for code in range(0x80, 0x1FC00) if (value := unicodedata.decimal(chr(code), -1)) >= 0
}
#: Marks of the direction of a text stand where a space may.
_DIRECTIONS: Final = dict.fromkeys((0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), " ")


#: The form of the C library, in archives of mail: ``Fri May 3 10:15:00 UTC 2024``.
_C_TIME = re.compile(
    rf"\b({_DAY_NAME}\s+[a-z]{{3}}\s+\d\d?)(\s\d\d:\d\d:\d\d(?:\s[a-z]{{3,4}})?)(\s{_YEAR})\b", re.IGNORECASE
)


def in_ascii_digits(text: str) -> str:
    """Return a text of the same length with the digits of all scripts as those of ASCII, and no time within a date."""
    text = text if text.isascii() else text.translate(_ASCII_DIGITS)
    return _C_TIME.sub(r"\1\3\2", text) if text.count(":") > 1 else text


def _formatted(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")


def is_mostly_date(text: str, language: str | None = None) -> bool:
    """Return whether a line is a date and little else; in any language where that of the page is not given.

    Its time and the day of the week are of the date, where no other words are in the line.
    """
    # Most lines have no number, and this is found much faster than that they have no date.
    if len(text) > MAX_DATE_LENGTH + MAX_WORDS_LENGTH or not _NUMBERS.search(text):
        return False
    return any(
        (len(text) - len(match.group()) <= MAX_WORDS_LENGTH or _is_all_of_date(text, match))
        and _has_month(match, language)
        for match in WRITTEN.finditer(in_ascii_digits(text))
    )


#: Words of a date before and behind it, without its time.
_WEEKDAYS_OF_ALL: Final = rf"(?:{load_vocabulary('authors').text('weekdays')}|(?i:{_OTHER_WEEKDAYS}|{_DAY_NAME}))"
_DAY_WORD: Final = rf"(?i:{_VOCABULARY.text('before_day')})(?!\w)"
#: Words before a day: ``Am Freitag, dem 3. Mai 2024``.
BEFORE_DAY = re.compile(rf"(?:(?:{_DAY_WORD}|{_WEEKDAYS_OF_ALL}(?!\w))[\W_]*)+")
_OF_DATE = re.compile(
    rf"[\W_]*(?:(?i:{_VOCABULARY.text('about_text')})[\s:：]*)?(?:(?:{_DAY_WORD}|{_WEEKDAYS_OF_ALL}(?!\w))[\W_]*)*"
)


def _is_all_of_date(text: str, date: re.Match[str]) -> bool:
    """Return whether there is nothing in a line but a date, its time, the day of the week, and a word for the text."""
    time = time_beside(text, date.start(), date.end())
    start = min(date.start(), time.start) if time else date.start()
    end = max(date.end(), time.end) if time else date.end()
    return all(_OF_DATE.fullmatch(part) for part in (text[:start], text[end:]))


#: A day of the week at the end of a text, by its comma or in English.
_DAY_AT_END = re.compile(rf"(?:\b{_DAY_NAME},?|[^\W\d_]+,)\s*$", re.IGNORECASE)


def words_before_date(text: str) -> str | None:
    """Return what stands before the first date of a line and its time and day of the week; None without a date."""
    date = WRITTEN.search(in_ascii_digits(text))
    if date is None:
        return None
    time = time_beside(text, date.start(), date.end())
    start = min(date.start(), time.start if time else date.start())
    return _DAY_AT_END.sub("", text[:start]).strip(" ,:")


def _has_month(match: re.Match[str], language: str | None) -> bool:
    """Return whether the word of a date, if it has one, is the name of a month: ``2022 BMW 3`` is no date."""
    if match.lastgroup not in _WITH_NAME:
        return True
    name = _month_name(match.group())
    return name is not None and is_month(name, language) and not _is_in_name(match, language)
