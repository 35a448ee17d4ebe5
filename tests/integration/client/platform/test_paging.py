from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from scrapy_ext.api.platform import EntityKey, JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform import resource
from scrapy_ext.client.platform.errors import ServerError, UnexpectedAnswer
from tests.support.played_server import PlayedServer, Reply, Request, json_reply, lines_reply

JOB = JobKey(1, 2, 3)


class Stored:
    """Answers reads of a job's items as a platform does. Each fault takes the place of one answer's end."""

    def __init__(self, size: int, faults: list[dict] | None = None) -> None:
        self.records = [{"n": n, "_key": f"1/2/3/{n}"} for n in range(size)]
        self.faults = faults or []

    def __call__(self, request: Request) -> Reply:
        first = 0
        if (start := request.parameter("start")) is not None:
            first = EntityKey.parse(start).number
        if (after := request.parameter("startafter")) is not None:
            first = EntityKey.parse(after).number + 1
        count = int(request.parameter("count") or len(self.records))
        fault = self.faults.pop(0) if self.faults else {}
        return lines_reply(*self.records[first : first + count], **fault)


async def read(records) -> list[int]:
    return [record["n"] async for record in records]


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(resource, "PAGE", 3)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 6, 7])
async def test_all_pages_are_read_in_order(client, server, small_pages, size):
    server.script = Stored(size)
    assert await read(client.items.iter(JOB)) == list(range(size))


async def test_each_page_is_asked_for_behind_the_last_record(client, server, small_pages):
    server.script = Stored(4)
    await read(client.items.iter(JOB))
    assert [request.parameters for request in server.requests] == [
        [("count", "3"), ("meta", "_key")],
        [("count", "3"), ("startafter", "1/2/3/2"), ("meta", "_key")],
    ]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("framed", [False, True])
async def test_wherever_an_answer_breaks_off_each_record_comes_once(client, server, small_pages, framed, compress):
    whole = lines_reply(*Stored(3).records).body
    # In a compressed answer the place of the cut says little; some of them are enough.
    for cut in range(0, len(whole), 7 if compress else 1):
        server.script = Stored(5, [{"cut": cut, "framed": framed, "compress": compress}])
        assert await read(client.items.iter(JOB)) == list(range(5)), cut


async def test_answers_without_a_length_that_end_between_two_lines_are_not_taken_for_the_end(
    client, server, small_pages
):
    line = len(lines_reply(Stored(1).records[0]).body)
    server.script = Stored(5, [{"cut": line, "framed": False}, {"cut": 0, "framed": False}])
    assert await read(client.items.iter(JOB)) == list(range(5))


async def test_a_server_that_never_gives_a_length_is_read_to_its_end(client, server, small_pages):
    server.script = Stored(5, [{"framed": False}] * 10)
    assert await read(client.items.iter(JOB)) == list(range(5))


async def test_many_faults_in_a_row_do_not_matter_as_long_as_records_come(client, server):
    line = len(lines_reply(Stored(1).records[0]).body)
    server.script = Stored(9, [{"cut": line} for _ in range(8)])
    assert await read(client.items.iter(JOB)) == list(range(9))


async def test_a_server_that_keeps_failing_is_given_up(client, server):
    server.script = [Reply(500)]
    with pytest.raises(ServerError):
        await read(client.items.iter(JOB))
    assert len(server.requests) == 5


async def test_a_server_that_does_not_turn_pages_is_reported_instead_of_read_for_ever(client, server, small_pages):
    def first_page(_: Request) -> Reply:
        return lines_reply(*Stored(3).records)

    server.script = first_page
    with pytest.raises(UnexpectedAnswer, match="the same records again"):
        await read(client.items.iter(JOB))


@pytest.mark.parametrize("line", [b"[1]\n", b"3\n", b'{"n": 1}\n', b'{"n": \n', b'{"_key": 5}\n'])
async def test_lines_that_are_no_records_are_an_error(client, server, line):
    server.script = [Reply(body=line, type="application/x-jsonlines")]
    with pytest.raises(UnexpectedAnswer):
        await read(client.items.iter(JOB))


async def test_count_bounds_what_is_read_and_what_is_asked_for(client, server, small_pages):
    server.script = Stored(9)
    assert await read(client.items.iter(JOB, count=4)) == [0, 1, 2, 3]
    assert [request.parameter("count") for request in server.requests] == ["3", "1"]
    assert await read(client.items.iter(JOB, count=0)) == []
    assert len(server.requests) == 2


async def test_reading_starts_at_or_behind_an_index_or_key(client, server):
    server.script = Stored(5)
    assert await read(client.items.iter(JOB, start=3)) == [3, 4]
    assert await read(client.items.iter(JOB, start=JOB.entity(3))) == [3, 4]
    assert await read(client.items.iter("1/2/3", startafter="1/2/3/3")) == [4]
    assert await read(client.items.iter(JOB, start=0)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("prefix", "start"), [("a", None), ("1/2/3/4", None), ("", None), ("1/2", 3), (1, 3), (JOB, "1/2/3")]
)
async def test_places_that_are_none_are_refused_before_anything_is_sent(client, server, prefix, start):
    with pytest.raises(ContractError):
        await read(client.items.iter(prefix, start=start))
    assert server.requests == []


@pytest.mark.parametrize(("prefix", "path"), [(7, "/items/7"), ("7/1", "/items/7/1"), (JOB, "/items/1/2/3")])
async def test_a_project_a_spider_or_a_job_can_be_read(client, server, prefix, path):
    server.script = [lines_reply()]
    assert await read(client.items.iter(prefix)) == []
    assert server.requests[0].path == path


async def test_meta_is_given_when_it_is_asked_for(client, server):
    server.script = [lines_reply({"n": 1, "_key": "1/2/3/0", "_ts": 5})]
    assert [item async for item in client.items.iter(JOB)] == [{"n": 1, "_ts": 5}]
    assert [item async for item in client.items.iter(JOB, meta=["_ts", "_key"])] == [
        {"n": 1, "_key": "1/2/3/0", "_ts": 5}
    ]
    assert server.requests[1].parameters[1:] == [("meta", "_key"), ("meta", "_ts")]


async def test_a_field_of_the_data_with_the_name_of_the_key_is_kept(client, server):
    line = b'{"_key":"mine","in":{"_key":"nested"},"list":[{"a":1}],"_key":"1/2/3/0"}\n'
    server.script = [Reply(body=line, type="application/x-jsonlines")]
    expected = {"_key": "mine", "in": {"_key": "nested"}, "list": [{"a": 1}]}
    assert [item async for item in client.items.iter(JOB)] == [expected]


async def test_records_come_while_the_rest_is_on_its_way(client, server):
    records = Stored(2).records
    body = lines_reply(*records).body
    rest = asyncio.Event()
    server.script = [Reply(body=body, type="application/x-jsonlines", until=rest, pause_at=body.index(b"\n") + 5)]
    reading = client.items.iter(JOB)
    assert (await anext(reading))["n"] == 0
    assert not rest.is_set()
    rest.set()
    assert (await anext(reading))["n"] == 1
    await reading.aclose()


async def test_reading_can_be_left_at_any_time(client, server, small_pages):
    server.script = Stored(50)
    for _ in range(3):
        reading = client.items.iter(JOB)
        async for _record in reading:
            break
        await reading.aclose()
    assert await read(client.items.iter(JOB)) == list(range(50))


async def test_fingerprints_are_read_again_from_the_start_without_repeating_one(client, server):
    whole = lines_reply(*({"fp": f"f{n}"} for n in range(5)))
    cut = Reply(body=whole.body, type=whole.type, cut=30)
    server.script = [cut, whole]
    assert [fp async for fp in client.frontier.fingerprints(1, "main", "0")] == [f"f{n}" for n in range(5)]
    assert len(server.requests) == 2


class StoredCollection:
    """Answers reads of a collection, by key or in order; the first answer breaks off."""

    def __init__(self, keys: list[str], cut: int | None) -> None:
        self.keys = sorted(keys)
        self.cut = cut

    def __call__(self, request: Request) -> Reply:
        asked = [value for name, value in request.parameters if name == "key"]
        after = request.parameter("startafter")
        found = [key for key in self.keys if (not asked or key in asked) and (after is None or key > after)]
        records = [{"v": 1, "_key": key} for key in found[: int(request.parameter("count") or len(found))]]
        cut, self.cut = self.cut, None
        return lines_reply(*records, cut=cut)


async def test_any_number_of_keys_is_looked_up_past_a_broken_connection(client, server):
    keys = [f"https://example.com/page?n={n}&é" for n in range(350)]
    server.script = StoredCollection(keys[:300], cut=200)
    found = [record["_key"] async for record in client.collections.iter(1, "s", "seen", keys=keys)]
    assert sorted(found) == sorted(keys[:300])
    assert all(len(request.raw_path) < 16_000 for request in server.requests)
    left = [record async for record in client.collections.iter(1, "s", "seen", keys=keys, count=120)]
    assert len(left) == 120


async def test_a_collection_is_read_in_pages_behind_its_last_key(client, server, small_pages):
    keys = ["", *("".join(pair) for pair in itertools.product("a/é", repeat=2))][1:]
    server.script = StoredCollection(keys, cut=40)
    records = [record async for record in client.collections.iter(1, "s", "seen", meta=())]
    assert records == [{"v": 1}] * len(keys)
    assert json.dumps(server.requests[0].parameters) == json.dumps([["count", "3"], ["meta", "_key"]])


async def test_a_count_goes_on_where_the_server_stopped_counting(client, server):
    server.script = [json_reply({"count": 3, "scanned": 3, "nextstart": "k"}), json_reply({"count": 2, "scanned": 2})]
    assert await client.collections.count(1, "s", "seen") == 5
    assert server.requests[1].parameters == [("start", "k")]


@pytest.mark.parametrize("key", ["a/b", "count", "deleted", "..", ".", "a?b", "a\\b", "a\nb"])
async def test_keys_that_no_path_can_end_in_are_asked_for_by_parameter(client, server: PlayedServer, key):
    server.script = [lines_reply({"v": 1})]
    assert await client.collections.get(1, "s", "seen", key) == {"v": 1}
    assert server.requests[0].path == "/collections/1/s/seen"
    assert server.requests[0].parameter("key") == key
    server.script = [lines_reply()]
    assert await client.collections.get(1, "s", "seen", key) is None


async def test_other_keys_stand_percent_encoded_in_the_path(client, server):
    server.script = [json_reply({"v": 1}), Reply(404, b"Not Found\n", None)]
    assert await client.collections.get(1, "s", "seen", "a b%é") == {"v": 1}
    assert server.requests[0].raw_path == "/collections/1/s/seen/a%20b%25%C3%A9"
    assert await client.collections.get(1, "s", "seen", "gone") is None
