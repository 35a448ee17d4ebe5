"""Availability, description and rating of a product, as the page shows them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.prices import currency_in
from scrapy_ext.server.extraction.auto.items import AggregateRating
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.clean_html import cleaned, html_of, stated_html, text_of
from scrapy_ext.server.extraction.auto.page.layout import step_of
from scrapy_ext.server.extraction.auto.page.sources import highest
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, layout_text, plain
from scrapy_ext.server.extraction.auto.products.offers import (
    IN_STOCK,
    OUT_OF_STOCK,
    availability_in,
    availability_of,
    denies_stock,
)
from scrapy_ext.server.extraction.auto.products.price_elements import PRICE_NAME
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Of an availability that the page does not state.
UNSTATED: Final = ""
MAX_STATEMENTS: Final = 2_000
#: Longer texts are terms of sale.
MAX_STATEMENT_LENGTH: Final = 150
#: Words of a statement behind a label that is about the whole stock: ``Currently out of stock``.
MAX_PLAIN_WORDS: Final = 4
MAX_BUTTON_LENGTH: Final = 60
#: Bounds of a line about availability whose element is not named so: characters, elements before and after the heading.
MAX_LINE_LENGTH: Final = 60
LINES_BEFORE_HEADING: Final = 30
LINES_AFTER_HEADING: Final = 250
#: Longest text of an option of a product, with its state, in characters.
MAX_OPTION_LENGTH: Final = 40
#: Of two contradictory statements, one must be nearer to the heading by this many elements.
CLEARLY_NEARER: Final = 12

_VOCABULARY: Final = load_vocabulary("products")
_OUT_OF_STOCK, _ORDER = map(_VOCABULARY.caseless, ("out_of_stock", "order"))
_AVAILABILITY_NAMES: Final = _VOCABULARY.words("availability_names")
_UNSHOWN = _VOCABULARY.pattern("unshown")
_BUTTONS: Final = ("button", "input", "a", "form")
_LABELLED_BUTTONS: Final = frozenset({"button", "a"})
_ORDER_NAME, _CHOICE = _VOCABULARY.patterns("order_name", "choice_names")
_AVAILABILITY_LABEL, _NOTIFY = _VOCABULARY.patterns("availability_label", "notify", flags=re.IGNORECASE)
#: A script that is no data.
_SCRIPT = re.compile(rb"<script\b(?![^>]{0,200}json)", re.IGNORECASE)
#: The name of an option, and the sign between it and its state.
_BEFORE_STATE = re.compile(r"\w\s*[(\[–—-]\s*$")
#: An item of a list of labels and values: ``Delivery: 3 days``.
_LABELLED = re.compile(r"[:：]|\s[–—-]\s")


def availability_on(page: Page, focus: Focus, *, priced: bool, unclear: bool = False) -> str | None:
    """Return ``InStock`` or ``OutOfStock`` as the page shows it; None when it shows neither, or both.

    A plain statement counts first, then a button to order the product, then short texts. A product with a price
    (``priced``) and no statement is in stock, unless it can only be waited for. Where structured data has a word for it
    that is not known (``unclear``), a button is no sign.
    """
    shown = stated_availability(page, focus, unclear=unclear)
    if shown != UNSTATED:
        return shown
    if _out_of_stock_in_lines(page, focus) or _promises_word(page, focus):
        return OUT_OF_STOCK
    disabled = _only_disabled(page, focus)
    if disabled:
        # A script may enable a button of a page that none has changed yet, and a choice may enable it.
        is_final = page.styles.styled or not _SCRIPT.search(page.source)
        return OUT_OF_STOCK if is_final and not any(_follows_choice(page, focus, node) for node in disabled) else None
    return IN_STOCK if priced and next(_promises(page, focus), None) is None else None


def stated_availability(page: Page, focus: Focus, *, unclear: bool = False) -> str | None:
    """Return the availability by statements and buttons; None where they contradict each other, else ``UNSTATED``."""
    stated = availability_of(page.meta("product:availability", "og:availability", "availability"))
    if stated:
        return stated
    if focus.heading_text and _OUT_OF_STOCK.search(focus.heading_text):
        return OUT_OF_STOCK
    seen = _stated(page, focus)
    if len(seen) == 1:
        return next(iter(seen))
    # Pages with variants, or with texts for every case, say both: the one nearer to the heading counts.
    if seen and abs(seen[IN_STOCK] - seen[OUT_OF_STOCK]) >= CLEARLY_NEARER:
        return min(seen, key=seen.__getitem__)
    if not unclear and _orderable(page, focus):
        return IN_STOCK
    return None if seen or _denied(page, focus) else UNSTATED


def _stated(page: Page, focus: Focus) -> dict[str, int]:
    seen: dict[str, int] = {}
    options = _Options()
    for pair in page.labelled.of(_AVAILABILITY_LABEL):
        state = availability_in(pair.value[:MAX_STATEMENT_LENGTH])
        if state is None or focus.elsewhere(pair.node):
            continue
        # More words are about a part, such as one branch: "Out of stock in Leeds". A button shows the rest.
        is_plain = len(pair.value.split()) <= MAX_PLAIN_WORDS
        if is_plain or state == IN_STOCK or not _orderable(page, focus):
            seen[state] = min(seen.get(state, MAX_STATEMENTS), abs(focus.distance(pair.node)))
    for node in page.named(*_AVAILABILITY_NAMES)[:MAX_STATEMENTS]:
        text = node_text(node, MAX_STATEMENT_LENGTH + 1)
        if not 0 < len(text) <= MAX_STATEMENT_LENGTH or _hidden(page, node) or focus.elsewhere(node):
            continue
        state = availability_in(text)
        if state is not None and not options.hold(node):
            seen[state] = min(seen.get(state, MAX_STATEMENTS), abs(focus.distance(node)))
    return seen


def _denied(page: Page, focus: Focus) -> bool:
    """Return whether a statement denies that the product is in stock: ``Back in stock soon``."""
    nodes = (node for node in page.named(*_AVAILABILITY_NAMES)[:MAX_STATEMENTS] if not focus.elsewhere(node))
    return any(denies_stock(node_text(node, MAX_LINE_LENGTH)) and not _hidden(page, node) for node in nodes)


def _out_of_stock_in_lines(page: Page, focus: Focus) -> bool:
    options = _Options()
    return any(
        len(text) <= MAX_LINE_LENGTH
        and _OUT_OF_STOCK.search(text)
        and not _hidden(page, node)
        and not focus.elsewhere(node)
        and not options.hold(node)
        for node, text in focus.lines(LINES_BEFORE_HEADING, LINES_AFTER_HEADING)
    )


def _promises_word(page: Page, focus: Focus) -> bool:
    """Return whether a button by the heading promises word of the return of the product, which cannot be ordered."""
    return any(
        part.tag in _LABELLED_BUTTONS
        for node in _promises(page, focus)
        for part in (node, *islice(node.iterancestors(), 2))
    )


def _promises(page: Page, focus: Focus) -> Iterator[HtmlElement]:
    """Yield the lines by the heading that promise word of the return of the product, buttons and others."""
    return (
        node
        for node, text in focus.lines(0, LINES_AFTER_HEADING)
        if len(text) <= MAX_BUTTON_LENGTH
        and _NOTIFY.search(text)
        and not PRICE_NAME.search(text.lower())
        and not _hidden(page, node)
        and not _is_of_another(focus, node)
    )


def _only_disabled(page: Page, focus: Focus) -> list[HtmlElement]:
    """Return the buttons to order, which cannot be pressed; none where the page has an option to choose before."""
    buttons = [node for node in islice(page.tree.iter(*_BUTTONS), MAX_STATEMENTS) if node.tag != "form"]
    orders = [node for node in buttons if _disabled(page, node) and _orders(page, node)]
    orders = [node for node in orders if not _is_of_another(focus, node) and not _hidden(page, node)]
    has_option = bool(orders) and any(
        node.tag == "select"
        or node.get("type") == "radio"
        or _CHOICE.search(page.names(node))
        or node.get("role") == "radio"
        for node in page.elements
    )
    return [] if has_option else orders


def _follows_choice(page: Page, focus: Focus, order: HtmlElement) -> bool:
    """Return whether several buttons side by side are between the heading and a button: they may be a choice of size,
    whatever their names."""
    end = focus.distance(order)
    groups: Counter[HtmlElement] = Counter()
    for node in islice(page.tree.iter("button", "a"), MAX_STATEMENTS):
        if not 0 < focus.distance(node) < end or _leads_away(page, node) or _orders(page, node):
            continue
        label = node_text(node, MAX_OPTION_LENGTH + 1) or node.get("aria-label") or ""
        parent = node.getparent()
        parent = parent.getparent() if parent is not None and len(parent) == 1 else parent
        # A field between two buttons is one of a number of pieces.
        if parent is not None and _is_option(label) and next(parent.iter("input"), None) is None:
            groups[parent] += 1
    return any(number > 1 for number in groups.values())


def _is_option(label: str) -> bool:
    return len(label) <= MAX_OPTION_LENGTH and any(map(str.isalnum, label)) and not _NOTIFY.search(label)


def _leads_away(page: Page, node: HtmlElement) -> bool:
    url = page.link(node.get("href")) if node.tag == "a" else None
    return url is not None and not page.is_at(url)


class _Options:
    """Statements about one of several options of a product, such as sizes: ``36 (sold out)`` between others."""

    def __init__(self) -> None:
        #: Whether a list has an option without a statement. Each list is read once, whatever the number of statements.
        self._has_another: dict[HtmlElement, bool] = {}

    def hold(self, node: HtmlElement) -> bool:
        item = next((each for each in (node, *islice(node.iterancestors(), 2)) if each.tag == "li"), None)
        parent = item.getparent() if item is not None else None
        if item is None or parent is None:
            return False
        text = node_text(item, MAX_OPTION_LENGTH + 1)
        statement = _OUT_OF_STOCK.search(text)
        if statement is None or len(text) > MAX_OPTION_LENGTH or not _BEFORE_STATE.search(text[: statement.start()]):
            return False
        if parent not in self._has_another:
            items = (each for each in islice(parent, MAX_STATEMENTS) if each.tag == "li")
            self._has_another[parent] = any(map(_is_unstated_option, items))
        return self._has_another[parent]


def _is_unstated_option(item: HtmlElement) -> bool:
    text = node_text(item, MAX_OPTION_LENGTH)
    return availability_in(text) is None and not _LABELLED.search(text)


def _orderable(page: Page, focus: Focus) -> bool:
    return any(
        not _disabled(page, node) and _orders(page, node) and not focus.elsewhere(node)
        for node in islice(page.tree.iter(*_BUTTONS), MAX_STATEMENTS)
    )


def _disabled(page: Page, node: HtmlElement) -> bool:
    return node.get("disabled") is not None or "disabled" in page.names(node).split()


def _orders(page: Page, node: HtmlElement) -> bool:
    names = f"{page.names(node)} {node.get('name') or ''} {node.get('action') or ''}".lower()
    if _ORDER_NAME.search(names):
        return True
    text = "" if node.tag == "form" else node.get("value") or node_text(node, MAX_BUTTON_LENGTH + 1)
    return len(text) <= MAX_BUTTON_LENGTH and bool(_ORDER.search(text))


def _hidden(page: Page, node: HtmlElement) -> bool:
    """Return whether an element, or one around it, is not shown at first: a dialog, a text for another case."""
    if page.styles.is_hidden(node):
        return True
    around = (node, *islice(node.iterancestors(), 6))
    return any(_UNSHOWN.search(page.names(part)) or page.hides(part) for part in around)


#: Shorter texts are no description.
MIN_LENGTH: Final = 40
MAX_DESCRIPTIONS: Final = 60
#: The fewest words of a paragraph that is a description without being named so.
FEWEST_WORDS: Final = 4
#: A longer text is no better.
ENOUGH: Final = 4_000

_DESCRIPTION_NAMES: Final = _VOCABULARY.words("description_names")
_NO_DESCRIPTION, _DESCRIPTION, _NOTICE = _VOCABULARY.patterns("no_description", "description", "notice")
_NUMBER_LINE = _VOCABULARY.pattern("number_line", re.IGNORECASE)


class ProductDescription(NamedTuple):
    """A description as text and as clean HTML, either may be unknown, and the part of the page that it is from."""

    text: str | None = None
    html: str | None = None
    node: HtmlElement | None = None


def description_of(page: Page, product: Thing | None, focus: Focus) -> ProductDescription:
    """Return the longer of the descriptions in structured data, which may be cut, and on the page."""
    stated = product.text("description") if product else None
    node = _node(page, focus)
    if node is not None:
        clean = cleaned(node, page.base_url)
        if clean is not None:
            _drop_numbers(clean)
        text = text_of(clean) if clean is not None else ""
        if clean is not None and len(text) > len(stated or ""):
            return ProductDescription(text, html_of(clean), node)
    if product is not None and stated:
        return ProductDescription(stated, stated_html(product, stated, page.base_url))
    return ProductDescription(plain(page.meta("og:description", "description")) or _paragraphs(page, focus))


def _drop_numbers(clean: HtmlElement) -> None:
    """Remove the lines at the beginning of a description that hold nothing but a number of the product."""
    while (number := _number_at_beginning(clean)) is not None:
        if _is_number(number.text) and len(number):
            number.text = None
            number[0].drop_tree()
        else:
            number.drop_tree()


def _number_at_beginning(clean: HtmlElement) -> HtmlElement | None:
    """Return the element with the first line of a description, or with it before a line break, where it is a number."""
    for part in clean.iter():
        line = node_text(part, MAX_LINE_LENGTH + 1)
        if part is not clean and _is_number(line):
            return part
        if (part.text or "").strip():
            is_broken = len(part) > 0 and part[0].tag == "br" and _is_number(part.text)
            return part if is_broken else None
    return None


def _is_number(line: str | None) -> bool:
    line = one_line(line)
    return 0 < len(line) <= MAX_LINE_LENGTH and _NUMBER_LINE.fullmatch(line) is not None


def _paragraphs(page: Page, focus: Focus) -> str | None:
    """Return the paragraphs of one element that follow the heading: of several elements, those with the most text."""
    if focus.heading is None:
        return None
    found: dict[HtmlElement | None, list[str]] = {}
    for node in islice(page.tree.iter("p"), MAX_STATEMENTS):
        if not 0 < focus.distance(node) <= LINES_AFTER_HEADING or focus.elsewhere(node):
            continue
        text = node_text(node)
        if _describes(node, text) and not _hidden(page, node) and not _is_notice(page, node):
            found.setdefault(node.getparent(), []).append(text if node.find(".//br") is None else layout_text(node))
    best = max(found.values(), key=lambda texts: sum(map(len, texts)), default=None)
    return "\n".join(best) if best else None


def _describes(node: HtmlElement, text: str) -> bool:
    """Return whether a paragraph may describe a product: some words that are no price, rating, state of the stock or
    link."""
    links = sum(len(node_text(link)) for link in node.iter("a"))
    return (
        len(text.split()) >= FEWEST_WORDS
        and links * 2 < len(text)
        and availability_in(text) is None
        and currency_in(text) is None
        and (len(text) > MAX_TEXT_LENGTH or _rating_in(text) is None)
        and next(node.iter("button", "input", "select", "label"), None) is None
    )


def _node(page: Page, focus: Focus) -> HtmlElement | None:
    """Return the named part with the most text that is neither the whole page nor about something else."""
    return highest(_scored_parts(page, focus))


def _scored_parts(page: Page, focus: Focus) -> Iterator[tuple[float, HtmlElement]]:
    for node in page.named(*_DESCRIPTION_NAMES)[:MAX_DESCRIPTIONS]:
        if node in focus.path or node.tag in {"meta", "a", "button"} or _NO_DESCRIPTION.search(page.names(node)):
            continue
        length = len("".join(node.itertext()))
        if MIN_LENGTH <= length <= MAX_VALUE_LENGTH and not focus.elsewhere(node) and not _is_notice(page, node):
            yield min(length, ENOUGH) + ENOUGH * _sureness(page, node), node


def _is_notice(page: Page, node: HtmlElement) -> bool:
    """Return whether a part is a notice on cookies or the like."""
    return any(_NOTICE.search(page.names(part)) for part in (node, *islice(node.iterancestors(), 8)))


def _sureness(page: Page, node: HtmlElement) -> int:
    """Return how sure a part is the description: marked as it, then named so; controls belong to an order."""
    if node.get("itemprop") == "description":
        return 3
    named = _DESCRIPTION.search(page.names(node)) is not None
    return (2 if named else 1) - (next(node.iter("select", "input", "button"), None) is not None)


_NUMBER = re.compile(r"\d{1,9}(?:[.,]\d{1,6})?")
_DECIMALS = re.compile(r"[.,]\d")
_COUNT = re.compile(r"\d{1,3}(?:[.,\s]\d{3})+|\d{1,9}")
#: ``1.2K``.
_ROUNDED = re.compile(r"(?<![\d.,])(\d{1,4}(?:[.,]\d{1,2})?)\s?([KkMm])\b")
_FACTORS: Final = {"k": 1_000, "m": 1_000_000}
#: ``4.5 out of 5``, in several languages.
_OUT_OF, _OF_SCALE = _VOCABULARY.patterns("out_of", "of_scale")
#: Words by which the label of a rating is distinguished from ``Image 1 of 5``.
_OF_STARS = _VOCABULARY.pattern("of_stars", re.IGNORECASE)
_REVIEWS, _REVIEWS_BEFORE = _VOCABULARY.patterns("reviews", "reviews_before", flags=re.IGNORECASE)
_WITHOUT_SCALE, _BARE_COUNT = _VOCABULARY.patterns("without_scale", "bare_count", flags=re.IGNORECASE)
#: Signs around the parts of a rating.
_AROUND: Final = " ()（）[]|·•,:–—-"
_RATING_NAMES: Final = _VOCABULARY.words("rating_names")
MAX_RATING: Final = 1000.0
MAX_RATINGS: Final = 300
#: Longer texts are reviews themselves.
MAX_TEXT_LENGTH: Final = 80
#: Greatest distance from the heading, in elements, of the rating.
BEFORE_HEADING: Final = 10
AFTER_HEADING: Final = 100
#: The same for one in an element that is not named so.
NEAR_HEADING: Final = 30
#: Boxes side by side that are compared, steps up to one, and the text of each that is read, in characters.
MAX_TILES: Final = 60
MAX_STEPS: Final = 6
MAX_TILE_LENGTH: Final = 200
#: Elements with more are no lines.
MOST_IN_LINE: Final = 8
#: Elements after a rating in which the number of its reviews is searched.
NEXT_LINES: Final = 6


def rating_of(product: Thing | None) -> AggregateRating | None:
    """Return the rating in structured data; None where neither value nor number of reviews is known."""
    for thing in product.things("aggregateRating") if product else ():
        value = _number(thing.text("ratingValue"))
        count = _count(thing.text("reviewCount")) or _count(thing.text("ratingCount"))
        # Shops write 0 for no rating yet.
        if value or count:
            best = _number(thing.text("bestRating")) if value else None
            return AggregateRating(ratingValue=value or None, bestRating=best, reviewCount=count)
    return None


def rating_on(page: Page, product: Thing | None, focus: Focus) -> AggregateRating | None:
    """Return the rating that is written by the heading; None for stars without a number, and where structured data
    says that nobody has rated the product."""
    if focus.heading is None or (product is not None and _is_unrated(product)):
        return None
    tiles = _Tiles(page, focus)
    for node in page.named(*_RATING_NAMES)[:MAX_RATINGS]:
        if -BEFORE_HEADING <= focus.distance(node) <= AFTER_HEADING and not focus.in_header(node):
            texts = (node_text(node, MAX_TEXT_LENGTH + 1), node.get("aria-label"), node.get("title"))
            found = next((rating for text in texts if (rating := _rating_in(text or ""))), None)
            if found and not (focus.in_card(node) or tiles.hold(node) or _is_of_name(focus, node, found)):
                return _counted(focus, node, found)
    return _unnamed_rating(page, focus, tiles)


def _is_of_name(focus: Focus, node: HtmlElement, rating: AggregateRating) -> bool:
    """Return whether words stand before a rating without a scale: ``Sold by Acme 4.9 (1,234)`` is about Acme."""
    parent = node.getparent()
    if rating.bestRating is not None or parent is None or parent in focus.path or len(parent) > MOST_IN_LINE:
        return False
    texts = [parent.text or ""]
    for sibling in takewhile(lambda each: each is not node, parent):
        texts += (node_text(sibling, MAX_TEXT_LENGTH), sibling.tail or "")
    before = " ".join(texts)
    return any(map(str.isalpha, before)) and not _OF_STARS.search(before)


def _is_unrated(product: Thing) -> bool:
    counts = [text for thing in product.things("aggregateRating") for text in thing.texts("reviewCount", "ratingCount")]
    return bool(counts) and all(_count(text) == 0 for text in counts)


def _counted(focus: Focus, node: HtmlElement, rating: AggregateRating) -> AggregateRating:
    """Return a rating with the number of reviews that a line right after it has, if it has none itself."""
    if rating.reviewCount is None:
        at = focus.distance(node)
        after = (text for _, text in focus.lines(-at - 1, at + NEXT_LINES))
        counts = (_REVIEWS.fullmatch(text.strip(" ()[]|·•")) for text in after)
        rating.reviewCount = next((_count(match.group(1)) for match in counts if match), None)
    return rating


def _unnamed_rating(page: Page, focus: Focus, tiles: _Tiles) -> AggregateRating | None:
    """Return the rating of a label of stars right by the heading, or of a line there that also counts the reviews."""
    labelled: list[tuple[HtmlElement, AggregateRating]] = []
    for position in page.with_attribute.get("aria-label", ()):
        node, label = page.elements[position], page.elements[position].get("aria-label", "")
        if -BEFORE_HEADING <= focus.distance(node) <= NEAR_HEADING and _OF_STARS.search(label[:MAX_TEXT_LENGTH]):
            found = _rating_in(label)
            if found and not (_is_of_another(focus, node) or tiles.hold(node)):
                labelled.append((node, found))
    if labelled:
        # Labels of several values are those of a choice, or of the share of each.
        node, rating = labelled[-1]
        return _counted(focus, node, rating) if all(each == rating for _, each in labelled) else None
    for node, text in focus.lines(BEFORE_HEADING, NEAR_HEADING):
        found = _rating_in(text)
        if found and found.reviewCount and not (_is_of_another(focus, node) or tiles.hold(node)):
            return None if _is_of_name(focus, node, found) else found
    return None


class _Tiles:
    """Boxes side by side with a decimal number, such as a rating, and a link to another page each: other products."""

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._focus = focus

    def hold(self, node: HtmlElement) -> bool:
        around = takewhile(lambda part: part not in self._focus.path, (node, *node.iterancestors()))
        return any(map(self._is_tile, islice(around, MAX_STEPS)))

    def _is_tile(self, part: HtmlElement) -> bool:
        parent = part.getparent()
        boxes = islice(parent, MAX_TILES) if parent is not None and self._leads_away(part) else ()
        alike = (box for box in boxes if box is not part and isinstance(box.tag, str) and step_of(box) == step_of(part))
        return any(map(self._leads_away, alike))

    def _leads_away(self, box: HtmlElement) -> bool:
        return _DECIMALS.search(node_text(box, MAX_TILE_LENGTH)) is not None and any(
            _leads_away(self._page, link) for link in islice(box.iter("a"), MAX_TILES)
        )


def _is_of_another(focus: Focus, node: HtmlElement) -> bool:
    return focus.in_header(node) or focus.elsewhere(node) or focus.in_card(node) or focus.in_linked_item(node)


def _rating_in(text: str) -> AggregateRating | None:
    """Return the rating of a text such as ``4.5 out of 5 (12 reviews)``, with the scale before the value or without."""
    if len(text) > MAX_TEXT_LENGTH:
        return None
    if match := _OUT_OF.search(text):
        value, best = match.groups()
    elif match := _OF_SCALE.search(text):
        best, value = match.groups()
    else:
        return _rating_without_scale(text.strip(_AROUND))
    number = _number(value)
    if not number or number > int(best):
        return None
    reviews = _REVIEWS.search(text, match.end())
    count = _count(reviews.group(1)) if reviews else None
    return AggregateRating(ratingValue=number, bestRating=float(best), reviewCount=count)


def _rating_without_scale(text: str) -> AggregateRating | None:
    """Return the rating of a text that is a value and the number of its reviews: ``4,9 (22 recensioner)``.

    Stars or such a word beside the value count for decimals, and for a word after the number of reviews.
    """
    match = _WITHOUT_SCALE.match(text)
    if match is None:
        return None
    is_starred = bool(match["before"] or match["after"])
    rest = text[match.end() :].strip(_AROUND)
    count = _REVIEWS.fullmatch(rest) or _REVIEWS_BEFORE.fullmatch(rest) or (is_starred and _BARE_COUNT.fullmatch(rest))
    if not count or not (is_starred or _DECIMALS.search(match["value"])):
        return None
    value = _number(match["value"])
    return AggregateRating(ratingValue=value, reviewCount=_count(count.group(1))) if value else None


def _number(text: str | None) -> float | None:
    match = _NUMBER.search(text or "")
    number = float(match.group().replace(",", ".")) if match else math.nan
    return number if 0 <= number <= MAX_RATING else None


def _count(text: str | None) -> int | None:
    if rounded := _ROUNDED.search(text or ""):
        return round(float(rounded.group(1).replace(",", ".")) * _FACTORS[rounded.group(2).lower()])
    match = _COUNT.search(text or "")
    return int(re.sub(r"\D", "", match.group())) if match else None
