"""Dead letters can be put back into the queue as they were."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from scrapy import Request, Spider

from scrapy_ext.api.platform.frontier import DEAD_LETTERS, dead_letter
from scrapy_ext.client.platform.errors import Unreachable
from scrapy_ext.client.platform.frontier import put_back
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.crawl.frontier.serialize import request_from_json, request_to_json
from tests.support.crawl_processes import PROJECT
from tests.support.watched_client import WatchedClient, fails, nothing


class Pages(Spider):
    name = "pages"


FORM = request_to_json(Request("http://a.example/", priority=5, meta={"depth": 2}), Pages())


@pytest.fixture
def bury(client, frontier):
    """Moves requests to the dead letters: ``bury(slot, *fps)``."""

    async def bury(slot, *fps, form=FORM):
        body = encode(dead_letter(slot, fp, form, "ValueError: no") for fp in fps)
        await client.frontier.add(PROJECT, frontier, DEAD_LETTERS, body)

    return bury


@pytest.fixture
def waiting(client, frontier):
    """The requests that wait in a slot, in their order."""

    async def waiting(slot):
        batches = await client.frontier.read(PROJECT, frontier, str(slot), 10_000)
        return [(fp, form) for batch in batches for fp, form in batch.requests]

    return waiting


async def test_a_request_is_put_back_as_it_was_into_the_slot_it_came_from(client, frontier, bury, waiting):
    await bury(3, "ab")
    await bury(5, "cd")
    assert await put_back(client.frontier, PROJECT, frontier) == 2
    assert (await waiting(3), await waiting(5)) == ([("ab~1", FORM)], [("cd~1", FORM)])
    back = request_from_json(FORM, Pages())
    assert (back.url, back.priority, back.meta) == ("http://a.example/", 5, {"depth": 2})
    assert await waiting(DEAD_LETTERS) == []


async def test_its_slot_takes_it_though_it_knows_the_page(client, frontier, bury, waiting):
    body = msgspec.json.encode({"fp": "ab", "qdata": FORM}) + b"\n"
    await client.frontier.add(PROJECT, frontier, "3", body)
    (batch,) = await client.frontier.read(PROJECT, frontier, "3", 1)
    await client.frontier.delete_batches(PROJECT, frontier, "3", [batch.id])
    for life in ("ab", "ab~1", "ab~2"):
        await bury(3, life)
        await put_back(client.frontier, PROJECT, frontier)
    assert [fp for fp, _ in await waiting(3)] == ["ab~1", "ab~2", "ab~3"]


async def test_many_are_put_back_each_once(client, frontier, bury, waiting):
    fps = [f"{number:04x}" for number in range(350)]
    await bury(1, *fps)
    assert await put_back(client.frontier, PROJECT, frontier) == 350
    assert sorted(fp for fp, _ in await waiting(1)) == [f"{fp}~1" for fp in fps]
    assert await put_back(client.frontier, PROJECT, frontier) == 0


async def test_what_has_a_higher_priority_is_in_front_again(client, frontier, bury, waiting):
    for fp, priority in (("low", -3), ("none", None), ("high", 7)):
        await bury(1, fp, form={"v": 1, "url": "http://a.example/", "priority": priority})
    await put_back(client.frontier, PROJECT, frontier)
    assert [fp for fp, _ in await waiting(1)] == ["high~1", "none~1", "low~1"]


@pytest.mark.parametrize("call", ["frontier.add", "frontier.delete_batches"])
@pytest.mark.parametrize("side", ["before", "after"])
async def test_one_that_was_broken_off_can_be_repeated(client, frontier, bury, waiting, call, side):
    await bury(1, "ab", "cd")
    watched = WatchedClient(client)
    setattr(watched, side, fails(call))
    with pytest.raises(Unreachable):
        await put_back(watched.frontier, PROJECT, frontier)
    setattr(watched, side, nothing)
    await put_back(watched.frontier, PROJECT, frontier)
    assert [fp for fp, _ in await waiting(1)] == ["ab~1", "cd~1"]
    assert await waiting(DEAD_LETTERS) == []


async def test_two_that_put_back_at_once_put_back_once(client, frontier, bury, waiting):
    await bury(1, *(str(number) for number in range(150)))
    await asyncio.gather(*(put_back(client.frontier, PROJECT, frontier) for _ in range(3)))
    assert len(await waiting(1)) == 150


async def test_a_request_that_could_not_be_read_is_put_back_too(client, frontier, bury, waiting):
    """Another version of the spider or of this package may."""
    await bury(1, "ab", form="from the future")
    await put_back(client.frontier, PROJECT, frontier)
    assert await waiting(1) == [("ab~1", "from the future")]


@pytest.mark.parametrize(
    "letter", [None, "text", [], {}, {"slot": "one"}], ids=["nothing", "text", "a list", "empty", "no slot"]
)
async def test_what_is_no_dead_letter_is_refused_and_left_where_it_is(client, frontier, waiting, letter):
    body = msgspec.json.encode({"fp": "ab", "qdata": letter}) + b"\n"
    await client.frontier.add(PROJECT, frontier, DEAD_LETTERS, body)
    with pytest.raises(ValueError, match="ab in slot dead-letters is not a dead letter"):
        await put_back(client.frontier, PROJECT, frontier)
    assert await waiting(DEAD_LETTERS) == [("ab", letter)]


def test_of_an_error_no_more_than_a_page_is_kept():
    kept = msgspec.to_builtins(dead_letter(3, "ab", FORM, "x" * 100_000))
    assert kept["qdata"]["slot"] == 3
    assert len(kept["qdata"]["error"]) == 2000
