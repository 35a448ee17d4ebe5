"""Text as a reader sees it: without tags, entities and the white space of the source."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml.html import HtmlElement

#: Longest value of structured data or text of a node, in characters; the rest is dropped.
MAX_VALUE_LENGTH: Final = 200_000

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,2000}>")
_NO_LETTERS = re.compile(r"[\W_]+")
#: The same signs of ASCII, which texts are rid of in a tenth of the time.
_NO_LETTERS_OF_ASCII: Final = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())


def one_line(text: str | None) -> str:
    """Return a text with every run of white space as one space, and none around it."""
    return " ".join(text.split()) if text else ""


def lines(text: str) -> str:
    """Return a text with its line breaks, no empty line, and every line as :func:`one_line` makes it."""
    return "\n".join(line for line in map(one_line, text.splitlines()) if line)


def plain(text: str | None) -> str:
    """Return the text of a value of structured data: entities resolved, tags (some sites put HTML there) removed.

    Line breaks are kept, those of HTML too.
    """
    if not text:
        return ""
    text = text[:MAX_VALUE_LENGTH]
    if "&" in text:
        # Twice, because many sites escape these values twice.
        text = html.unescape(html.unescape(text))
    if _TAG.search(text):
        # Imported here, so that the server starts without it.
        import html_text

        return str(html_text.extract_text(text))
    return lines(text)


def node_text(node: HtmlElement, limit: int = MAX_VALUE_LENGTH) -> str:
    """Return the text of a node in one line, read no further than ``limit`` characters.

    A space is put between the texts of different elements. It sometimes splits a word that is styled letter by letter,
    and two words are never joined.
    """
    return one_line(" ".join(_pieces(node, limit)))[:limit]


def _pieces(node: HtmlElement, limit: int) -> Iterator[str]:
    left = limit
    for text in node.itertext():
        # White space of the source does not count, so that indented text is not cut off.
        piece = text.strip()
        yield piece[: limit + 1]
        left -= len(piece) + 1
        if left < 0:
            return


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in lower case, for comparison."""
    if text.isascii():
        return text.lower().translate(_NO_LETTERS_OF_ASCII)
    return _NO_LETTERS.sub("", text.casefold())


class Found(dict[str, bool]):
    """Verdicts of a pattern by text: each text is searched once, as many elements have the same names."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._search = pattern.search

    def __missing__(self, text: str) -> bool:
        found = self[text] = self._search(text) is not None
        return found


def first(values: Iterable[str | None]) -> str | None:
    """Return the first value that is not empty."""
    return next((value for value in values if value), None)
