"""Lines with the place that a text is from and its date: ``OSLO | 3 May 2024``, ``LONDON (Reuters) - 3 May``.

Such a line stands where that of an author does, and an author who has one name stands as often so. Its form decides, or
the text, which names the place with a preposition; where neither does, a word before a comma or dash is no author.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from scrapy_ext.server.extraction.auto.fields.dates import WRITTEN, in_ascii_digits
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("authors")
_JOBS: Final = load_vocabulary("jobs")
AGENCY: Final = _VOCABULARY.pattern("agency", re.IGNORECASE)
_NAMED_LEADING: Final = _VOCABULARY.pattern("named_leading", re.IGNORECASE)
_TOWN, _COUNTRY, _REGION = _JOBS.patterns("town", "countries", "regions", flags=re.IGNORECASE)
_OF_PLACE: Final = _VOCABULARY.text("of_place")
_DIGIT = re.compile(r"\d")
#: Signs between a place and a date; a comma or dash separates an author from a date less often than the others.
_PLACE_BEFORE = re.compile(
    rf"(?:(?P<preposition>(?i:{_OF_PLACE}))\s+)?(?P<place>[^\W\d_][^\d|:·•/()]{{0,50}}?)"
    r"(?:(?P<apart>[,、]|\s?[–—]|\s-)|\s?[|·•:/]|\s)\s*(?:(?i:le|den|dem|am|el|il|em|op|a|lê|på)\s+)?"
)
_AGENCY_BEHIND = re.compile(
    rf"[^\W\d_][^\d|()]{{1,40}}?\s?[(/]\s?(?P<agency>(?i:{_VOCABULARY.text('agency')}))(?:\s?\)|(?=\s?[-–—|,]))"
)
#: Codes of states and countries behind a town: ``D.C.``, ``NY``.
_CODE = re.compile(r"(?:[A-Z]\.){2,3}|[A-Z]{2}|[A-Z][a-z]{2,4}\.")
_VOWEL = re.compile("[AEIOUYÀ-ÆÈ-ÏÒ-ÖØ-Ý]")
#: Shortest place in capitals, in letters: ``EU`` and ``UN`` are none.
SHORTEST: Final = 3


def is_place_and_date(line: str, read_text: Callable[[], str]) -> bool:
    """Return whether a line is a place, a sign, and a date: ``Oslo, 3. Mai 2024``; the text may name the place."""
    date = WRITTEN.search(in_ascii_digits(line)) if _DIGIT.search(line) else None
    match = _PLACE_BEFORE.fullmatch(line[: date.start()]) if date else None
    if match is None or _NAMED_LEADING.match(line) or AGENCY.fullmatch(match["place"]):
        return False
    place, comma, region = match["place"].partition(", ")
    if comma and (_COUNTRY.fullmatch(region) or _REGION.fullmatch(region) or _CODE.fullmatch(region)):
        return True
    if comma:
        return False
    if (match["apart"] and " " not in place) or match["preposition"] or _TOWN.fullmatch(place):
        return True
    if " " not in place and place.isupper() and len(place) >= SHORTEST and _VOWEL.search(place):
        return True
    return _is_called_place(place, read_text())


def _is_called_place(place: str, text: str) -> bool:
    """Return whether a preposition of places stands before a name in a text, whatever its case is in the line."""
    names = rf"(?:{re.escape(place)}|{re.escape(place.title())})"
    return re.search(rf"(?<!\w)(?i:{_OF_PLACE})\s+{names}(?!\w)", text) is not None


def agency_of_dateline(line: str) -> str | None:
    """Return the agency behind the place that a line begins with: ``LONDON (Reuters) - 3 May 2024``."""
    match = _AGENCY_BEHIND.match(line)
    return match["agency"] if match else None
