"""Days as people write them in other languages and calendars: names of months, the Persian and the Thai year, eras.

Islamic months are not read: they begin with a sight of the moon, so that their days are known to one day only.
"""

from __future__ import annotations

import unicodedata
from datetime import date
from functools import lru_cache
from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("months")
#: The Thai calendar counts from the year of the Buddha's death, and so many years more.
BUDDHIST: Final = 543
#: Years of the Persian calendar that pages have, 1921 to 2120.
SOLAR_YEARS: Final = range(1300, 1500)
BUDDHIST_YEARS: Final = range(2443, 2663)
#: The year before the first one of each era of East Asia.
ERAS: Final = {"令和": 2018, "平成": 1988, "昭和": 1925, "民國": 1911, "民国": 1911}
#: Arabic letters that Persian writes otherwise, and that are often written without their marks.
_LETTERS: Final = str.maketrans("يكأإآة", "یکاااه", ".")
_ACCENTS: Final = dict.fromkeys(range(0x300, 0x370))
#: Shorter names in ASCII letters are words and parts of names in other languages: ``Pro``, ``LED``, ``Mars``, ``set``.
MIN_SURE_NAME: Final = 5
#: Languages with the names of months of another one.
_LIKE: Final = {"no": "nb", "nn": "nb"}


def _key(name: str) -> str:
    name = name.casefold().translate(_LETTERS)
    if not name.isascii():
        name = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).translate(_ACCENTS))
    return name


def _by_key() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for language, months in _VOCABULARY.groups("months").items():
        for number, names in enumerate(months, 1):
            for name in names.split("|"):
                found.setdefault(_key(name), {})[language] = number
    return found


_MONTHS: Final = _by_key()
_SOLAR_MONTHS: Final = {
    _key(name): number
    for number, names in enumerate(_VOCABULARY.words("persian"), 1)
    for name in names.split("|")
}  # fmt: skip


_LANGUAGES: Final = frozenset(language for numbers in _MONTHS.values() for language in numbers)


@lru_cache(maxsize=1024)
def month_of(name: str, language: str | None) -> int | None:
    """Return the number of a month by its name in a language, in English, or in any where all that have it agree.

    In another language than that of the page, short names in ASCII letters do not count.
    """
    numbers, language = _MONTHS.get(_key(name), {}), _LIKE.get(language or "", language)
    for each in (language, "en"):
        if each in numbers:
            return numbers[each]
    if language in _LANGUAGES and not _is_distinct(name):
        return None
    return next(iter(numbers.values())) if len(set(numbers.values())) == 1 else None


def is_sure_month(name: str, language: str | None) -> bool:
    """Return whether a name of a month is one beyond doubt: in a language, in English, or one that is hardly a word."""
    numbers = _MONTHS.get(_key(name), {})
    return "en" in numbers or _LIKE.get(language or "", language) in numbers or _is_distinct(name)


def _is_distinct(name: str) -> bool:
    return not name.isascii() or len(_key(name)) >= MIN_SURE_NAME


def is_month(name: str, language: str | None) -> bool:
    """Return whether a word is the name of a month in a language, in any where that is unknown."""
    key = _key(name)
    return key in _SOLAR_MONTHS or (key in _MONTHS if language is None else month_of(name, language) is not None)


def day_of(year: int, month_name: str, day: int, language: str | None) -> date | None:
    """Return the day of a year, the name of its month, and its number; None for one that does not exist."""
    if year in SOLAR_YEARS:
        solar_month = _SOLAR_MONTHS.get(_key(month_name))
        return solar_day(year, solar_month, day) if solar_month else None
    month = month_of(month_name, language)
    if year in BUDDHIST_YEARS and month_name[:1].isalpha() and unicodedata.name(month_name[0], "").startswith("THAI"):
        year -= BUDDHIST
    return _day(year, month, day) if month else None


def solar_day(year: int, month: int, day: int) -> date | None:
    """Return a day of the Persian calendar, whose leap years follow a cycle of 33 years from 1244 to 1531."""
    if year not in SOLAR_YEARS or not 1 <= month <= 12 or not 1 <= day <= (31 if month <= 6 else 30):
        return None
    before = year + 1595
    leap_days = before // 33 * 8 + (before % 33 + 3) // 4
    months = (month - 1) * 31 if month <= 6 else 186 + (month - 7) * 30
    return date.fromordinal(365 * before + leap_days + months + day - 356_033)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
