"""Names of the authors of posts.

A name stands at the same kind of place in each post of a thread. So all short texts that may be one are collected with
their kind (an attribute for it, an element named so, a link to a profile, the text after "by") and their place; the
place that most posts have counts, and in a post without it the next best.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import step_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NAME_LENGTH: Final = 60
#: Elements of a post, without its text, in which a name is searched.
MAX_ELEMENTS: Final = 250
#: Elements before the only post of a page in which its author is searched.
MAX_BEFORE: Final = 200
#: An element with more others in it is not a name but a part with one.
MAX_INSIDE: Final = 5
#: Fewer posts may well have one author.
SEVERAL: Final = 4

_VOCABULARY: Final = load_vocabulary("forums")
_ATTRIBUTES: Final = _VOCABULARY.words("author_attributes")
_SURE, _LIKELY, _PROFILE = _VOCABULARY.patterns("author_name", "author_part", "profile_address")
_NOT_OF_AUTHOR, _NO_AUTHOR, _EDITED = _VOCABULARY.patterns("not_of_author", "no_author", "edited", flags=re.IGNORECASE)
_BY: Final = _VOCABULARY.pattern("by_author", re.IGNORECASE)
_NAME_TAGS: Final = frozenset({"a", "span", "b", "strong", "div", "p", "dt", "h3", "h4", "h5", "h6", "cite", "li", "i"})
#: Weights of the kinds of places.
_WEIGHTS: Final = {
    "attribute": 1.3, "stated": 1.2, "named link": 1.15, "named": 1.0, "profile": 0.9, "by": 0.7, "part": 0.6,
}  # fmt: skip


class _Place(NamedTuple):
    kind: str
    way: str


def authors_of(page: Page, boxes: dict[HtmlElement, HtmlElement]) -> dict[HtmlElement, str]:
    """Return the names of the authors of posts by the bodies of these, as far as the page shows them."""
    found = {body: _names_in(_around(box, body), page) for body, box in boxes.items()}
    if len(boxes) == 1:
        body = next(iter(boxes))
        at = page.order.get(body, 0)
        if not found[body]:
            found[body] = _names_in(page.elements[max(0, at - MAX_BEFORE) : at], page)
    ranks = _ranks(list(found.values()), len(boxes))
    names = {}
    for body, by_place in found.items():
        best = max(by_place, key=lambda place: ranks[place], default=None)
        if best is not None:
            names[body] = by_place[best]
    return names


def _around(box: HtmlElement, body: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the elements of a post without those of its text."""
    inside = {*body.iter("*"), *body.iterancestors()} if body is not box else set()
    return islice((node for node in box.iter("*") if node not in inside), MAX_ELEMENTS)


def _ranks(posts: list[dict[_Place, str]], number: int) -> dict[_Place, float]:
    values: dict[_Place, list[str]] = defaultdict(list)
    for by_place in posts:
        for place, name in by_place.items():
            values[place].append(name)
    ranks = {}
    for place, names in values.items():
        # The same words in every post are a rank or a label.
        alike = len(names) >= SEVERAL and len(set(names)) == 1
        ranks[place] = _WEIGHTS[place.kind] * len(names) / number * (0.5 if alike else 1.0)
    return ranks


def _names_in(nodes: Iterator[HtmlElement] | list[HtmlElement], page: Page) -> dict[_Place, str]:
    """Return the first name at each place."""
    found: dict[_Place, str] = {}
    for node in nodes:
        for kind, text in _candidates(node, page):
            name = _settled(text)
            if name is not None:
                found.setdefault(_Place(kind, f"{_step(node.getparent())}/{step_of(node)}"), name)
    return found


def _step(node: HtmlElement | None) -> str:
    return step_of(node) if node is not None else ""


def _candidates(node: HtmlElement, page: Page) -> Iterator[tuple[str, str]]:
    for attribute in _ATTRIBUTES:
        value = node.get(attribute)
        if value:
            yield "attribute", value
    if next(islice(node.iter("*"), MAX_INSIDE, None), None) is not None:
        return
    if node.get("itemprop") == "name" and any("author" in page.names(box).split() for box in _boxes(node)):
        yield "stated", node.get("content") or node_text(node, MAX_NAME_LENGTH + 1)
    if node.tag not in _NAME_TAGS or _is_of_another(node, page):
        return
    text = node_text(node, MAX_NAME_LENGTH + 5)
    named = any(_SURE.fullmatch(name) for name in page.names(node).split())
    profile = node.tag == "a" and _PROFILE.search(node.get("href") or "") is not None
    if not text:
        return
    if named or profile:
        yield "named link" if named and profile else "named" if named else "profile", text
    elif match := _BY.fullmatch(text):
        yield "by", match.group(1)
    elif not len(node) and any(_LIKELY.search(page.names(box)) for box in (node, *_boxes(node))):
        yield "part", text


def _boxes(node: HtmlElement) -> Iterator[HtmlElement]:
    return islice(node.iterancestors(), 2)


def _is_of_another(node: HtmlElement, page: Page) -> bool:
    """Return whether a part is about who edited the post, answered it or was quoted."""
    return any(_NOT_OF_AUTHOR.search(page.names(box)) or _EDITED.match(node_text(box, 60)) for box in _boxes(node))


def _settled(text: str) -> str | None:
    name = one_line(text).strip(" ,;:»·|-–—")
    if match := _BY.fullmatch(name):
        name = match.group(1)
    fits = 1 < len(name) <= MAX_NAME_LENGTH and any(map(str.isalnum, name))
    return name if fits and not _NO_AUTHOR.match(name) and not is_mostly_date(name) else None
