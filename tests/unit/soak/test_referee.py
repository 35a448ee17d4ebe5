"""The referee of the soak notices what is wrong, and says nothing of what is right."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.soak.flatness import Rule, Sample, slope_of
from tests.soak.referee import (
    Verdict,
    end_of_job,
    hits_of_maze,
    items_at_least_once,
    items_once,
    paid_once,
    processes_at_once,
    ran_once_each,
)
from tests.support.acknowledged_writes import AppendedItems, NumberedItems, Records
from tests.support.http import Answer

STORED = Counter({"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (STORED, []),
        (Counter({"a": 1, "b": 1}), ["items: lost 1 [b]"]),
        (Counter({"a": 2, "b": 2}), ["items: doubled 1 [a]"]),
        (
            Counter({"A": 1, "b": 2}),
            ["items: lost 1 [a]", "items: changed, never stored like this: 1 [A]"],
        ),
    ],
    ids=["right", "lost", "doubled", "changed"],
)
def test_an_item_of_a_crawl_that_is_lost_doubled_or_changed_is_named(found: Counter[str], said: list[str]) -> None:
    assert items_once("items", found, STORED) == said


def test_items_that_may_be_repeated_are_there_once_for_each_run_at_most() -> None:
    assert not items_at_least_once("items", Counter({"a": 2, "b": 2}), STORED, runs=2)
    assert items_at_least_once("items", Counter({"a": 3, "b": 2}), STORED, runs=2)
    assert items_at_least_once("items", Counter({"a": 1}), STORED, runs=2)


class Memory:
    """A platform that keeps the bodies of calls, and answers with them, changed by ``spoil``."""

    def __init__(self, spoil: Callable[[list[Any]], list[Any]]) -> None:
        self._spoil = spoil
        self._kept: list[Any] = []
        self._first = 0

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        if not self._kept and (place := headers.get("Content_Range")):
            self._first = int(place.split()[1].partition("-")[0])
        self._kept += body
        return Answer(200, {}, b"")

    async def surely(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        key = path.partition("?")[0].removeprefix("/items/")
        found = self._spoil([dict(item) for item in self._kept])
        if path.endswith("/stats"):
            fields = Counter(field for item in found for field in item)
            stats = {"totals": {"input_values": len(found)}, "counts": fields}
            return Answer(200, {}, json.dumps(stats).encode())
        if "meta=_key" in path:
            found = [item | {"_key": f"{key}/{place}"} for place, item in enumerate(found, self._first)]
        return Answer(200, {}, b"\n".join(json.dumps(item).encode() for item in found))


SPOILT = {
    "lost": lambda items: items[:-1],
    "doubled": lambda items: [*items, items[-1]],
    "changed": lambda items: [*items[:-1], {name: f"not {value}" for name, value in items[-1].items()}],
}


@pytest.mark.parametrize("kind", [NumberedItems, AppendedItems])
@pytest.mark.parametrize("wrong", SPOILT)
async def test_a_record_of_a_client_that_is_lost_doubled_or_changed_is_noticed(kind: Any, wrong: str) -> None:
    for spoil in (list, SPOILT[wrong]):
        client, memory = kind(1, random.Random(3)), Memory(spoil)
        for _ in range(3):
            await client.step(memory)
        if spoil is list:
            await client.check(memory)
        else:
            with pytest.raises((AssertionError, TypeError)):
                await client.check(memory)


async def test_a_record_of_a_collection_that_has_a_value_nobody_gave_it_is_noticed() -> None:
    client = Records(1, random.Random(1))
    client._values = {"001": {7}}

    class Changed(Memory):
        async def surely(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
            lines = [{"_key": "001", "value": 8}, {"_key": "there is one", "value": 0}]
            return Answer(200, {}, b"\n".join(json.dumps(line).encode() for line in lines))

    with pytest.raises(AssertionError, match="001"):
        await client.check(Changed(list))


def test_a_page_that_a_crawl_fetches_twice_or_never_is_noticed() -> None:
    expected = Counter({"/page/1": 1, "/page/2": 2})
    assert not hits_of_maze("site", expected.copy(), expected, ())
    assert "{'/page/1': 1} too often" in hits_of_maze("site", expected + Counter(["/page/1"]), expected, ())[0]
    assert "{'/page/2': 1} too rarely" in hits_of_maze("site", expected - Counter(["/page/2"]), expected, ())[0]


def test_a_page_may_be_fetched_once_more_for_each_jump_of_the_clock() -> None:
    expected = Counter({"/page/1": 1, "/page/2": 1})
    assert not hits_of_maze("site", expected + Counter(["/page/1", "/page/2"]), expected, (), jumps=1)
    assert "too often" in hits_of_maze("site", expected + Counter(["/page/1"] * 2), expected, (), jumps=1)[0]
    assert "too rarely" in hits_of_maze("site", expected - Counter(["/page/1"]), expected, (), jumps=1)[0]


def test_two_processes_of_a_job_at_once_are_noticed() -> None:
    assert not processes_at_once("1/1/1", {10: (0.0, 5.0), 11: (5.5, 9.0)})
    assert "10 and 11" in processes_at_once("1/1/1", {10: (0.0, 5.0), 11: (4.5, 9.0)})[0]
    two = {10: (0.0, 5.0), 11: (0.1, 9.0), 12: (5.5, 9.0)}
    assert not processes_at_once("1/1/1", two, 2)
    assert processes_at_once("1/1/1", {**two, 13: (6.0, 7.0)}, 2) == [
        "job 1/1/1: processes 11 and 12 and 13 worked at once, for 3.0 s"
    ]


def test_a_minute_that_ran_twice_is_noticed() -> None:
    run = {"periodic_job_id": 1, "periodic_time": 60_000}
    assert not ran_once_each([run, {**run, "periodic_time": 120_000}])
    assert ran_once_each([run, run]) == ["periodic job 1 ran 2 times for minute 60000"]


def test_an_answer_that_was_paid_too_often_or_for_nothing_is_noticed() -> None:
    assert not paid_once("crawl", {"0": 1, "1": 1}, ["0", "1"], 1)
    assert len(paid_once("crawl", {"0": 2}, ["0", "1"], 1)) == 2


@pytest.mark.parametrize(
    ("metadata", "killed", "is_right"),
    [
        ({"state": "finished", "close_reason": "finished"}, False, True),
        ({"state": "finished", "close_reason": "killed by SIGKILL"}, True, True),
        ({"state": "finished", "close_reason": "killed by SIGKILL"}, False, False),
        ({"state": "finished", "close_reason": "node_lost", "nodes_lost": 5}, False, True),
        ({"state": "finished", "close_reason": "node_lost", "nodes_lost": 1}, False, False),
        ({"state": "finished", "close_reason": "node_lost", "nodes_lost": 1, "spider": "py:a.py"}, False, True),
        ({"state": "running"}, False, False),
    ],
)
def test_a_job_ends_for_a_reason_that_somebody_has_given_it(
    metadata: dict[str, Any], killed: bool, is_right: bool
) -> None:
    assert bool(end_of_job("1/1/1", metadata, killed=killed)) is not is_right


def test_the_sentence_names_what_was_seen() -> None:
    assert Verdict(1200, 3, 1, []).sentence == (
        "1,200 acknowledged records, 3 jobs, 1 harm: nothing lost, nothing doubled."
    )
    assert Verdict(1200, 3, 1, ["x"]).sentence.endswith("1 fault.")


# ── flatness ──

RULE = Rule(part=0.1, amount=10, warm_up=60)


def noisy(growth: float, lives: int = 3) -> list[Sample]:
    """An hour of lives, each with a level of its own and a warm-up, that grow so much an hour."""
    chance = random.Random(5)
    made = []
    for life in range(lives):
        for second in range(0, 3600 // lives, 5):
            warm = max(0, 60 - second)
            made.append(
                Sample(
                    life * 1200 + second,
                    str(life),
                    100 + 30 * life - 2 * warm + growth * second / 3600 + chance.gauss(0, 2),
                )
            )
    return made


@pytest.mark.parametrize(("growth", "word"), [(0, "flat"), (5, "flat"), (60, "grows"), (-50, "flat")])
def test_growth_is_distinguished_from_a_flat_line_however_often_a_process_was_restarted(
    growth: float, word: str
) -> None:
    slope = slope_of(noisy(growth), RULE)
    assert slope is not None
    assert slope.word == word
    assert abs(slope.growth - growth) < 10


def test_one_thread_more_in_a_short_run_is_not_a_leak() -> None:
    threads = [Sample(second, "server-1-1", 12 + (second > 300)) for second in range(0, 400, 5)]
    slope = slope_of(threads, Rule(0.1, 8, 60))
    assert slope is not None
    assert slope.growth > 8
    assert slope.word == "too short to say"


def test_a_run_that_is_too_short_says_so() -> None:
    short = [sample for sample in noisy(0) if sample.at < 120]
    slope = slope_of(short, RULE)
    assert slope is not None
    assert slope.word == "too short to say"
    assert slope_of(short[:3], RULE) is None
