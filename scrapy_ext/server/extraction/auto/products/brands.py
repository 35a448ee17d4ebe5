"""Brand of a product, as its page writes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

import html_text
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.sources import lowest, origin
from scrapy_ext.server.extraction.auto.page.text import first, letters_of
from scrapy_ext.server.extraction.auto.page.urls import site_of
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
#: Longest name of a site at the beginning of a title, and of the heading after it, in words.
MAX_NAME_WORDS: Final = 4
MAX_HEADING_WORDS: Final = 3
#: The elements around an image that may be its link, and the part of a URL that is read.
LINK_AROUND: Final = 2
MAX_URL_LENGTH: Final = 500
#: Links and images with a phrase such as ``More from X`` that are read, and the longest phrase in characters.
MAX_PHRASES: Final = 3_000
MAX_PHRASE_LENGTH: Final = 80
#: Links to pages of brands that are compared with the heading, and the fewest characters of a brand there.
MAX_BRAND_LINKS: Final = 1_000
SHORTEST_IN_TITLE: Final = 3
#: Bounds of a script: characters, brands, and characters between a brand and the name of the product.
MAX_SCRIPT_LENGTH: Final = 1_000_000
MAX_MATCHES: Final = 100
AROUND: Final = 400

_VOCABULARY: Final = load_vocabulary("products")
_BRAND, _DESIGNER, _BRAND_PAGE = _VOCABULARY.patterns("brand", "designer", "brand_page", flags=re.IGNORECASE)
_BRAND_IN_SCRIPT = re.compile(
    r"""(?:brand|manufacturer|vendor)(?:_?[Nn]ame)?\\*["']?\s*[:=]\s*(?:\{[^{}]{0,80}?\bname\\*["']?\s*:\s*)?\\*["']([^"'{}]{2,60}?)\\*["']"""
)
_CATEGORY_IN_SCRIPT = re.compile(r"""category(?:_?[Nn]ame)?\d?\\*["']?\s*[:=]\s*\\*["']([^"'{}]{2,60}?)\\*["']""")
_LOGO = _VOCABULARY.pattern("brand_logo", re.IGNORECASE)
_LABELLED_BRAND = _VOCABULARY.pattern("labelled_brand", re.IGNORECASE)
#: Words that shops write around the name.
_AROUND: Final = tuple(re.compile(words, re.IGNORECASE) for words in _VOCABULARY.table("around_brand").values())
#: Phrases that lead to the other products of the brand, and those that categories have as well.
_MORE_OF_BRAND, _MORE_OF_ANY = (
    tuple(re.compile(words, re.IGNORECASE) for words in _VOCABULARY.table(name).values())
    for name in ("more_of_brand", "more_of_brand_alone")
)
#: Names (in ``class`` and ``id``) of the parts that every page of a site has.
_FRAME = _VOCABULARY.pattern("frame")
_FRAME_TAGS: Final = frozenset({"header", "nav", "footer", "aside", "title", "option"})
_WORD = re.compile(r"\w+")
_BRAND_NAMES: Final = _VOCABULARY.words("brand_names")
_NAME = _VOCABULARY.pattern("brand_name")
_NO_BRAND = _VOCABULARY.pattern("no_brand", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}|^[^\W\d_][^\w\s][^\W\d_]$")
#: Unfilled templates, URLs, alphabets, sentences.
_NO_NAME = re.compile(r"[${}<>|]|://|^(?:\S \S )|[.!?] |!$|(?:\S+ ){4}.*[.。]$")


def brand_of(page: Page, product: Thing | None, focus: Focus) -> str | None:
    """Return the brand as the page writes it: of structured data, a labelled value, or an element named so.

    The brand is the maker of the product. The name of the shop counts where the shop makes it: where the page shows
    it beside the product, or where structured data or a script has it and nothing on the page names another maker.
    """
    stated = _stated(page, product)
    shown = (brand for brand in stated if not _is_of_site(page, brand) or _shows(page, focus, brand))
    return page.sources.first(
        "brand",
        (origin(product, "brand", "manufacturer"), lambda: next(shown, None)),
        ("listed label", lambda: _of_pairs(page, focus, _BRAND, listed=True)),
        ("named part", lambda: lowest(_of_named_nodes(page, focus))),
        ("link", lambda: lowest(_of_links(page, focus))),
        ("link to more of the brand", lambda: _of_phrases(page, focus)),
        ("script", lambda: _brand_of_scripts(page, focus)),
        ("beginning of the title", lambda: _of_beginning_of_title(page, focus)),
        ("name of the shop in the title", lambda: _of_name_in_title(page, focus)),
        ("logo", lambda: _of_logos(page, focus)),
        ("link in the title", lambda: _of_links_in_title(page, focus)),
        ("label", lambda: _of_pairs(page, focus, _BRAND, listed=False)),
        ("designer", lambda: _of_pairs(page, focus, _DESIGNER, listed=True)),
        # Where no other maker is named, most shops that give their own name make what they sell.
        ("name of the shop in structured data", lambda: first(stated)),
        ("name of the shop in a script", lambda: _brand_of_scripts(page, focus, of_shops=True)),
        form=lambda name: {"name": name},
    )


def _stated(page: Page, product: Thing | None) -> list[str]:
    """Return the brands of structured data and metadata."""
    stated = product.texts("brand", "manufacturer") if product else []
    candidates = [*stated, page.meta("product:brand", "og:brand", "brand")]
    return [brand for text in candidates if (brand := cleaned(text))]


def _is_of_site(page: Page, brand: str) -> bool:
    """Return whether a brand is the name of the site."""
    name = letters_of(brand)
    stated = page.meta("og:site_name", "application-name") or ""
    return name in {letters_of(text) for text in (stated, *stated.split(), site_of(page.url).partition(".")[0])}


def _shows(page: Page, focus: Focus, brand: str) -> bool:
    """Return whether a brand stands in the heading, at the beginning of the title, or in a text of this page alone."""
    name = f" {_spaced(brand)} "
    return _names(page, focus, name) or any(
        name.strip() in text.casefold() and name in f" {_spaced(text)} " and not _is_of_frame(page, focus, node)
        for node in page.elements
        if (text := node.text)
    )


def _names(page: Page, focus: Focus, name: str) -> bool:
    return name in f" {_spaced(focus.heading_text)} " or f" {_spaced(page.title)} ".startswith(name)


def _is_of_shop(page: Page, focus: Focus, brand: str) -> bool:
    """Return whether a brand that no reader sees is but the name of the shop: neither heading nor title have it."""
    return _is_of_site(page, brand) and not _names(page, focus, f" {_spaced(brand)} ")


def _is_of_frame(page: Page, focus: Focus, node: HtmlElement) -> bool:
    """Return whether a node is in a part that all pages of a site have: header, menu, footer, note on cookies."""
    around = (node, *node.iterancestors())
    return focus.elsewhere(node) or any(
        part.tag in _FRAME_TAGS or _FRAME.search(page.names(part)) for part in around if part not in focus.path
    )


def _spaced(text: str | None) -> str:
    return " ".join(_WORD.findall((text or "").casefold()))


def _of_pairs(page: Page, focus: Focus, labels: re.Pattern[str], *, listed: bool) -> str | None:
    for pair in page.labelled.of(labels):
        if pair.listed is listed and not focus.elsewhere(pair.node) and (brand := cleaned(pair.value)):
            return brand
    return None


def _of_named_nodes(page: Page, focus: Focus) -> Iterator[tuple[float, str]]:
    """Yield the brands of elements named so: where they are sure, in a title or near the heading."""
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    for node in page.named(*_BRAND_NAMES)[:MAX_BRAND_NODES]:
        if not _NAME.search(page.names(node)) or focus.elsewhere(node):
            continue
        stated = node.get("data-brand") or node.get("data-brand-name")
        is_marked = node.get("itemprop") in {"brand", "manufacturer"}
        sure = bool(stated) or is_marked
        brand = _without_phrase(stated or _text(node))
        if not brand or brand == focus.heading_text:
            continue
        # A vendor with the name of the shop is the seller.
        is_unsure = bool(stated) or (not is_marked and "vendor" in page.names(node))
        if is_unsure and _is_of_shop(page, focus, brand):
            continue
        distance = abs(focus.distance(node))
        is_near = focus.heading is not None and distance <= NEAR
        if sure or is_near or brand.casefold() in titles:
            yield distance - (1000 if sure else 0), brand


def _of_links(page: Page, focus: Focus) -> Iterator[tuple[float, str]]:
    """Yield the texts of links to pages of brands, with their distance from the heading."""
    heading, site = (focus.heading_text or "").casefold(), (page.meta("og:site_name") or "").casefold()
    for node in page.tree.iter("a") if focus.heading is not None else ():
        href = node.get("href")
        if href is None or not _BRAND_PAGE.search(href):
            continue
        distance = focus.distance(node)
        if -BEFORE_HEADING <= distance <= AFTER_HEADING and not focus.elsewhere(node):
            brand = _without_phrase(_text(node))
            if brand and brand.casefold() not in {heading, site}:
                yield abs(distance), brand


def _brand_of_scripts(page: Page, focus: Focus, *, of_shops: bool = False) -> str | None:
    """Return the brand in scripts (such as those of analytics) that stands by the product's name or is in it.

    ``of_shops``: even one that is but the name of the shop; structured data has its own rule for that.
    """
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    name = focus.heading_text or ""
    brands: Counter[str] = Counter()
    for script in page.scripts:
        if of_shops and "ld+json" in script.type:
            continue
        source = script.source[:MAX_SCRIPT_LENGTH]
        for match in islice(_BRAND_IN_SCRIPT.finditer(source), MAX_MATCHES):
            brand = cleaned(match.group(1))
            if brand is None or "\\" in brand or (not of_shops and _is_of_shop(page, focus, brand)):
                continue
            around = source[max(0, match.start() - AROUND) : match.end() + AROUND]
            if match.group(1) in _CATEGORY_IN_SCRIPT.findall(around):
                continue
            if brand.casefold() in titles or (name and name in around):
                brands[brand] += 1
    return brands.most_common(1)[0][0] if brands else None


def _of_phrases(page: Page, focus: Focus) -> str | None:
    """Return the brand of a link or image such as ``More from X`` of which the heading or a title has the name."""
    titles = f" {_spaced(f'{focus.heading_text} {page.title} ')} "
    for node in islice(page.tree.iter("a", "img"), MAX_PHRASES):
        for text in (node.get("title"), node.get("alt"), node_text(node, MAX_PHRASE_LENGTH + 1)):
            if not text or len(text) > MAX_PHRASE_LENGTH or " " not in text.strip():
                continue
            brand = _more_of(one_line(text), of_any=_leads_to_brand(node))
            if brand and f" {_spaced(brand)} " in titles and not focus.elsewhere(node):
                return brand
    return None


def _leads_to_brand(node: HtmlElement) -> bool:
    """Return whether a link, or the link around an image, leads to the page of a brand."""
    around = (node, *islice(node.iterancestors(), LINK_AROUND))
    return any(part.tag == "a" and _BRAND_PAGE.search(part.get("href") or "") for part in around)


def _more_of(text: str, *, of_any: bool) -> str | None:
    """Return the brand of a phrase; ``of_any``: also of one that the links to categories have."""
    for pattern in (*_MORE_OF_BRAND, *(_MORE_OF_ANY if of_any else ())):
        if match := pattern.fullmatch(text):
            return cleaned(match.group(1))
    return None


def _without_phrase(text: str | None) -> str | None:
    """Return the brand of a text that is named as the brand, with or without a phrase such as ``More from X``."""
    line = one_line(text)
    return (_more_of(line, of_any=True) if len(line) <= MAX_PHRASE_LENGTH else None) or cleaned(text)


def _of_logos(page: Page, focus: Focus) -> str | None:
    """Return the text of a logo, outside the parts of all pages, that the heading begins with."""
    heading = f"{_spaced(focus.heading_text)} "
    for node in islice(page.tree.iter("img"), MAX_PHRASES):
        text = node.get("alt") or ""
        if not SHORTEST_IN_TITLE <= len(text) <= MAX_BEGINNING or not (name := _spaced(text)):
            continue
        leads = heading.startswith(f"{name} ") and len(name) + 1 < len(heading)
        if leads and _is_logo(page, node) and not _is_of_frame(page, focus, node):
            return cleaned(text)
    return None


def _is_logo(page: Page, image: HtmlElement) -> bool:
    """Return whether an image is a logo by its names and its URL, or by those of the link or box around it."""
    around = (image, *islice(image.iterancestors(), LINK_AROUND))
    urls = (part.get(name) or "" for part in around for name in ("src", "data-src", "href"))
    return any(_LOGO.search(text[:MAX_URL_LENGTH]) for text in (*map(page.names, around), *urls))


def _of_name_in_title(page: Page, focus: Focus) -> str | None:
    """Return the name of the site where a title has it before the name of the product, as makers write it.

    Between the name of a shop that sells the brands of others and that of a product there is a sign: ``Shop: Lamp``.
    """
    stated = letters_of(page.meta("og:site_name", "application-name") or "")
    names = {letters_of(site_of(page.url).partition(".")[0]), stated} - {""}
    heading = _spaced(focus.heading_text).split()
    for title in (page.title, page.meta("og:title"), focus.heading_text):
        words = (title or "").split()
        for count in range(1, min(MAX_NAME_WORDS, len(words) - 1) + 1):
            name = " ".join(words[:count]).rstrip("®™")
            following = _spaced(words[count]).split()
            if letters_of(name) not in names or not name[-1:].isalnum() or not following:
                continue
            # A domain that the heading begins with is more often a kind of product than a maker.
            leads = following[0] in heading[:MAX_HEADING_WORDS] and heading[0] != _spaced(name).split()[0]
            if leads or (title == focus.heading_text and letters_of(name) == stated):
                return cleaned(name)
    return None


def _of_links_in_title(page: Page, focus: Focus) -> str | None:
    """Return the longest text of a link to the page of a brand, such as of a menu, that the heading contains."""
    heading = f" {_spaced(focus.heading_text)} "
    links = (node for node in page.tree.iter("a") if _BRAND_PAGE.search(node.get("href") or ""))
    found: set[str] = set()
    for node in islice(links, MAX_BRAND_LINKS):
        brand = cleaned(node_text(node, SHORT_BRAND) or _text(node))
        if brand and len(brand) >= SHORTEST_IN_TITLE and f" {_spaced(brand)} " in heading:
            found.add(brand)
    return max(found, key=len, default=None)


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
        # Titles may begin with "Buy", headings seldom do.
        beginnings = [*titles, heading] if focus.distance(node) < 0 else titles
        if word and word not in {heading, site} and any(text.startswith(f"{word} ") for text in beginnings):
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
