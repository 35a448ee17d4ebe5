"""The price of a product as the page shows it to readers.

Every short text with an amount is a candidate. Its score depends on the names of its elements, whether it is struck
through, its distance from the heading, and whether scripts of the page repeat the amount. The best candidate is the
price if its score is high enough.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.price_notation import Role, place_on
from scrapy_ext.server.extraction.auto.fields.prices import Money, Prices, currency_in, is_money, prices_in
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.formulas import has_formula
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("products")
PRICE, _CURRENT, REGULAR = _VOCABULARY.patterns("price_name", "current_price", "regular_price")
_NOT_THE_PRICE = _VOCABULARY.pattern("not_the_price")
#: Names with both price and discount are those of the reduced price, not of the saving.
_DISCOUNTED = _VOCABULARY.pattern("discounted")
NO_LETTERS = re.compile(r"[\W\d_]+")
_BIG = re.compile(r"large|big|xl|huge|main|bold|strong|fs[23]\d|h[1-3]\b")
_BIG_TAGS: Final = frozenset({"strong", "b", "h2", "h3", "h4", "em"})


def score_of_names(node: HtmlElement, own: str, names: str, *, named: bool) -> float:
    """Return the score of the names of an element (``own``) and of its surroundings (``names``)."""
    score = 2.5 if PRICE.search(own) else 1.5 if named else 0.0
    score += 2.0 if node.get("itemprop") in {"price", "lowPrice"} else 0.0
    if _DISCOUNTED.search(own):
        own, names = (_DISCOUNTED.sub("price-now", text) for text in (own, names))
    score += 0.7 if _CURRENT.search(own) else 0.0
    score += 0.5 if node.tag in _BIG_TAGS or _BIG.search(own) else 0.0
    score -= 2.5 if _NOT_THE_PRICE.search(own) else 0.0
    score -= 1.5 if _NOT_THE_PRICE.search(names) else 0.0
    return score - (1.0 if REGULAR.search(names) else 0.0)


def score_of_words(text: str, prices: Prices) -> float:
    """Return the score of the words around an amount."""
    score = 2.0 if prices.marked else -1.0
    words = len(NO_LETTERS.sub("", text))
    score -= 0.0 if words <= 6 else 0.5 if words <= 15 else 1.5
    score -= 1.5 if prices.role is Role.UNIT or (prices.role is Role.NET and words > MOST_OF_SIGN) else 0.0
    return score - (2.5 if prices.role is Role.MONTHLY else 0.0)


#: The letters of the sign of a currency, at most.
MOST_OF_SIGN: Final = 4
#: Longer texts are sentences.
MAX_TAG_LENGTH: Final = 60
#: Longest text beside a number that is its currency, in characters.
MAX_SIGN_LENGTH: Final = 12
#: The same for elements that are named as prices.
MAX_NAMED_LENGTH: Final = 120
#: Longest label beside an amount, and longest text after it that belongs to it.
MAX_LABEL_LENGTH: Final = 40
MAX_AFTER_LENGTH: Final = 24
MAX_CANDIDATES: Final = 500
#: The height of a screen, in pixels.
SCREEN: Final = 900
#: The least score of the price: that of a currency (2.0) and another sign, such as a name or a place by the heading.
ENOUGH: Final = 2.8
#: The same for digits without a currency in an entry of a list, where they have cents.
ENOUGH_WITH_CENTS: Final = 2.0
_CENTS = re.compile(r"\.\d\d$")
#: An amount with cents, or the dash of no cents, that is all of a text.
_COMPLETE = re.compile(r"^\W{0,2}\d[\d\s.,']*[.,](?:\d\d|[-–—−=]{1,2})\W{0,2}$")
#: How much less a lone candidate may score: a currency then outweighs one sign against it, as there is no other price.
LESS: Final = 1.8
#: The lead over all others that a candidate with a low score needs.
LEAD: Final = 0.8
#: Candidates are similar with no greater difference of their scores.
SIMILAR: Final = 3.0
#: The greatest ratio of the former price to the price: beyond it, one of two amounts is a deposit or a part.
RATIO: Final = 4
#: The greatest number of elements between two amounts side by side: each has a few for sign, digits and label.
BESIDE: Final = 6
#: More amounts than these in scripts are those of a list of products.
MAX_SCRIPT_AMOUNTS: Final = 40

_STRUCK_TAGS: Final = frozenset({"del", "s", "strike"})
_SKIPPED_TAGS: Final = frozenset({"option", "title", "textarea", "button", "label", "time", "h1"})
_NO_PARENT: Final = frozenset({"body", "tr", "li", "ul", "td", "form", "section", "main"})
_NO_PARENT_IN_ENTRY: Final = _NO_PARENT - {"li", "ul"}
#: Elements of a line, and those of a label in a table or list.
_IN_LINE: Final = frozenset({
    "span", "b", "strong", "small", "em", "i", "u", "font", "bdi", "abbr", "label", "sup", "sub", "ins", "s", "del",
})  # fmt: skip
_LABELS: Final = _IN_LINE | {"dt", "th", "td"}
_SCRIPT_PRICE = re.compile(r"""rice\w{0,10}["']?\s*[:=]\s*["']?(\d{1,9}(?:\.\d{1,4})?)["']?\s*[,;}\s]""")


@dataclass(frozen=True, slots=True)
class Tag:
    """A candidate: an element, its amount, its score, whether it shows a former price, or which one beside its own."""

    node: HtmlElement
    money: Money
    score: float
    former: bool
    regular: Money | None = None
    #: Its notation says that it is money.
    marked: bool = False


class PriceTags:
    """The price tags of a page, and which of them is that of the product at the heading."""

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._place = place_on(page)
        self._focus: Focus | None = focus
        self._repeated = _amounts_of_scripts(page)
        self.tags = self._tags(page.elements)

    @classmethod
    def of_entry(cls, page: Page, elements: list[HtmlElement]) -> PriceTags:
        """Return the price tags of an entry of a list: of a few elements, independent of the rest of the page."""
        tags = cls.__new__(cls)
        tags._page, tags._focus, tags._repeated = page, None, frozenset()
        tags._place = place_on(page)
        tags.tags = tags._tags(elements)
        return tags

    def price_of_entry(self, enough: float) -> Money | None:
        """Return the price where little else is shown; a regular price counts if it stands alone."""
        price = self.price(enough)
        if price is None:
            all_former = all(tag.former and not _struck(tag.node) for tag in self.tags)
            alone = {tag.money for tag in self.tags if tag.money.currency_raw} if all_former else set()
            return next(iter(alone)) if len(alone) == 1 else None
        # Digits without a currency may be a part of a price, a count or a size; cents make them more likely a price.
        tags = [tag for tag in self.tags if tag.money.value == price.value and not tag.former]
        needed = ENOUGH_WITH_CENTS if _CENTS.search(price.amount) else ENOUGH
        return price if any(tag.marked for tag in tags) or max(tag.score for tag in tags) >= needed else None

    def price(self, enough: float = ENOUGH) -> Money | None:
        """Return the price; None when no candidate is good enough."""
        current = [tag for tag in self.tags if not tag.former]
        highest = max((tag.score for tag in current), default=0.0)
        # An amount that is shown several times is more likely the price than one that is shown once.
        times = Counter(tag.money.value for tag in current if tag.score > max(0.0, highest - SIMILAR))

        has_place = self._focus is None or self._focus.heading is not None

        def total(tag: Tag) -> float:
            return tag.score + (min(times[tag.money.value], 4) * 0.4 if has_place else 0.0)

        best = max(current, key=total, default=None)
        if self._focus is None:
            return best.money if best and best.score >= enough else None
        if best is None or best.score < enough:
            # A lone price that is named regular: nothing is reduced.
            regular = {tag.money for tag in self.tags if tag.former and tag.score >= enough and not _struck(tag.node)}
            if len(regular) == 1:
                return next(iter(regular))
        if best is None or best.score < enough - LESS:
            return None
        beside = {tag.money for tag in current if _beside(self._focus, tag, best)}
        if best.score < enough:
            # A candidate with a low score needs a currency, and no rival elsewhere.
            likely = {tag.money for tag in current if total(tag) > total(best) - LEAD}
            if not best.marked or self._focus.elsewhere(best.node):
                return None
            if {money.value for money in likely - beside} != {best.money.value}:
                return None
        # The lower of two similar amounts side by side: the other one is the former price.
        other = next(iter(beside)) if len(beside) == 1 else best.money
        return min(other, best.money, key=lambda money: money.value)

    def regular_price(self, price: Money) -> Money | None:
        """Return the former price that is shown beside this one, if any."""
        shown = [tag for tag in self.tags if not tag.former and tag.money.value == price.value]
        stated = [tag.regular for tag in shown if tag.regular]
        beside = [tag for tag in self.tags if tag.former and any(_close(tag.node, other.node) for other in shown)]
        former = (*stated, *(tag.money for tag in beside))
        return next((money for money in former if price.value < money.value <= 20 * price.value), None)

    def element(self, price: Money) -> HtmlElement | None:
        """Return the element that shows an amount; of several, the most likely one."""
        tags = (tag for tag in self.tags if price in (tag.money, tag.regular) or tag.money.value == price.value)
        best = max(tags, key=lambda tag: tag.score, default=None)
        return best.node if best is not None else None

    def other_price(self, place: int) -> Money | None:
        """Return the amount at a place of the order of their scores, for one that the price might have been."""
        best: dict[Decimal, Tag] = {}
        for tag in sorted(self.tags, key=lambda tag: -tag.score):
            best.setdefault(tag.money.value, tag)
        likely = [tag.money for tag in best.values() if not tag.former and tag.score > 0.0]
        return likely[place] if place < len(likely) else None

    def currency_raw(self, price: Money) -> str | None:
        """Return the currency beside this price on the page."""
        marked = [tag for tag in self.tags if tag.money.currency_raw and tag.money.value == price.value]
        if marked:
            return max(marked, key=lambda tag: tag.score).money.currency_raw
        # The currency is in an element of its own beside the number.
        nodes = [tag.node for tag in self.tags if tag.money.value == price.value]
        return next((sign for node in nodes if (sign := _sign_beside(node))), None)

    def _tags(self, elements: list[HtmlElement]) -> list[Tag]:
        numbered, order = self._page.numbered, self._page.order
        nodes = (node for node in elements if order[node] in numbered and node.tag not in _SKIPPED_TAGS)
        return [tag for node in islice(nodes, MAX_CANDIDATES) if (tag := self._tag(node)) is not None]

    def _tag(self, node: HtmlElement) -> Tag | None:
        whole = _whole_price(node, _NO_PARENT if self._focus else _NO_PARENT_IN_ENTRY)
        text = node_text(whole, MAX_NAMED_LENGTH + 1)
        names = " ".join(self._page.names(part) for part in _with_ancestors(whole, 3))
        named = bool(PRICE.search(names))
        if len(text) > (MAX_NAMED_LENGTH if named else MAX_TAG_LENGTH) or not (named or is_money(text)):
            return None
        if has_formula(whole):
            return None
        beside = _words_before(whole), _words_after(whole)
        prices = prices_in(text, self._place, *beside)
        # Words of a text with both prices may be those of the former one: "Was £20 £15".
        if prices.price is None or prices.regular is None:
            text = _unstruck_text(whole, text)
            prices = prices_in(text, self._place, *beside)
        money = prices.price or prices.regular
        if money is None:
            return None
        own = self._page.names(whole)
        score = score_of_names(whole, own, names, named=named) + score_of_words(text, prices)
        score += 1.5 if money.value in self._repeated else 0.0
        score += self._score_of_place(whole) + self._score_of_style(whole)
        struck = _struck(whole) or self._page.styles.is_struck(whole)
        former = prices.price is None or struck or bool(REGULAR.search(own))
        return Tag(whole, money, score, former=former, regular=prices.regular, marked=prices.marked)

    def _score_of_place(self, node: HtmlElement) -> float:
        if self._focus is None:
            return 0.0
        score = -4.0 if self._focus.elsewhere(node) else 0.0
        if self._focus.heading is None:
            return score
        distance = self._focus.distance(node)
        score += max(-1.5, 2.0 - math.log2(1 + abs(distance) / 12) * 0.7)
        score -= 0.8 if distance < 0 else 0.0
        return score - min(self._focus.steps_apart(node), 12) * 0.12

    def _score_of_style(self, node: HtmlElement) -> float:
        """Score a price by its style: prices are large, and on one screen with the heading."""
        styles = self._page.styles
        style = styles.of(node) if styles.styled and self._focus is not None else None
        if style is None:
            return 0.0
        if style.hidden:
            return -1.0
        score = max(-0.5, min(1.5, style.letters / styles.usual_letters - 1.0))
        heading = styles.of(self._focus.heading) if self._focus is not None else None
        if heading is not None and not heading.hidden:
            score -= 0.0 if -SCREEN / 2 < style.y - heading.y < SCREEN else 1.0
        return score


def _beside(focus: Focus, tag: Tag, best: Tag) -> bool:
    """Return whether an amount stands side by side with the best one, as the former price does."""
    return (
        tag.node.tag == best.node.tag
        and tag.money.currency_raw == best.money.currency_raw
        and tag.score > best.score - 1.0
        and abs(focus.distance(tag.node) - focus.distance(best.node)) <= BESIDE
        and _close(tag.node, best.node, 3)
        # Neither the same price or its whole part, nor the price of something else.
        and int(tag.money.value) != int(best.money.value)
        and 1 / RATIO <= tag.money.value / best.money.value <= RATIO
    )


def _whole_price(node: HtmlElement, no_parent: frozenset[str]) -> HtmlElement:
    """Return the element with all parts of the price in ``node``: currency, digits, raised digits."""
    text, own = node_text(node, 30), node
    is_complete = _COMPLETE.search(text) is not None
    while not currency_in(text):
        parent = node.getparent()
        if parent is None or parent.tag in no_parent or _struck(node) != _struck(parent):
            break
        wider = node_text(parent, 30)
        # Signs and digits may be added, but no words.
        if len(wider) > 18 or len(NO_LETTERS.sub("", wider)) > 4:
            break
        node, text = parent, wider
    # Without a currency, what is around a complete amount is another one.
    return own if is_complete and not currency_in(text) else node


def _unstruck_text(node: HtmlElement, text: str) -> str:
    """Return the text of an element without the parts that are struck through, if it is not struck through itself."""
    if len(node) and not _struck(node) and any(map(_strikes, node.iter())):
        return one_line(" ".join(_unstruck(node)))
    return text


def _unstruck(node: HtmlElement) -> Iterator[str]:
    yield node.text or ""
    for part in node:
        if isinstance(part.tag, str) and not _strikes(part):
            yield from _unstruck(part)
        yield part.tail or ""


def _words_before(node: HtmlElement) -> str:
    """Return the label before an element: in its line, or the cell or term before it."""
    for part in _with_ancestors(node, 3):
        previous, parent = part.getprevious(), part.getparent()
        text = one_line((previous.tail if previous is not None else parent.text) or "") if parent is not None else ""
        if text.strip(" :="):
            return text[-MAX_LABEL_LENGTH:]
        if previous is not None:
            label = node_text(previous, MAX_LABEL_LENGTH + 1) if isinstance(previous.tag, str) else ""
            belongs = previous.tag in _LABELS or label.endswith((":", "："))
            return f"{label} {text}" if belongs and len(label) <= MAX_LABEL_LENGTH else ""
        if part.tag in _NO_PARENT - {"td"}:
            break
    return ""


def _sign_beside(node: HtmlElement) -> str | None:
    """Return the currency right after a number, else right before it, in an element beside it."""
    number = node_text(node, MAX_TAG_LENGTH)
    after, before = _words_after(node)[:MAX_SIGN_LENGTH], _words_before(node)[-MAX_SIGN_LENGTH:]
    return currency_in(f"{number} {after}") or currency_in(f"{before} {number}")


def _words_after(node: HtmlElement) -> str:
    """Return the short text after an element in its line."""
    for part in _with_ancestors(node, 2):
        following = part.getnext()
        text = one_line(part.tail)
        if not text and following is not None and following.tag in _IN_LINE:
            text = node_text(following, MAX_AFTER_LENGTH + 1)
        if text or following is not None or part.tag not in _IN_LINE:
            return text if len(text) <= MAX_AFTER_LENGTH else ""
    return ""


def _with_ancestors(node: HtmlElement, levels: int) -> Iterator[HtmlElement]:
    current: HtmlElement | None = node
    while current is not None and levels > 0:
        yield current
        current = current.getparent()
        levels -= 1


def _struck(node: HtmlElement) -> bool:
    return any(map(_strikes, _with_ancestors(node, 3)))


def _strikes(node: HtmlElement) -> bool:
    return node.tag in _STRUCK_TAGS or "line-through" in (node.get("style") or "")


def _close(first: HtmlElement, second: HtmlElement, levels: int = 5) -> bool:
    around = set(_with_ancestors(first, levels))
    return any(part in around for part in _with_ancestors(second, levels))


def _amounts_of_scripts(page: Page) -> frozenset[Decimal]:
    found: set[Decimal] = set()
    for script in page.scripts:
        for match in _SCRIPT_PRICE.finditer(script.source):
            found.add(Decimal(match.group(1)))
            if len(found) > MAX_SCRIPT_AMOUNTS:
                return frozenset()
    return frozenset(found)
