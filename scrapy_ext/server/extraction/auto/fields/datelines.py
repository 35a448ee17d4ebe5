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
_OF_PLACE, _IN_PLACE = map(_VOCABULARY.text, ("of_place", "in_place_words"))
_DEGREE = _VOCABULARY.pattern("degree")
_DIGIT = re.compile(r"\d")
#: Signs between a place and a date; a comma or dash separates an author from a date less often than the others.
_PLACE_BEFORE = re.compile(
    rf"(?:(?P<preposition>(?i:{_OF_PLACE}))\s+)?(?P<place>[^\W\d_][^\d|:·•/()]{{0,50}}?)"
    r"(?:(?P<apart>[,、]|\s?[–—]|\s-)|\s?[|·•:/]|\s)\s*(?:(?i:le|den|dem|am|el|il|em|op|a|lê|på)\s+)?"
)
_AGENCY_BEHIND = re.compile(
    rf"(?P<place>[^\W\d_][^\d|()]{{1,40}}?)\s?[(/]\s?(?P<agency>(?i:{_VOCABULARY.text('agency')}))"
    r"(?:\s?\)(?=\s*(?:$|[-–—|,·•:\d]))|(?=\s?[-–—|,]))(?P<dash>\s*[-–—])?"
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
    if comma and " " in place and _DEGREE.fullmatch(region):
        return False
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
    """Return whether a preposition of places stands before a name in a text, whatever its case is in the line.

    Behind a name, such a word joins two in other languages: ``Jan en Anna``. Before another one, the name is a part of
    one: ``in Jack London Square``.
    """
    names = rf"(?:{re.escape(place)}|{re.escape(place.title())})"
    found = re.finditer(rf"(?P<before>[^\W\d_]*)\s*(?<!\w)(?i:{_IN_PLACE})\s+{names}(?!\w)(?P<behind>\s\w)?", text)
    return any(not match["before"][:1].isupper() and not (match["behind"] or "").strip().isupper() for match in found)


def agency_of_dateline(line: str) -> str | None:
    """Return the agency behind the place that a line begins with: ``LONDON (Reuters) - 3 May 2024``.

    Of several words that are no town by their form, a name is as likely: ``Jane Doe (AP)``.
    """
    match = _AGENCY_BEHIND.match(line)
    if match is None or _NAMED_LEADING.match(line):
        return None
    place = match["place"]
    is_place = " " not in place or _TOWN.fullmatch(place) or (place.isupper() and match["dash"])
    return match["agency"] if is_place else None
