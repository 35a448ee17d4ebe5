"""``filter`` over HTTP: which records each operator chooses, and what is refused."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.http import Http

ITEMS: list[dict[str, Any]] = [
    {"n": 0, "price": 5, "name": "Tea", "tags": ["a", "b"]},
    {"n": 1, "price": 7.5, "name": "Green tea", "tags": []},
    {"n": 2, "price": "7", "name": "", "tags": ["b", 1]},
    {"n": 3, "price": True, "name": None},
    {"n": 4},
]


#: Takes milliseconds for a value of 101 characters.
SLOW = r"(\w+\s?)*$"


def query(*conditions: Any, name: str = "filter") -> str:
    return "&".join(f"{name}={quote(json.dumps(condition))}" for condition in conditions)


@pytest.fixture(scope="module")
def filtered_project() -> int:
    """A project for the items above, which the tests of this module only read."""
    return 900_001


@pytest.fixture
async def job(http: Http, filtered_project: int) -> str:
    key = f"{filtered_project}/1/1"
    assert (await http.post(f"/items/{key}?start=0", ITEMS)).status == 200
    return key


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        (["price", "=", [5]], [0]),
        (["price", "=", [5, "7"]], [0, 2]),
        (["price", "=", [1]], []),
        (["price", "=", [True]], [3]),
        (["price", "!=", [5, 7.5]], [2, 3, 4]),
        (["price", ">", [5]], [1]),
        (["price", ">=", [5]], [0, 1]),
        (["price", "<", [7.5]], [0]),
        (["price", "<=", [7.5]], [0, 1]),
        (["price", "<", ["8"]], [2]),
        (["price", ">", 5], [1]),
        (["name", "contains", ["tea"]], [1]),
        (["name", "icontains", ["TEA"]], [0, 1]),
        (["name", "matches", ["^G.*a$", "^T"]], [0, 1]),
        (["name", "matches", ["(?i)^tea$"]], [0]),
        (["tags", "contains", ["a"]], [0]),
        (["tags", "icontains", ["B"]], [0, 2]),
        (["tags", "haselement", ["b"]], [0, 2]),
        (["tags", "haselement", [1, "a"]], [0, 2]),
        (["tags", "hasnotelement", ["b"]], [1, 3, 4]),
        (["name", "exists", []], [0, 1, 2, 3]),
        (["name", "exists"], [0, 1, 2, 3]),
        (["name", "notexists", []], [4]),
        (["name", "isempty", []], [2, 3, 4]),
        (["tags", "isnotempty", []], [0, 2]),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, list) else None,
)
async def test_each_operator(http: Http, job: str, condition: Any, chosen: list[int]) -> None:
    found = (await http.get(f"/items/{job}?{query(condition)}")).lines
    assert [item["n"] for item in found] == chosen


async def test_conditions_combine(http: Http, job: str) -> None:
    both = query(["price", ">=", [5]], ["name", "icontains", ["green"]])
    assert [item["n"] for item in (await http.get(f"/items/{job}?{both}")).lines] == [1]
    every = query(["price", ">=", [5]], ["name", "icontains", ["green"]], name="filterall")
    assert [item["n"] for item in (await http.get(f"/items/{job}?{every}")).lines] == [1]
    some = query(["price", "=", [5]], ["price", "=", ["7"]], name="filterany")
    assert [item["n"] for item in (await http.get(f"/items/{job}?{some}")).lines] == [0, 2]
    mixed = f"{some}&{query(['tags', 'haselement', [1]])}"
    assert [item["n"] for item in (await http.get(f"/items/{job}?{mixed}")).lines] == [2]


async def test_count_meta_and_fields_are_of_the_chosen(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/1/1", [{"n": n, "odd": n % 2} for n in range(3000)])
    odd = query(["odd", "=", [1]])
    found = (await http.get(f"/items/{project}/1/1?{odd}&count=1200&meta=_key")).lines
    assert [item["n"] for item in found] == list(range(1, 2400, 2))
    assert [item["_key"] for item in found] == [f"{project}/1/1/{n}" for n in range(1, 2400, 2)]
    on = (await http.get(f"/items/{project}?{odd}&count=2&startafter={found[-1]['_key']}")).lines
    assert [item["n"] for item in on] == [2401, 2403]
    assert (await http.get(f"/items/{project}/1/1/n?{odd}&count=2")).lines == [1, 3]
    assert (await http.get(f"/items/{project}/1/1?{odd}&count=0")).body == b""
    assert [item["n"] for item in (await http.get(f"/items/{project}/1/1?{odd}&index=7&index=8")).lines] == [7]


async def test_requests_logs_collections_and_activity_are_filtered(http: Http, project: int) -> None:
    request = {"time": 1, "method": "GET", "url": "http://a/", "duration": 3, "rs": 4, "fp": None}
    await http.post(f"/requests/{project}/1/1", [{**request, "status": status} for status in (200, 404, 503)])
    answer = await http.get(f"/requests/{project}/1/1?{query(['status', '>=', [400]])}")
    assert [line["status"] for line in answer.lines] == [404, 503]
    assert (await http.get(f"/requests/{project}/1/1?{query(['fp', 'exists', []])}")).body == b""

    await http.post(f"/logs/{project}/1/1", [{"time": 1, "level": n, "message": f"m{n}"} for n in (10, 20, 30)])
    answer = await http.get(f"/logs/{project}/1/1?{query(['level', '>', [10]], ['message', 'contains', ['2']])}")
    assert [line["level"] for line in answer.lines] == [20]

    path = f"/collections/{project}/s/c"
    await http.post(path, [{"_key": f"{n:03}", "n": n} for n in range(300)])
    answer = await http.get(f"{path}?{query(['n', '>', [150]])}&count=2&meta=_key")
    assert [line["_key"] for line in answer.lines] == ["151", "152"]
    count = (await http.get(f"{path}/count?{query(['n', '>', [150]])}")).json
    assert count == {"count": 149, "scanned": 300}

    for n in range(5):
        await http.post(f"/activity/{project}", [{"event": "e", "n": n}])
    odd = query(["n", "=", [1, 3]])
    assert [line["n"] for line in (await http.get(f"/activity/{project}?{odd}")).lines] == [3, 1]
    assert [line["n"] for line in (await http.get(f"/activity/{project}?{odd}&count=1")).lines] == [3]
    answer = await http.get(f"/activity/projects/?p={project}&{odd}&pcount=1")
    assert [line["n"] for line in answer.lines] == [3]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("[", "is not JSON"),
        ('"a"', "must be an array of a field"),
        ('["a"]', "must be an array of a field"),
        ('[1,"=",[1]]', "name of a field"),
        ('["a","~",[1]]', "one of the operators"),
        ('["a",["="],[1]]', "one of the operators"),
        ('["a",">",[]]', "1 to 1000 arguments"),
        ('["a","icontains",[1]]', "must have text"),
        ('["a","matches",["("]]', "is not a regular expression"),
        ('["a","matches",["(a{999}){999}"]]', "without braces"),
        ('["a","matches",["' + "a" * 257 + '"]]', "at most 256 characters"),
        ("[" * 3000, "filter: is not JSON"),
    ],
)
@pytest.mark.parametrize("path", ["items/{p}/1/1", "collections/{p}/s/c", "collections/{p}/s/c/count", "activity/{p}"])
async def test_a_bad_condition_is_named(http: Http, project: int, path: str, condition: str, said: str) -> None:
    answer = await http.get(f"/{path.format(p=project)}?filter={quote(condition)}")
    assert answer.status == 400
    assert said in answer.text


async def test_too_many_conditions_are_refused(http: Http, project: int) -> None:
    conditions = query(*[["a", "=", [1]]] * 51)
    assert (await http.get(f"/items/{project}/1/1?{conditions}")).status == 400


async def test_an_expression_that_would_run_for_ever_is_stopped(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/1/1", [{"a": "a" * 5000}])
    answer = await http.get(f"/items/{project}/1/1?{query(['a', 'matches', ['(a|aa)+$b']])}")
    assert answer.status == 400
    assert "takes too long" in answer.text


async def test_too_many_expressions_are_refused_before_they_are_compiled(http: Http, project: int) -> None:
    for conditions in (
        query(["a", "matches", ["(((((((a*)*)*)*)*)*)*)*"] * 400]),
        query(*[["a", "matches", ["(((((((a*)*)*)*)*)*)*)*"] * 6]] * 20),
        "where=" + quote(" and ".join(["a matches b"] * 40)),
    ):
        answer = await http.get(f"/items/{project}/1/1?{conditions}")
        assert answer.status == 400
        assert "regular expressions at most" in answer.text or "at most 10 expressions" in answer.text


@pytest.mark.long
async def test_others_are_answered_while_slow_expressions_are_searched(http: Http, project: int) -> None:
    """The figures of a run: ``pytest -s``."""
    await http.post(f"/items/{project}/1/1", [{"a": "abc " * 25 + "!"} for _ in range(3000)])
    await http.post(f"/items/{project}/1/2", [{"a": "x"}])
    small = ("/healthz", f"/items/{project}/1/2", f"/items/{project}/1/2?{query(['a', '=', ['x']])}")
    idle = await waits(http, small)

    async def attack() -> None:
        while True:
            await http.get(f"/items/{project}/1/1?{query(['a', 'matches', [SLOW]])}")

    attacks = [asyncio.create_task(attack()) for _ in range(8)]
    during = await waits(http, small)
    assert not any(attack.done() for attack in attacks)
    for each in attacks:
        each.cancel()
    await asyncio.gather(*attacks, return_exceptions=True)
    report = {
        name: {"p50": statistics.median(each), "p99": statistics.quantiles(each, n=100)[98]}
        for name, each in (("idle", idle), ("during", during))
    }
    print(json.dumps(report))
    # Eight of them keep the interpreter's lock for milliseconds each.
    assert statistics.median(during) < max(50 * statistics.median(idle), 1)


async def waits(http: Http, paths: Sequence[str]) -> list[float]:
    """Return how long small requests take."""
    found = []
    for path in paths * 50:
        began = time.perf_counter()
        assert (await http.get(path)).status == 200
        found.append(time.perf_counter() - began)
    return found


async def test_nothing_is_deleted_by_a_filter(http: Http, project: int) -> None:
    path = f"/collections/{project}/s/c"
    await http.post(path, [{"_key": "a", "n": 1}])
    assert (await http.delete(f"{path}?prefix=a&{query(['n', '=', [2]])}")).status == 400
    assert len((await http.get(path)).lines) == 1
