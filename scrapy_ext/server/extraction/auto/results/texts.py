"""Texts of one result: the address that it shows, and its description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_ELEMENTS: Final = 400
MAX_DESCRIPTION_LENGTH: Final = 2_000
MAX_URL_LENGTH: Final = 300
#: Parts of a description that are compared, and the characters that a short and a full text have in common.
MAX_PARTS: Final = 12
ALIKE: Final = 30
#: Shortest description, in characters.
SHORTEST: Final = 20

_VOCABULARY: Final = load_vocabulary("search")
_SHOWN_URL_NAME, _DESCRIPTION_NAME, _SURE_NAME, _OTHER_NAME = _VOCABULARY.patterns(
    "shown_url_name", "description_name", "sure_description_name", "other_part"
)
_LOOKS_LIKE_URL: Final = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)+[a-z]{2,12}(?::\d+)?(?:(?:\s*[›/»>]|\s+-\s+|\.\.\.).{0,200})?", re.IGNORECASE
)
_NO_DESCRIPTION: Final = frozenset({"cite", "button", "nav", "time", "form", "select", "h1", "h2", "h3", "h4", "h5"})
_BLOCKS: Final = (
    "div", "p", "li", "ul", "ol", "table", "tr", "td", "section", "article", "h2", "h3", "h4", "dl", "dd",
)  # fmt: skip
_BREAKS: Final = frozenset({*_BLOCKS, "br", "dt", "th", "h1", "h5", "h6", "blockquote"})


def inline_text(node: HtmlElement, limit: int) -> str:
    """Return the text of an element in one line as a browser shows it: emphasis splits no word, a block does."""
    return one_line("".join(_pieces(node, limit)))[:limit]


def _pieces(node: HtmlElement, limit: int) -> Iterator[str]:
    left = 2 * limit
    for element in node.iter("*"):
        if element.tag in _BREAKS:
            yield " "
        # A control in the text ("more").
        text = "" if element.get("role") == "button" or element.tag == "button" else element.text or ""
        yield text
        left -= len(text)
        ended: HtmlElement | None = element if not len(element) else None
        # The texts after all elements that end here.
        while ended is not None and ended is not node:
            if ended.tag in _BREAKS:
                yield " "
            yield ended.tail or ""
            left -= len(ended.tail or "")
            ended = ended.getparent() if ended.getnext() is None else None
        if left < 0:
            return


def _shown_text(node: HtmlElement) -> str:
    """Return the text of a description: of one that opens, as it is before."""
    parts = list(islice(node.iter("*"), 1, MAX_ELEMENTS))
    for part in parts[:MAX_PARTS]:
        twin = part.getnext()
        if twin is not None and twin.tag == part.tag:
            short = inline_text(part, MAX_DESCRIPTION_LENGTH)
            if len(short) >= SHORTEST and inline_text(twin, ALIKE) == short[:ALIKE].rstrip():
                return short
    return inline_text(node, MAX_DESCRIPTION_LENGTH)


def _has_blocks(node: HtmlElement) -> bool:
    """Return whether an element contains a block with a text."""
    return any(one_line(block.text) or len(block) for block in islice(node.iterdescendants(*_BLOCKS), MAX_PARTS))


def _is_of_links(node: HtmlElement, text: str) -> bool:
    """Return whether most of a text is of links."""
    if node.tag == "a":
        return True
    linked = sum(len(inline_text(link, MAX_DESCRIPTION_LENGTH)) for link in islice(node.iter("a"), MAX_PARTS))
    return 2 * linked > len(text)


class ResultTexts:
    """The texts of a result in its block, which has no other result."""

    def __init__(self, page: Page, link: HtmlElement, title: HtmlElement, block: HtmlElement) -> None:
        self._page = page
        self._link = link
        self._title = title
        self._elements = list(islice(block.iter("*"), MAX_ELEMENTS))
        self._taken = {link, title, *link.iterancestors(), *title.iterancestors()}

    @cached_property
    def shown_url(self) -> str | None:
        """The text that stands for the address: named so, else one that looks like an address."""
        alike = within = None
        for node in self._elements:
            if node in self._taken and node is not self._link:
                continue
            if next(islice(node.iter("*"), MAX_URL_LENGTH // 5, None), None) is not None or node is self._link:
                continue
            text = inline_text(node, MAX_URL_LENGTH + 1)
            if not 3 < len(text) <= MAX_URL_LENGTH:
                continue
            if node.tag == "cite" or (_SHOWN_URL_NAME.search(self._page.names(node)) and "." in text):
                return text
            inner = within is None or within in islice(node.iterancestors(), 4)
            if inner and len(node) <= 3 and _LOOKS_LIKE_URL.fullmatch(text):
                alike, within = text, node
        return alike

    @cached_property
    def description(self) -> str | None:
        """The part named so, else the first long text that is in no other part of the result."""
        named = None
        texts: list[str] = []
        of_links = ""
        for node in self._elements:
            if node in self._taken or node.tag in _NO_DESCRIPTION or self._is_inside_other(node):
                continue
            names = self._page.names(node)
            sure = _SURE_NAME.search(names) is not None
            if not sure and _has_blocks(node):
                continue
            text = _shown_text(node)
            if text == self.shown_url or len(text) < SHORTEST or _LOOKS_LIKE_URL.fullmatch(text):
                continue
            if sure:
                return text
            if named is None and _DESCRIPTION_NAME.search(names):
                named = text
            elif _is_of_links(node, text):
                of_links = of_links or text
            else:
                texts.append(text)
        return named or max(texts, key=len, default=None) or of_links or None

    def _is_inside_other(self, node: HtmlElement) -> bool:
        for part in islice((node, *node.iterancestors()), 7):
            if part is self._link or part.tag in _NO_DESCRIPTION:
                return True
            if part not in self._taken and _OTHER_NAME.search(self._page.names(part)):
                return True
        return False


def texts_after(nodes: list[HtmlElement]) -> tuple[str | None, str | None]:
    """Return the address and the description in the texts that follow a title without an element around them."""
    shown: str | None = None
    texts = []
    for position, node in enumerate(nodes):
        inner = inline_text(node, MAX_DESCRIPTION_LENGTH) if position and node.tag not in _NO_DESCRIPTION else ""
        for text in (inner, one_line(node.tail)[:MAX_DESCRIPTION_LENGTH]):
            if len(text) > 3 and shown is None and len(text) <= MAX_URL_LENGTH and _LOOKS_LIKE_URL.fullmatch(text):
                shown = text
            elif text:
                texts.append(text)
    description = one_line(" ".join(texts))[:MAX_DESCRIPTION_LENGTH]
    return shown, description if len(description) >= SHORTEST else None


def title_text(title: HtmlElement, limit: int) -> str:
    """Return the text of a title, without the space that marked words would bring."""
    return inline_text(title, limit) or node_text(title, limit)
