"""Place of work of a job: by its label, its name, the title of the page, a link to a map, or a line by the heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.labelled import Labels
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_LENGTH: Final = 120
#: Greatest distance from the heading, in elements, of a line that is a place by its words alone.
NEAR: Final = 80
MAX_LINKS: Final = 2_000

_VOCABULARY: Final = load_vocabulary("jobs")
_LOCATION, _CITY, _REGION, _COUNTRY = _VOCABULARY.patterns(
    "location", "city_label", "region_label", "country_label", flags=re.IGNORECASE
)
_MAP: Final = _VOCABULARY.pattern("map_address", re.IGNORECASE)
#: ``Leeds, UK``, ``Leeds, West Yorkshire, England``, ``Remote (Spain)``.
_PLACE: Final = re.compile(
    rf"(?:[^,;:|()]{{2,60}},\s*){{0,3}}(?:{_VOCABULARY.text('countries')})\W*"
    rf"|[^\W\d][^,;:|()\d]{{1,40}},\s*[A-Z]{{2}}(?:,?\s*(?:USA?|\d{{5}}))?"
    rf"|(?:[Rr]emote|REMOTE)\s*[(,–—-]\s*[^()]{{2,60}}\)?"
)
#: What follows a place in one line: ``Leeds, England — Sales``.
_MORE: Final = re.compile(r"\s+[—–|•·/-]\s+")


def labelled_place(labels: Labels) -> str | None:
    """Return the place that a label names: city, region and country of labels of their own, else the location."""
    parts = [labels.value(label, _fits) for label in (_CITY, _REGION, _COUNTRY)]
    if parts[0] and any(parts[1:]):
        return ", ".join(dict.fromkeys(part for part in parts if part))
    return labels.value(_LOCATION, _fits) or parts[0]


def mapped_place(page: Page, focus: Focus) -> str | None:
    """Return the text of the link to a map that is nearest to the heading."""
    best: tuple[int, str] | None = None
    for link in islice(page.tree.iter("a"), MAX_LINKS):
        if _MAP.search((link.get("href") or "")[:300]):
            text = node_text(link, MAX_LENGTH + 1)
            distance = abs(focus.distance(link))
            if _fits(text) and len(text) > 3 and not focus.elsewhere(link) and (best is None or distance < best[0]):
                best = (distance, text)
    return best[1] if best else None


def place_by_heading(page: Page, focus: Focus) -> str | None:
    """Return the line by the heading that is a place by its words, the nearest one first."""
    found = sorted(_lines(page, focus), key=lambda each: each[0])
    return found[0][1] if found else None


def _lines(page: Page, focus: Focus) -> Iterator[tuple[int, str]]:
    for node, text in page.lines:
        distance = focus.distance(node)
        if len(text) > MAX_LENGTH or not -NEAR // 4 <= distance <= NEAR or node.tag in {"option", "label", "button"}:
            continue
        if node is focus.heading or focus.elsewhere(node):
            continue
        pieces = _MORE.split(text)
        part = next((part for part in (*pieces, text) if _PLACE.fullmatch(part) and part != focus.heading_text), None)
        if part is not None:
            yield abs(distance), part


def _fits(text: str) -> bool:
    return 1 < len(text) <= MAX_LENGTH and any(map(str.isalpha, text)) and not is_mostly_date(text)
