"""The frontier over HTTP."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlencode

import pytest

from tests.support.http import Answer, Http


def urls(answer: Answer) -> list[list[str]]:
    return [[fp for fp, _ in batch["requests"]] for batch in answer.lines]


@pytest.fixture
def slot(project: int) -> str:
    return f"/hcf/{project}/news/s/0"


async def test_requests_come_back_in_batches_of_100_of_one_priority(http: Http, slot: str) -> None:
    requests = [{"fp": f"/{n}", "p": n % 2} for n in range(300)]
    assert (await http.post(slot, requests)).json == {"newcount": 300}
    answer = await http.get(f"{slot}/q?mincount=300")
    assert urls(answer) == [
        [f"/{n}" for n in range(first, first + 200, 2)] if size == 100 else [f"/{n}" for n in range(first, 300, 2)]
        for first, size in ((0, 100), (200, 50), (1, 100), (201, 50))
    ]
    assert urls(await http.get(f"{slot}/q?mincount=100")) == urls(answer)[:1]
    assert urls(await http.get(f"{slot}/q?mincount=101")) == urls(answer)[:2]


async def test_lower_priorities_come_first_whenever_they_were_added(http: Http, slot: str) -> None:
    for priority in (5, 0, -7, 2**31 - 1, -(2**31)):
        await http.post(slot, [{"fp": f"p{priority}", "p": priority}])
    found = [url for batch in urls(await http.get(f"{slot}/q?mincount=10")) for url in batch]
    assert found == ["p-2147483648", "p-7", "p0", "p5", "p2147483647"]


async def test_known_fingerprints_are_not_queued_again(http: Http, slot: str) -> None:
    await http.post(slot, [{"fp": f"/{n}"} for n in range(150)])
    again = [{"fp": f"/{n}"} for n in range(100, 200)]
    assert (await http.post(slot, again + again)).json == {"newcount": 50}
    batches = (await http.get(f"{slot}/q?mincount=1000")).lines
    await http.post(f"{slot}/q/deleted", [batch["id"] for batch in batches])
    assert (await http.post(slot, again)).json == {"newcount": 0}
    assert (await http.get(f"{slot}/q")).body == b""


async def test_newcount_is_exact_however_many_post_at_once(http: Http, slot: str) -> None:
    answers = await asyncio.gather(
        *(http.post(slot, [{"fp": f"/{n}"} for n in range(first, first + 200)]) for first in range(0, 1000, 50))
    )
    assert sum(answer.json["newcount"] for answer in answers) == 1150
    batches = urls(await http.get(f"{slot}/q?mincount=10000"))
    queued = [url for batch in batches for url in batch]
    assert len(queued) == len(set(queued)) == 1150
    assert all(len(batch) <= 100 for batch in batches)


async def test_batches_are_the_same_until_they_are_deleted(http: Http, slot: str) -> None:
    await http.post(slot, [{"fp": "/a"}, {"fp": "/b"}])
    first = await http.get(f"{slot}/q")
    await http.post(slot, [{"fp": "/c"}])
    second = await http.get(f"{slot}/q?mincount=10")
    assert second.lines[0] == first.lines[0]
    assert urls(second) == [["/a", "/b"], ["/c"]]


async def test_small_additions_fill_one_batch_until_it_is_read(http: Http, slot: str) -> None:
    for n in range(3):
        await http.post(slot, [{"fp": f"/{n}"}])
    assert urls(await http.get(f"{slot}/q")) == [["/0", "/1", "/2"]]


@pytest.mark.parametrize("lines", [True, False])
async def test_batches_are_deleted_by_values_and_arrays_on_several_lines(http: Http, slot: str, lines: bool) -> None:
    await http.post(slot, [{"fp": f"/{n}", "p": n} for n in range(6)])
    ids = [batch["id"] for batch in (await http.get(f"{slot}/q?mincount=6")).lines]
    body = [ids[0], ids[1:3], ids[3]] if lines else [ids[:4]]
    for _ in range(2):  # deleting what is gone is no error
        answer = await http.post(f"{slot}/q/deleted", [*body, "unknown"])
        assert (answer.status, answer.body) == (200, b"")
    assert [batch["id"] for batch in (await http.get(f"{slot}/q?mincount=6")).lines] == ids[4:]


async def test_qdata_comes_back_as_it_was_sent(http: Http, slot: str) -> None:
    body = b'{"fp":"/","qdata":{"b": 1.0, "a":"\\u00e9"},"fdata":{"x":1}}\n{"fp":"/n"}'
    await http.post(slot, body)
    answer = await http.get(f"{slot}/q")
    assert b'[["/",{"b": 1.0, "a":"\\u00e9"}],["/n",null]]' in answer.body


async def test_fingerprints_are_listed_in_the_order_of_their_bytes(http: Http, slot: str) -> None:
    names = ["b", "a", "\u00e9", "Z", "a/b", "\U0001f600", "\uffee", 'q"\\']
    await http.post(slot, [{"fp": name} for name in names])
    found = [line["fp"] for line in (await http.get(f"{slot}/f")).lines]
    assert found == sorted(names, key=str.encode)


async def test_many_fingerprints_are_listed_whole(http: Http, slot: str) -> None:
    await http.post(slot, [{"fp": f"{n:05}"} for n in range(3500)])
    assert [line["fp"] for line in (await http.get(f"{slot}/f")).lines] == [f"{n:05}" for n in range(3500)]


async def test_fingerprints_are_listed_in_pages_from_a_place_on(http: Http, slot: str) -> None:
    names = sorted(["a", "b", "b\x00", "ba", "~", "é", "ê", "中", "\U0001f600", "z" * 3000], key=str.encode)
    await http.post(slot, [{"fp": name} for name in names])

    async def listed(**query: str) -> list[str]:
        return [line["fp"] for line in (await http.get(f"{slot}/f?{urlencode(query)}")).lines]

    for place in [*names, "", "bb", "\x7f", "\u0800", "zz"]:
        assert await listed(start=place) == [name for name in names if name.encode() >= place.encode()]
        assert await listed(startafter=place) == [name for name in names if name.encode() > place.encode()]
    assert await listed(count="3") == names[:3]
    assert await listed(count="0") == []
    assert await listed(startafter=names[2], count="2") == names[3:5]


async def test_count_limits_lists_and_batches(http: Http, slot: str, project: int) -> None:
    await http.post(slot, [{"fp": f"{n}", "p": n} for n in range(3)])
    await http.post(f"/hcf/{project}/news/s/1", [{"fp": "/"}])
    await http.post(f"/hcf/{project}/old/s/1", [{"fp": "/"}])
    assert (await http.get(f"/hcf/{project}/list?count=1")).json == ["news"]
    assert (await http.get(f"/hcf/{project}/news/list?count=1")).json == ["0"]
    assert urls(await http.get(f"{slot}/q?mincount=3&count=2")) == [["0"], ["1"]]
    assert (await http.get(f"{slot}/f?count=x")).status == 400


async def test_frontiers_and_slots_are_listed_until_they_are_deleted(http: Http, project: int) -> None:
    for frontier, slot in (("b", "1"), ("a", "x"), ("a", "0")):
        await http.post(f"/hcf/{project}/{frontier}/s/{slot}", [{"fp": "/"}])
    assert (await http.get(f"/hcf/{project}/list")).json == ["a", "b"]
    assert (await http.get(f"/hcf/{project}/a/list")).json == ["0", "x"]
    for _ in range(2):  # absent slots are deleted without complaint
        assert (await http.delete(f"/hcf/{project}/b/s/1")).status == 200
    assert (await http.get(f"/hcf/{project}/list")).json == ["a"]
    assert (await http.get(f"/hcf/{project}/b/list")).json == []
    assert (await http.post(f"/hcf/{project}/b/s/1", [{"fp": "/"}])).json == {"newcount": 1}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"fp":"a"}\n{"url":"b"}', "line 2"),
        (b'{"fp":""}', "fp: must not be empty"),
        (b'{"fp":1}', "line 1"),
        (b'{"fp":"a","p":1.5}', "line 1"),
        (b'{"fp":"a","p":9999999999}', "p: must fit in 32 bits"),
        (b'{"fp":"a","qdata":1e999}', "line 1"),
        (b'{"fp":"a","qdata":"\xff"}', "line 1"),
        (b'["a"]', "line 1"),
        # as many objects as lines, and none in its own
        (b'{"fp":\n"a"}\n{"fp":"b"} {"fp":"c"}', "line 1"),
        (b'{"fp":"a"}\n{"fp":"b"} {"fp":"c"}\n\n', "line 2"),
    ],
)
async def test_bad_requests_are_named_and_none_is_added(http: Http, slot: str, body: bytes, said: str) -> None:
    answer = await http.post(slot, b'{"fp":"good"}\n' * (b"\n" not in body) + body)
    assert answer.status == 400
    assert said.replace("line 1", "line") in answer.text
    assert (await http.get(f"{slot}/f")).body == b""


async def test_requests_may_be_laid_out_in_any_way(http: Http, slot: str) -> None:
    for number, layout in enumerate(("%s\n", " %s\t\n", "%s\r\n", "\n%s\n\n", "%s")):
        texts = [f'{{"fp":"{number} é{n}","qdata":{{"n": 1.50,"t":"\\u00e9"}},"p":{n}}}' for n in range(2)]
        body = "".join(layout % text for text in (texts if layout != "%s" else texts[:1]))
        assert (await http.post(slot, body.encode())).json == {"newcount": len(texts) if layout != "%s" else 1}
    text = (await http.get(f"{slot}/q?mincount=100")).text
    assert text.count('{"n": 1.50,"t":"\\u00e9"}') == 9
    assert "4 é0" in text


async def test_bad_ids_and_names_are_refused(http: Http, slot: str, project: int) -> None:
    assert (await http.post(f"{slot}/q/deleted", b"{}")).status == 400
    assert (await http.post(f"{slot}/q/deleted", json.dumps([1]).encode())).status == 400
    assert (await http.post(f"/hcf/{project}/a%2Fb/s/0", [{"fp": "/"}])).status == 400
    assert (await http.get(f"{slot}/q?mincount=x")).status == 400
    assert (await http.call("PUT", slot)).status == 405
    assert (await http.get(f"/hcf/{project}/a/b/c")).status == 404


async def test_the_queue_is_counted(http: Http, slot: str) -> None:
    assert (await http.get(f"{slot}/q/count")).json == {"count": 0}
    await http.post(slot, [{"fp": f"/{n}", "p": n % 3} for n in range(250)])
    assert (await http.get(f"{slot}/q/count")).json == {"count": 250}
    batches = (await http.get(f"{slot}/q?mincount=100")).lines
    await http.post(f"{slot}/q/deleted", [batch["id"] for batch in batches])
    left = 250 - sum(len(batch["requests"]) for batch in batches)
    assert (await http.get(f"{slot}/q/count")).json == {"count": left}
    first = (await http.get(f"{slot}/q")).lines[0]
    assert (await http.get(f"{slot}/q/count?start={first['id']}")).json == {"count": left}
    assert (await http.get(f"{slot}/q/count?start=x")).status == 400
    assert (await http.post(f"{slot}/q/count")).status == 405


async def test_a_queue_is_read_on_behind_a_batch_with_priorities(http: Http, slot: str) -> None:
    await http.post(slot, [{"fp": f"/{n}", "p": n % 2 - 1} for n in range(300)])
    first, second, *_ = (await http.get(f"{slot}/q?mincount=300&meta=_p")).lines
    assert (first["_p"], second["_p"]) == (-1, -1)
    rest = (await http.get(f"{slot}/q?mincount=300&meta=_p&startafter={second['id']}")).lines
    assert [(batch["_p"], len(batch["requests"])) for batch in rest] == [(0, 100), (0, 50)]
    assert (await http.get(f"{slot}/q?startafter={rest[-1]['id']}")).body == b""
    assert (await http.get(f"{slot}/q?startafter=x")).status == 400
