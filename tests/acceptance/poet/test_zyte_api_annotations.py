"""Annotations of scrapy-zyte-api that a migrated project still has are named in the log, each once."""

from __future__ import annotations

import functools
from typing import Annotated

import pytest
from scrapy import Request
from scrapy_poet import DummyResponse
from scrapy_poet.downloadermiddlewares import DEFAULT_PROVIDERS
from scrapy_poet.injection import get_injector_for_testing
from scrapy_zyte_api import Actions, ExtractFrom, Geolocation, NetworkCapture, actions, custom_attrs
from scrapy_zyte_api import Screenshot as TheirScreenshot
from web_poet import ItemPage
from zyte_common_items import CustomAttributes, Product

from scrapy_ext.poet.provider import ExtractProvider, Screenshot
from scrapy_ext.poet.zyte_api_annotations import ZyteApiAnnotations

ATTRIBUTES = custom_attrs({"weight": {"type": "number"}})


class Nested(ItemPage[dict]):
    def __init__(self, product: Annotated[Product, ExtractFrom.httpResponseBody]) -> None:
        self.product = product


def annotated(response: DummyResponse, product: Annotated[Product, ExtractFrom.httpResponseBody]): ...
def nested(response: DummyResponse, page: Nested): ...
def shot(response: DummyResponse, shot: TheirScreenshot): ...
def attributes(response: DummyResponse, attributes: Annotated[CustomAttributes, ATTRIBUTES]): ...
def acts(response: DummyResponse, acts: Annotated[Actions, actions([])], place: Annotated[Geolocation, "DE"]): ...
def network(response: DummyResponse, network: NetworkCapture): ...
def ours(response: DummyResponse, product: Product, shot: Screenshot): ...


def provider() -> ExtractProvider:
    *_, made = get_injector_for_testing({**DEFAULT_PROVIDERS, ExtractProvider: 1100}).providers
    return made


ALONE = "Annotated[Product, …] is of scrapy-zyte-api, and not provided. Annotate Product alone"


@pytest.mark.parametrize(
    ("callback", "remedies"),
    [
        (annotated, [ALONE]),
        (nested, [ALONE]),
        (shot, ["Screenshot is of scrapy-zyte-api, and not provided. Use scrapy_ext.poet.provider.Screenshot instead"]),
        (attributes, ["CustomAttributes is of scrapy-zyte-api, and not provided. Write the field customAttributes"]),
        (acts, ["Actions is of scrapy-zyte-api", "Geolocation is of scrapy-zyte-api"]),
        (network, ["NetworkCapture is of scrapy-zyte-api"]),
        (functools.partial(annotated, product=None), [ALONE]),
        (ours, []),
    ],
)
def test_annotations_that_are_not_provided_are_named_once(callback, remedies, caplog):
    made = provider()
    for page in (1, 2):
        made.fields_for(Request(f"https://shop.example/{page}", callback))
    name = getattr(callback, "func", callback).__qualname__
    assert len(caplog.records) == len(remedies)
    for record, remedy in zip(caplog.records, remedies, strict=True):
        assert record.getMessage().startswith(f"{name}: {remedy}")


@pytest.mark.parametrize("callback", [print, functools.partial(print)])
def test_a_callback_that_cannot_be_inspected_is_left_alone(callback, caplog):
    ZyteApiAnnotations().check(callback, ())
    assert not caplog.records
