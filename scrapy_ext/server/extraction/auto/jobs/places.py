"""Place of work of a job: by its label, its name, a link to a map, or a line by the heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.fields.price_notation import WESTERN_LETTER
from scrapy_ext.server.extraction.auto.jobs.terms import employment_type, remote_status
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.labelled import Labels
from scrapy_ext.server.extraction.auto.page.sources import lowest
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("jobs")
MAX_LENGTH: Final = 120
#: Most items of a list of places.
MAX_ITEMS: Final = 20
#: Greatest distance from the heading, in elements, of a line that is a place by its words alone.
NEAR_HEADING: Final = 80
MAX_LINKS: Final = 2_000
_KINDS_OF_WORK: Final = frozenset({"hybrid", "on-site"})
_MAP: Final = _VOCABULARY.caseless("map_address")
_NO_PLACE, _MAP_LINK = _VOCABULARY.patterns("no_place", "map_link", flags=re.IGNORECASE)
#: ``Leeds, UK``, ``Leeds, West Yorkshire, England``, ``Remote (Spain)``.
_PLACE_LINE: Final = re.compile(
    rf"(?:[^,;:|()]{{2,60}},\s*){{0,3}}(?:{_VOCABULARY.text('countries')})\W*"
    rf"|[^\W\d][^,;:|()\d]{{1,40}},\s*[A-Z]{{2}}(?:,?\s*(?:USA?|\d{{5}}))?"
    rf"|(?:[Rr]emote|REMOTE)\s*[(,–—-]\s*[^()]{{2,60}}\)?"
    # Prefectures and provinces, with what follows them: 東京都 品川区 大崎駅, 浙江省杭州市.
    rf"|(?:東京都|北海道|京都府|大阪府|[^\W\d_]{{2,3}}県|[^\W\d_]{{2,3}}省)[^。、,:：|]{{0,40}}"
    rf"|[^\W\d_]{{2,3}}市\s?[^\W\d_]{{1,4}}[区區县縣]"
)
_PART_OF_TOWN: Final = re.compile(
    rf"(?:.*\W)?(?:{_VOCABULARY.text('part_of_town')})|(?:{_VOCABULARY.text('part_of_town_first')})(?:(?<!\w)|\W).*",
    re.IGNORECASE,
)
_TOWN, _REGIONS = _VOCABULARY.patterns("town", "regions", flags=re.IGNORECASE)
#: What follows a place in one line: ``Leeds, England — Sales``.
_BETWEEN: Final = re.compile(r"\s+[|–—•·‧∙/-]\s+|\s*[|｜•·]\s*|\s+[–—-](?=\w)")
_BARS: Final = re.compile(r"\s*[|｜•·‧∙]\s*")
#: What stands between several places.
_SEVERAL: Final = re.compile(r"\s*[/;]\s*")
_MORE: Final = re.compile(r"\s+[—–|•·/-]\s+")


def has_words(place: str, name: str) -> bool:
    """Return whether a place has the words of a name, with any signs between them: Leeds has no company "Ee"."""
    letters = letters_of(name)
    if not letters:
        return True
    # Few places have them, and the expression below is compiled for each name.
    if letters not in letters_of(place):
        return False
    apart = r"[\W_]*".join(map(re.escape, letters))
    whole = rf"(?<!{WESTERN_LETTER.pattern}){apart}(?!{WESTERN_LETTER.pattern})"
    return re.search(whole, place.casefold()) is not None


def labelled_place(labels: Labels) -> str | None:
    """Return the place that a label names: city, region and country of labels of their own, else the location."""
    parts = [labels.value(name, is_place) for name in ("city_label", "region_label", "country_label")]
    if parts[0] and any(parts[1:]):
        return ", ".join(dict.fromkeys(part for part in parts if part))
    pair = labels.pair("location", is_place)
    items = [node_text(item, MAX_LENGTH) for item in islice(pair.node.iter("li"), MAX_ITEMS)] if pair else []
    if pair and len(items) > 1 and letters_of(pair.value).startswith(letters_of(items[0])):
        return "; ".join(dict.fromkeys(filter(is_place, items)))
    return _before_other_labels(pair.value) if pair else parts[0]


def mapped_place(page: Page, focus: Focus) -> str | None:
    """Return the text of the link to a map that is nearest to the heading."""
    links = (link for link in islice(page.tree.iter("a"), MAX_LINKS) if _MAP.search((link.get("href") or "")[:300]))
    texts = ((link, node_text(link, MAX_LENGTH + 1)) for link in links)
    fitting = ((link, text) for link, text in texts if is_place(text) and len(text) > 3 and not focus.elsewhere(link))
    return lowest((abs(focus.distance(link)), text) for link, text in fitting)


def place_by_heading(focus: Focus) -> str | None:
    """Return the line by the heading that is a place by its words, the nearest one first."""
    return lowest(_place_lines(focus))


def _place_lines(focus: Focus) -> Iterator[tuple[float, str]]:
    for node, text in focus.lines(NEAR_HEADING // 4, NEAR_HEADING):
        distance = focus.distance(node)
        if len(text) > MAX_LENGTH or node.tag in {"option", "label", "button"}:
            continue
        if node is focus.heading or focus.elsewhere(node):
            continue
        pieces = _MORE.split(text)
        part = next(
            (part for part in (*pieces, text) if _PLACE_LINE.fullmatch(part) and part != focus.heading_text), None
        )
        if part is not None:
            yield abs(distance), part


def parts_of_line(text: str) -> list[str]:
    """Return the parts of a line between bars, dots and dashes."""
    return [part for each in _BETWEEN.split(text) if (part := each.strip(" ,;"))]


def parts_between_bars(text: str) -> list[str]:
    """Return the parts of a line between bars and dots; dashes may be those of a range or a name."""
    return [part for each in _BARS.split(text) if (part := each.strip(" ,;"))]


def _before_other_labels(text: str) -> str:
    """Return a value without the further labels of its line: ``Leeds | Posted: 02/03/2026``."""
    first, *others = parts_of_line(text) or [text]
    return first if any(":" in other or is_mostly_date(other) for other in others) else text


def is_place_by_words(text: str) -> bool:
    """Return whether a text is a place by its words: a country, a state by its code."""
    return _PLACE_LINE.fullmatch(text) is not None


def is_part_of_town(text: str) -> bool:
    """Return whether a name is that of a part of a town or a station, by its words: ``Leeds City Centre``."""
    return _PART_OF_TOWN.fullmatch(text) is not None


def is_town(text: str) -> bool:
    """Return whether a name has the form of that of a town: ``San Francisco``."""
    return _TOWN.fullmatch(text) is not None


def is_region(text: str) -> bool:
    """Return whether a text is the name of a state, province or region, which stands behind a town."""
    return _REGIONS.fullmatch(text) is not None


def remote_status_of_place(place: str) -> str | None:
    """Return the place of work that a location names; towns beside "remote" are a choice: ``Berlin / Remote``."""
    found = remote_status(place)
    parts = [part for part in _SEVERAL.split(place) if part] if found == "remote" else []
    # A country is where people work from, and a term of the contract is none.
    is_sure = all(remote_status(part) or employment_type(part, whole=True) or is_place_by_words(part) for part in parts)
    return found if is_sure else None


def is_place(text: str) -> bool:
    """Return whether a short text may be a place, rather than a date or the text of a menu or a button."""
    fits = 1 < len(text) <= MAX_LENGTH and any(map(str.isalpha, text)) and not is_mostly_date(text)
    # A kind of work where a label says "Workplace"; "Remote" may be all that there is of a place.
    is_kind = fits and remote_status(text, whole=True) in _KINDS_OF_WORK
    return fits and not is_kind and not _NO_PLACE.search(without_map_link(text))


def without_map_link(text: str) -> str:
    """Return a place without the text of the link to its map: ``Leeds, UK (View map)``."""
    return _MAP_LINK.sub("", text[:MAX_LENGTH])
