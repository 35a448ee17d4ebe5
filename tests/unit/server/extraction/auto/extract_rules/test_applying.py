"""Rules applied to a page: values of every type, faults, examples."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scrapy_ext.api.extraction.extract_rules import BESIDE, RULE_FIELDS, ValueType, faults_of, faults_of_kind
from scrapy_ext.api.extraction.records import FieldSource, SourceCandidate
from scrapy_ext.server.extraction.auto import _EXTRACTORS, items
from scrapy_ext.server.extraction.auto.extract_rules import apply_rules, as_sources, correct_item
from scrapy_ext.server.extraction.auto.page import Page

URL = "https://shop.example/lamps/1"
PAGE = """<html lang="de"><head><meta name="sku" content="AB-1234"><link rel="canonical" href="/lamps/one"></head><body>
<nav class="crumbs"><a href="/">Home</a> &gt; <a href="/lamps">Lamps</a> &gt; Lamp One</nav>
<h1>Lamp <b>One</b></h1><p class="empty"> </p><p class="empty">filled</p>
<p class="old">statt 24,99&nbsp;EUR</p><p class="now">nur 12,99&nbsp;EUR</p><meta itemprop="price" content="1299.00">
<p class="stock">Ausverkauft</p><p class="code">EAN: 4006381333931</p><p class="stars">4,5 / 5</p>
<div class="gallery"><img src="/a.jpg"><img data-src="/b.jpg" src="/blank.gif"></div>
<ul class="points"><li>bright</li><li>cheap</li></ul><div class="text"><p>One.</p><p>Two.</p></div>
<p class="by">Von <a href="/jane">Jane Doe</a></p><time datetime="2024-05-03T10:00:00Z">3. Mai</time>
<p class="date">3. Mai 2024</p><p class="pay">3.000 - 4.000 EUR im Monat</p><p class="page">7</p>
<div class="cards"><a href="/p/1">First</a><a href="/p/2">Second</a><a href="/p/1">again</a></div>
<audio><source src="/a.mp3"></audio><table><tr><th>Marke</th><td>Acme</td></tr></table></body></html>"""


def value(kind: str, field: str, rule: dict[str, Any]) -> Any:
    """The value that a rule sets; a fault fails the test."""
    assert not [*faults_of({field: rule}), *faults_of_kind(kind, {field: rule})]
    applied = correct_item(kind, PAGE, URL, {}, {field: rule})
    assert "fault" not in applied.report[field], applied.report
    return applied.item[field]


def fault(kind: str, field: str, rule: dict[str, Any]) -> str:
    applied = correct_item(kind, PAGE, URL, {field: "automatic"}, {field: rule})
    assert applied.item == {field: "automatic"}
    return str(applied.report[field]["fault"])


CASES: list[tuple[str, str, dict[str, Any], Any]] = [
    ("product", "name", {"css": "h1"}, "Lamp One"),
    ("product", "name", {"css": ".empty"}, "filled"),
    ("product", "name", {"css": "h1::text"}, "Lamp"),
    ("product", "name", {"css": ".points li", "all": True}, "bright cheap"),
    ("product", "brand", {"xpath": "//tr[th='Marke']/td"}, {"name": "Acme"}),
    ("product", "sku", {"css": "meta[name=sku]"}, "AB-1234"),
    ("product", "sku", {"css": "meta[name=sku]", "attribute": "content", "regex": "AB-(.+)"}, "1234"),
    ("product", "price", {"css": ".now"}, "12.99"),
    ("product", "price", {"css": "meta[itemprop=price]", "attribute": "content"}, "1299.00"),
    ("product", "price", {"value": "5.50"}, "5.50"),
    ("product", "regularPrice", {"css": ".old"}, "24.99"),
    ("product", "currency", {"css": ".now"}, "EUR"),
    ("product", "currency", {"value": "CHF"}, "CHF"),
    ("product", "availability", {"css": ".stock"}, "OutOfStock"),
    ("product", "availability", {"value": "PreOrder"}, "PreOrder"),
    ("product", "gtin", {"css": ".code", "regex": r"\d+"}, [{"type": "gtin13", "value": "4006381333931"}]),
    ("product", "aggregateRating", {"css": ".stars"}, {"bestRating": 5.0, "ratingValue": 4.5}),
    ("product", "features", {"css": ".points li"}, ["bright", "cheap"]),
    ("product", "description", {"css": ".text"}, "One.\n\nTwo."),
    ("product", "mainImage", {"css": ".gallery img"}, {"url": "https://shop.example/a.jpg"}),
    (
        "product",
        "images",
        {"css": ".gallery img"},
        [{"url": "https://shop.example/a.jpg"}, {"url": "https://shop.example/b.jpg"}],
    ),
    ("product", "images", {"css": ".gallery img::attr(data-src)"}, [{"url": "https://shop.example/b.jpg"}]),
    (
        "product",
        "images",
        {"css": ".gallery"},
        [{"url": "https://shop.example/a.jpg"}, {"url": "https://shop.example/b.jpg"}],
    ),
    ("product", "canonicalUrl", {"css": "link[rel=canonical]"}, "https://shop.example/lamps/one"),
    ("product", "canonicalUrl", {"value": "/x"}, "https://shop.example/x"),
    ("product", "canonicalUrl", {"css": ".by a::attr(href)"}, "https://shop.example/jane"),
    (
        "product",
        "breadcrumbs",
        {"css": ".crumbs"},
        [
            {"name": "Home", "url": "https://shop.example/"},
            {"name": "Lamps", "url": "https://shop.example/lamps"},
            {"name": "Lamp One"},
        ],
    ),
    ("product", "breadcrumbs", {"css": ".crumbs a:first-child"}, [{"name": "Home", "url": "https://shop.example/"}]),
    (
        "article",
        "authors",
        {"css": ".by a"},
        [{"name": "Jane Doe", "nameRaw": "Jane Doe", "url": "https://shop.example/jane"}],
    ),
    ("article", "datePublished", {"css": "time"}, "2024-05-03T10:00:00Z"),
    ("article", "datePublished", {"css": ".date"}, "2024-05-03T00:00:00"),
    ("article", "articleBody", {"css": ".text p", "all": True}, "One.\n\nTwo."),
    ("article", "audios", {"css": "audio"}, [{"url": "https://shop.example/a.mp3"}]),
    ("productNavigation", "pageNumber", {"css": ".page"}, 7),
    (
        "productNavigation",
        "nextPage",
        {"css": ".cards a"},
        {"url": "https://shop.example/p/1", "method": "GET", "name": "First"},
    ),
    (
        "productNavigation",
        "items",
        {"css": ".cards a"},
        [
            {"url": "https://shop.example/p/1", "method": "GET", "name": "First"},
            {"url": "https://shop.example/p/2", "method": "GET", "name": "Second"},
        ],
    ),
    ("jobPosting", "jobLocation", {"value": "Bonn"}, {"raw": "Bonn"}),
    ("jobPosting", "hiringOrganization", {"css": "td"}, {"name": "Acme", "nameRaw": "Acme"}),
    ("forumThread", "topic", {"css": "h1"}, {"name": "Lamp One"}),
]


@pytest.mark.parametrize(("kind", "field", "rule", "expected"), CASES)
def test_values_have_the_types_of_the_schema(kind: str, field: str, rule: dict[str, Any], expected: Any) -> None:
    found = value(kind, field, rule)
    assert found == expected
    schema = getattr(items, kind[0].upper() + kind[1:])
    msgspec.convert({"url": URL, field: found}, schema, strict=True)


def test_every_type_has_a_case() -> None:
    salary = value("jobPosting", "baseSalary", {"css": ".pay"})
    assert (salary["valueMin"], salary["valueMax"], salary["currency"]) == ("3000", "4000", "EUR")
    tried = {RULE_FIELDS[kind][field] for kind, field, _, _ in CASES} | {ValueType.SALARY}
    assert tried == set(ValueType)


def test_the_fields_of_rules_are_fields_of_the_items() -> None:
    assert set(RULE_FIELDS) == set(_EXTRACTORS) - {"serp"}
    for kind, fields in RULE_FIELDS.items():
        known = set(getattr(items, kind[0].upper() + kind[1:]).__struct_fields__)
        assert set(fields) <= known
        assert {each for field in fields for each in BESIDE.get(field, ())} <= known


@pytest.mark.parametrize(
    ("field", "rule", "message"),
    [
        ("name", {"css": ".gone"}, "found nothing"),
        ("name", {"css": "h1", "attribute": "gone"}, "found nothing"),
        ("name", {"css": "h1", "regex": "Desk"}, "found 'Lamp One', in which regex Desk matches nothing"),
        ("price", {"css": ".stock"}, "found 'Ausverkauft', which is no price"),
        ("currency", {"css": "h1"}, "found 'Lamp One', which is no currency"),
        ("availability", {"css": "h1"}, "which is no InStock, OutOfStock"),
        ("gtin", {"css": "h1"}, "found 'Lamp One', which is no GTIN"),
        ("images", {"css": "h1"}, "found 'Lamp One', which is no image"),
        ("canonicalUrl", {"css": ".page", "attribute": "class", "regex": "p(.*)x"}, "matches nothing"),
        ("aggregateRating", {"css": "h1"}, "which is no rating"),
        ("canonicalUrl", {"css": "h1"}, "found 'Lamp One', which has no address"),
        ("mainImage", {"css": ".by a"}, "found 'Jane Doe', which is no image"),
        ("regularPrice", {"value": "cheap"}, "found 'cheap', which is no price"),
        ("sku", {"example": "ZZ-9"}, "is in no element of this page"),
    ],
)
def test_a_fault_leaves_the_automatic_value(field: str, rule: dict[str, Any], message: str) -> None:
    assert message in fault("product", field, rule)


def test_a_price_sets_its_currency_unless_that_has_a_rule() -> None:
    item = {"price": "1.00", "currency": "USD", "currencyRaw": "$", "name": "x"}
    alone = correct_item("product", PAGE, URL, item, {"price": {"css": ".now"}}).item
    assert alone == {"price": "12.99", "currency": "EUR", "currencyRaw": "EUR", "name": "x"}
    both = correct_item("product", PAGE, URL, item, {"price": {"css": ".now"}, "currency": {"value": "CHF"}}).item
    assert both == {"price": "12.99", "currency": "CHF", "currencyRaw": "CHF", "name": "x"}
    assert item["price"] == "1.00", "the given item is not changed"


def test_a_rule_removes_a_field_and_what_was_read_beside_it() -> None:
    item = {"datePublished": "2024-01-01T00:00:00", "datePublishedRaw": "1 Jan", "headline": "x"}
    applied = correct_item("article", PAGE, URL, item, {"datePublished": {"remove": True}})
    assert applied.item == {"headline": "x"}
    sources = {name: FieldSource("text on the page") for name in item}
    as_sources(sources, item, applied)
    assert sources == {"headline": FieldSource("text on the page")}


def test_the_automatic_value_is_the_first_of_the_others() -> None:
    item = {"name": "Cookie notice"}
    applied = correct_item("product", PAGE, URL, item, {"name": {"css": "h1"}})
    shown = SourceCandidate("Lamp Two", "h2", "/html/body/h2")
    sources = {"name": FieldSource("title", "/html/head/title", others=[shown])}
    as_sources(sources, item, applied)
    own = SourceCandidate("Cookie notice", "title", "/html/head/title")
    assert sources == {"name": FieldSource("extractRules h1", "/html/body/h1", others=[own, shown])}


def faults(html: str, rules: dict[str, Any], item: dict[str, Any] | None = None) -> dict[str, str]:
    """The faults of the rules of a product, by field."""
    report = correct_item("product", f"<html><body>{html}", URL, item or {}, rules).report
    return {field: entry["fault"] for field, entry in report.items() if "fault" in entry}


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_price_and_its_currency_never_contradict(is_reversed: bool) -> None:
    def applied(*rules: tuple[str, dict[str, Any]]) -> dict[str, Any]:
        chosen = dict(reversed(rules) if is_reversed else rules)
        item = correct_item("product", PAGE, URL, {"price": "1.00", "currency": "USD", "currencyRaw": "$"}, chosen).item
        return {name: item.get(name) for name in ("price", "currency", "currencyRaw")}

    price = ("price", {"css": ".now"})
    assert applied(price, ("currency", {"css": ".gone"})) == {"price": "12.99", "currency": "EUR", "currencyRaw": "EUR"}
    assert applied(price, ("currency", {"value": "CHF"})) == {"price": "12.99", "currency": "CHF", "currencyRaw": "CHF"}
    removed = applied(("price", {"remove": True}), ("currency", {"value": "CHF"}))
    assert removed == {"price": None, "currency": "CHF", "currencyRaw": "CHF"}


def test_the_source_of_a_currency_is_the_rule_that_set_it() -> None:
    item = {"price": "1.00", "currency": "USD", "currencyRaw": "$"}
    applied = correct_item("product", PAGE, URL, item, {"currency": {"value": "CHF"}, "price": {"css": ".now"}})
    sources = {name: FieldSource("text on the page") for name in item}
    as_sources(sources, item, applied)
    rules = {name: source.rule for name, source in sources.items()}
    currency = "extractRules value CHF"
    assert rules == {"price": "extractRules .now", "currency": currency, "currencyRaw": currency}


def test_a_regular_price_has_the_currency_of_the_item() -> None:
    item = {"price": "1.00", "currency": "USD"}
    found = faults(PAGE, {"regularPrice": {"css": ".old"}}, item)
    assert found == {"regularPrice": "found a price in EUR, and the currency of the item is USD"}
    assert not faults(PAGE, {"regularPrice": {"css": ".old"}, "price": {"css": ".now"}}, item)


def test_a_match_in_a_text_is_read_as_the_text_is() -> None:
    html = "<html lang=de><body><p content=1.299>1.299 EUR</p>"
    of_text = correct_item("product", html, URL, {}, {"price": {"css": "p", "regex": "(.+) EUR"}})
    assert of_text.item["price"] == "1299"
    of_attribute = correct_item("product", html, URL, {}, {"price": {"css": "p::attr(content)", "regex": "(.+)"}})
    assert of_attribute.item["price"] == "1.299"


def test_texts_are_joined_in_their_order_and_equal_ones_kept() -> None:
    html = "<html><body><p>Hello <b>big</b> <i>big</i> world</p>"
    applied = correct_item("product", html, URL, {}, {"name": {"css": "p ::text", "all": True}})
    assert applied.item["name"] == "Hello big big world"


def test_an_image_is_read_from_links_to_images_and_images_in_links() -> None:
    html = '<a class="a" href="/page.html"><img src="/small.jpg"></a><a href="/big.PNG?x=1"><img src="/s.jpg"></a>'
    rules = {"mainImage": {"css": ".a"}, "images": {"css": "a"}}
    item = correct_item("product", f"<html><body>{html}", URL, {}, rules).item
    assert item["mainImage"] == {"url": "https://shop.example/small.jpg"}
    assert [image["url"].rpartition("/")[2] for image in item["images"]] == ["small.jpg", "big.PNG?x=1"]


def test_items_without_an_address_are_left_out() -> None:
    html = "<html><body><ul><li>One</li><li><a href='/2'>Two</a></li></ul>"
    items_of = correct_item("productNavigation", html, URL, {}, {"items": {"css": "li"}}).item["items"]
    assert items_of == [{"url": "https://shop.example/2", "method": "GET", "name": "Two"}]
    report = correct_item("productNavigation", html, URL, {}, {"items": {"css": "li:first-child"}}).report
    assert report["items"]["fault"] == "found 'One', which has no address"


def test_long_values_are_faults_and_never_cut() -> None:
    long = "<p>" + "word " * 600 + "</p>"
    for field in ("name", "features", "breadcrumbs"):
        assert "is no text of 2000 characters at most" in faults(long, {field: {"css": "p"}})[field]
    regex = faults(long, {"sku": {"css": "p", "regex": "word"}})["sku"]
    assert "which has over 200 characters, which regex does not search" in regex
    many = faults("<i>x</i>" * 501, {"features": {"css": "i"}})
    assert many == {"features": "found more than 500 elements; write a narrower selector"}
    huge = f"<p>{'word ' * 210_000}</p>"
    assert "has over 1000000 characters" in faults(huge, {"description": {"css": "p", "all": True}})["description"]


def test_text_with_line_breaks_has_each_text_once() -> None:
    html = "<html><body>" + "<div>" * 100 + "<p>One.</p>" + "</div>" * 100 + "<div>Two.</div>"
    applied = correct_item("product", html, URL, {}, {"description": {"css": "div, p", "all": True}})
    assert applied.item["description"] == "One.\n\nTwo."


@pytest.mark.parametrize(
    ("length", "regex"), [(199, "(?:a|b)?[ab]*?.+?(?:b|$b)"), (199, "(?:a|b)?(?:a|aa)[ab]*[ab]*x")]
)
def test_a_slow_search_is_a_fault_of_its_rule(length: int, regex: str) -> None:
    rules = {"name": {"css": "p", "regex": regex}, "sku": {"css": "b"}}
    assert not [*faults_of(rules)]
    applied = correct_item("product", f"<html><body><p>{'a' * length}</p><b>A-1</b>", URL, {}, rules)
    assert "takes too long on this page" in applied.report["name"]["fault"]
    assert applied.item == {"sku": "A-1"}


def test_many_searches_share_the_limit_of_work() -> None:
    html = f"<p>{'a' * 199}</p>" * 400
    assert "takes too long" in faults(html, {"name": {"css": "p", "all": True, "regex": "[ab]*[ab]*x"}})["name"]


def test_too_much_work_is_a_fault() -> None:
    page = Page("<ul>" + "<li>x</li>" * 5_000, URL)
    applied = apply_rules(page, "product", {}, {"name": {"xpath": "//li[count(preceding-sibling::li)=4999]"}})
    assert "takes too long on this page" in applied.report["name"]["fault"]


@pytest.mark.parametrize(
    ("html", "example", "selector"),
    [
        ('<p itemprop="sku" class="x1">A-1</p>', "A-1", {"css": 'p[itemprop="sku"]'}),
        ('<p class="code">other</p><div class="info"><p class="code">A-1</p></div>', "A-1", {"css": "div.info p.code"}),
        ('<meta name="sku" content="A-1">', "A-1", {"css": 'meta[name="sku"]', "attribute": "content"}),
        ("<table><tr><th>No</th><td>1</td></tr><tr><th>Code</th><td>A-1</td></tr></table>", "A-1",
         {"xpath": "//tr[normalize-space(th)='Code']/td"}),
        ("<dl><dt>X</dt><dd>1</dd><dt>Code</dt><dd>A-1</dd></dl>", "A-1",
         {"xpath": "//dt[normalize-space()='Code']/following-sibling::dd"}),
        ("<p>1</p><p>A-1</p>", "A-1", {"xpath": "/html/body/p[2]"}),
        ('<span class="price"><b>12</b>,<i>99</i> EUR</span>', "12,99 EUR", {"css": "span.price"}),
    ],
)  # fmt: skip
def test_an_example_gives_a_selector(html: str, example: str, selector: dict[str, str]) -> None:
    applied = correct_item("product", f"<html><body>{html}", URL, {}, {"sku": {"example": example}})
    assert applied.report["sku"]["selector"] == selector
    assert applied.item["sku"] == example
    again = correct_item("product", f"<html><body>{html}", URL, {}, {"sku": selector})
    assert again.item == applied.item
