"""Items of feeds come back from the platform as their worker had them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
from itemadapter import ItemAdapter
from scrapy import Field, Item

from scrapy_ext.crawl.session.feed_items import ClassFilter, FeedItems, FeedNotes
from scrapy_ext.crawl.session.items import item_to_json


class Kettle(Item):
    name = Field()
    price = Field(serializer=str)


@dataclass
class Review:
    text: str
    stars: int | None = None


def there_and_back(item):
    record = FeedNotes().noted(item, item_to_json(item))
    return FeedItems().item(msgspec.json.decode(record))


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        1.5,
        ["a", {"b": 1}],
        ("a", 1),
        {"a"},
        frozenset({1}),
        b"\x00\xff",
        Decimal("9.90"),
        date(2026, 1, 2),
        time(3, 4, 5, 6),
        datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc),
        timedelta(seconds=1.5),
        UUID(int=7),
    ],
    ids=repr,
)
def test_values_keep_their_types(value):
    found = there_and_back({"value": value})
    assert found == {"value": value}
    assert type(found["value"]) is type(value)


def test_an_item_of_json_values_is_stored_without_a_note():
    item = {"name": "a", "parts": [1, {"b": None}]}
    assert FeedNotes().noted(item, item_to_json(item)) == item_to_json(item)


@pytest.mark.parametrize("item", [Kettle(name="a"), Kettle(), Review("a")], ids=repr)
def test_an_item_has_the_fields_of_its_class(item):
    found, adapter = there_and_back(item), ItemAdapter(item)
    assert dict(ItemAdapter(found)) == dict(adapter)
    assert list(ItemAdapter(found).field_names()) == list(adapter.field_names())
    for name in adapter.field_names():
        assert ItemAdapter(found).get_field_meta(name) == adapter.get_field_meta(name)
    assert isinstance(found, type(item))


def test_a_filter_by_class_knows_the_classes():
    wanted = ClassFilter((Kettle,))
    assert wanted.accepts(there_and_back(Kettle(name="a")))
    assert not wanted.accepts(there_and_back(Review("a")))
    assert not wanted.accepts(there_and_back({"name": "a"}))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"nested": [date(2026, 1, 2)]}, "Field nested has a value that JSON lacks"),
        ({"nested": {(1, 2)}}, "Field nested has a value that JSON lacks"),
        ({"_feed": 1, "price": Decimal(1)}, "Items have a field _feed"),
    ],
    ids=["list", "set", "own field"],
)
def test_one_warning_names_what_is_not_kept(item, message, caplog):
    notes = FeedNotes()
    with caplog.at_level(logging.WARNING):
        records = [notes.noted(item, item_to_json(item)) for _ in range(2)]
    assert records == [item_to_json(item)] * 2
    (logged,) = caplog.messages
    assert logged.startswith(message)


def test_items_of_a_class_that_cannot_be_imported_are_dicts(caplog):
    @dataclass
    class Local:
        name: str

    item = Local("a")
    with caplog.at_level(logging.WARNING):
        assert there_and_back(item) == {"name": "a"}
    assert "which cannot be imported" in caplog.text
    assert FeedItems().item({"name": "a", "_feed": {"class": "no.such:Class"}}) == {"name": "a"}
