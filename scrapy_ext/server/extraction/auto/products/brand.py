"""The brand of a product."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import Final

from lxml.html import HtmlElement
from zyte_parsers import extract_brand_name

from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.specification import Specification
from scrapy_ext.server.extraction.auto.page.text import node_text, one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_LENGTH: Final = 60
MAX_NODES: Final = 200
#: How far from the heading, in elements, something named as the brand may stand when no title has its name.
NEAR: Final = 12

#: How far from the heading, in elements, a link to the page of its brand may stand.
BEFORE_HEADING: Final = 20
AFTER_HEADING: Final = 80
#: How far before the heading, and how far from its start, a text may stand that the title begins with.
JUST_BEFORE: Final = 8
IN_HEADING: Final = 3
MAX_BEGINNING: Final = 40
#: What is read of a script, in characters; how many brands in it; how far from one the name of the product may stand.
MAX_SCRIPT_LENGTH: Final = 1_000_000
MAX_MATCHES: Final = 100
AROUND: Final = 400

_VOCABULARY: Final = load_vocabulary("products")
_BRAND = _VOCABULARY.pattern("brand", re.IGNORECASE)
_BRAND_PAGE = _VOCABULARY.pattern("brand_page", re.IGNORECASE)
_IN_SCRIPT = re.compile(
    r"""(?:brand|manufacturer)(?:_?[Nn]ame)?\\*["']?\s*[:=]\s*(?:\{[^{}]{0,80}?\bname\\*["']?\s*:\s*)?\\*["']([^"'{}]{2,60}?)\\*["']"""
)
_LABELLED = _VOCABULARY.pattern("labelled_brand", re.IGNORECASE)
#: What shops say around the name.
_AROUND: Final = (
    re.compile(r"(?:visit the|besuche den|bezoek de) (.+?)[ -](?:store|shop|winkel)", re.IGNORECASE),
    re.compile(r"(?:visita lo store di|visiter la boutique|visita la tienda de|visite a loja) (.+)", re.IGNORECASE),
    re.compile(r"(.+?)[ -]+logo", re.IGNORECASE),
    re.compile(r"(?:by|von|par|por|from|shop all|more from|view all|see all) (.+)", re.IGNORECASE),
)
_NAMES: Final = _VOCABULARY.words("brand_names")
_NAME = _VOCABULARY.pattern("brand_name")
_NO_BRAND = _VOCABULARY.pattern("no_brand", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}|^[^\W\d_][^\w\s][^\W\d_]$")
#: Templates that were not filled in, addresses, alphabets, sentences.
_NO_NAME = re.compile(r"[${}<>|]|://|^(?:\S \S )|[.!?] |!$")


def brand_of(page: Page, product: Thing | None, focus: Focus, specification: Specification) -> str | None:
    """The brand as the page writes it: of its markup, of a labelled value, of what is named so by its author."""
    of_markup = _of_markup(page, product)
    if of_markup:
        return of_markup
    return page.sources.first(
        "brand",
        ("listed label", lambda: _of_pairs(specification, focus, listed=True)),
        ("named part", lambda: _of_named_nodes(page, focus)),
        ("link", lambda: _of_links(page, focus)),
        ("script", lambda: _of_scripts(page, focus)),
        ("beginning of the title", lambda: _of_beginning_of_title(page, focus)),
        ("label", lambda: _of_pairs(specification, focus, listed=False)),
    )


def _of_markup(page: Page, product: Thing | None) -> str | None:
    stated = product.texts("brand", "manufacturer") if product else []
    candidates = [*stated, page.meta("product:brand", "og:brand", "brand")]
    return next((brand for text in candidates if (brand := cleaned(text))), None)


def _of_pairs(specification: Specification, focus: Focus, *, listed: bool) -> str | None:
    for pair in specification.of(_BRAND):
        if pair.listed is listed and not focus.elsewhere(pair.node) and (brand := cleaned(pair.value)):
            return brand
    return None


def _of_named_nodes(page: Page, focus: Focus) -> str | None:
    best: tuple[float, str] | None = None
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    for node in page.named(*_NAMES)[:MAX_NODES]:
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
    """What a link by the heading is called that leads to the page of a brand."""
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


def _of_scripts(page: Page, focus: Focus) -> str | None:
    """The brand that scripts, those that count visits for one, tell in one breath with the name, or that is in it."""
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    name = focus.heading_text or ""
    told: Counter[str] = Counter()
    for script in page.scripts:
        source = script.source[:MAX_SCRIPT_LENGTH]
        for match in islice(_IN_SCRIPT.finditer(source), MAX_MATCHES):
            brand = cleaned(match.group(1))
            if brand is None or "\\" in brand:
                continue
            around = source[max(0, match.start() - AROUND) : match.end() + AROUND]
            if brand.casefold() in titles or (name and name in around):
                told[brand] += 1
    return told.most_common(1)[0][0] if told else None


def _of_beginning_of_title(page: Page, focus: Focus) -> str | None:
    """A text, or a picture, just before or in the heading that the title begins with."""
    if focus.heading is None:
        return None
    titles = [title.casefold() for title in (page.title, page.meta("og:title")) if title]
    heading, site = (focus.heading_text or "").casefold(), (page.meta("og:site_name") or "").casefold()
    position = focus.order[focus.heading]
    for node in reversed(page.elements[max(0, position - JUST_BEFORE) : position + 1 + IN_HEADING]):
        text = node.get("alt") if node.tag == "img" else node.text if not len(node) else None
        if not text or len(text) > MAX_BEGINNING or focus.elsewhere(node):
            continue
        # A heading begins with the names of series too, which have no page of their own.
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
    return extract_brand_name(node, search_depth=3) or node_text(node, 100)


def cleaned(text: str | None) -> str | None:
    """A brand without the words that shops put around it; None for what cannot be one."""
    brand = one_line(text).strip(" |:–-\"'")
    if match := _LABELLED.fullmatch(brand):
        brand = match.group(1).strip()
    for pattern in _AROUND:
        if match := pattern.fullmatch(brand):
            brand = match.group(1).strip()
            break
    if not brand or len(brand) > MAX_LENGTH or _NO_BRAND.fullmatch(brand):
        return None
    return brand if _LETTERS.search(brand) and not _NO_NAME.search(brand) else None
