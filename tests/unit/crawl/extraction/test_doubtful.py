"""``minProbability`` on the side of the crawl: for a service that has the field, and for one that has not."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.violations import ContractError
from scrapy_ext.crawl.extraction.doubtful import (
    Doubts,
    for_service,
    is_left_out,
    left_out_of,
    params_for,
    without_doubts,
)

URL = "https://example.com/"
FIELDS = {"url": URL, "product": True, "minProbability": 0.5}


def result(sure: float, **members: Any) -> dict[str, Any]:
    return {"url": URL, "product": {"name": "Lamp", "metadata": {"probability": sure}}, **members}


def test_it_is_sent_to_a_service_that_has_it_alone() -> None:
    assert for_service(FIELDS, {"minProbability"}) == FIELDS
    assert for_service(FIELDS, ()) == {"url": URL, "product": True}


def test_a_wrong_value_is_refused_although_it_is_not_sent() -> None:
    with pytest.raises(ContractError, match="minProbability: must be 0 to 1, got 5"):
        for_service({**FIELDS, "minProbability": 5}, ())
    with pytest.raises(ContractError, match="minProbability: needs a kind"):
        for_service({"url": URL, "browserHtml": True, "minProbability": 0.5}, ())


def test_the_answer_of_a_service_without_it_is_reduced_here() -> None:
    found = without_doubts(FIELDS, result(0.2, fieldSources={"name": {}}, customAttributes={}))
    assert found == {"url": URL, "customAttributes": {}, "leftOut": {"product": {"count": 1, "probability": 0.2}}}
    assert is_left_out(found, "product")
    assert without_doubts(FIELDS, result(0.8)) == result(0.8, leftOut={})
    assert not is_left_out(result(0.8, leftOut={}), "product")


def test_an_answer_stays_if_the_service_reduced_it_or_nothing_is_to_be_left_out() -> None:
    reduced = result(0.8, leftOut={"items": {"count": 2, "probability": 0.1}})
    for answer in (result(0.8, leftOut={}), reduced, {"url": URL, "browserHtml": "<p>"}):
        assert without_doubts(FIELDS, answer) is answer
    answer = result(0.2)
    assert without_doubts({"url": URL, "product": True}, answer) is answer


def test_an_answer_with_a_member_of_that_name_and_a_doubtful_item_is_reduced_all_the_same() -> None:
    found = without_doubts(FIELDS, result(0.2, leftOut={"pages": 3}))
    assert found == {"url": URL, "leftOut": {"product": {"count": 1, "probability": 0.2}}}


def test_for_every_request_it_counts_with_a_kind_alone() -> None:
    params = {"geolocation": "DE", "minProbability": 0.5}
    assert params_for(params, {"browserHtml": True}) == {"geolocation": "DE"}
    assert params_for(params, {"product": True}) is params
    assert params_for({**params, "article": True}, {})["minProbability"] == 0.5
    assert "minProbability" not in params_for({**params, "article": True}, {"article": None})


def test_items_and_entries_are_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    doubts = Doubts()
    doubts.add(FIELDS, {"leftOut": {"product": {"count": 1, "probability": 0.2}}}, "https://me:secret@example.com/")
    doubts.add(FIELDS, {"leftOut": {"items": {"count": 3, "probability": 0.1}, "posts": "many"}}, URL)
    assert doubts.counts == {"extract_api/left_out/items": 1, "extract_api/left_out/entries": 3}
    assert "Left out of https://example.com/: 1 of product, with a probability of 0.2 at most" in caplog.text


def test_a_member_of_that_name_of_another_service_has_no_effect() -> None:
    doubts = Doubts()
    doubts.add({"url": URL, "product": True}, {"leftOut": {"product": {"count": 1, "probability": 0.2}}}, URL)
    assert doubts.counts == {}
    assert list(left_out_of({"leftOut": 5})) == []
