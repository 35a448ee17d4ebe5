"""Text as a reader sees it: without tags, entities and the white space of the source."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml.html import HtmlElement

#: What a single value of markup or the text of a node may have, in characters; the rest is dropped.
MAX_VALUE_LENGTH: Final = 200_000

#: The elements of headings.
HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,2000}>")
_NO_LETTERS = re.compile(r"[\W_]+")


def one_line(text: str | None) -> str:
    """The text with every run of white space as one space, and none around it."""
    return " ".join(text.split()) if text else ""


def lines(text: str) -> str:
    """The text with its line breaks kept, no empty line, and every line as :func:`one_line` makes it."""
    return "\n".join(line for line in map(one_line, text.splitlines()) if line)


def plain(text: str | None) -> str:
    """The text of a value of markup: its entities resolved, its tags (some sites put HTML there) removed.

    Line breaks stay line breaks, those of HTML too.
    """
    if not text:
        return ""
    text = text[:MAX_VALUE_LENGTH]
    if "&" in text:
        # Twice: what is text in a page was often escaped for a page already.
        text = html.unescape(html.unescape(text))
    if _TAG.search(text):
        # Imported here, as every library of extraction: the server starts without them.
        import html_text

        return str(html_text.extract_text(text))
    return lines(text)


def node_text(node: HtmlElement, limit: int = MAX_VALUE_LENGTH) -> str:
    """The text of a node in one line, read no further than ``limit`` characters.

    Pieces of different elements are set apart by a space, which sometimes parts a word that is styled
    letter by letter, and never joins two words.
    """
    return one_line(" ".join(_pieces(node, limit)))[:limit]


def _pieces(node: HtmlElement, limit: int) -> Iterator[str]:
    left = limit
    for text in node.itertext():
        # White space of the source counts for little: what is set far to the right is not cut off.
        piece = text.strip()
        yield piece[: limit + 1]
        left -= len(piece) + 1
        if left < 0:
            return


def letters_of(text: str) -> str:
    """The letters and digits of a text in lower case: equal for texts that differ only in how they are set."""
    return _NO_LETTERS.sub("", text.casefold())


def first(values: Iterable[str | None]) -> str | None:
    """The first value that says anything."""
    return next((value for value in values if value), None)
