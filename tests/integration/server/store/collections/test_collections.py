"""Collections over time: what expires, what is kept, what is removed."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.platform.collections import EXPIRY_MS, CollectionType
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.collections import collections as module
from scrapy_ext.server.store.collections import writes as collection_writes
from scrapy_ext.server.store.collections.selections import Collection, RecordSelection, prefix_range

EVERYTHING = RecordSelection((prefix_range(b""),))


async def keys(store: Store, which: Collection) -> list[bytes]:
    return [record.key async for page in store.collections.scan(which, EVERYTHING) for record in page]


@pytest.mark.parametrize("type", list(CollectionType))
async def test_only_the_cached_types_forget_after_a_month(store: Store, clock: Any, type: CollectionType) -> None:
    which = Collection(1, type, "c")
    await store.collections.write(which, [(b"old", b"1")])
    clock.now += EXPIRY_MS // 2
    await store.collections.write(which, [(b"new", b"1")])
    clock.now += EXPIRY_MS // 2 + 1
    left = [b"new"] if type.expires else [b"new", b"old"]
    assert await keys(store, which) == left
    assert (await store.collections.get(which, b"old") is None) == type.expires
    assert (await store.collections.count(which, EVERYTHING)).count == len(left)


async def test_a_record_written_again_lives_another_month(store: Store, clock: Any) -> None:
    which = Collection(1, CollectionType.CACHED_STORE, "c")
    for _ in range(3):
        await store.collections.write(which, [(b"k", b"1")])
        clock.now += EXPIRY_MS - 1
        assert await keys(store, which) == [b"k"]


async def test_expired_rows_leave_the_database(store: Store, clock: Any, look: Any) -> None:
    which = Collection(1, CollectionType.CACHED_STORE, "c")
    await store.collections.write(which, [(b"%d" % n, b"1") for n in range(100)])
    clock.now += EXPIRY_MS
    await store.collections.write(which, [(b"new", b"1")])
    assert await look("SELECT count(*) FROM collection_records") == [(1,)]


async def test_versioned_types_keep_three_copies(store: Store, clock: Any, look: Any) -> None:
    which = Collection(1, CollectionType.VERSIONED_STORE, "c")
    for n in range(5):
        await store.collections.write(which, [(b"k", b"%d" % n)])
    record = await store.collections.get(which, b"k")
    assert record is not None
    assert record.value == b"4"
    assert await look("SELECT value, value_1, value_2 FROM collection_records") == [(b"4", b"3", b"2")]


async def test_each_copy_expires_by_itself(store: Store, clock: Any) -> None:
    which = Collection(1, CollectionType.VERSIONED_CACHED_STORE, "c")
    for n in range(3):
        await store.collections.write(which, [(b"k", b"%d" % n)])
        clock.now += EXPIRY_MS // 2
    copies = await store.collections.copies(which, b"k")
    assert [copy.value for copy in copies] == [b"2"]  # the others are a month old, and older
    clock.now += EXPIRY_MS
    assert await store.collections.copies(which, b"k") == []


async def test_counting_several_prefixes_stops_between_them_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNT_STEP", 10)
    which = Collection(1, CollectionType.STORE, "c")
    await store.collections.write(which, [(b"%s%02d" % (name, n), b"1") for name in (b"a", b"b") for n in range(10)])
    count = await store.collections.count(which, RecordSelection((prefix_range(b"a"), prefix_range(b"b"))))
    assert (count.count, count.nextstart) == (10, "b00")
    count = await store.collections.count(which, RecordSelection((prefix_range(b"a"), prefix_range(b"none"))))
    assert (count.count, count.nextstart) == (10, None)


async def test_a_large_selection_is_deleted_in_steps(store: Store) -> None:
    which = Collection(1, CollectionType.STORE, "c")
    await store.collections.write(which, [(b"a%05d" % n, b"1") for n in range(12_000)] + [(b"b", b"1")])
    assert await store.collections.delete(which, RecordSelection((prefix_range(b"a"),))) == (12_000, 12_000)
    assert await keys(store, which) == [b"b"]


async def test_a_large_deletion_is_gone_at_once_and_its_rows_soon(store: Store, look: Any) -> None:
    which = Collection(1, CollectionType.STORE, "c")
    await store.collections.write(which, [(b"%06d" % n, b"1") for n in range(12_000)])
    assert await store.collections.drop(1, "c")
    assert await keys(store, which) == []
    await store.collections.write(which, [(b"new", b"1")])
    await store.purge()
    assert await keys(store, which) == [b"new"]
    assert await look("SELECT count(*) FROM collection_records") == [(1,)]


async def test_counting_goes_on_where_it_stopped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNT_STEP", 100)
    which = Collection(1, CollectionType.STORE, "c")
    await store.collections.write(which, [(b"%04d" % n, b"1") for n in range(250)])
    total, selection = 0, EVERYTHING
    for _ in range(3):
        count = await store.collections.count(which, selection)
        total += count.count
        if count.nextstart is None:
            break
        selection = RecordSelection((module.Range(count.nextstart.encode(), None),))
    assert total == 250
    assert count.nextstart is None


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        (b"a", [b"a", b"a\xff", b"ab"], [b"b", b"", b"A"]),
        (b"a\xff", [b"a\xff", b"a\xffz"], [b"b", b"a"]),
        (b"\xff\xff", [b"\xff\xff", b"\xff\xff\xff"], [b"\xff"]),
    ],
)
def test_a_prefix_is_a_range_of_bytes(prefix: bytes, inside: list[bytes], outside: list[bytes]) -> None:
    low, high, _ = prefix_range(prefix)
    assert all(low <= key and (high is None or key < high) for key in inside)
    assert not any(low <= key and (high is None or key < high) for key in outside)


async def test_what_has_expired_is_not_among_the_first_that_are_deleted(
    store: Store, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection_writes, "_SWEEP", 1)
    which = Collection(1, CollectionType.CACHED_STORE, "c")
    await store.collections.write(which, [(b"a%d" % number, b"1") for number in range(5)])
    clock.now += EXPIRY_MS + 1
    await store.collections.write(which, [(b"b%d" % number, b"1") for number in range(3)])
    deletion = await store.collections.delete(which, EVERYTHING._replace(per_range=2))
    assert deletion.deleted == 2
    assert await keys(store, which) == [b"b2"]
