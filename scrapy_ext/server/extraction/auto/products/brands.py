"""Brand of a product, as its page writes it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import Final

import html_text
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_BRAND_LENGTH: Final = 60
MAX_BRAND_NODES: Final = 200
#: Most characters of the text of an image, or of several elements, that is a brand.
SHORT_BRAND: Final = 50
#: Greatest distance from the heading, in elements, of an element named as the brand that no title contains.
NEAR: Final = 12

#: Greatest distance from the heading, in elements, of a link to the page of the brand.
BEFORE_HEADING: Final = 20
AFTER_HEADING: Final = 80
#: Greatest distance before the heading, and into it, of a text that the title begins with.
JUST_BEFORE: Final = 8
IN_HEADING: Final = 3
MAX_BEGINNING: Final = 40
#: Bounds of a script: characters, brands, and characters between a brand and the name of the product.
MAX_SCRIPT_LENGTH: Final = 1_000_000
MAX_MATCHES: Final = 100
AROUND: Final = 400

_VOCABULARY: Final = load_vocabulary("products")
_BRAND, _BRAND_PAGE = _VOCABULARY.patterns("brand", "brand_page", flags=re.IGNORECASE)
_BRAND_IN_SCRIPT = re.compile(
    r"""(?:brand|manufacturer)(?:_?[Nn]ame)?\\*["']?\s*[:=]\s*(?:\{[^{}]{0,80}?\bname\\*["']?\s*:\s*)?\\*["']([^"'{}]{2,60}?)\\*["']"""
)
_LABELLED_BRAND = _VOCABULARY.pattern("labelled_brand", re.IGNORECASE)
#: Words that shops write around the name.
_AROUND: Final = tuple(re.compile(words, re.IGNORECASE) for words in _VOCABULARY.table("around_brand").values())
_BRAND_NAMES: Final = _VOCABULARY.words("brand_names")
_NAME = _VOCABULARY.pattern("brand_name")
_NO_BRAND = _VOCABULARY.pattern("no_brand", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}|^[^\W\d_][^\w\s][^\W\d_]$")
#: Unfilled templates, URLs, alphabets, sentences.
_NO_NAME = re.compile(r"[${}<>|]|://|^(?:\S \S )|[.!?] |!$")


def brand_of(page: Page, product: Thing | None, focus: Focus) -> str | None:
    """Return the brand as the page writes it: of structured data, a labelled value, or an element named so."""
    of_markup = _of_markup(page, product)
    if of_markup:
        return of_markup
    return page.sources.first(
        "brand",
        ("listed label", lambda: _of_pairs(page, focus, listed=True)),
        ("named part", lambda: _of_named_nodes(page, focus)),
        ("link", lambda: _of_links(page, focus)),
        ("script", lambda: _brand_of_scripts(page, focus)),
        ("beginning of the title", lambda: _of_beginning_of_title(page, focus)),
        ("label", lambda: _of_pairs(page, focus, listed=False)),
    )


def _of_markup(page: Page, product: Thing | None) -> str | None:
    stated = product.texts("brand", "manufacturer") if product else []
    candidates = [*stated, page.meta("product:brand", "og:brand", "brand")]
    return next((brand for text in candidates if (brand := cleaned(text))), None)


def _of_pairs(page: Page, focus: Focus, *, listed: bool) -> str | None:
    for pair in page.labelled.of(_BRAND):
        if pair.listed is listed and not focus.elsewhere(pair.node) and (brand := cleaned(pair.value)):
            return brand
    return None


def _of_named_nodes(page: Page, focus: Focus) -> str | None:
    best: tuple[float, str] | None = None
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    for node in page.named(*_BRAND_NAMES)[:MAX_BRAND_NODES]:
        if not _NAME.search(page.names(node)) or focus.elsewhere(node):
            continue
        stated = node.get("data-brand") or node.get("data-brand-name")
        sure = bool(stated) or node.get("itemprop") in {"brand", "manufacturer"}
        brand = cleaned(stated or _text(node))
        if not brand or brand == focus.heading_text:
            continue
        distance = abs(focus.distance(node))
        if sure or distance <= NEAR or brand.casefold() in titles:
            score = distance - (1000 if sure else 0)
            if best is None or score < best[0]:
                best = (score, brand)
    return best[1] if best else None


def _of_links(page: Page, focus: Focus) -> str | None:
    best: tuple[int, str] | None = None
    heading, site = (focus.heading_text or "").casefold(), (page.meta("og:site_name") or "").casefold()
    for node in page.tree.iter("a") if focus.heading is not None else ():
        href = node.get("href")
        if href is None or not _BRAND_PAGE.search(href):
            continue
        distance = focus.distance(node)
        if -BEFORE_HEADING <= distance <= AFTER_HEADING and not focus.elsewhere(node):
            brand = cleaned(_text(node))
            if brand and brand.casefold() not in {heading, site} and (best is None or abs(distance) < best[0]):
                best = (abs(distance), brand)
    return best[1] if best else None


def _brand_of_scripts(page: Page, focus: Focus) -> str | None:
    """Return the brand in scripts (such as those of analytics) that stands by the product's name or is in it."""
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    name = focus.heading_text or ""
    brands: Counter[str] = Counter()
    for script in page.scripts:
        source = script.source[:MAX_SCRIPT_LENGTH]
        for match in islice(_BRAND_IN_SCRIPT.finditer(source), MAX_MATCHES):
            brand = cleaned(match.group(1))
            if brand is None or "\\" in brand:
                continue
            around = source[max(0, match.start() - AROUND) : match.end() + AROUND]
            if brand.casefold() in titles or (name and name in around):
                brands[brand] += 1
    return brands.most_common(1)[0][0] if brands else None


def _of_beginning_of_title(page: Page, focus: Focus) -> str | None:
    """Return a text or image, just before or in the heading, that the title begins with."""
    if focus.heading is None:
        return None
    titles = [title.casefold() for title in (page.title, page.meta("og:title")) if title]
    heading, site = (focus.heading_text or "").casefold(), (page.meta("og:site_name") or "").casefold()
    position = page.order[focus.heading]
    for node in reversed(page.elements[max(0, position - JUST_BEFORE) : position + 1 + IN_HEADING]):
        text = node.get("alt") if node.tag == "img" else node.text if not len(node) else None
        if not text or len(text) > MAX_BEGINNING or focus.elsewhere(node):
            continue
        # A heading may begin with the name of a series, which has no page of its own.
        if focus.distance(node) >= 0 and not any(part.tag == "a" for part in (node, *islice(node.iterancestors(), 2))):
            continue
        brand = cleaned(text)
        word = brand.casefold() if brand else ""
        if word and word not in {heading, site} and any(title.startswith(f"{word} ") for title in titles):
            return brand
    return None


def _text(node: HtmlElement) -> str | None:
    if node.tag == "meta":
        return str(node.get("content") or "")
    if text := html_text.extract_text(node, guess_layout=False):
        return text if len(text) < SHORT_BRAND else node_text(node, 100)
    images = node.xpath("self::img | img | */img | */*/img")
    texts = ((image.get(name) or "").strip() for image in images for name in ("alt", "title"))
    return next((text for text in texts if 0 < len(text) < SHORT_BRAND), None)


def cleaned(text: str | None) -> str | None:
    """Return a brand without the words that shops write around it; None for what cannot be one."""
    brand = one_line(text).strip(" |:–-\"'")
    if match := _LABELLED_BRAND.fullmatch(brand):
        brand = match.group(1).strip()
    for pattern in _AROUND:
        if match := pattern.fullmatch(brand):
            brand = match.group(1).strip()
            break
    if not brand or len(brand) > MAX_BRAND_LENGTH or _NO_BRAND.fullmatch(brand):
        return None
    return brand if _LETTERS.search(brand) and not _NO_NAME.search(brand) else None
