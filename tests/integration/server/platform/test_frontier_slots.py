"""Several slots of a frontier in one call, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.http import Answer, Http


@pytest.fixture
def frontier(project: int) -> str:
    return f"/hcf/{project}/news"


def found(answer: Answer) -> dict[str, list[list[str]]]:
    by_slot: dict[str, list[list[str]]] = {}
    for batch in answer.lines:
        by_slot.setdefault(batch["slot"], []).append([fp for fp, _ in batch["requests"]])
    return by_slot


async def test_requests_go_to_their_slots_and_come_back_from_them(http: Http, frontier: str) -> None:
    sent = [{"slot": str(n % 3), "fp": f"/{n}", "qdata": n, "p": -n} for n in range(9)]
    answer = await http.post(f"{frontier}/s", [*sent, sent[0]])
    assert answer.json == {"newcount": 9, "slots": {"0": 3, "1": 3, "2": 3}}
    read = await http.post(f"{frontier}/q", [{"slot": "0", "mincount": 9}, {"slot": "2", "mincount": 2}, {"slot": "7"}])
    assert found(read) == {"0": [["/6"], ["/3"], ["/0"]], "2": [["/8"], ["/5"]]}
    alone = await http.get(f"{frontier}/s/1/q?mincount=9")
    assert [batch["requests"] for batch in alone.lines] == [[[f"/{n}", n]] for n in (7, 4, 1)]


async def test_a_fingerprint_counts_in_its_slot(http: Http, frontier: str) -> None:
    await http.post(f"{frontier}/s/0", [{"fp": "/a"}])
    answer = await http.post(f"{frontier}/s", [{"slot": "0", "fp": "/a"}, {"slot": "1", "fp": "/a"}])
    assert answer.json == {"newcount": 1, "slots": {"0": 0, "1": 1}}


async def test_known_batches_are_left_out_but_count(http: Http, frontier: str) -> None:
    await http.post(f"{frontier}/s", [{"slot": "0", "fp": f"/{n}"} for n in range(250)])
    first = (await http.post(f"{frontier}/q", [{"slot": "0"}])).lines
    known = [batch["id"] for batch in first]
    assert [len(batch["requests"]) for batch in first] == [100]
    assert (await http.post(f"{frontier}/q", [{"slot": "0", "known": known}])).lines == []
    second = (await http.post(f"{frontier}/q", [{"slot": "0", "mincount": 101, "known": known}])).lines
    assert [len(batch["requests"]) for batch in second] == [100]


async def test_a_read_names_each_slot_once(http: Http, frontier: str) -> None:
    await http.post(f"{frontier}/s", [{"slot": "0", "fp": "/a"}])
    answer = await http.post(f"{frontier}/q", [{"slot": "0", "mincount": 9}, {"slot": "0", "mincount": 1}])
    assert answer.status == 400
    assert "line 2" in answer.text
    assert "slot 0 again" in answer.text


async def test_processed_batches_are_deleted_from_their_own_slots(http: Http, frontier: str) -> None:
    await http.post(f"{frontier}/s", [{"slot": str(n % 2), "fp": f"/{n}"} for n in range(4)])
    ids = {
        batch["slot"]: batch["id"] for batch in (await http.post(f"{frontier}/q", [{"slot": "0"}, {"slot": "1"}])).lines
    }
    await http.post(f"{frontier}/q/deleted", [{"slot": "0", "ids": [ids["1"]]}, {"slot": "1", "ids": ["?"]}])
    assert set(found(await http.post(f"{frontier}/q", [{"slot": "0"}, {"slot": "1"}]))) == {"0", "1"}
    await http.post(f"{frontier}/q/deleted", [{"slot": slot, "ids": [batch]} for slot, batch in ids.items()])
    assert (await http.post(f"{frontier}/q", [{"slot": "0"}, {"slot": "1"}])).lines == []


async def test_a_batch_that_was_read_is_not_filled_any_more(http: Http, frontier: str) -> None:
    await http.post(f"{frontier}/s", [{"slot": "0", "fp": "/0"}])
    read = (await http.post(f"{frontier}/q", [{"slot": "0"}])).lines
    await http.post(f"{frontier}/s", [{"slot": "0", "fp": "/1"}])
    known = [batch["id"] for batch in read]
    assert found(await http.post(f"{frontier}/q", [{"slot": "0", "mincount": 2, "known": known}])) == {"0": [["/1"]]}


async def test_writers_of_the_same_slots_in_any_order_do_not_wait_for_each_other(http: Http, frontier: str) -> None:
    lines = [{"slot": str(slot), "fp": f"/{n}"} for n in range(40) for slot in range(4)]
    answers = await asyncio.gather(*(http.post(f"{frontier}/s", lines[:: (-1) ** turn]) for turn in range(8)))
    assert sum(answer.json["newcount"] for answer in answers) == 160


@pytest.mark.parametrize(
    ("path", "line", "words"),
    [
        ("s", {"fp": "/a"}, "line 2"),
        ("s", {"slot": "..", "fp": "/a"}, "line 2: slot"),
        ("s", {"slot": "a/b", "fp": "/a"}, "line 2: slot"),
        ("s", {"slot": "0", "fp": ""}, "fp: must not be empty"),
        ("q", {"slot": "0", "mincount": "many"}, "line 2"),
        ("q", ["0"], "line 2"),
        ("q/deleted", {"slot": "0", "ids": "all"}, "line 2"),
        ("q/deleted", {"ids": []}, "line 2"),
    ],
)
async def test_an_invalid_line_is_refused_and_nothing_is_stored(
    http: Http, frontier: str, path: str, line: Any, words: str
) -> None:
    valid = {"s": {"slot": "0", "fp": "/b"}, "q": {"slot": "0"}, "q/deleted": {"slot": "0", "ids": []}}[path]
    answer = await http.post(f"{frontier}/{path}", [valid, line])
    assert (answer.status, words in answer.body.decode()) == (400, True)
    assert (await http.get(f"{frontier}/s/0/q")).body == b""


async def test_a_call_has_a_limited_number_of_slots(http: Http, frontier: str) -> None:
    answer = await http.post(f"{frontier}/q", [{"slot": str(n)} for n in range(1025)])
    assert (answer.status, "1024" in answer.body.decode()) == (400, True)
