"""Sources of the values of fields: the rule, the element and the values of other rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from lxml import html as lxml_html

from scrapy_ext.api.extraction.records import FieldSource
from scrapy_ext.server.extraction.auto import extract_more
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.sources import MAX_OTHERS, Sources

URL = "https://shop.example/lamp"
#: What extraction moves, removes or reads in another order than it stands.
MOVED = """<!-- a --><html><head><script>1</script><style>p {}</style><noscript><p>never</p></noscript></head>
<body><template><p>never</p></template><svg><text>x</text></svg><p>one</p><!-- b --><o:p>two</o:p><p>three</p>
<x-card><template shadowrootmode="open"><b>in</b><slot></slot></template><i>out</i></x-card>
<table><tr><td>cell</td></tr></table><div><p>four<div>five</div></div></body></html><p>after the end</p>"""


def sources_of(kind: str, html: str) -> dict[str, FieldSource]:
    found = extract_more(kind, html, URL, sources=True).sources
    assert found is not None
    return found


def counted(values: list[str | None], tried: list[int]) -> list[tuple[str, Callable[[], str | None]]]:
    def rule(index: int, value: str | None) -> Callable[[], str | None]:
        def value_of() -> str | None:
            tried.append(index)
            return value

        return value_of

    return [(f"rule {index}", rule(index, value)) for index, value in enumerate(values)]


# ── XPaths ──


def test_every_path_leads_to_its_element_in_the_page_as_users_parse_it() -> None:
    page = Page(MOVED, URL, sources=True)
    document = lxml_html.document_fromstring(MOVED)
    assert page.paths is not None
    found = {}
    for node in page.elements:
        path = page.paths.of(node)
        if path is None:
            continue
        (same,) = document.xpath(path)
        assert same.tag == node.tag
        found[(node.text or "").strip()] = path
    # The parser makes two roots of this page.
    assert found["two"] == "/html[1]/body/*[4]"
    assert found["three"] == "/html[1]/body/p[2]"
    assert found["in"] == "/html[1]/body/x-card/template/b"
    assert found["out"] == "/html[1]/body/x-card/i"
    assert found["cell"] == "/html[1]/body/table/tr/td"
    assert found["after the end"] == "/html[2]/p"
    assert {"one", "four", "five"} <= set(found)


def test_elements_that_extraction_adds_have_no_path() -> None:
    page = Page("<title>x</title>", URL, sources=True)
    assert page.paths is not None
    assert page.paths.of(lxml_html.fromstring("<p>")) is None


def test_paths_are_made_only_for_sources() -> None:
    assert Page(MOVED, URL).paths is None


@pytest.mark.parametrize("hidden", ["hidden", 'style="display: none"'])
def test_hidden_elements_show_nothing(hidden: str) -> None:
    html = f"<title>Lamp</title><h1>Lamp</h1><p {hidden}>SKU: AB-1234</p><ul><li>SKU: AB-1234</li></ul>"
    assert sources_of("product", html)["sku"].xpath == "/html/body/ul/li"


def test_numbers_and_words_are_found_as_wholes_only() -> None:
    html = """<script type="application/ld+json">{"@type": "Product", "name": "Lamp", "sku": "4.50", "mpn": "K-77",
    "offers": {"price": "4.50"}}</script><h1>Lamplight of the storm</h1><p>14.50 €</p><p>4.50.1</p><p>K-77B</p>"""
    sources = sources_of("product", html)
    assert {sources[field].xpath for field in ("sku", "mpn")} == {None}


def test_a_text_in_a_long_line_is_a_part_of_another_value() -> None:
    html = (
        '<script type="application/ld+json">{"@type": "Product", "name": "Lamp"}</script><p>Lamp oil for all lamps</p>'
    )
    assert sources_of("product", html)["name"].xpath is None
    assert sources_of("product", html.replace("Lamp oil for all lamps", "The lamp"))["name"].xpath == "/html/body/p"


def test_of_equal_texts_the_one_nearest_to_the_heading_is_found() -> None:
    html = f"<title>Lamp</title><p>SKU: AB-1234</p>{'<i>x</i>' * 9}<h1>Lamp</h1><b>SKU: AB-1234</b>{'<i>x</i>' * 9}"
    assert sources_of("product", html)["sku"].xpath == "/html/body/b"


# ── candidates ──


def test_later_rules_are_not_tried_where_sources_are_not_wanted() -> None:
    tried: list[int] = []
    values: list[str | None] = [None, "a", "b"]
    assert Sources().first("x", *counted(values, tried)) == "a"
    assert tried == [0, 1]
    assert Sources().chosen("x", "b", *counted(values, tried)) == "b"
    assert tried == [0, 1]


def test_later_rules_are_tried_until_there_are_enough_other_values() -> None:
    tried: list[int] = []
    sources, page = Sources(wanted=True), Page("<p>x", URL)
    values: list[str | None] = ["a", "a", None, "b", "a", "c", "b", "d", "e"]
    assert sources.first("x", *counted(values, tried)) == "a"
    assert tried == list(range(8))
    (source,) = sources.of_item(page, {"x": "a", "metadata": {"a": 1}}).values()
    assert [(each.value, each.rule) for each in source.others] == [("b", "rule 3"), ("c", "rule 5"), ("d", "rule 7")]
    assert len(source.others) == MAX_OTHERS


def test_a_value_that_is_chosen_otherwise_has_the_rule_that_had_it() -> None:
    sources, page = Sources(wanted=True), Page("<p>x", URL)
    assert sources.chosen("x", "b", *counted(["a", "b", "c"], [])) == "b"
    source = sources.of_item(page, {"x": "b"})["x"]
    assert (source.rule, [each.value for each in source.others]) == ("rule 1", ["a", "c"])


def test_rules_that_are_tried_in_vain_record_nothing() -> None:
    sources, page = Sources(wanted=True), Page("<p>x", URL)

    def other() -> str:
        sources.note("y", "another rule")
        return "b"

    sources.note("y", "rule")
    assert sources.first("x", ("first", lambda: "a"), ("second", other)) == "a"
    assert sources.of_item(page, {"y": "1"})["y"].rule == "rule"


def test_values_of_other_rules_are_cut() -> None:
    sources, page = Sources(wanted=True), Page("<p>x", URL)
    long: Any = ["x" * 5_000] * 100
    assert sources.first("x", ("first", lambda: ["a"]), ("second", lambda: long)) == ["a"]
    (other,) = sources.of_item(page, {"x": ["a"]})["x"].others
    assert other.value == ["x" * 500 + "…"] * 20


def test_a_price_has_the_other_prices_of_the_page() -> None:
    html = """<title>Lamp</title><h1>Lamp</h1><p class=price>$31.50</p><p>Set of two <span class=price>$58.00</span></p>
    <p class=price><del>$40.00</del></p><button>Add to cart</button>"""
    sources = sources_of("product", html)
    assert [(other.value, other.rule, other.xpath) for other in sources["price"].others] == [
        ("58.00", "shown price", "/html/body/p[2]/span")
    ]
    assert sources["regularPrice"].xpath == "/html/body/p[3]/del"


def test_dates_have_the_place_in_metadata_and_the_shown_one() -> None:
    html = f"""<title>Lamps</title><meta property="article:published_time" content="2024-03-02T10:00:00Z"><body>
    <article>    <h1>Lamps</h1><p class=date>1 March 2024</p><p>{"All of it. " * 90}</p></article>"""
    source = sources_of("article", html)["datePublished"]
    assert source.rule == "meta article:published_time"
    assert [(each.value, each.rule, each.xpath) for each in source.others] == [
        ("2024-03-01T00:00:00", "shown date", "/html/body/article/p[1]")
    ]


def test_keys_without_content_are_left_out() -> None:
    sent = msgspec.to_builtins(sources_of("product", "<title>Lamp</title><h1>Lamp</h1>"))
    assert sent["url"] == {"rule": "url of the page"}
    assert sent["name"] == {"rule": "heading", "xpath": "/html/body/h1", "text": "Lamp"}


@pytest.mark.parametrize("kind", ["product", "article", "jobPosting", "forumThread", "productList", "pageContent"])
def test_items_are_the_same_with_their_sources(kind: str) -> None:
    plain, full = (extract_more(kind, MOVED * 3, URL, sources=sources).item for sources in (False, True))
    for item in (plain, full):
        item["metadata"] = re.sub(r"\d", "0", str(item["metadata"]))
    assert plain == full
