"""Products: the data of a page that sells one thing.

Each field is taken from the structured data of the page where it is there, else from the page itself: by the names,
labels and position of its elements. Fields without any source are left out.
"""

from __future__ import annotations

import re
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto import probability
from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.headline import heading_text
from scrapy_ext.server.extraction.auto.fields.price_notation import code_of, place_on
from scrapy_ext.server.extraction.auto.fields.prices import Money, from_markup
from scrapy_ext.server.extraction.auto.items import AdditionalProperty, Brand, DetailsMetadata, Image, Product
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, now, one_line
from scrapy_ext.server.extraction.auto.page.labelled import Pair
from scrapy_ext.server.extraction.auto.page.sources import MAX_OTHERS, highest, origin
from scrapy_ext.server.extraction.auto.page.text import first
from scrapy_ext.server.extraction.auto.page.urls import slug_of
from scrapy_ext.server.extraction.auto.products.availability import availability_on
from scrapy_ext.server.extraction.auto.products.brands import brand_of
from scrapy_ext.server.extraction.auto.products.choices import variants_on
from scrapy_ext.server.extraction.auto.products.description import description_of
from scrapy_ext.server.extraction.auto.products.identifiers import identifiers_of
from scrapy_ext.server.extraction.auto.products.offers import (
    Offer,
    main_product,
    offer_of,
    offers_in_markup,
    variants_of,
)
from scrapy_ext.server.extraction.auto.products.properties import properties_on
from scrapy_ext.server.extraction.auto.products.ratings import rating_of, rating_on
from scrapy_ext.server.extraction.auto.products.shown_prices import MOST_WITH_TAX, SCREEN, PriceTags
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_FEATURES: Final = 50
MAX_PROPERTIES: Final = 200
MAX_LISTS: Final = 40
#: Longest colour or size; longer texts are about several.
MAX_ATTRIBUTE_LENGTH: Final = 120
#: The main image has no side of fewer pixels.
SMALLEST_IMAGE: Final = 150
#: The greatest distance of an image from the heading, in elements, where no name says that it is the product's.
NEAR_HEADING: Final = 40
MAX_PICTURES: Final = 300
#: Elements that hold no image of the product without a name.
_FRAME: Final = frozenset({"header", "nav", "footer", "aside", "a", "button", "table"})
#: Least average length of features, in characters; shorter items are links or options.
SHORTEST_FEATURE: Final = 15

_VOCABULARY: Final = load_vocabulary("products")
_COLOR, _SIZE, _STYLE = _VOCABULARY.patterns("color", "size", "style", flags=re.IGNORECASE)
_FEATURES, _GALLERIES = map(_VOCABULARY.words, ("features", "galleries"))
#: Rules for a price.
_SHOWN: Final = "shown price"
_OF_METAS: Final = "meta"
_PRICE_METAS: Final = ("product:sale_price:amount", "product:price:amount", "og:price:amount")
#: A price of structured data that may have a point of thousands, as readers see it: 1.299.
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_REGULAR_METAS: Final = ("product:original_price:amount",)
_CURRENCY_METAS: Final = ("product:sale_price:currency", "product:price:currency", "og:price:currency")


def extract(page: Page) -> Product:
    """Return the product of a page. Only ``url`` and ``metadata`` are always present."""
    return _Extraction(page, main_product(page)).item()


class _Extraction:
    """One page with the parts of it that several fields need."""

    def __init__(self, page: Page, product: Thing | None) -> None:
        self._page = page
        self._product = product
        stated = product.text("name") if product else None
        self._focus = Focus(page, stated, page.meta("og:title"), page.title, slug_of(page.url))
        self._tags = PriceTags(page, self._focus)
        self._offer = offer_of(product, page.url) if product else Offer()
        self._name = page.sources.first(
            "name",
            (origin(product, "name"), lambda: one_line(stated)),
            ("heading", lambda: heading_text(page, self._focus)),
            ("meta og:title", lambda: page.meta("og:title")),
        )

    def item(self) -> Product:
        page, product, focus = self._page, self._product, self._focus
        item = Product(url=page.url, canonicalUrl=page.canonical_url, name=self._name)
        self._set_price(item)
        stated = self._set_availability(item)
        self._set_identity(item)
        self._set_looks(item)
        description = description_of(page, product, focus)
        if description.node is not None:
            for field in ("description", "descriptionHtml"):
                page.sources.note(field, "part named as the description", description.node)
        item.description, item.descriptionHtml = description.text, description.html
        item.breadcrumbs = breadcrumbs_of(page)
        item.aggregateRating = rating_of(product) or rating_on(page, product, focus)
        item.variants = variants_of(page, product) or variants_on(page, focus)
        item.features = self._features()
        item.additionalProperties = self._properties()
        item.metadata = DetailsMetadata(dateDownloaded=now(), probability=self._probability(item, stated))
        return item

    def _set_availability(self, item: Product) -> str | None:
        """Set the availability; return it unless the price alone is a sign of it."""
        page, focus, offer = self._page, self._focus, self._offer
        stated = offer.availability or availability_on(page, focus, priced=False, unclear=offer.is_unclear)
        supposed = bool(item.price) and not offer.is_unclear
        item.availability = stated or (availability_on(page, focus, priced=True) if supposed else None)
        if not offer.availability:
            rule = "words or buttons about the stock" if stated else "a price, and nothing that says it is gone"
            page.sources.note("availability", rule)
        return stated

    def _set_price(self, item: Product) -> None:
        page, offer, place = self._page, self._offer, place_on(self._page)
        price = self._price()
        if price is None:
            return
        regular = offer.regular_price or self._shown_regular(price) or from_markup(page.meta(*_REGULAR_METAS), place)
        item.price = price.amount
        item.regularPrice = regular.amount if regular and regular.value > price.value else None
        item.currencyRaw = self._tags.currency_raw(price) or price.currency_raw
        stated = code_of(offer.currency or (page.meta(*_CURRENCY_METAS) or "").upper(), place)
        item.currency = stated or code_of(item.currencyRaw, place)
        if not stated:
            page.sources.note("currency", _SHOWN, self._tags.element(price))

    def _shown_regular(self, price: Money) -> Money | None:
        regular = self._tags.regular_price(price)
        if regular is not None:
            self._page.sources.note("regularPrice", "shown former price", self._tags.element(regular))
        return regular

    def _price(self) -> Money | None:
        """Return the price of structured data, unless metadata and the page agree on another or the page shows what was
        meant by a point before three digits; else that of the page."""
        stated = self._offer.price
        of_metas = from_markup(self._page.meta(*_PRICE_METAS), place_on(self._page))
        return self._page.sources.chosen(
            "price",
            self._chosen_price(stated, of_metas),
            (origin(self._product, "offers", "offer"), lambda: stated),
            (_OF_METAS, lambda: of_metas),
            (_SHOWN, self._tags.price),
            *((_SHOWN, partial(self._tags.other_price, place)) for place in range(MAX_OTHERS)),
            form=lambda money: money.amount,
            node=self._tags.element,
        )

    def _chosen_price(self, stated: Money | None, of_metas: Money | None) -> Money | None:
        if stated is None:
            # A free product, or one not for sale, has a price of zero: prices on its page are of other products.
            return of_metas or (None if self._offer.is_zero else self._tags.price())
        if of_metas is not None and of_metas.value != stated.value:
            # The offers of auctions keep the starting price.
            shown = self._tags.price()
            return of_metas if shown and shown.value == of_metas.value else stated
        shown = self._tags.price()
        if shown and _THOUSANDS.fullmatch(stated.amount) and shown.value == 1000 * stated.value:
            return shown
        return shown if shown and self._is_outdated(stated, shown) else stated

    def _is_outdated(self, stated: Money, shown: Money) -> bool:
        """Return whether the page shows a price of structured data as the former one alone, or with the tax that it
        is said to lack."""
        if self._offer.is_net and stated.value < shown.value <= MOST_WITH_TAX * stated.value:
            return True
        former = self._tags.regular_price(shown)
        return former is not None and former.value == stated.value and self._tags.is_only_former(stated)

    def _set_identity(self, item: Product) -> None:
        brand = brand_of(self._page, self._product, self._focus)
        numbers = identifiers_of(self._page, self._product, self._focus)
        item.brand = Brand(name=brand) if brand else None
        item.sku, item.mpn, item.productId, item.gtin = numbers

    def _set_looks(self, item: Product) -> None:
        item.images = self._images()
        item.mainImage = item.images[0] if item.images else None
        item.color = self._attribute("color", _COLOR)
        item.size = self._attribute("size", _SIZE)
        item.style = self._attribute("pattern", _STYLE)

    def _images(self) -> list[Image]:
        of_markup = images.of_thing(self._page, self._product)
        if len(of_markup) > 1:
            return of_markup
        named = images.merged(of_markup or images.of_metas(self._page)[:1], self._gallery())
        return named or images.of_nodes(self._page, self._shown_at_heading() or self._beside_heading())

    def _beside_heading(self) -> list[HtmlElement]:
        """Return the first image of the smallest part with the heading that has one; of a whole page, its only one."""
        page, focus = self._page, self._focus
        if focus.heading is None or page.styles.styled:
            return []
        near = [
            node
            for node in islice(page.tree.iter("img"), MAX_PICTURES)
            if abs(focus.distance(node)) <= NEAR_HEADING
            and not any(part.tag in _FRAME for part in node.iterancestors())
            and not focus.elsewhere(node)
            and images.of_nodes(page, [node])
        ]
        for part in focus.heading.iterancestors():
            inside = [node for node in near if part in node.iterancestors()]
            if inside:
                return inside[:1] if part.tag not in {"body", "html"} or len(inside) == 1 else []
        return []

    def _shown_at_heading(self) -> list[HtmlElement]:
        """Return the largest image on one screen with the heading; none where styles are unknown."""
        styles = self._page.styles
        heading = styles.of(self._focus.heading)
        if heading is None:
            return []
        shown: list[tuple[float, HtmlElement]] = []
        for node in self._page.tree.iter("img"):
            style = styles.of(node)
            if style is None or style.hidden or min(style.width, style.height) < SMALLEST_IMAGE:
                continue
            if abs(style.y - heading.y) < SCREEN and not self._focus.elsewhere(node):
                shown.append((style.width * style.height, node))
        return [largest] if (largest := highest(shown)) is not None else []

    def _gallery(self) -> list[Image]:
        """Return the images that the page names as those of the product, by their own names or those of their place."""
        named = set(self._page.named(*_GALLERIES))
        name = (self._name or "").casefold()
        found = []
        for node in self._page.tree.iter("img"):
            alike = bool(name) and (node.get("alt") or "").casefold().startswith(name)
            around = (node, *islice(node.iterancestors(), 6))
            if (alike or not named.isdisjoint(around)) and not self._focus.elsewhere(node):
                found.append(node)
        return images.of_nodes(self._page, found)

    def _attribute(self, name: str, labels: re.Pattern[str]) -> str | None:
        stated = self._product.text(name) if self._product else None
        shown = (pair.value for pair in self._shown if labels.fullmatch(pair.label))
        return stated or first(value for value in shown if len(value) <= MAX_ATTRIBUTE_LENGTH)

    def _features(self) -> list[str]:
        folded: tuple[HtmlElement, list[str]] | None = None
        for node in self._feature_boxes():
            if node in self._focus.path or self._focus.elsewhere(node):
                continue
            points = [(point, text) for point in node.iter("li") if (text := node_text(point, 1000))]
            texts = [text for _, text in points]
            if len(texts) < 2 or sum(map(len, texts)) <= SHORTEST_FEATURE * len(texts):
                continue
            if not all(_is_folded(self._page, point, node) for point, _ in points):
                return self._take_features(node, texts)
            folded = folded or (node, texts)
        # A hidden list inside of a named box may be a notice that a click opens, so that others come first.
        return self._take_features(*folded) if folded else []

    def _feature_boxes(self) -> list[HtmlElement]:
        boxes = self._page.named(*_FEATURES)
        if len(boxes) > MAX_LISTS:
            # A word that names so many elements belongs to the layout: those that another word names come first.
            words = [word for word in _FEATURES if len(self._page.named(word)) <= MAX_LISTS]
            boxes = [*self._page.named(*words), *boxes]
        return boxes[:MAX_LISTS]

    def _take_features(self, node: HtmlElement, texts: list[str]) -> list[str]:
        self._page.sources.note("features", "list named as the features", node)
        return list(dict.fromkeys(texts))[:MAX_FEATURES]

    def _properties(self) -> list[AdditionalProperty]:
        found: dict[str, str] = {}
        for thing in self._product.things("additionalProperty") if self._product else ():
            name, value = thing.text("name"), _with_unit(thing)
            if name and value:
                found.setdefault(name, value)
        for pair in () if found else self._shown:
            found.setdefault(pair.label, pair.values)
        return [AdditionalProperty(name=name, value=value) for name, value in islice(found.items(), MAX_PROPERTIES)]

    @cached_property
    def _shown(self) -> list[Pair]:
        return properties_on(self._page, self._focus)

    def _probability(self, item: Product, availability: str | None) -> float:
        if not item.name:
            return probability.LEAST
        offered, priced = offers_in_markup(self._page, self._product), bool(item.price)
        signs = {
            **offered,
            "price_and_stock": not any(offered.values()) and priced and availability is not None,
            "price": not any(offered.values()) and priced and availability is None,
            "other": not any(offered.values()) and not priced and bool(self._product or item.availability),
            "sku": item.sku is not None,
            "brand": item.brand is not None,
            "image": item.mainImage is not None,
        }
        return probability.of("product", self._page, signs)


def _with_unit(thing: Thing) -> str | None:
    """Return the value of a property with its unit, where that is a text for readers."""
    value = thing.text("value", "@value")
    unit = next((unit for each in (thing, *thing.things("value")) if (unit := each.text("unitText"))), None)
    return f"{value} {unit}" if value and unit and not value.endswith(unit) else value


def _is_folded(page: Page, point: HtmlElement, box: HtmlElement) -> bool:
    """Return whether the list of a point, or an element between it and the box, hides itself."""
    return any(page.hides(each) for each in takewhile(lambda each: each is not box, point.iterancestors()))
