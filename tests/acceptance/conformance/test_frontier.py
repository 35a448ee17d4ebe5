"""The frontier, as the clients use it, and as hcf-backend uses them."""

from __future__ import annotations

import pytest


@pytest.fixture
def frontier(client, project_id):
    return client.get_project(project_id).frontiers.get("news")


def test_requests_come_back_until_they_are_deleted(frontier):
    slot = frontier.get("example.com")
    slot.q.add([{"fp": "/a", "qdata": {"depth": 1}}, {"fp": "/b", "p": 1}])
    slot.q.add([{"fp": "/a"}])
    slot.flush()
    assert slot.newcount == frontier.newcount == 2
    batches = slot.q.list()
    assert [batch["requests"] for batch in batches] == [[["/a", {"depth": 1}]], [["/b", None]]]
    assert slot.q.list() == batches
    slot.q.delete(batches[0]["id"])
    assert slot.q.list() == batches[1:]
    slot.q.delete([batch["id"] for batch in batches])
    assert slot.q.list() == []


def test_many_requests_in_batches_of_a_hundred(frontier):
    slot = frontier.get("0")
    slot.q.add([{"fp": f"/{n}"} for n in range(1000)])
    slot.flush()
    assert slot.newcount == 1000
    assert [len(batch["requests"]) for batch in slot.q.iter(mincount=100)] == [100]
    batches = slot.q.list(mincount=250)
    assert [len(batch["requests"]) for batch in batches] == [100, 100, 100]
    assert [fp for batch in batches for fp, _ in batch["requests"]] == [f"/{n}" for n in range(300)]


def test_fingerprints_are_sorted_by_their_bytes(frontier):
    slot = frontier.get("0")
    slot.f.add(["b", "\u00e9", "a", "Z", "a"])
    slot.flush()
    assert slot.f.list() == ["Z", "a", "b", "\u00e9"]


def test_frontiers_and_slots_are_listed_and_deleted(client, project_id, frontier):
    frontiers = client.get_project(project_id).frontiers
    assert frontiers.list() == []
    for name in ("1", "0"):
        frontier.get(name).q.add([{"fp": "/"}])
    frontier.flush()
    assert frontiers.list() == ["news"]
    assert frontier.list() == ["0", "1"]
    assert frontier.newcount == 2
    for name in ("0", "0", "1"):
        frontier.get(name).delete()
    assert frontiers.list() == []
    assert frontier.list() == []


def test_as_hcf_backend_does(client, project_id):
    """A producer that fills slots in batches, and a consumer that works on one: the calls that hcf-backend makes."""
    frontiers = client.get_project(project_id).frontiers
    producer = frontiers.get("crawl")
    links = [
        {"fp": f"http://a/{n}", "qdata": {"request": {"url": f"/{n}", "headers": [["a", "b"]]}}} for n in range(500)
    ]
    for n, link in enumerate(links):
        producer.get(str(n % 2)).q.add([link])
        if n % 100 == 99:
            frontiers.flush()
    for slot in producer.list():
        producer.get(slot).flush()
    assert frontiers.newcount == 500

    consumer, consumed = frontiers.get("crawl").get("0"), []
    while batches := list(consumer.q.iter(mincount=100)):
        for batch in batches:
            consumed += batch["requests"]
        consumer.q.delete([batch["id"] for batch in batches])
    assert [[link["fp"], link["qdata"]] for link in links[::2]] == consumed
    consumer.delete()
    assert producer.list() == ["1"]
    frontiers.close()
