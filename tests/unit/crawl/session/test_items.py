"""Items of every kind as JSON."""

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import ip_network
from uuid import UUID

import attrs
import numpy as np
import pydantic
import pytest
import scrapy

from scrapy_ext.crawl.session.items import UnstorableItemError, item_to_json


class Colour(Enum):
    RED = "red"


@dataclass
class Price:
    amount: Decimal
    currency: str = "EUR"


@attrs.define
class Offer:
    prices: list


class Book(scrapy.Item):
    name = scrapy.Field()
    offer = scrapy.Field()


@dataclass
class Everything:
    when: datetime = datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc)
    day: date = date(2026, 1, 2)
    raw: bytes = b"\xff"
    colour: Colour = Colour.RED
    id: UUID = field(default_factory=lambda: UUID(int=5))
    tags: set = field(default_factory=lambda: {"b", "a"})
    pair: tuple = (1, None)
    numbers: dict = field(default_factory=lambda: OrderedDict([(1, 2.5)]))


def stored(item):
    return json.loads(item_to_json(item))


def test_every_kind_of_item_and_nested_ones():
    item = Book(name="x", offer=Offer([Price(Decimal("1.50"))]))
    assert stored(item) == {"name": "x", "offer": {"prices": [{"amount": "1.50", "currency": "EUR"}]}}


def test_an_item_of_scrapys_in_another_and_a_dict_of_another_class():
    inner = Book(name="in", offer=frozenset({1}))
    assert stored(Book(name="out", offer=inner)) == {"name": "out", "offer": {"name": "in", "offer": [1]}}
    assert stored(OrderedDict(a=inner)) == {"a": {"name": "in", "offer": [1]}}


def test_values_that_json_does_not_have():
    assert stored(Everything()) == {
        "when": "2026-01-02T03:04:00+00:00",
        "day": "2026-01-02",
        "raw": "/w==",
        "colour": "red",
        "id": "00000000-0000-0000-0000-000000000005",
        "tags": ["a", "b"],
        "pair": [1, None],
        "numbers": {"1": 2.5},
    }


def test_an_item_with_plain_values_is_the_same_as_one_that_is_copied():
    plain = {"name": "é", "n": [1, 2.5, None, True, ("a", ["b"])], "big": 2**70, "in": {"": {}, "x": [{"y": -0.0}]}}
    copied = OrderedDict(plain, n=[1, 2.5, None, True, ("a", frozenset({"b"}))])
    assert item_to_json(plain) == item_to_json(copied)
    assert json.loads(item_to_json(plain)) == {**plain, "n": [1, 2.5, None, True, ["a", ["b"]]]}


@pytest.mark.parametrize(
    ("item", "word"),
    [
        ({"price": float("nan")}, "price is nan"),
        ({"a": [1, {"b": (0.5, float("inf"))}]}, "a.b is inf"),
        ({"a": {"b": [object()]}}, "a.b"),
        ({("a", "b"): 1}, "key"),
        ({"a": "\ud800"}, "surrogate"),
        ("text", "not an item"),
    ],
)
def test_what_has_no_json_form_is_refused_with_the_field(item, word):
    with pytest.raises(UnstorableItemError, match=word):
        item_to_json(item)


def test_an_item_that_contains_itself_is_refused():
    item = {}
    item["self"] = item
    with pytest.raises(UnstorableItemError, match="contains itself"):
        item_to_json(item)


def test_values_that_json_lacks_are_replaced_and_their_fields_are_named():
    replaced = []
    item = Book(name="half \ud800, pair \ud83d\ude00", offer={"prices": [1.5, float("nan"), {"low": -float("inf")}]})
    assert json.loads(item_to_json(item, replaced)) == {
        "name": "half \ufffd, pair \U0001f600",
        "offer": {"prices": [1.5, None, {"low": None}]},
    }
    assert [sentence.partition(" ")[0] for sentence in replaced] == ["name", "offer.prices", "offer.prices.low"]


class Broken:
    def __iter__(self):
        raise OSError("no connection")


@pytest.mark.parametrize(
    ("item", "word"),
    [
        ({"a": {1: "a", "1": "b"}}, "a has the key '1' twice"),
        ({None: "a", "null": "b"}, "the key 'null' twice"),
        ({"a": [10**5000]}, "a is a number of"),
        ({"a": Broken()}, "no connection"),
        ({"a": {"b": "\ud800"}, "c": 1}, "a.b has half of a surrogate pair"),
    ],
)
def test_a_refusal_names_what_is_wrong(item, word):
    with pytest.raises(UnstorableItemError, match=word):
        item_to_json(item)


def test_scalars_of_numpy_are_the_numbers_in_them_and_dates_are_refused():
    item = {"n": np.int64(3), "big": np.uint64(2**64 - 1), "half": np.float32(0.5), "true": np.bool_(True)}
    assert stored({**item, "row": np.array([[1, 2]])}) == {
        "n": 3,
        "big": 2**64 - 1,
        "half": 0.5,
        "true": True,
        "row": [[1, 2]],
    }
    with pytest.raises(UnstorableItemError, match="when is of type datetime64"):
        item_to_json({"when": np.datetime64(5, "ns")})


def test_urls_and_addresses_of_any_library_are_text():
    class Shop(pydantic.BaseModel):
        url: pydantic.HttpUrl
        database: pydantic.PostgresDsn
        address: pydantic.IPvAnyAddress
        key: pydantic.SecretStr

    item = Shop(url="https://shop.example/a", database="postgres://db.example/x", address="192.0.2.1", key="wren-4711")
    assert stored(item) == {
        "url": "https://shop.example/a",
        "database": "postgres://db.example/x",
        "address": "192.0.2.1",
        "key": "**********",
    }
    assert stored({"urls": [item.url]}) == {"urls": ["https://shop.example/a"]}
    assert stored({"network": ip_network("2001:db8::/32")}) == {"network": "2001:db8::/32"}


class Level(IntEnum):
    HIGH = 3


class Named(str):
    """A text whose class writes it in another way."""

    def __str__(self) -> str:
        return "other"


def test_keys_that_are_no_text_have_the_names_that_json_gives_them():
    keys = {None: 1, True: 2, 5: 3, -2.5: 4, Level.HIGH: 5, 10**30: 6, float("-inf"): 7, Named("own"): 8}
    assert list(stored({"a": keys})["a"]) == list(json.loads(json.dumps(keys)))


def test_a_value_of_a_subclass_is_that_of_its_class():
    assert stored({"text": Named("own"), "level": Level.HIGH}) == {"text": "own", "level": 3}
