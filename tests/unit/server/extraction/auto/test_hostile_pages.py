"""Pages that are broken, or made to break what reads them. Every kind must answer each with an item.

Sizes are such that work by the square of them, let alone more, would run into the time limit of the tests.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapy_ext.server.extraction.auto import KINDS, extract, extract_more
from scrapy_ext.server.extraction.auto.articles import article
from scrapy_ext.server.extraction.auto.page import parsing
from scrapy_ext.server.extraction.auto.page.markup import MAX_THINGS, Markup
from scrapy_ext.server.extraction.auto.page.microdata import MAX_REFERRED
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.parsing import MAX_ELEMENTS, MAX_HTML_LENGTH
from scrapy_ext.server.extraction.auto.page.start_tags import MAX_ATTRIBUTES, with_bounded_attributes

URL = "https://example.com/a"


def json_ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script><h1>Lamp</h1>'


def cycle() -> str:
    things: list[dict[str, Any]] = [
        {"@id": "a", "@type": ["Product", "Article"], "name": "n", "brand": {"@id": "b"}, "offers": {"@id": "a"}},
        {"@id": "b", "@type": "Brand", "name": {"@id": "a"}, "brand": {"@id": "b"}, "author": {"@id": "b"}},
    ]
    return json_ld(json.dumps({"@graph": things, "author": {"@id": "a"}}))


def references(items: int, properties: int, text: str = "x") -> str:
    """Microdata items that each refer to the same properties elsewhere."""
    names = " ".join(f"p{number}" for number in range(properties))
    product = f'<div itemscope itemtype="https://schema.org/Product" itemref="{names} {names}"></div>'
    return product * items + "".join(f'<p id=p{n} itemprop="name{n}">{text}</p>' for n in range(properties))


BROKEN = {
    "nothing": "",
    "white space": " \n\t ",
    "nulls": "\x00\x00<p>a\x00b</p>",
    "lone surrogates": "<h1>\udc80\ud800abc</h1>",
    "wrong encoding": "Grüße an die Küche".encode("utf-16").decode("latin-1"),
    "a comment": "<!-- x -->",
    "a doctype": "<!doctype html>",
    "an xml declaration of another encoding": '<?xml version="1.0" encoding="utf-16"?><html><body>x',
    "frames": "<frameset><frame src=x></frameset>",
    "text": "no markup at all",
    "cut in a tag": "<html><body><h1>Lamp</h1><p class='pri",
    "cut in a script": "<h1>Lamp</h1><script>var x = {",
    "tags that nothing closes": "<div><p><table><ul><li>" * 3_000,
    "closing tags that nothing opened": "</div></p></table></html>" * 3_000 + "<h1>x</h1>",
    "json": '{"@type": "Product"}',
    "urls of other schemes": '<base href="data:x"><link rel=canonical href="javascript:alert(1)"><img src="file:///etc/x">'
    '<a rel=next href="http://[::1">x</a><h1>x</h1><meta property="og:image" content="ftp://x/y">'
    '<div itemscope><a itemprop=url href="http://[::1">x</a></div><img itemscope src="//[x">',
}
HOSTILE = {
    "items that refer to each other's properties": references(400, 400),
    "items that refer to a long property": references(3_000, 1, "text " * 100_000),
    "references to nothing": f"<div itemscope itemref='{'a ' * 500_000}'><b itemprop=name>x</b></div>",
    "elements nested deeply": "<div>" * 100_000 + "x",
    "inline elements nested deeply": "<b>x" * 100_000,
    "many elements nested deeply": "<div>y" * 1_800 + "<p>x <b>y</b> z</p>" * 15_000,
    "ends without end": "<p>x</body></html>" * 4_000,
    "pages in pages": "<html><body><div>x</html>y" * 4_000,
    "tables nested deeply": "<table><tr><td>" * 5_000,
    "json-ld nested deeply": json_ld("[" * 100_000),
    "objects nested deeply": json_ld('{"a":' * 100_000),
    "things nested deeply": json_ld('{"@type":"Product","name":"x","offers":' * 5_000 + "1" + "}" * 5_000),
    "things that refer to each other": cycle(),
    "huge values": json_ld(json.dumps({"@type": "Product", "name": "x" * 500_000, "sku": "1" * 300_000})),
    "a number of many digits": json_ld('{"@type": "Product", "name": "x", "offers": {"price": ' + "9" * 100_000 + "}}"),
    "text as a number": json_ld('{"@type": "Product", "offers": {"price": "1e999999999"}}'),
    "quotes without end": json_ld('{"a": "' + '" "' * 50_000),
    "comments without end": json_ld("{" + "/* " * 100_000),
    "many blocks": json_ld('{"@type":"Product","name":"a"}') * 2_000,
    "many things": json_ld("[" + ",".join(['{"@type":"Product","name":"a","offers":{"price":"1"}}'] * 8_000) + "]"),
    "microdata without end": "<div itemscope itemtype='http://schema.org/Product'>" + "<i itemprop=name>x</i>" * 8_000,
    "scopes in scopes": "<div itemscope itemprop=offers>" * 200 + "<i itemprop=name>x</i>" * 2_000,
    "properties in properties": "<div itemscope>" + "<div itemprop=a>" * 200 + "x" * 100_000,
    "items that refer to each other": "".join(
        f'<div itemscope id=a{n} itemref="{" ".join(f"a{other}" for other in range(40))}" itemprop=x></div>'
        for n in range(40)
    ),
    "a long class": f'<h1>x</h1><p class="{"price " * 100_000}">$5</p>',
    "many prices": "<h1>x</h1>" + '<p class="price">$5 $5 $5</p>' * 4_000,
    "many digits": f"<h1>x</h1><p class=price>{'1' * 300_000}</p><p class=price>{'1,' * 25}</p>",
    "many dates": "<h1>x</h1>" + "<span class=date>March 3, 2020</span>" * 4_000,
    "many authors": f"<h1>x</h1><meta name=author content='{'Ab Cd, ' * 20_000}'>",
    "many headings": "<h1>Title here</h1>" * 4_000,
    "many links": "<nav class=breadcrumb>" + "<a href=/x>next</a> &gt; " * 10_000,
    "a long label": f"<h1>x</h1><div><b>vare{' ' * 100_000}!</b><i>x</i></div>",
    "a type after white space": '<script type=application/json>{"@type":' + " " * 300_000 + "1}</script><h1>x</h1>",
    "many labels": "<h1>x</h1>" + "<p>" + "a:" * 60 + "</p>" * 3_000 + "<li>SKU: 12345</li>" * 3_000,
    "a long srcset": f'<div class=gallery><h1>x</h1><img srcset="{"a 1w, " * 1_000}"></div>',
    "digits without a unit": "<h1>x</h1><p class=price>lowest price past " + "5" * 300_000 + "</p>",
    "words of a stock": "<h1>x</h1><p>four words of text " + "kein" * 50_000 + "налич" * 50_000 + "</p>",
    "many prices in scripts": "<script>" + 'price":' * 100_000 + "</script>" + "<script>{price: 1.5,}</script>" * 3_000,
    "many brands in scripts": "<h1>x</h1><script>" + 'brand": {"' * 50_000 + "brand: 'x'," * 50_000 + "</script>",
    "brand without end": "<h1>x</h1><script>brand" + "\\\\" * 100_000 + "</script>",
    "many brand pages": "<h1>x</h1>" + "<a href=/brand/x><b>x</b></a>" * 8_000,
    "many variants": json_ld(
        json.dumps([{"@type": "Product", "name": "x", "sku": f"s{n}", "offers": {"price": n}} for n in range(1_500)])
    ),
    "many equal entries": "<main><h1>x</h1><ul>"
    + "".join(f"<li class=product><a href=/p/{n}><h3>Lamp number {n}</h3></a><b>$5.00</b></li>" for n in range(6_000)),
    "entries in entries": "<main>"
    + "".join(f"<div class=item><a href=/p/{n}>Lamp number {n}</a>" for n in range(120)) * 20,
    "one entry with many links": "<main><ul><li>" + "".join(f"<a href=/p/{n}>Lamp {n}</a>" for n in range(8_000)),
    "entries that lead to one place": "<main>"
    + "<article><h2><a href=/p/1>A long headline of a story</a></h2></article>" * 4_000,
    "many rows of pages": "<main>" + "<ul class=pagination><li><a href=?page=2>2</a></li></ul>" * 3_000,
    "many pages": "<ul class=pagination>" + "".join(f"<li><a href=?page={n}>{n}</a></li>" for n in range(8_000)),
    "a next page that says much": f"<main><a class=next href=?page=2>{'next page ' * 20_000}</a>",
    "addresses with many parameters": "<main>" + f"<a href='?{'page=2&' * 1_000}'>next</a>" * 500,
    "white space": f"<h1>x</h1><p class=price>{' ' * 500_000}</p>",
    "a long word": f"<h1>x</h1><p>{'w' * 500_000}</p>",
    "entities": '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><p>&b;' + "&amp;" * 100_000,
}

#: Pages whose text is that of a library, which takes long for them.
OF_LIBRARIES = {
    "formatting that nothing closes": "".join(f"<p><b id={number}>x" for number in range(20_000)),
    "formatting in a table": "<table>" + "".join(f"<b id={number}>x<tr>" for number in range(20_000)),
    "a text before elements nested deeply": "<p>A text.</p>" + "<div>x" * 100_000,
    "ends of paragraphs in elements nested deeply": "<p>A text.</p>" + "<div>" * 50_000 + "</p>" * 50_000,
    "short paragraphs": "".join(f"<div>({number} views)</div>" for number in range(15_000)),
    "many readings": "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>" * 12_000,
}
ATTRIBUTES = {
    "without values": " ".join(f"a{number}" for number in range(200_000)),
    "with the end of a tag in each": " ".join(f'a{number}=">"' for number in range(100_000)),
    "with a tag in each": " ".join(f"a{number}='<b c=\"'" for number in range(100_000)),
}
#: What may hide a tag from a search that is not careful.
BEFORE = (
    "",
    "<!-- <i a='-->",
    "<!--><i>--><p x='<script'>",
    '<textarea><i a="</textarea>',
    "<script>'<i b=\"'</script>",
)

#: Kinds that read a page much as another one does: productList, articleNavigation, article.
MUCH_AS_ANOTHER = {"productNavigation", "articleList", "jobPostingNavigation", "jobPosting"}


@pytest.fixture
def parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse a page, and read its markup, once for all kinds."""
    monkeypatch.setattr("scrapy_ext.server.extraction.auto.page.page.Page", lru_cache(1)(Page))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_pages_give_an_item_with_the_url(name: str, kind: str) -> None:
    check_item(kind, BROKEN[name])


def check_item(kind: str, html: str) -> None:
    found = extract_more(kind, html, URL, sources=True)
    assert found.item["url"] == URL
    msgspec.json.encode(found)


#: Kinds that hostile pages are read for, beside ``product``.
OTHERS = [kind for kind in KINDS if kind != "product" and kind not in MUCH_AS_ANOTHER]


@pytest.mark.usefixtures("parsed_once")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_give_a_product_and_an_item_of_another_kind_in_turn_in_time(name: str) -> None:
    check_product_and_more(HOSTILE[name])
    check_item(OTHERS[list(HOSTILE).index(name) % len(OTHERS)], HOSTILE[name])


@pytest.mark.parametrize("name", OF_LIBRARIES)
def test_libraries_end_in_time(name: str) -> None:
    check_item("article", OF_LIBRARIES[name])


def depth_of(html: str) -> int:
    """Maximum number of elements that are open at once."""
    tags = re.findall(r"<(/?)(?!br|hr|img|!)[a-z]", html)
    return max(accumulate(-1 if end else 1 for end in tags))


@pytest.mark.parametrize("name", OF_LIBRARIES)
def test_libraries_get_pages_that_grow_with_their_source(name: str) -> None:
    flat = parsing.flattened(OF_LIBRARIES[name].encode())
    assert len(flat) < 4 * len(OF_LIBRARIES[name])
    assert depth_of(flat) < 300
    assert not re.search("<(b|i|font|nobr)[ >]", flat)


def test_a_long_page_is_not_compared_with_a_second_library(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(article, "bare_extraction", lambda _tree, *, fast, **_: compared.append(not fast))
    for number in (article.MAX_COMPARED - 100, article.MAX_COMPARED):
        page = Page("<div>(5 views)</div>" * number, URL)
        article.careful_text(page, page.tree)
    assert compared == [True, False]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_element_has_a_bounded_number_of_attributes(name: str, before: str) -> None:
    page = parsing.parsed(f"<h1>Lamp</h1>{before}<div {ATTRIBUTES[name]}>text</div><p>after</p>")
    assert max(map(len, page.attributes)) <= MAX_ATTRIBUTES
    assert page.tree.text_content().endswith("after")


@pytest.mark.parametrize(
    "html",
    [
        *BEFORE,
        "<p a = 1 b='2' c=\"3\" d e=>x</p>",
        "<p a='>' b=\"<i>\">x",
        '<p a\'b=1 =c "d">x</p >',
        "<a href=/x/y/>x</a/><br/><br />",
        "1 < 2 <3 <> </ <!x> <?x?>",
        "<script>if (a<b && c > d) {'<i x=1'}</script><b>",
        "<!-- a -- b --><!----><!-->x",
        "<p a='",
    ],
)
def test_other_tags_stay_as_they_are(html: str) -> None:
    assert with_bounded_attributes(html.encode()) == html.encode()


@pytest.mark.long
@pytest.mark.usefixtures("parsed_once")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_give_items_of_the_other_kinds_in_time(name: str) -> None:
    for kind in OTHERS:
        check_item(kind, HOSTILE[name])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_each_kind_by_itself_gives_an_item_in_time(name: str, kind: str) -> None:
    check_item(kind, HOSTILE[name])


@pytest.mark.parametrize("name", BROKEN)
def test_sources_attributes_and_text_of_broken_pages(name: str) -> None:
    check_product_and_more(BROKEN[name])


def check_product_and_more(html: str) -> None:
    asked = {"price": {"type": "number"}, "tags": {"type": "array"}, "kind": {"type": "string", "enum": ["a", "xyz"]}}
    found = extract_more("product", html, URL, sources=True, attributes=asked, text=True)
    assert found.item["url"] == URL
    assert set(found.attributes or ()) == set(asked)
    msgspec.json.encode(found)


@pytest.mark.parametrize("kind", KINDS)
def test_no_url_of_an_item_is_other_than_http(kind: str) -> None:
    found: list[str] = []

    def collect(value: Any, name: str = "") -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                collect(inner, key)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)
        elif name.lower().endswith("url"):
            found.append(value)

    collect(extract(kind, BROKEN["urls of other schemes"], URL))
    assert set(found) == {URL}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("url", ["http://[::1", "", "not a url", "https://example.com/" + "a" * 100_000])
def test_an_odd_url_of_the_page_does_no_harm(url: str, kind: str) -> None:
    html = """<h1>x</h1><p class="price">$5</p><p class=published>03/04/2024</p>
    <div itemscope><a itemprop=url href=y>x</a></div>"""
    assert extract(kind, html, url)["url"] == url


def test_entities_of_a_document_are_not_expanded_and_files_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2", "utf-8")
    html = f'<!DOCTYPE x [<!ENTITY s SYSTEM "{secret.as_uri()}">]><h1>Lamp &s;</h1><p>{"Light. " * 50}</p>'
    for kind in KINDS:
        assert "hunter2" not in json.dumps(extract(kind, html, URL))


def test_a_page_is_read_up_to_its_bounds() -> None:
    assert len(Page("<p>x</p>" * (MAX_HTML_LENGTH // 4), URL).elements) <= MAX_ELEMENTS
    assert len(Page("x" * (2 * MAX_HTML_LENGTH), URL).source) <= MAX_HTML_LENGTH


def test_markup_is_read_up_to_its_bounds() -> None:
    page = Page(HOSTILE["many things"], URL)
    assert len(Markup.of(page).all("Product", "Offer")) <= MAX_THINGS


def test_the_start_of_a_page_that_is_cut_is_extracted() -> None:
    html = f'<title>Lamp</title><h1>Lamp</h1><p class="price">$5.00</p>{"<i>x</i>" * 3 * MAX_ELEMENTS}'
    assert extract("product", html, URL)["price"] == "5.00"


def test_properties_that_items_refer_to_are_theirs_up_to_a_bound() -> None:
    few = Markup.of(Page(references(3, 2), URL)).all("Product")
    assert [{name: thing.texts(name) for name in thing.properties} for thing in few] == [
        {"name0": ["x"], "name1": ["x"]}
    ] * 3
    many = Markup.of(Page(references(400, 400), URL)).all("Product")
    assert 0 < sum(len(thing.properties) for thing in many) <= MAX_REFERRED
