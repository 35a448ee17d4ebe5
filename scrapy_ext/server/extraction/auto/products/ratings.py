"""Rating of a product: of its structured data, or as the page shows it."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from itertools import islice, takewhile
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.prices import is_money
from scrapy_ext.server.extraction.auto.items import AggregateRating
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text
from scrapy_ext.server.extraction.auto.page.layout import step_of
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.auto.products.availability import leads_away
from scrapy_ext.server.extraction.auto.products.other_products import is_of_another
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("products")
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
#: Lines about the seller, and parts that are named so.
_SELLER, _SELLER_ALONE, _SELLER_PART = _VOCABULARY.patterns(
    "seller_line", "seller_alone", "seller_part", flags=re.IGNORECASE
)
_PRODUCT_RATING = _VOCABULARY.pattern("product_rating_part")
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
#: Lines before a rating in which its seller is searched, the length of one, and elements around it with a name.
MAX_LINES_BEFORE: Final = 8
MAX_SELLER_LENGTH: Final = 80
MAX_AROUND: Final = 5
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
            found = next((rating for text in texts if (rating := rating_in(text or ""))), None)
            is_of_other = found and (focus.in_card(node) or tiles.hold(node) or _is_of_seller(page, focus, node))
            if found and not (is_of_other or _is_of_name(focus, node, found)):
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


def _is_of_seller(page: Page, focus: Focus, node: HtmlElement) -> bool:
    """Return whether a rating is in a part about the seller, or right below a line that names him.

    His name may have a line of its own below the label, and a link to his other offers behind it. One that is named
    after the product, leads to the reviews of the page or has their number is that of the product all the same.
    """
    around = takewhile(lambda part: part not in focus.path, (node, *node.iterancestors()))
    if any(_SELLER_PART.search(page.names(part)) for part in islice(around, MAX_AROUND)):
        return True
    if _is_of_reviews(page, focus, node):
        return False
    (nearest, text), (_, above), *_ = [*_lines_before(page, focus, node)[::-1], (node, ""), (node, "")]
    label = node_text(nearest[0], MAX_SELLER_LENGTH) if len(nearest) > 1 and nearest is not node else ""
    if _SELLER.match(text) or _SELLER_ALONE.fullmatch(label):
        return True
    may_be_name = len(text) <= MAX_SELLER_LENGTH and not is_money(text)
    is_link = nearest.tag == "a" and nearest.getparent() is node.getparent()
    return (may_be_name and _SELLER_ALONE.fullmatch(above) is not None) or (is_link and bool(_SELLER.match(above)))


def _is_of_reviews(page: Page, focus: Focus, node: HtmlElement) -> bool:
    """Return whether a rating is named after the product, leads to a place of the page, or counts the reviews that a
    heading counts as well."""
    around = list(islice(takewhile(lambda part: part not in focus.path, (node, *node.iterancestors())), MAX_STEPS))
    if any(_PRODUCT_RATING.search(page.names(part)) for part in around):
        return True
    links = (*(part for part in around if part.tag == "a"), *islice(node.iter("a"), MAX_STEPS))
    places = [link.get("href", "")[1:] for link in links if link.get("href", "").startswith("#")]
    if any(place and not _SELLER_PART.search(place) for place in places):
        return True
    texts = (node_text(part, MAX_TEXT_LENGTH) for part in (node, *around[1:2]))
    counts = {found.reviewCount for text in texts if (found := rating_in(text))} - {None, 0, 1}
    if not counts:
        return False
    headings = (node_text(each, MAX_TEXT_LENGTH) for each in islice(page.tree.iter(*HEADINGS), MAX_TILES))
    return any(_count_of_reviews(text) in counts for text in headings)


def _count_of_reviews(heading: str) -> int | None:
    """Return the number of reviews in a heading: ``Reviews (1,234)``, ``1,234 reviews``."""
    bare = heading.strip(_AROUND)
    match = _REVIEWS.match(bare) or _REVIEWS_BEFORE.match(bare)
    return _count(match.group(1)) if match else None


def _lines_before(page: Page, focus: Focus, node: HtmlElement) -> list[tuple[HtmlElement, str]]:
    """Return the last lines before an element, from the heading on, that have a letter or digit.

    Lines around the element, inside of another line or in a menu are left out.
    """
    order, ends = page.order, page.outline.ends
    begin = order[focus.heading] if focus.heading is not None and focus.distance(node) > 0 else -1
    at = order[node]
    behind = bisect_left(page.line_positions, at)
    found: list[tuple[HtmlElement, str]] = []
    end = 0
    for line, text in page.lines[max(0, behind - MAX_LINES_BEFORE) : behind]:
        position = order[line]
        is_apart = begin < position and end <= position and ends[position] <= at and not focus.elsewhere(line)
        if is_apart and any(map(str.isalnum, text)):
            found.append((line, text))
            end = ends[position]
    return found


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
            found = rating_in(label)
            if found and not (is_of_another(focus, node) or tiles.hold(node) or _is_of_seller(page, focus, node)):
                labelled.append((node, found))
    if labelled:
        # Labels of several values are those of a choice, or of the share of each.
        node, rating = labelled[-1]
        return _counted(focus, node, rating) if all(each == rating for _, each in labelled) else None
    for node, text in focus.lines(BEFORE_HEADING, NEAR_HEADING):
        found = rating_in(text)
        is_of_other = is_of_another(focus, node) or tiles.hold(node) if found else False
        if found and found.reviewCount and not (is_of_other or _is_of_seller(page, focus, node)):
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
            leads_away(self._page, link) for link in islice(box.iter("a"), MAX_TILES)
        )


def rating_in(text: str) -> AggregateRating | None:
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
