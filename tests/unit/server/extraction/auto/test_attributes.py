from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.extraction.records import FieldSource, SourceCandidate
from scrapy_ext.server.extraction.auto import extract_more

URL = "https://shop.example.com/lamp"
PAGE = """<html lang=en><head><title>Storm lamp - brass</title><meta name=keywords content="lamp, storm, brass">
<meta name="edition" content="Third"><script type="application/ld+json">{"@context": "https://schema.org", "@type":
"Product", "name": "Storm lamp", "countryOfOrigin": "Norway", "offers": {"@type": "Offer", "price": "40.00",
"priceCurrency": "EUR"}, "additionalProperty": [{"@type":
"PropertyValue", "name": "Burning time", "value": "18 hours"}]}
</script></head><body><h1>Storm lamp</h1><p>Our lamps weigh 900 kilograms, said a man who had 3 of them.</p>
<table><tr><th>Weight (kg)</th><td>1.25</td></tr><tr><th>Wick width</th><td>14 mm</td></tr>
<tr><th>Colours</th><td>brass, black, sea green</td></tr><tr><th>Handmade</th><td>Yes</td></tr>
<tr><th>Height</th><td>24 to 30 cm</td></tr></table>
<dl><dt>Material</dt><dd>Solid brass, glass</dd><dt>Refillable</dt><dd>no</dd></dl><p>Fuel: paraffin oil</p>
</body></html>"""


def answers(**asked: dict[str, Any]) -> dict[str, Any]:
    found = extract_more("product", PAGE, URL, attributes=asked).attributes
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        ("fuel", {"type": "string"}, "paraffin oil"),
        ("weight", {"type": "number"}, 1.25),
        ("weightKg", {"type": "number"}, 1.25),
        ("wick_width", {"type": "integer"}, 14),
        ("colors", {"type": "array"}, ["brass", "black", "sea green"]),
        ("handmade", {"type": "boolean"}, True),
        ("refillable", {"type": "boolean"}, False),
        ("material", {"type": "string", "enum": ["brass", "steel", "tin"]}, "brass"),
        ("burningTime", {"type": "integer", "description": "Hours that it burns"}, 18),
        ("countryOfOrigin", {"type": "string"}, "Norway"),
        ("edition", {"type": "string"}, "Third"),
        ("price", {"type": "number"}, 40.0),
        ("kind", {"type": "string", "enum": ["Storm lamp", "Candle", "Torch"]}, "Storm lamp"),
    ],
)
def test_an_attribute_is_answered_where_a_label_says_what_it_is_called(
    name: str, attribute: dict[str, Any], value: Any
) -> None:
    assert answers(**{name: attribute}) == {name: value}


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("voltage", {"type": "number"}),
        ("sentiment", {"type": "string", "description": "What the page feels like"}),
        # "24 to 30 cm" has two numbers, and "Solid brass, glass" two of the possible values.
        ("height", {"type": "number"}),
        ("material", {"type": "string", "enum": ["brass", "glass"]}),
        ("fuel", {"type": "integer"}),
        ("fuel", {"type": "boolean"}),
        ("mood", {"type": "string", "enum": ["happy", "sad"]}),
        ("width", {"type": "object", "properties": {"depth": {"type": "number"}}}),
    ],
)
def test_what_is_not_sure_is_null(name: str, attribute: dict[str, Any]) -> None:
    assert answers(**{name: attribute}) == {name: None}


def test_objects_are_answered_by_their_members() -> None:
    parts = {"weight": {"type": "number"}, "fuel": {"type": "string"}, "speed": {"type": "number"}}
    assert answers(facts={"type": "object", "properties": parts}) == {
        "facts": {"weight": 1.25, "fuel": "paraffin oil", "speed": None}
    }


def test_without_attributes_there_are_no_answers() -> None:
    assert extract_more("product", PAGE, URL).attributes is None


def test_sources_say_where_each_field_is_from() -> None:
    sources = extract_more("product", PAGE, URL, sources=True).sources
    assert sources is not None
    assert sources["price"].rule == "json-ld Product.offers.price"
    assert sources["name"].rule == "json-ld Product.name"
    assert sources["url"] == FieldSource("url of the page")
    assert "metadata" not in sources
    assert extract_more("product", PAGE, URL).sources is None


def test_sources_of_articles_and_lists_are_returned_too() -> None:
    story = f"""<title>Lamps</title><h1>Lamps again</h1><time datetime=2024-03-01>1 March 2024</time>
    <p>{"All of it. " * 90}</p><img class=hero src=/lamp.jpg>"""
    sources = extract_more("article", story, URL, sources=True).sources
    assert sources is not None
    assert sources["headline"] == FieldSource(
        "heading",
        "/html/body/h1",
        "Lamps again",
        others=[SourceCandidate("Lamps", "title without the name of the site")],
    )
    assert sources["articleBody"].rule == "main text"
    assert sources["datePublished"] == FieldSource("shown date", "/html/body/time", "1 March 2024")
    assert sources["datePublishedRaw"] == sources["datePublished"]
    cards = "".join(f"<li class=product><a href=/p/{n}><h3>Lamp number {n}</h3></a><b>$5.00</b></li>" for n in range(6))
    listed = extract_more("productList", f"<main><h1>Lamps</h1><ul>{cards}</ul></main>", URL, sources=True).sources
    assert listed is not None
    assert listed["products"].rule == "repeated parts with a link"
    assert listed["products"].xpath == "/html/body/main/ul"


def test_sources_of_rules_name_the_rule_that_had_the_value() -> None:
    html = """<title>Cook</title><h1>Cook</h1><dl><dt>Location</dt><dd>Bergen</dd></dl>
    <span class=company-name>The Blue Door</span>"""
    sources = extract_more("jobPosting", html, "https://jobs.example.com/1", sources=True).sources
    assert sources is not None
    assert sources["jobLocation"] == FieldSource("label", "/html/body/dl/dd", "Bergen")
    assert sources["hiringOrganization"] == FieldSource("named part", "/html/body/span", "The Blue Door")
    assert set(sources) >= {"jobTitle", "headline"}
