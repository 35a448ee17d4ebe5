"""Number of a page in its URL: ``?page=2``, ``/page/2/``, ``?start=20``, ``/list-2.html``, ``/topic-s10``.

It is found in two ways, as URLs are written in so many: by the usual names of parameters and path segments, and, where
those are unknown, by the rest of two URLs without their common beginning and end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_PARAMETERS: Final = 60
#: Characters of URLs that are compared.
MAX_COMPARED: Final = 600

_VOCABULARY: Final = load_vocabulary("pagination")
_KEYS: Final = frozenset(_VOCABULARY.words("keys"))
_OFFSETS: Final = frozenset(_VOCABULARY.words("offsets"))
#: Names of parameters with the position at which a page begins, which need not be a number.
_CURSORS: Final = frozenset(_VOCABULARY.words("cursors"))
#: Parameters that do not distinguish pages.
_IDLE: Final = re.compile(
    r"^(?:utm_\w+|srsltid|gclid|fbclid|sid|phpsessid|jsessionid|ref|session\w*|_ga|rt|isappinstalled)$"
)
_IN_PATH = _VOCABULARY.pattern("in_path", re.IGNORECASE)
#: A number at the end of the URL, which counts where nothing else distinguishes two URLs.
_AT_END = re.compile(r"(?:[/_,~-]|(?<=[a-z])p)(\d{1,4})(?=(?:/|\.\w{2,5})?$)", re.IGNORECASE)
#: Addition to the URL of the first page: a sign, perhaps a short word, and a number.
_ADDED = re.compile(
    r"[/?&;_.,~=:%!+\-]{0,2}(?:[a-z][a-z_-]{0,14})?[/_.,~=:-]?(\d{1,6})(?:[/_,-]|\.\w{2,5})?", re.IGNORECASE
)
_FILLER = re.compile(r"/?(?:index|default|home)?[/?]?", re.IGNORECASE)
_SKIN = re.compile(r"(?:/index|/default)?\.(?:html?|php|aspx?|jsp|cfm)$|/index$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A URL: its path without the number of the page, the number, and its kind."""

    path: str
    number: int | None
    #: Whether the number counts pages, rather than what is on them.
    counts_pages: bool
    #: The whole path; the path without a number at its end, and that number.
    whole: str
    ended: str
    ending: int | None
    cursor: bool
    #: Path and query without parameters that do not distinguish pages.
    line: str

    def is_beside(self, other: Address) -> bool:
        """Return whether two URLs are the same but for the number of a page."""
        return self.path == other.path

    def score_of_next(self, other: Address) -> float:
        """Return how much another URL looks like that of the page after this: 2.5 at best, below zero for no."""
        if self.path == other.path and other.number is not None:
            return self._score_of_number(other)
        if other.ending is not None and other.ended in {self.ended, self.whole}:
            own = self.ending if self.ended == other.ended and self.ending is not None else 1
            return 2.0 if other.ending == own + 1 else -2.0
        score = self._score_of_rest(other)
        if score:
            return score
        if self.path == other.path:
            return 1.5 if other.cursor else 0.5 if self._parameters_apart(other) else 0.0
        if not self.path:
            # The list of a home page continues at another URL.
            return 1.5 if other.cursor or (other.counts_pages and other.number == 2) else -2.0
        if other.counts_pages and other.number == 2 and self.number is None:
            # A second page under another name of this one, as after a redirect.
            return -0.5
        if other.path.startswith(self.path.rstrip("/") + "/"):
            return -1.0
        return -2.0

    def _score_of_number(self, other: Address) -> float:
        number = other.number or 0
        if not other.counts_pages:
            return 1.5 if number > (self.number or 0) else -3.0
        if self.number is None:
            return 2.5 if number == 2 else 1.5 if number == 1 else -2.0
        return 2.5 if number == self.number + 1 else -3.0

    def _score_of_rest(self, other: Address) -> float:
        """Return the score by the rest of two URLs without their common beginning and end."""
        own, following = _rest(self.line, other.line)
        if own.isdecimal() and following.isdecimal() and len(following) <= 6:
            step = int(following) - int(own)
            return 2.0 if step == 1 else 1.0 if step > 1 and step % 5 == 0 else -1.5
        added = _ADDED.fullmatch(following)
        if added and _FILLER.fullmatch(own):
            number = int(added.group(1))
            return 2.0 if number == 2 else 1.0 if number == 1 or number % 5 == 0 else -0.5
        return 0.0

    def _parameters_apart(self, other: Address) -> bool:
        own, following = self.line.partition("?")[2], other.line.partition("?")[2]
        return len(set(own.split("&")) ^ set(following.split("&"))) <= 2


@lru_cache(maxsize=4096)
def address_of(url: str) -> Address:
    """Return the parts of a URL that distinguish one page of a list from another."""
    parts = parts_of(url)
    path, number, counts = parts.path, None, True
    cursor = False
    kept = []
    for name, value in parse_qsl(parts.query[:4000], keep_blank_values=True)[:MAX_PARAMETERS]:
        key = name.lower()
        if not _IDLE.match(key):
            kept.append(f"{key}={value}")
        if key in _KEYS and value.isdecimal() and len(value) <= 5:
            number, counts = int(value), True
        elif key in _OFFSETS or key in _CURSORS:
            cursor = cursor or (bool(value) and key in _CURSORS)
            if number is None and key in _OFFSETS and value.isdecimal() and len(value) <= 7:
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
        line=f"{parts.path.rstrip('/').lower()}?{'&'.join(kept)}"[:MAX_COMPARED].rstrip("?"),
    )


def _rest(first: str, second: str) -> tuple[str, str]:
    """Return the rests of two texts without their common beginning and end, no number cut in two."""
    shorter = min(len(first), len(second))
    start = next((at for at in range(shorter) if first[at] != second[at]), shorter)
    while start and first[start - 1].isdecimal():
        start -= 1
    shorter -= start
    end = next((at for at in range(shorter) if first[-1 - at] != second[-1 - at]), shorter)
    while end and first[-end].isdecimal():
        end -= 1
    return first[start : len(first) - end], second[start : len(second) - end]


def _bare(path: str) -> str:
    return _SKIN.sub("", path).rstrip("/").lower()
