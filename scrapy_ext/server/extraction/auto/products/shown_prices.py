"""The price of a product as the page shows it to readers.

Every short text with an amount is a candidate. Its score depends on the names of its elements, whether it is struck
through, its distance from the heading, and whether scripts of the page repeat the amount. The best candidate is the
price if its score is high enough.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.price_notation import Role, place_on
from scrapy_ext.server.extraction.auto.fields.prices import Money, Prices, is_money, prices_in
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.formulas import has_formula
from scrapy_ext.server.extraction.auto.products.other_products import OtherProducts
from scrapy_ext.server.extraction.auto.products.price_elements import (
    MAX_NAMED_LENGTH,
    MAX_TAG_LENGTH,
    NO_LETTERS,
    NO_PARENT,
    NO_PARENT_IN_ENTRY,
    NOT_CLOSE,
    PRICE_NAME,
    is_close,
    is_struck,
    shown_text,
    sign_beside,
    steps_up,
    unstruck_text,
    whole_price,
    with_ancestors,
    words_after,
    words_before,
)
from scrapy_ext.server.extraction.auto.products.terms import is_on_terms
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("products")
_CURRENT, REGULAR = _VOCABULARY.patterns("current_price", "regular_price")
_NOT_THE_PRICE, _NET, _GROSS = _VOCABULARY.patterns("not_the_price", "net_price", "gross_price")
#: Parts of such names, and elements with one that are looked at.
_GROSS_NAMES: Final = ("tax", "vat", "gst", "btw", "moms", "mva", "iva", "dph", "mwst", "brutto")
MAX_NAMED: Final = 200
#: Names of what stands beside a price (``with-list-price``), which is no former price itself.
_BESIDE_PRICE = re.compile(r"(?<![^\s_-])(?:with|has)[-_]\S+")
_OF_ALL = _VOCABULARY.caseless("price_of_all")
#: Names with both price and discount are those of the reduced price, not of the saving.
_DISCOUNTED = _VOCABULARY.pattern("discounted")
_BIG = re.compile(r"large|big|xl|huge|main|bold|strong|fs[23]\d|h[1-3]\b")
_BIG_TAGS: Final = frozenset({"strong", "b", "h2", "h3", "h4", "em"})


def score_of_names(node: HtmlElement, own: str, names: str, *, named: bool) -> float:
    """Return the score of the names of an element (``own``) and of its surroundings (``names``)."""
    score = 2.5 if PRICE_NAME.search(own) else 1.5 if named else 0.0
    score += 2.0 if node.get("itemprop") in {"price", "lowPrice"} else 0.0
    if _DISCOUNTED.search(own):
        own, names = (_DISCOUNTED.sub("price-now", text) for text in (own, names))
    score += 0.7 if _CURRENT.search(own) else 0.0
    score += 0.5 if node.tag in _BIG_TAGS or _BIG.search(own) else 0.0
    score -= 2.5 if _NOT_THE_PRICE.search(own) else 0.0
    score -= 1.5 if _NOT_THE_PRICE.search(names) else 0.0
    return score - (1.0 if is_named_regular(names) else 0.0)


def is_named_regular(names: str) -> bool:
    """Return whether names are those of a former price, rather than of a price with a former one beside it."""
    return REGULAR.search(_BESIDE_PRICE.sub("", names)) is not None


def score_of_words(text: str, prices: Prices) -> float:
    """Return the score of the words around an amount."""
    score = 2.0 if prices.marked else -1.0
    words = len(NO_LETTERS.sub("", text))
    score -= 0.0 if words <= 6 else 0.5 if words <= 15 else 1.5
    is_worded = prices.role is Role.NET and words > MOST_OF_SIGN
    score -= 1.5 if is_worded or prices.role in {Role.UNIT, Role.TERMS} else 0.0
    return score - (2.5 if prices.role is Role.MONTHLY else 0.0)


#: The letters of the sign of a currency, at most.
MOST_OF_SIGN: Final = 4
MAX_CANDIDATES: Final = 500
#: The height of a screen, in pixels.
SCREEN: Final = 900
#: The least score of the price: that of a currency (2.0) and another sign, such as a name or a place by the heading.
ENOUGH: Final = 2.8
#: The same for digits without a currency in an entry of a list, where they have cents.
ENOUGH_WITH_CENTS: Final = 2.0
#: Pieces of a table of prices by their number: ``1``, ``10+``, ``25 - 49``.
_PIECES = re.compile(r"(\d{1,6})\s?(?:\+|[-–—]\s?\d{1,6})?")
_CENTS = re.compile(r"\.\d\d$")
#: How much less a lone candidate may score: a currency then outweighs one sign against it, as there is no other price.
LESS: Final = 1.8
#: The lead over all others that a candidate with a low score needs.
LEAD: Final = 0.8
#: Candidates are similar with no greater difference of their scores.
SIMILAR: Final = 3.0
#: The greatest ratio of the former price to the price: beyond it, one of two amounts is a deposit or a part.
RATIO: Final = 4
#: The greatest ratio of a price with tax to the one without.
MOST_WITH_TAX: Final = Decimal("1.3")
#: The greatest number of elements between two amounts side by side: each has a few for sign, digits and label.
BESIDE: Final = 6
#: More amounts than these in scripts are those of a list of products.
MAX_SCRIPT_AMOUNTS: Final = 40

_SKIPPED_TAGS: Final = frozenset({"option", "title", "textarea", "button", "label", "time", "h1"})
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
    role: Role = Role.PRICE
    #: The least number of pieces that have this price, in a table of such numbers.
    pieces: int | None = None


class PriceTags:
    """The price tags of a page, and which of them is that of the product at the heading."""

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._place = place_on(page)
        self._focus: Focus | None = focus
        self._repeated = _amounts_of_scripts(page)
        self._others = OtherProducts(page, focus)
        self._has_gross = _names_gross(page)
        self.tags = self._tags(page.elements)

    @classmethod
    def of_entry(cls, page: Page, elements: list[HtmlElement]) -> PriceTags:
        """Return the price tags of an entry of a list: of a few elements, independent of the rest of the page."""
        tags = cls.__new__(cls)
        tags._page, tags._focus, tags._repeated = page, None, frozenset()
        tags._place = place_on(page)
        tags._has_gross = _names_gross(page)
        tags.tags = tags._tags(elements)
        return tags

    def price_of_entry(self, enough: float) -> Money | None:
        """Return the price where little else is shown; a regular price counts if it stands alone."""
        price = self.price(enough)
        if price is None:
            all_former = all(tag.former and not is_struck(tag.node) for tag in self.tags)
            alone = {tag.money for tag in self.tags if tag.money.currency_raw} if all_former else set()
            return next(iter(alone)) if len(alone) == 1 else None
        # Digits without a currency may be a part of a price, a count or a size; cents make them more likely a price.
        tags = [tag for tag in self.tags if tag.money.value == price.value and not tag.former]
        needed = ENOUGH_WITH_CENTS if _CENTS.search(price.amount) else ENOUGH
        # One that is shown as a former price alone has a label.
        return price if any(tag.marked or tag.score >= needed for tag in tags) or not tags else None

    def price(self, enough: float = ENOUGH) -> Money | None:
        """Return the price; None when no candidate is good enough."""
        current = _of_fewest([tag for tag in self.tags if not tag.former])
        highest = max((tag.score for tag in current), default=0.0)
        # An amount that is shown several times is more likely the price than one that is shown once.
        likely = (tag for tag in current if tag.score > max(0.0, highest - SIMILAR) and tag.role is not Role.TERMS)
        times = Counter(tag.money.value for tag in likely)

        has_place = self._focus is None or self._focus.heading is not None

        def total(tag: Tag) -> float:
            return tag.score + (min(times[tag.money.value], 4) * 0.4 if has_place else 0.0)

        best = max(current, key=total, default=None)
        if best is not None and best.role is Role.TERMS:
            named = (tag for tag in self.tags if tag.former and _is_of_all(tag.node))
            of_all = {tag.money for tag in named if self._focus is None or not self._others.hold(tag.node)}
            if len(of_all) == 1:
                return next(iter(of_all))
        is_net = best is not None and best.role is Role.NET and best.score >= enough - LESS
        gross = self._with_tax(best, current) if best and is_net else None
        if self._focus is None:
            return gross or (best.money if best and best.score >= enough else None)
        if gross is not None:
            return gross
        if best is None or best.score < enough:
            # A lone price that is named regular: nothing is reduced.
            regular = {tag.money for tag in self.tags if tag.former and tag.score >= enough and not is_struck(tag.node)}
            if len(regular) == 1:
                return next(iter(regular))
        if best is None or best.score < enough - LESS:
            return None
        beside = {tag.money for tag in current if tag.role is best.role and _beside(self._focus, tag, best)}
        if best.score < enough:
            # A candidate with a low score needs a currency, and no rival elsewhere.
            rivals = {tag.money for tag in current if total(tag) > total(best) - LEAD}
            if not best.marked or self._others.hold(best.node):
                return None
            if {money.value for money in rivals - beside} != {best.money.value}:
                return None
        # The lower of two similar amounts side by side: the other one is the former price.
        other = next(iter(beside)) if len(beside) == 1 else best.money
        return min(other, best.money, key=lambda money: money.value)

    def regular_price(self, price: Money) -> Money | None:
        """Return the former price that is shown beside this one, if any."""
        shown = [tag for tag in self.tags if not tag.former and tag.money.value == price.value]
        stated = [tag.regular for tag in shown if tag.regular]
        others = [tag for tag in self.tags if tag.marked and not tag.former and tag.role in {Role.PRICE, Role.GROSS}]
        others = [tag for tag in others if tag.money.value != price.value]
        beside = [tag for tag in self.tags if tag.former and _belongs(tag, shown, others)]
        former = (*stated, *(tag.money for tag in beside))
        return next((money for money in former if price.value < money.value <= 20 * price.value), None)

    def is_only_former(self, price: Money) -> bool:
        """Return whether the page shows an amount as a former price, and nowhere as another."""
        found = {tag.former for tag in self.tags if tag.money.value == price.value}
        stated = {tag.regular.value for tag in self.tags if tag.regular and not tag.former}
        return found == {True} or (not found and price.value in stated)

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
        return next((sign for node in nodes if (sign := sign_beside(node))), None)

    def _tags(self, elements: list[HtmlElement]) -> list[Tag]:
        numbered, order = self._page.numbered, self._page.order
        nodes = (node for node in elements if order[node] in numbered and node.tag not in _SKIPPED_TAGS)
        return [tag for node in islice(nodes, MAX_CANDIDATES) if (tag := self._tag(node)) is not None]

    def _tag(self, node: HtmlElement) -> Tag | None:
        whole = whole_price(node, NO_PARENT if self._focus else NO_PARENT_IN_ENTRY)
        text = shown_text(self._page, whole)
        names = " ".join(self._page.names(part) for part in with_ancestors(whole, 3))
        named = bool(PRICE_NAME.search(names))
        if len(text) > (MAX_NAMED_LENGTH if named else MAX_TAG_LENGTH) or not (named or is_money(text)):
            return None
        if has_formula(whole):
            return None
        beside = words_before(whole), words_after(whole)
        prices = prices_in(text, self._place, *beside)
        # Words of a text with both prices may be those of the former one: "Was £20 £15".
        if prices.price is None or prices.regular is None:
            text = unstruck_text(whole, text)
            prices = prices_in(text, self._place, *beside)
        money = prices.price or prices.regular
        if money is None:
            return None
        if prices.role is Role.PRICE and is_on_terms(self._page, whole, text, beside[0], self._place):
            prices = prices._replace(role=Role.TERMS)
        own = self._page.names(whole)
        if not self._has_gross:
            # Some shops name all prices so, and show one alone.
            own, names = (_NET.sub(" ", text) for text in (own, names))
        score = score_of_names(whole, own, names, named=named) + score_of_words(text, prices)
        score += 1.5 if money.value in self._repeated else 0.0
        hidden = any(map(self._page.hides, with_ancestors(whole, 3)))
        score += self._score_of_place(whole) + self._score_of_style(whole) - (1.0 if hidden else 0.0)
        struck = is_struck(whole) or self._page.styles.is_struck(whole)
        former = prices.price is None or struck or is_named_regular(own)
        if former and hidden:
            return None
        by_tax = self._role_by_tax(whole) if prices.role is Role.PRICE else None
        pieces, role = _pieces_before(whole, beside[0]), by_tax or prices.role
        return Tag(whole, money, score, former, prices.regular, marked=prices.marked, role=role, pieces=pieces)

    def _role_by_tax(self, node: HtmlElement) -> Role | None:
        """Return the role of an amount whose element, or the one around it, is named as with or without tax."""
        names = " ".join(self._page.names(part) for part in with_ancestors(node, 2))
        is_net, is_gross = self._has_gross and _NET.search(names) is not None, _GROSS.search(names) is not None
        return None if is_net is is_gross else Role.NET if is_net else Role.GROSS

    def _with_tax(self, net: Tag, tags: list[Tag]) -> Money | None:
        """Return the amount with tax that stands beside one without: of several, the nearest one alone."""
        order, places = self._page.order, dict[Money, int]()
        for tag in tags:
            if (
                tag.role is Role.GROSS
                and tag.money.currency_raw == net.money.currency_raw
                and is_close(tag.node, net.node, 3)
                and net.money.value < tag.money.value <= MOST_WITH_TAX * net.money.value
            ):
                place = abs(order[tag.node] - order[net.node])
                places[tag.money] = min(place, places.get(tag.money, place))
        nearest = [money for money, place in places.items() if place == min(places.values())]
        return nearest[0] if len(nearest) == 1 else None

    def _score_of_place(self, node: HtmlElement) -> float:
        if self._focus is None:
            return 0.0
        score = -4.0 if self._others.hold(node) else 0.0
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
        and is_close(tag.node, best.node, 3)
        # Neither the same price or its whole part, nor the price of something else.
        and int(tag.money.value) != int(best.money.value)
        and 1 / RATIO <= tag.money.value / best.money.value <= RATIO
    )


def _belongs(former: Tag, shown: list[Tag], others: list[Tag]) -> bool:
    """Return whether a former price stands by the price, and not nearer to that of another package or product."""
    near = min((steps_up(former.node, tag.node) for tag in shown), default=NOT_CLOSE)
    return near < NOT_CLOSE and all(steps_up(former.node, tag.node) >= near for tag in others)


def _is_of_all(node: HtmlElement) -> bool:
    """Return whether an amount has a label such as "regular price", and is not struck."""
    text = f"{words_before(node)} {node_text(node, MAX_TAG_LENGTH)}"
    return not is_struck(node) and _OF_ALL.search(text) is not None


def _of_fewest(tags: list[Tag]) -> list[Tag]:
    """Return the candidates without the prices of larger numbers of pieces."""
    numbers = {tag.pieces for tag in tags if tag.pieces is not None}
    return [tag for tag in tags if tag.pieces in {None, min(numbers)}] if len(numbers) > 1 else tags


def _pieces_before(node: HtmlElement, label: str) -> int | None:
    """Return the number of pieces in the cell before a price."""
    in_cell = any(part.tag == "td" for part in with_ancestors(node, 3))
    match = _PIECES.fullmatch(label.strip()) if in_cell else None
    return int(match.group(1)) if match else None


def _names_gross(page: Page) -> bool:
    """Return whether elements of a page are named as amounts with tax."""
    return any(_GROSS.search(page.names(node)) for node in page.named(*_GROSS_NAMES)[:MAX_NAMED])


def _amounts_of_scripts(page: Page) -> frozenset[Decimal]:
    found: set[Decimal] = set()
    for script in page.scripts:
        for match in _SCRIPT_PRICE.finditer(script.source):
            found.add(Decimal(match.group(1)))
            if len(found) > MAX_SCRIPT_AMOUNTS:
                return frozenset()
    return frozenset(found)
