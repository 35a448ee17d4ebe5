"""MessagePack: where it is given, and what becomes of values that it does not have."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from tests.support.http import Answer, Http

MSGPACK = "application/x-msgpack"
REQUEST = {"time": 1, "method": "GET", "url": "http://a/", "status": 200, "duration": 3, "rs": 4}


def objects(answer: Answer) -> list[Any]:
    assert answer.headers["Content-Type"] == "application/x-msgpack; charset=UTF-8"
    unpacker = msgpack.Unpacker(raw=False)
    unpacker.feed(answer.body)
    return list(unpacker)


async def test_items_are_objects_one_after_the_other(http: Http, project: int) -> None:
    items = [{"a": "\u00e9", "n": n, "x": [1.5, None, True, {"b": -1}]} for n in range(600)]
    key = f"{project}/1/1"
    await http.post(f"/items/{key}", items)
    assert objects(await http.get(f"/items/{key}", Accept=MSGPACK)) == items
    assert objects(await http.get(f"/items/{key}?format=msgpack")) == items
    with_keys = [{**item, "_key": f"{key}/{n}"} for n, item in enumerate(items)]
    assert objects(await http.get(f"/items/{project}?meta=_key", Accept=MSGPACK)) == with_keys
    assert objects(await http.get(f"/items/{key}/5", Accept=MSGPACK)) == [items[5]]
    assert objects(await http.get(f"/items/{key}/5/a", Accept=MSGPACK)) == ["\u00e9"]
    assert objects(await http.get(f"/items/{key}/0/x?count=1", Accept=f"{MSGPACK}; q=1, */*")) == [items[0]["x"]]
    assert objects(await http.get("/items/1/1/424242", Accept=MSGPACK)) == []


async def test_logs_have_no_key_in_it(http: Http, project: int) -> None:
    log = {"time": 1, "level": 20, "message": "m"}
    await http.post(f"/logs/{project}/1/1", [log])
    assert objects(await http.get(f"/logs/{project}/1/1?meta=_key", Accept=MSGPACK)) == [log]
    (line,) = objects(await http.get(f"/logs/{project}/1/1?meta=_key&meta=_ts", Accept=MSGPACK))
    assert set(line) == {*log, "_ts"}


async def test_a_collection_and_one_record_of_it(http: Http, project: int) -> None:
    path = f"/collections/{project}/s/c"
    await http.post(path, [{"_key": "a", "v": 1}, {"_key": "b", "v": 2}])
    assert objects(await http.get(f"{path}/b", Accept=MSGPACK)) == [{"v": 2}]
    assert objects(await http.get(f"{path}?meta=_key", Accept=MSGPACK))[0] == {"v": 1, "_key": "a"}


async def test_numbers_up_to_64_bits_are_numbers_and_larger_ones_text(http: Http, project: int) -> None:
    numbers = [2**63, 2**64 - 1, -(2**63), 2**64, -(2**63) - 1, 12345678901234567890123]
    await http.post(f"/items/{project}/1/1", [{"n": number, "deep": [{"n": number}]} for number in numbers])
    found = objects(await http.get(f"/items/{project}/1/1", Accept=MSGPACK))
    expected = [*numbers[:3], *map(str, numbers[3:])]
    assert [item["n"] for item in found] == [item["deep"][0]["n"] for item in found] == expected


@pytest.mark.parametrize("path", ["requests/{p}/1/1", "items/{p}/1/1/stats", "activity/{p}", "hcf/{p}/f/s/0/q"])
async def test_elsewhere_the_answer_is_json(http: Http, project: int, path: str) -> None:
    await http.post(f"/requests/{project}/1/1", [REQUEST])
    answer = await http.get(f"/{path.format(p=project)}", Accept=MSGPACK)
    assert answer.status == 200
    assert "json" in answer.headers["Content-Type"]
    refused = await http.get(f"/requests/{project}?format=msgpack")
    assert refused.status == 400


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(b"\xdd\xff\xff\xff\xff", id="list of 4 billion"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="map of 4 billion"),
        pytest.param(b"\x91" * 100_000 + b"\xc0", id="nested"),
        pytest.param(b"\xdb\xff\xff\xff\xffa", id="text of 4 GB"),
        pytest.param(b"\xc9\xff\xff\xff\xff\x01", id="extension of 4 GB"),
    ],
)
async def test_no_body_is_read_as_messagepack(http: Http, project: int, bomb: bytes) -> None:
    for path in (
        f"/items/{project}/1/1",
        f"/collections/{project}/s/a",
        f"/hcf/{project}/f/s/0",
        f"/jobq/{project}/push",
    ):
        answer = await http.post(path, bomb, Content_Type=MSGPACK)
        assert answer.status in (400, 415), (path, answer.text)
    assert (await http.get(f"/items/{project}/1/1")).body == b""
