"""Doubtful items and entries (``minProbability``), over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

HTTP = {"extractFrom": "httpResponseBody"}
CONTACT = b"<html><title>Contact</title><body><h1>Contact</h1><p>Call us, or write to us.</p></body></html>"
LAMP = b"""<html><title>Lamp One</title><body><h1>Lamp One</h1><p class="price">12,99 EUR</p>
<script type="application/ld+json">{"@type": "Product", "name": "Lamp One", "image": "/lamp.jpg", "offers": {
"price": "12.99", "priceCurrency": "EUR", "availability": "InStock"}}</script></body></html>"""
SHELF = (
    "<html><title>Lamps</title><body><main><ul>"
    + "".join(
        f'<li class="product"><a href="/p/{number}"><img src="/{number}.jpg"><h3>Lamp number {number}</h3></a>'
        f"<p>{number},99 EUR</p></li>"
        for number in range(1, 9)
    )
    + "</ul></main></body></html>"
).encode()


@pytest.fixture
def contact(target: Target) -> str:
    return target.page("/contact", CONTACT, Content_Type="text/html")


def test_a_doubtful_item_is_left_out_and_named(service: Service, contact: str) -> None:
    whole = service.result(url=contact, product=True, fieldSources=True, **HTTP)
    sure = whole["product"]["metadata"]["probability"]
    assert sure < 0.5
    result = service.result(url=contact, product=True, fieldSources=True, minProbability=0.5, **HTTP)
    assert result["leftOut"] == {"product": {"count": 1, "probability": sure}}
    assert result.keys().isdisjoint({"product", "fieldSources"})


def test_a_sure_item_stays_and_the_answer_says_that_nothing_is_left_out(service: Service, target: Target) -> None:
    url = target.page("/p/1", LAMP, Content_Type="text/html")
    result = service.result(url=url, product=True, minProbability=0.5, **HTTP)
    assert result["product"]["name"] == "Lamp One"
    assert result["leftOut"] == {}
    assert "leftOut" not in service.result(url=url, product=True, **HTTP)


def test_entries_are_left_out_and_the_rest_of_their_list_stays(service: Service, target: Target) -> None:
    url = target.page("/lamps", SHELF, Content_Type="text/html")
    products = service.result(url=url, productList=True, **HTTP)["productList"]["products"]
    sure = products[0]["metadata"]["probability"]
    assert len(products) == 8
    result = service.result(url=url, productList=True, minProbability=1, **HTTP)
    assert result["leftOut"] == {"products": {"count": 8, "probability": sure}}
    assert result["productList"]["url"] == url
    assert "products" not in result["productList"]


def test_what_is_of_the_page_stays_beside_an_item_that_is_left_out(service: Service, contact: str) -> None:
    beside = {
        "customAttributes": {"title": {"type": "string", "description": "title"}},
        "markdown": True,
        "httpResponseBody": True,
    }
    result = service.result(url=contact, product=True, minProbability=1, **beside, **HTTP)
    assert "product" not in result
    assert "Call us" in result["markdown"]
    assert {"customAttributes", "httpResponseBody"} < result.keys()


def test_the_service_names_the_field_as_an_extension(service: Service, contact: str) -> None:
    answer = service.extract(url=contact, product=True, **HTTP)
    assert "minProbability" in answer.headers["extract-extensions"].split(", ")


@pytest.mark.parametrize(
    ("fields", "status", "place"),
    [
        ({"minProbability": 90}, 400, "minProbability: must be 0 to 1, got 90. Write 0.5 for 50 %"),
        ({"minProbability": "0.9"}, 400, "minProbability: must be a number, got a string"),
        ({"minProbability": 0.9, "product": False, "markdown": True}, 422, "needs a kind of automatic extraction"),
    ],
)
def test_other_values_are_refused(
    service: Service, contact: str, fields: dict[str, Any], status: int, place: str
) -> None:
    answer = service.extract(**{"url": contact, "product": True, **HTTP, **fields})
    assert answer.status == status
    assert place in answer.json["detail"]
