"""The number of a page in its address: ``?page=2``, ``/page/2/``, ``?start=20``, ``/list-2.html``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

from scrapy_ext.server.extraction.auto.urls import parts_of

MAX_PARAMETERS: Final = 60

_KEYS: Final = frozenset({
    "page", "p", "pg", "paged", "pagina", "pagenumber", "pageno", "page_no", "pagenum", "page_num", "page_number",
    "currentpage", "current_page", "curpage", "cpage", "pn", "seite", "side", "sida", "strana", "strona", "sayfa",
    "pageindex", "page_index", "pgno", "_page", "listpage", "pagen_1", "pag", "_pgn", "page[number]", "pgnum",
})  # fmt: skip
_OFFSETS: Final = frozenset({
    "start", "offset", "from", "skip", "first", "startrow", "startindex", "st", "begin", "limitstart", "sz", "o",
    "page[offset]", "since", "after", "cursor", "next",
})  # fmt: skip
_IN_PATH = re.compile(
    r"/(?:page|seite|pagina|página|strana|strona|sivu|side|sida|sayfa|oldal|pg"
    r"|p)(?P<sign>[/_=-]?)(\d{1,5})(?=[/.]|$)",
    re.IGNORECASE,
)
#: A number that ends the address, as far as nothing but it tells two addresses apart.
_AT_END = re.compile(r"(?:[/_-]|(?<=[a-z])p)(\d{1,4})(?=(?:/|\.\w{2,5})?$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """An address: its path without a number of a page, the number, and what kind of number it is."""

    path: str
    number: int | None
    #: Whether the number counts pages, rather than what is on them.
    counts_pages: bool
    #: The path with nothing taken off, and with a number at its end taken off, and that number.
    whole: str
    ended: str
    ending: int | None
    cursor: bool

    def is_beside(self, other: Address) -> bool:
        """Whether two addresses are the same but for the number of a page."""
        return self.path == other.path

    def score_of_next(self, other: Address) -> float:
        """How much another address looks like that of the page after this: 2.5 at best, under nought for no."""
        if self.path == other.path and other.number is not None:
            return self._score_of_number(other)
        if other.ending is not None and other.ended in {self.ended, self.whole}:
            own = self.ending if self.ended == other.ended and self.ending is not None else 1
            return 2.0 if other.ending == own + 1 else -2.0
        if self.path == other.path:
            return 1.0 if other.cursor else 0.0
        if self.path and other.path.startswith(self.path.rstrip("/") + "/"):
            return -1.0
        return -2.0

    def _score_of_number(self, other: Address) -> float:
        number = other.number or 0
        if not other.counts_pages:
            return 1.5 if number > (self.number or 0) else -3.0
        if self.number is None:
            return 2.5 if number == 2 else 1.5 if number == 1 else -2.0
        return 2.5 if number == self.number + 1 else -3.0


@lru_cache(maxsize=4096)
def address_of(url: str) -> Address:
    """The parts of an address that tell one page of a list from another."""
    parts = parts_of(url)
    path, number, counts = parts.path, None, True
    cursor = False
    for name, value in parse_qsl(parts.query[:4000], max_num_fields=None)[:MAX_PARAMETERS]:
        key = name.lower()
        if key in _KEYS and value.isdecimal() and len(value) <= 5:
            number, counts = int(value), True
        elif number is None and key in _OFFSETS:
            cursor = True
            if value.isdecimal() and len(value) <= 7:
                number, counts = int(value), False
    match = None if number is not None else _IN_PATH.search(path)
    if match:
        number = int(match.group(2))
        path = path[: match.start()] + path[match.end() :]
    end = _AT_END.search(parts.path)
    return Address(
        path=_bare(path),
        number=number,
        counts_pages=number is not None and counts,
        whole=_bare(parts.path),
        ended=_bare(parts.path[: end.start()]) if end else _bare(parts.path),
        ending=int(end.group(1)) if end else None,
        cursor=cursor,
    )


def _bare(path: str) -> str:
    return re.sub(r"(?:/index)?\.(?:html?|php|aspx?)$", "", path).rstrip("/")
