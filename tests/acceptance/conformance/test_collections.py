"""Collections, as the clients write and read them."""

from __future__ import annotations

import math

import pytest
from scrapinghub.client.exceptions import BadRequest, NotFound, ValueTooLarge

RECORDS = [{"_key": f"{n:03}", "n": n, "text": "\u00e9"} for n in range(12)]


@pytest.fixture(params=["get_store", "get_cached_store", "get_versioned_store", "get_versioned_cached_store"])
def of_each_type(request, client, project_id):
    return getattr(client.get_project(project_id).collections, request.param)("things")


@pytest.fixture
def store(client, project_id):
    store = client.get_project(project_id).collections.get_store("things")
    store.set(RECORDS)
    return store


def test_a_record_is_set_read_and_deleted(of_each_type):
    of_each_type.set({"_key": "a", "n": 1})
    of_each_type.set({"_key": "a", "n": 2})
    assert of_each_type.get("a") == {"n": 2}
    assert of_each_type.count() == 1
    of_each_type.delete("a")
    of_each_type.delete("a")
    with pytest.raises(NotFound):
        of_each_type.get("a")


def test_iterating_by_prefix_key_count_and_filter(store):
    assert store.list() == RECORDS
    assert [each["n"] for each in store.iter(prefix="00", count=3)] == [0, 1, 2]
    assert [each["n"] for each in store.iter(prefix=["00", "01"], prefixcount=1)] == [0, 10]
    assert [each["n"] for each in store.iter(key=["003", "none", "011"])] == [3, 11]
    assert [each["n"] for each in store.iter(filter=[("n", ">", [9])])] == [10, 11]
    assert [each["_key"] for each in store.iter(startafter="010")] == ["011"]
    assert list(store.iter(startts=2**50)) == []
    assert list(store.iter(nodata=1, meta=["_key"], count=1)) == [{"_key": "000"}]


def test_counting(store):
    assert store.count() == 12
    assert store.count(prefix="01") == 2
    assert store.count(filter='["n",">",[9]]') == 2


def test_list_and_truncate(client, project_id, store):
    collections = client.get_project(project_id).collections
    assert collections.list() == [{"type": "s", "name": "things"}]
    store.truncate()
    assert collections.list() == []
    assert store.list() == []


def test_deleting_several(store):
    store.delete([f"{n:03}" for n in range(10)])
    assert [each["n"] for each in store.iter()] == [10, 11]


def test_a_writer_uploads_in_batches(store):
    writer = store.create_writer(content_encoding="gzip", size=100)
    for n in range(1000):
        writer.write({"_key": f"w{n:04}", "n": n})
    writer.close()
    assert [each["n"] for each in store.iter(prefix="w")] == list(range(1000))


@pytest.mark.parametrize("record", [{"n": 1}, {"_key": "a", "n": math.inf}, {"_key": "a", "n": 2**64}])
def test_records_that_break_a_rule_are_refused(store, record):
    with pytest.raises(BadRequest):
        store.set(record)


def test_a_record_that_is_too_large_is_refused(store):
    with pytest.raises(ValueTooLarge):
        store.set({"_key": "a", "text": "x" * 2**20})


def test_names_are_checked(client, project_id):
    with pytest.raises(ValueError, match="Invalid collection name"):
        client.get_project(project_id).collections.get_store("no-name")


def test_the_client_underneath(hubstorage, project_id):
    collection = hubstorage.get_project(project_id).collections.new_store("things")
    for record in RECORDS:
        collection.set(record)
    assert collection.get("003") == {"n": 3, "text": "\u00e9"}
    with pytest.raises(KeyError):
        collection.get("none")
    # A whole collection is read as MessagePack by this call, and as JSON by the next.
    whole = hubstorage.get_project(project_id).collections.get("s", "things", meta="_key")
    assert [each["_key"] for each in whole] == [each["_key"] for each in RECORDS]
    assert [each["n"] for each in collection.iter_values()] == list(range(12))
