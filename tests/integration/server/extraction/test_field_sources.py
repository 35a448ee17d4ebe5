"""``fieldSources`` through the service: XPaths that users can evaluate, and rectangles in the screenshot."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from lxml import html

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

#: With all that moves or removes elements before extraction: comments, scripts, templates, shadow roots, <noscript>.
PAGE = """<!doctype html><html lang=en><head><title>Storm lamp</title><meta property="og:title" content="Old lamp">
<style>body { margin: 0; height: 3000px } .at { position: absolute; margin: 0; padding: 0; width: 300px; height: 40px }
</style>
<script type="application/ld+json">{"@type": "Product", "name": "Storm lamp", "sku": "AB-1234", "brand": "Acme",
"offers": {"price": "12.99", "priceCurrency": "EUR"}}</script><noscript><img src=/pixel.gif></noscript></head><body>
<!-- a comment --><header><a href=/>Shop</a><template><p>Never</p></template></header>
<x-card><template shadowrootmode=open><p>Inside</p><slot></slot></template><p>Slotted</p></x-card>
<script>document.currentScript.after(document.createElement("div"))</script>
<main><h1 class=at style="left: 50px; top: 100px">Storm lamp</h1>
<div><del class="at regular" style="left: 50px; top: 180px">19.99 €</del>
<span class="at price" style="left: 400px; top: 180px">12.99 €</span></div>
<p>by <a href="/brand/bcme" class=at style="left: 50px; top: 260px">Bcme</a></p><p hidden>SKU: AB-1234</p>
<table><tr><th>SKU</th><td class=at style="left: 50px; top: 2000px">AB-1234</td></tr></table></main></body></html>"""
BROWSER: dict[str, Any] = {"product": True, "fieldSources": True, "screenshot": True, "browserHtml": True}


def text_at(xpath: str, source: str) -> str:
    (node,) = html.document_fromstring(source).xpath(xpath)
    return " ".join(node.text_content().split())


def check_paths(sources: dict[str, Any], source: str) -> int:
    """Check that each XPath leads to the one element with the reported text; return how many there are."""
    places = [each for field in sources.values() for each in (field, *field.get("others", ())) if "xpath" in each]
    for each in places:
        assert text_at(each["xpath"], source) == each.get("text", "")
    return len(places)


def test_paths_lead_to_the_elements_of_the_response_body(service: Service, target: Target) -> None:
    asked = {"product": True, "fieldSources": True, "extractFrom": "httpResponseBody", "httpResponseBody": True}
    result = service.result(url=target.page("/lamp", PAGE), **asked)
    sources = result["fieldSources"]
    assert check_paths(sources, base64.b64decode(result["httpResponseBody"]).decode()) >= 5
    assert sources["price"] == {
        "rule": "json-ld Product.offers.price",
        "xpath": "/html/body/main/div/span",
        "text": "12.99 €",
    }
    assert sources["regularPrice"]["rule"] == "shown former price"
    assert sources["sku"]["xpath"] == "/html/body/main/table/tr/td"
    assert sources["brand"]["others"] == [
        {"value": {"name": "Bcme"}, "rule": "link", "xpath": "/html/body/main/p[1]/a", "text": "Bcme"}
    ]
    assert sources["name"]["others"] == [{"value": "Old lamp", "rule": "meta og:title"}]
    assert all("box" not in each for each in sources.values())


def test_boxes_are_the_rectangles_of_the_elements_in_the_screenshot(service: Service, target: Target) -> None:
    result = service.result(url=target.page("/lamp", PAGE), **BROWSER)
    sources = result["fieldSources"]
    assert check_paths(sources, result["browserHtml"]) >= 5
    assert sources["name"]["box"] == [50, 100, 300, 40]
    assert sources["price"]["box"] == [400, 180, 300, 40]
    assert sources["regularPrice"]["box"] == [50, 180, 300, 40]
    assert sources["brand"]["others"][0]["box"] == [50, 260, 300, 40]
    assert "data-box" not in result["browserHtml"]


@pytest.mark.parametrize(("full_page", "y"), [(True, 2000), (False, 1000)])
def test_boxes_are_relative_to_what_the_screenshot_shows(
    service: Service, target: Target, full_page: bool, y: int
) -> None:
    scrolled = PAGE.replace("</body>", "<script>scrollTo(0, 1000)</script></body>")
    asked = BROWSER | {"screenshotOptions": {"fullPage": full_page}}
    result = service.result(url=target.page("/long", scrolled), **asked)
    assert result["fieldSources"]["sku"]["box"] == [50, y, 300, 40]


def test_without_a_screenshot_there_are_no_boxes(service: Service, target: Target) -> None:
    result = service.result(url=target.page("/lamp", PAGE), product=True, fieldSources=True)
    assert result["fieldSources"]["name"]["xpath"] == "/html/body/main/h1"
    assert all("box" not in each for each in result["fieldSources"].values())


def test_a_page_cannot_write_boxes_itself(service: Service, target: Target) -> None:
    forged = PAGE.replace("<h1 ", '<h1 data-box="1 2 3 4" ').replace("<html ", '<html data-box="complete" ')
    url = target.page("/forged", forged)
    assert service.result(url=url, **BROWSER)["fieldSources"]["name"]["box"] == [50, 100, 300, 40]
    alone = service.result(url=url, product=True, fieldSources=True, extractFrom="httpResponseBody")
    assert "box" not in alone["fieldSources"]["name"]


def test_elements_of_shadow_roots_have_their_path_in_the_html_with_shadow_roots(
    service: Service, target: Target
) -> None:
    card = PAGE.replace("<p>Inside</p>", "<dl><dt>MPN</dt><dd>ZX-9876</dd></dl>")
    result = service.result(url=target.page("/shadow", card), includeShadowRoots=True, **BROWSER)
    source = result["fieldSources"]["mpn"]
    assert source["xpath"] == "/html/body/x-card/template/dl/dd"
    assert check_paths(result["fieldSources"], result["browserHtml"]) >= 6
    assert source["box"][2] > 0
