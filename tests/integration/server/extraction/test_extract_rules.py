"""Rules that correct automatic extraction (``extractRules``), over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target
from tests.support.pdfs import lines, pdf

HTTP = {"extractFrom": "httpResponseBody"}
PAGE = b"""<html lang="de"><head><title>Lamp One - Shop</title></head><body><h1>Lamp One</h1>
<p class="old">24,99 EUR</p><p class="now">12,99 EUR</p><p class="stock">Ausverkauft</p></body></html>"""


@pytest.fixture
def page(target: Target) -> str:
    return target.page("/p/1", PAGE, Content_Type="text/html; charset=utf-8")


def test_a_rule_replaces_the_automatic_value_and_is_its_source(service: Service, page: str) -> None:
    rules = {"name": {"css": "title"}, "price": {"xpath": "//p[@class='old']"}, "color": {"value": "red"}}
    result = service.result(url=page, product=True, fieldSources=True, extractRules=rules, **HTTP)
    product = result["product"]
    assert (product["name"], product["price"], product["color"]) == ("Lamp One - Shop", "24.99", "red")
    assert result["extractRules"] == {
        "name": {"rule": "title", "xpath": "/html/head/title", "automatic": "Lamp One"},
        "price": {"rule": "//p[@class='old']", "xpath": "/html/body/p[1]", "automatic": "12.99"},
        "color": {"rule": "value red"},
    }
    name = result["fieldSources"]["name"]
    assert (name["rule"], name["xpath"], name["others"][0]["value"]) == (
        "extractRules title",
        "/html/head/title",
        "Lamp One",
    )
    assert result["fieldSources"]["color"] == {"rule": "extractRules value red"}


def test_a_rule_that_finds_nothing_leaves_the_automatic_value(service: Service, page: str) -> None:
    rules = {"name": {"css": ".gone"}, "price": {"css": ".stock"}}
    result = service.result(url=page, product=True, extractRules=rules, **HTTP)
    assert (result["product"]["name"], result["product"]["price"]) == ("Lamp One", "12.99")
    assert result["extractRules"]["name"]["fault"] == "found nothing"
    assert result["extractRules"]["price"]["fault"] == "found 'Ausverkauft', which is no price"


def test_a_field_is_removed_with_what_was_read_beside_it(service: Service, page: str) -> None:
    result = service.result(url=page, product=True, fieldSources=True, extractRules={"price": {"remove": True}}, **HTTP)
    assert result["product"].keys().isdisjoint({"price", "currency", "currencyRaw"})
    assert result["fieldSources"].keys().isdisjoint({"price", "currency", "currencyRaw"})


def test_rules_of_a_pdf_have_faults(service: Service, target: Target) -> None:
    url = target.page("/report", pdf(lines(["A report of one line."])), Content_Type="application/pdf")
    result = service.result(url=url, article=True, extractRules={"headline": {"css": "h1"}}, **HTTP)
    assert result["extractRules"] == {"headline": {"rule": "h1", "fault": "is for pages, and this is a PDF"}}


def test_without_rules_there_is_no_report(service: Service, page: str) -> None:
    assert "extractRules" not in service.result(url=page, product=True, **HTTP)


def test_the_service_names_the_field_as_an_extension(service: Service, page: str) -> None:
    answer = service.extract(url=page, product=True, **HTTP)
    assert "extractRules" in answer.headers["extract-extensions"].split(", ")


@pytest.mark.parametrize(
    ("fields", "status", "place"),
    [
        ({"extractRules": []}, 400, "extractRules: must be an object"),
        ({"extractRules": {"name": "h1"}}, 400, "extractRules.name: must be an object"),
        ({"extractRules": {"name": {"css": "a{"}}}, 400, "extractRules.name.css: is no CSS selector"),
        ({"extractRules": {"name": {"xpath": "document('/etc/passwd')"}}}, 400, "has document at character 1"),
        ({"extractRules": {"name": {"css": "h1", "regex": "(a+)+"}}}, 400, "regex: must not repeat a group"),
        ({"extractRules": {"naem": {"css": "h1"}}}, 422, "extractRules.naem: is not a field of product"),
        ({"extractRules": {"name": {"css": "h1"}}, "product": False}, 422, "needs a kind of automatic extraction"),
        ({"extractRules": {str(n): {"css": "h1"} for n in range(51)}}, 400, "must have at most 50 rules"),
    ],
)
def test_what_breaks_a_rule_is_refused(
    service: Service, page: str, fields: dict[str, Any], status: int, place: str
) -> None:
    answer = service.extract(**{"url": page, "product": True, **HTTP, **fields})
    assert answer.status == status
    assert place in answer.json["detail"]
