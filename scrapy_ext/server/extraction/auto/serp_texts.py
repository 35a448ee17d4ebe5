"""Targets and texts of the results of a search: the address that a link leads to, perhaps in a redirect of the engine;
the one that is shown, and the description.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl, unquote

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.urls import absolute, host_of, parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_QUERY_LENGTH: Final = 8_000
MAX_PARAMETERS: Final = 60
#: Shorter paths are of the home page of a service of the engine.
SHORTEST_PATH: Final = 5

_VOCABULARY: Final = load_vocabulary("search")
#: Parameters with the target, the usual ones first.
_TARGETS: Final = _VOCABULARY.words("targets")
#: Paths of redirects, and services of engines that search something else.
_REDIRECT, _SERVICE = _VOCABULARY.patterns("redirect", "service", flags=re.IGNORECASE)
_IN_PATH = re.compile(r"/RU=(https?%3a[^/]+)/", re.IGNORECASE)
#: ``a1`` and the URL in Base64.
_ENCODED = re.compile(r"a1(aHR0c[\w-]{8,4000})={0,2}")


def target_of(url: str, page_url: str) -> str | None:
    """Return the target of a link; None for a link within the site, and for a redirect with a hidden target."""
    if not is_same_site(url, page_url):
        return _wrapped(url) or url if is_redirect(url) else url
    return _wrapped(url)


def own_target_of(url: str, page_url: str) -> str | None:
    """Return a link to another host of the same site, as to a blog or a book that the engine has.

    None for the start of a service of the engine, and for one that takes the words of the search.
    """
    if host_of(url) == host_of(page_url) or not is_same_site(url, page_url) or is_redirect(url):
        return None
    parts = parts_of(url)
    if _SERVICE.search(f"{parts.netloc}{parts.path}") or (len(parts.path) <= SHORTEST_PATH and not parts.query):
        return None
    return url


def is_redirect(url: str) -> bool:
    """Return whether a URL looks like a redirect."""
    return _REDIRECT.search(parts_of(url).path) is not None


def is_same_site(first: str, second: str) -> bool:
    """Return whether two URLs are of one site, whatever precedes its name: ``www.``, ``r.search.``."""
    return site_of(first) == site_of(second)


def _wrapped(url: str) -> str | None:
    parts = parts_of(url)
    match = _IN_PATH.search(parts.path)
    if match:
        return _other_site(unquote(match.group(1)), url)
    given = dict(parse_qsl(parts.query[:MAX_QUERY_LENGTH])[:MAX_PARAMETERS])
    for name in _TARGETS:
        value = given.get(name, "")
        encoded = _ENCODED.fullmatch(value)
        if encoded:
            value = _decoded(encoded.group(1))
        if value.startswith(("http://", "https://")) and (target := _other_site(value, url)):
            return target
    return None


def _other_site(target: str, url: str) -> str | None:
    found = absolute(url, target)
    return found if found and host_of(found) != host_of(url) else None


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


# ── texts of one result: the address that it shows, and its description ──


MAX_ELEMENTS: Final = 400
MAX_DESCRIPTION_LENGTH: Final = 2_000
MAX_URL_LENGTH: Final = 300
#: Parts of a description that are compared, and the characters that a short and a full text have in common.
MAX_PARTS: Final = 12
ALIKE: Final = 30
#: Shortest description, in characters.
SHORTEST: Final = 20

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
