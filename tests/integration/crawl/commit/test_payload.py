"""Items that are staged for whoever has to store them come back as they were, or not at all."""

from __future__ import annotations

import asyncio
import random

import pytest

from scrapy_ext.crawl.commit.execution import COLLECTION, Payloads
from tests.support.crawl_processes import PROJECT
from tests.support.watched_client import WatchedClient, fails


@pytest.fixture
def payloads(client):
    return Payloads(client.collections, PROJECT)


async def keys(client, owner):
    return [record["_key"] async for record in client.collections.iter(PROJECT, "s", COLLECTION, prefix=owner)]


@pytest.mark.parametrize("size", [0, 1, 100, 675_000, 675_001, 3_000_000], ids=lambda size: f"{size} bytes")
async def test_any_size_comes_back(client, payloads, frontier, size):
    packed = random.Random(size).randbytes(size)
    if size:
        await payloads.write(frontier, 1, packed)
        assert await payloads.read(frontier, 1) == packed
    assert len(await keys(client, frontier)) == -(-size // 675_000)


async def test_what_is_not_there_is_none(payloads, frontier):
    assert await payloads.read(frontier, 1) is None


@pytest.mark.parametrize("written", [0, 1, 2])
async def test_what_was_staged_in_part_is_as_if_it_were_not(client, frontier, written):
    watched = WatchedClient(client)
    payloads = Payloads(watched.collections, PROJECT)
    calls = 0

    async def break_off(name, arguments):
        nonlocal calls
        calls += 1
        if calls > written:
            await fails(name)(name, arguments)

    watched.before = break_off
    with pytest.raises(Exception, match="broke"):
        await payloads.write(frontier, 1, random.Random(1).randbytes(2_000_000))
    assert await Payloads(client.collections, PROJECT).read(frontier, 1) is None


async def test_writing_again_changes_nothing(payloads, frontier):
    for _ in range(3):
        await payloads.write(frontier, 1, b"the same")
    assert await payloads.read(frontier, 1) == b"the same"


async def test_numbers_and_owners_do_not_meet(payloads, frontier):
    places = [(frontier, 1), (frontier, 11), (f"{frontier}/1", 1), (f"{frontier}0", 1)]
    await asyncio.gather(*(payloads.write(owner, number, f"{owner} {number}".encode()) for owner, number in places))
    await payloads.delete(frontier, [1])
    found = [await payloads.read(owner, number) for owner, number in places]
    assert found == [None, *(f"{owner} {number}".encode() for owner, number in places[1:])]


async def test_deleting_takes_all_pieces_and_may_be_repeated(client, payloads, frontier):
    await payloads.write(frontier, 1, random.Random(1).randbytes(2_000_000))
    await payloads.write(frontier, 2, b"b")
    await payloads.write(frontier, 3, b"c")
    for _ in range(2):
        await payloads.delete(frontier, [1, 2])
    assert await keys(client, frontier) == [f"{frontier}/3.0"]


async def test_all_of_a_process_can_be_removed(client, payloads, frontier):
    for number in range(5):
        await payloads.write(f"{frontier}/a", number, b"x")
    await payloads.write(f"{frontier}/b", 1, b"y")
    await payloads.delete_all(f"{frontier}/a/")
    assert await keys(client, frontier) == [f"{frontier}/b/1.0"]
