"""RDFa of schema.org in the form of JSON-LD."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page.microdata import MAX_ITEMPROPS
from scrapy_ext.server.extraction.auto.page.rdfa import rdfa_of

BASE = "https://shop.example/a/b"
NAMED = '<p property="name">Lamp</p>'
LAMP = {"@type": ["Product"], "name": ["Lamp"]}


def read(html: str) -> Any:
    return rdfa_of(Page(f"<html><body>{html}</body></html>", BASE))


@pytest.mark.parametrize(
    ("html", "value"),
    [
        ('<p property="v" content="">text</p>', ""),
        ('<p property="v" content="5.00">five</p>', "5.00"),
        ('<a property="v" href="../c">text</a>', "https://shop.example/c"),
        ('<img property="v" src="i.png">', "https://shop.example/a/i.png"),
        ('<link property="v" href="https://schema.org/InStock">', "https://schema.org/InStock"),
        ('<time property="v" datetime="2026-01-02">today</time>', "2026-01-02"),
        ('<p property="v">A <b>lamp</b><script>1</script></p>', "A lamp"),
    ],
)
def test_the_value_of_an_element_is_its_content_its_address_or_its_text(html: str, value: str) -> None:
    (item,) = read(f'<div vocab="http://schema.org" typeof="Product">{NAMED}{html}</div>')
    assert item == LAMP | ({"v": [value]} if value else {})


@pytest.mark.parametrize("name", ["name", "headline", "hiringOrganization", "addressLocality", "schema:title"])
def test_a_link_around_a_name_is_no_name(name: str) -> None:
    [item] = read(f'<div vocab="https://schema.org/" typeof="Thing"><a property="{name}" href="/c">Lamp</a></div>')
    assert item[name.removeprefix("schema:")] == ["Lamp"]
    [item] = read(f'<div vocab="https://schema.org/" typeof="Thing"><a property="{name}" href="/c"><img></a></div>')
    assert item[name.removeprefix("schema:")] == ["https://shop.example/c"]


@pytest.mark.parametrize(
    "html",
    [
        f'<div vocab="https://schema.org/"><div typeof="Product">{NAMED}</div></div>',
        '<div typeof="schema:Product sioc:Item"><p property="schema:name dc:title">Lamp</p></div>',
        '<div typeof="http://schema.org/Product"><p property="https://schema.org/name">Lamp</p></div>',
        f'<div vocab="http://example.org/"><div vocab="https://schema.org/" typeof="Product">{NAMED}</div></div>',
        f'<div vocab="https://schema.org/" typeof="Product">{NAMED}<p property="og:title">Other</p></div>',
    ],
)
def test_names_are_of_schema_org_by_their_vocabulary_or_prefix(html: str) -> None:
    assert read(html) == [LAMP]


@pytest.mark.parametrize(
    "html",
    [
        f'<div typeof="Product">{NAMED}</div>',
        f'<div vocab="http://rdf.data-vocabulary.org/#" typeof="Product">{NAMED}</div>',
        f'<div vocab="https://schema.org/"><div vocab="http://purl.org/dc/terms/" typeof="Product">{NAMED}</div></div>',
        '<div typeof="sioc:Item"><p property="sioc:name">Lamp</p></div>',
        '<meta property="og:title" content="Lamp">',
    ],
)
def test_other_vocabularies_are_left_out(html: str) -> None:
    assert read(html) == []


def test_entities_in_entities_are_values_where_they_have_a_property_and_apart_where_they_have_none() -> None:
    found = read(
        f"""<div vocab="https://schema.org/" typeof="Product" resource="#it">{NAMED}
        <div property="offers" typeof="Offer"><p property="price">5</p></div>
        <a property="category" typeof="WebPage" href="/lamps"><b property="name">Lamps</b></a>
        <div typeof="Person"><p property="name">Ada</p></div></div>"""
    )
    offer = {"@type": ["Offer"], "price": ["5"]}
    category = {"@type": ["WebPage"], "@id": "https://shop.example/lamps", "name": ["Lamps"]}
    assert found == [
        LAMP | {"@id": "#it", "offers": [offer], "category": [category]},
        {"@type": ["Person"], "name": ["Ada"]},
    ]


@pytest.mark.parametrize(
    "html",
    [
        '<div vocab="https://schema.org/" typeof="Product">' + NAMED * (MAX_ITEMPROPS + 1),
        '<div vocab="https://schema.org/" typeof="Product" property="offers">' * 200 + NAMED,
    ],
)
def test_more_than_pages_have_is_not_read(html: str) -> None:
    assert read(html) == []
