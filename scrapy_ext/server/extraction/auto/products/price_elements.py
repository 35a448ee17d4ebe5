"""Elements of a price: the one with all of its parts, its text for readers, the words and currencies beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.price_notation import role_of
from scrapy_ext.server.extraction.auto.fields.prices import currency_in
from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import class_and_id
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

PRICE_NAME = load_vocabulary("products").pattern("price_name")
NO_LETTERS = re.compile(r"[\W\d_]+")
#: Longer texts are sentences.
MAX_TAG_LENGTH: Final = 60
#: Longest text beside a number that is its currency, in characters.
MAX_SIGN_LENGTH: Final = 12
#: Longest text of an element that is named as a price.
MAX_NAMED_LENGTH: Final = 120
#: Longest label beside an amount, and longest text after it that belongs to it.
MAX_LABEL_LENGTH: Final = 40
MAX_AFTER_LENGTH: Final = 24
#: Parts of an element that may hide themselves.
MAX_PARTS: Final = 60
#: Elements whose common ancestor is so many levels above them are not side by side.
NOT_CLOSE: Final = 5
#: An amount with cents, or the dash of no cents, that is all of a text.
_COMPLETE = re.compile(r"^\W{0,2}\d[\d\s.,']*[.,](?:\d\d|[-–—−=]{1,2})\W{0,2}$")
_STRUCK_TAGS: Final = frozenset({"del", "s", "strike"})
NO_PARENT: Final = frozenset({"body", "tr", "li", "ul", "td", "form", "section", "main"})
NO_PARENT_IN_ENTRY: Final = NO_PARENT - {"li", "ul"}
#: Elements of a line, and those of a label in a table or list.
_IN_LINE: Final = frozenset({
    "span", "b", "strong", "small", "em", "i", "u", "font", "bdi", "abbr", "label", "sup", "sub", "ins", "s", "del",
})  # fmt: skip
_LABELS: Final = _IN_LINE | {"dt", "th", "td"}


def whole_price(node: HtmlElement, no_parent: frozenset[str]) -> HtmlElement:
    """Return the element with all parts of the price in ``node``: currency, digits, raised digits."""
    text, own = node_text(node, 30), node
    is_complete = _COMPLETE.search(text) is not None
    while not currency_in(text):
        parent = node.getparent()
        if (
            parent is None
            or (parent.tag in no_parent and not _is_priced_item(parent))
            or is_struck(node) != is_struck(parent)
        ):
            break
        wider = node_text(parent, 30)
        # Signs and digits may be added, but no words.
        if len(wider) > 18 or len(NO_LETTERS.sub("", wider)) > 4:
            break
        node, text = parent, wider
    # Without a currency, what is around a complete amount is another one.
    return own if is_complete and not currency_in(text) else node


def _is_priced_item(node: HtmlElement) -> bool:
    """Return whether a list item is named as a price: of a list whose items are price, delivery and the like."""
    return node.tag == "li" and PRICE_NAME.search(class_and_id(node)) is not None


def shown_text(page: Page, node: HtmlElement) -> str:
    """Return the text of an element without the parts that hide themselves, if it does not hide itself."""
    text = node_text(node, MAX_NAMED_LENGTH + 1)
    if not len(node) or len(text) > MAX_NAMED_LENGTH or page.hides(node):
        return text
    is_partial = any(map(page.hides, islice(node.iterdescendants("*"), MAX_PARTS)))
    return one_line(" ".join(_seen(page, node))) if is_partial else text


def _seen(page: Page, node: HtmlElement) -> list[str]:
    pieces = [node.text or ""]
    for part in node:
        if not isinstance(part.tag, str) or page.hides(part):
            # Nothing is between what stands before it and after it.
            pieces[-1] += part.tail or ""
        else:
            pieces += [*_seen(page, part), part.tail or ""]
    return pieces


def unstruck_text(node: HtmlElement, text: str) -> str:
    """Return the text of an element without the parts that are struck through, if it is not struck through itself."""
    if len(node) and not is_struck(node) and any(map(_strikes, node.iter())):
        return one_line(" ".join(_unstruck(node)))
    return text


def _unstruck(node: HtmlElement) -> Iterator[str]:
    yield node.text or ""
    for part in node:
        if isinstance(part.tag, str) and not _strikes(part):
            yield from _unstruck(part)
        yield part.tail or ""


def words_before(node: HtmlElement) -> str:
    """Return the label before an element: in its line, or the cell or term before it."""
    for part in with_ancestors(node, 3):
        previous, parent = part.getprevious(), part.getparent()
        text = one_line((previous.tail if previous is not None else parent.text) or "") if parent is not None else ""
        if text and previous is not None and currency_in(node_text(previous, MAX_LABEL_LENGTH)):
            # Words after another amount may be about that one.
            text = text[role_of("", text, more=True).used :]
        if text.strip(" :="):
            return text[-MAX_LABEL_LENGTH:]
        if previous is not None:
            label = node_text(previous, MAX_LABEL_LENGTH + 1) if isinstance(previous.tag, str) else ""
            # Words beside another amount are about that one.
            belongs = (previous.tag in _LABELS or label.endswith((":", "："))) and not currency_in(label)
            return f"{label} {text}" if belongs and len(label) <= MAX_LABEL_LENGTH else ""
        if part.tag in NO_PARENT - {"td"}:
            break
    return ""


def sign_beside(node: HtmlElement) -> str | None:
    """Return the currency right after a number, else right before it, in an element beside it."""
    number = node_text(node, MAX_TAG_LENGTH)
    after, before = words_after(node)[:MAX_SIGN_LENGTH], words_before(node)[-MAX_SIGN_LENGTH:]
    return currency_in(f"{number} {after}") or currency_in(f"{before} {number}")


def words_after(node: HtmlElement) -> str:
    """Return the short text after an element in its line."""
    for part in with_ancestors(node, 2):
        following = part.getnext()
        text = one_line(part.tail)
        if not text and following is not None and following.tag in _IN_LINE:
            text = node_text(following, MAX_AFTER_LENGTH + 1)
        if text or following is not None or part.tag not in _IN_LINE:
            return text if len(text) <= MAX_AFTER_LENGTH else ""
    return ""


def with_ancestors(node: HtmlElement, levels: int) -> Iterator[HtmlElement]:
    current: HtmlElement | None = node
    while current is not None and levels > 0:
        yield current
        current = current.getparent()
        levels -= 1


def is_struck(node: HtmlElement) -> bool:
    return any(map(_strikes, with_ancestors(node, 3)))


def _strikes(node: HtmlElement) -> bool:
    return node.tag in _STRUCK_TAGS or "line-through" in (node.get("style") or "")


def is_close(first: HtmlElement, second: HtmlElement, levels: int = NOT_CLOSE) -> bool:
    around = set(with_ancestors(first, levels))
    return any(part in around for part in with_ancestors(second, levels))


def steps_up(node: HtmlElement, other: HtmlElement) -> int:
    """Return how many levels above an element the innermost one with another in it is; at most ``NOT_CLOSE``."""
    around = set(with_ancestors(other, NOT_CLOSE))
    return next((steps for steps, part in enumerate(with_ancestors(node, NOT_CLOSE)) if part in around), NOT_CLOSE)
