"""Overviews of frontiers for the pages, read from the store."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.frontier import DEAD_LETTERS
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.frontier import overview as frontier_overview
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot


def requests(first: int, last: int, priority: int = 0) -> list[QueuedRequest]:
    return [QueuedRequest(b"%06d" % n, b'["%06d",null]' % n, None, priority) for n in range(first, last)]


async def test_a_slot_shows_its_queued_seen_and_fixed_requests(store: Store) -> None:
    slot = Slot(1, "f", "0")
    await store.frontier.add(slot, requests(0, 250))
    first = await store.frontier.read(slot, 1)
    await store.frontier.delete_batches(slot, [batch.id for batch in first])
    (found,) = await store.frontier_overview.slots(1, "f", "", 10)
    assert found.queued == (150, 2, 1, False)
    assert (found.name, found.seen, found.seen_about) == ("0", 250, False)
    assert await store.frontier_overview.slot(slot) == found
    assert await store.frontier_overview.slot(Slot(1, "f", "1")) is None


async def test_looking_at_the_head_fixes_no_batch(store: Store) -> None:
    slot = Slot(1, "f", "0")
    await store.frontier.add(slot, requests(0, 30))
    await store.frontier.add(slot, requests(30, 60, priority=-1))
    head = await store.frontier_overview.head(slot, 1000, 1)
    assert [batch.size for batch in head] == [30]
    assert head[0].requests.startswith(b'["000030"')  # the lowest number comes first
    await store.frontier.add(slot, requests(60, 90))
    assert [batch.size for batch in await store.frontier_overview.head(slot, 1000, 5)] == [30, 60]


async def test_frontiers_and_slots_are_paged_by_name(store: Store) -> None:
    for frontier in ("a", "b", "c"):
        for name in ("0", "1"):
            await store.frontier.add(Slot(1, frontier, name), requests(0, 3))
    await store.frontier.add(Slot(1, "b", DEAD_LETTERS), requests(0, 2))
    await store.frontier.add(Slot(2, "elsewhere", "0"), requests(0, 1))
    first = await store.frontier_overview.frontiers(1, "", 2)
    assert [(each.name, each.slots, each.queued.requests, each.dead.requests) for each in first] == [
        ("a", 2, 6, 0),
        ("b", 2, 6, 2),
    ]
    assert [each.name for each in await store.frontier_overview.frontiers(1, "b", 2)] == ["c"]
    assert [each.name for each in await store.frontier_overview.slots(1, "b", "0", 2)] == ["1", DEAD_LETTERS]


async def test_journals_of_crawls_are_no_queues(store: Store) -> None:
    for name in ("0", "assignment", "commits-1-7"):
        await store.frontier.add(Slot(1, "f", name), requests(0, 3))
    (found,) = await store.frontier_overview.frontiers(1, "", 2)
    assert (found.slots, found.queued.requests, found.dead.requests) == (1, 3, 0)


async def test_a_long_queue_is_counted_up_to_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_overview, "COUNTED", 2)
    slot = Slot(1, "f", "0")
    await store.frontier.add(slot, requests(0, 1000))
    found = await store.frontier_overview.slot(slot)
    assert found is not None
    assert found.queued.more
    assert 200 <= found.queued.requests < 1000


async def test_many_fingerprints_are_counted_and_paged(store: Store) -> None:
    slot = Slot(1, "f", "0")
    for first in range(0, 60_000, 6_000):
        await store.frontier.add(slot, requests(first, first + 6_000))
    found = await store.frontier_overview.slot(slot)
    assert found is not None
    assert 55_000 <= found.seen <= 65_000
    page = await store.frontier_overview.fingerprints(slot, b"")
    assert page == [b"%06d" % n for n in range(frontier_overview.FINGERPRINTS)]
    following = await store.frontier_overview.fingerprints(slot, page[-1])
    assert following[0] == b"%06d" % frontier_overview.FINGERPRINTS
