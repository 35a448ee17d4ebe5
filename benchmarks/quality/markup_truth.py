"""Truth for pages without labels: what their markup says and their text shows. The markup is taken off afterwards.

A page counts with one product, or one article, in its JSON-LD or microdata, as extruct reads them. Of its values count
those that stand in the text (codes, names, days, prices), or in it for the most part (descriptions); images, those
whose file the page refers to elsewhere. Whether something is in stock has no text to look for: ``availability`` counts
as the markup has it.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, NamedTuple

from field_values import Truth, file_key
from lxml import etree
from lxml import html as lxml_html
from scores import shingle_scores, words

PRODUCTS = {"Product", "ProductGroup", "IndividualProduct", "ProductModel"}
ARTICLES = {
    "Article", "NewsArticle", "BlogPosting", "TechArticle", "ReportageNewsArticle", "AnalysisNewsArticle", "Report",
    "OpinionNewsArticle", "ReviewNewsArticle", "BackgroundNewsArticle", "ScholarlyArticle",
}  # fmt: skip
GTINS = ("gtin13", "gtin12", "gtin14", "gtin8", "gtin", "isbn")
STATES = {
    **dict.fromkeys(("instock", "limitedavailability", "onlineonly", "instoreonly", "preorder", "presale"), "InStock"),
    **dict.fromkeys(("outofstock", "soldout", "discontinued"), "OutOfStock"),
}
#: Shorter descriptions, in words, are names; those with such an ending are cut off.
SHORTEST = 10
_CUT = re.compile(r"(?:…|\.\.\.)\s*$")
#: The share of the runs of words of a description that a page has to show.
SHOWN = 0.9
#: Names of ``<meta>`` elements that stay: those of the title and the site.
_KEPT = re.compile(
    r"(?:og:(?:title|site_name|locale|type|url)|twitter:title|title|application-name|viewport)$", re.IGNORECASE
)
_UNSEEN = ("script", "style", "template", "noscript", "svg")
_LIFTED = re.compile(r"https?://schema\.org/|schema:", re.IGNORECASE)
_MONTHS = [[name.lower() for name in names] for names in (calendar.month_abbr, calendar.month_name)]


class Plain(NamedTuple):
    """A page without its markup, the words of its text, and the names of the files of images that it refers to."""

    html: str
    text: str
    files: frozenset[str]


def plain(html: str) -> Plain:
    """Return a page without JSON-LD, microdata and ``<meta>`` elements but those of the title."""
    tree = lxml_html.document_fromstring(html.encode("utf-8", "replace"), parser=lxml_html.HTMLParser(encoding="utf-8"))
    for node in tree.xpath('//script[contains(@type, "ld+json")]'):
        node.drop_tree()
    for value in tree.xpath("//@itemprop|//@itemscope|//@itemtype|//@typeof|//@property[not(parent::meta)]"):
        del value.getparent().attrib[value.attrname]
    for node in tree.xpath("//meta[@property or @name or not(@charset or @http-equiv)] | //link[@rel='image_src']"):
        if not _KEPT.match(node.get("property") or node.get("name") or ""):
            node.drop_tree()
    bare = str(lxml_html.tostring(tree, encoding="unicode"))
    sources = tree.xpath("//body//@src | //body//@srcset | //body//a/@href | //body//@*[starts-with(name(), 'data-')]")
    files = frozenset(file_key(part) for source in sources if len(source) < 5_000 for part in source.split() if part)
    etree.strip_elements(tree, *_UNSEEN, with_tail=False)
    return Plain(bare, _spaced(" ".join(tree.xpath("//body//text()"))), files)


def product_truth(found: dict[str, Any], page: Plain) -> Truth:
    """Return the values of the only product of a page; none where it has several."""
    products = [thing for thing in _things(found) if not PRODUCTS.isdisjoint(_types(thing))]
    names = {words(_text(thing.get("name"))) for thing in products} - {()}
    if len(names) != 1:
        return {}
    variants = [inner for thing in products for inner in _dicts(thing.get("hasVariant"))]
    offers = [offer for thing in (*products, *variants) for offer in _offers(thing)]
    holders = [*products, *variants, *offers]
    skus = {_spaced(sku) for sku in _texts(holders, "sku")}
    states = {STATES.get(_LIFTED.sub("", state).strip().lower()) for state in _texts(offers, "availability")}
    truth = {
        "price": [price for price in _texts(offers, "price", "lowPrice") if _shows_price(page, price)][:1],
        "availability": [state for state in states if state] if len(states) == 1 else [],
        "sku": _shown(page, _texts([*products, *variants], "sku")),
        # Shops without a manufacturer's number repeat their own there.
        "mpn": _shown(page, [mpn for mpn in _texts(holders, "mpn") if _spaced(mpn) not in skus]),
        "gtin": _shown(page, [code for code in _texts(holders, *GTINS) if code.strip("0")]),
        "brand": _shown(page, _texts(products, "brand", "manufacturer")[:1]),
        "description": _shown_description(page, _texts(products, "description")),
    }
    return _with_images(truth, _addresses(products[0].get("image")), page)


def article_truth(found: dict[str, Any], page: Plain) -> Truth:
    """Return the values of the only article of a page; none where it has several."""
    articles = [thing for thing in _things(found) if not ARTICLES.isdisjoint(_types(thing))]
    if len({words(_text(thing.get("headline") or thing.get("name"))) for thing in articles} - {()}) != 1:
        return {}
    authors = _shown(page, [name for thing in articles for name in _names(thing.get("author"))])
    truth = {
        "headline": _shown(page, _texts(articles, "headline")[:1]),
        "date": [day for day in _texts(articles, "datePublished")[:1] if _shows_day(page, day)],
        "authors": authors,
        "description": _shown_description(page, _texts(articles, "description")),
    }
    return _with_images(truth, [url for thing in articles for url in _addresses(thing.get("image"))], page)


def _with_images(truth: Truth, urls: list[str], page: Plain) -> Truth:
    shown = [url for url in urls if file_key(url) in page.files]
    return {name: values for name, values in {**truth, "mainImage": shown, "images": shown}.items() if values}


def _things(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the entities of the page itself: roots, members of graphs, and main entities."""
    level = [thing for syntax in ("json-ld", "microdata") for thing in _dicts(found.get(syntax))]
    for _ in range(3):
        yield from level
        level = [inner for thing in level for name in ("@graph", "mainEntity") for inner in _dicts(thing.get(name))]


def _offers(thing: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for offer in _dicts(thing.get("offers")):
        yield offer
        yield from _dicts(offer.get("offers"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [member for member in _listed(value) if isinstance(member, dict)]


def _types(thing: dict[str, Any]) -> set[str]:
    return {str(name).rpartition("/")[2] for name in _listed(thing.get("@type"))}


def _texts(things: Iterable[dict[str, Any]], *names: str) -> list[str]:
    texts = (_text(value) for thing in things for name in names for value in _listed(thing.get(name)))
    return list(dict.fromkeys(text for text in texts if text))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return _text(value.get("name") or value.get("@value"))
    if isinstance(value, list):
        return _text(value[0]) if value else ""
    if value is None or isinstance(value, bool) or not str(value).strip():
        return ""
    return str(lxml_html.fromstring(f"<div>{value}</div>").text_content()).strip()


def _names(value: Any) -> list[str]:
    return [name for member in _listed(value) if (name := _text(member)) and "://" not in name]


def _addresses(value: Any) -> list[str]:
    found = []
    for member in _listed(value):
        source = (
            member.get("contentUrl") or member.get("url") or member.get("@id") if isinstance(member, dict) else member
        )
        # Addresses with a fragment are names of entities.
        found += [str(inner) for inner in _listed(source) if inner and "#" not in str(inner)]
    return found


def _spaced(text: str) -> str:
    return " ".join(words(text))


def _shows(page: Plain, text: str) -> bool:
    return bool(text) and f" {_spaced(text)} " in f" {page.text} "


def _shown(page: Plain, texts: Iterable[str]) -> list[str]:
    return [text for text in texts if _spaced(text) and _shows(page, text)]


def _shown_description(page: Plain, texts: list[str]) -> list[str]:
    for text in texts:
        enough = len(words(text)) >= SHORTEST and not _CUT.search(text)
        # Precision of the description against the page: the share of its runs that the page has.
        if enough and shingle_scores(_spaced(text), page.text)[0] >= SHOWN:
            return [text]
    return []


def _shows_price(page: Plain, price: str) -> bool:
    whole, _, cents = re.sub(r"[^\d.]", "", price).partition(".")
    if not whole.strip("0") and not cents.strip("0"):
        return False
    grouped = " ".join([whole[: len(whole) % 3], *re.findall(r"\d{3}", whole[len(whole) % 3 :])]).strip()
    endings = [f" {cents.ljust(2, '0')[:2]}"] if cents.strip("0") else ["", " 00", " 0"]
    return any(f" {amount}{ending} " in f" {page.text} " for amount in {whole, grouped} for ending in endings)


def _shows_day(page: Plain, text: str) -> bool:
    """Return whether the text has a day as most pages in English and in numbers write it."""
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        return False
    text = page.text
    months = {months[day.month] for months in _MONTHS} | ({"sept"} if day.month == 9 else set())
    numbers = {str(day.day), f"{day.day:02}"}
    written = {f"{month} {number} {day.year}" for month in months for number in (*numbers, f"{day.day}th")}
    written |= {f"{number} {month} {day.year}" for month in months for number in numbers}
    for number in numbers:
        for month in (str(day.month), f"{day.month:02}"):
            written |= {f"{number} {month} {day.year}", f"{month} {number} {day.year}", f"{day.year} {month} {number}"}
    return any(f" {each} " in f" {text} " for each in written)
