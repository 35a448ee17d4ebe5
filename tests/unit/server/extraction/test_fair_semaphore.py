"""Places and the queue before them: bounded, given back, and shared fairly between domains."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.computing.fair_semaphore import FairSemaphore


class Visits:
    """Visitors of a semaphore, each of which stays until it is sent away."""

    def __init__(self, semaphore: FairSemaphore) -> None:
        self.semaphore = semaphore
        self.arrived: list[str] = []
        self._stay: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """Visitors come one after the other. The first letter of a name is the domain, what follows its number is the
        key."""
        for name in names:
            self._stay[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._visit(name))
            await asyncio.sleep(0)
        await settled()

    async def go(self, *names: str) -> None:
        """They leave."""
        for name in names:
            self._stay[name].set()
            await settled()

    async def _visit(self, name: str) -> None:
        async with self.semaphore.permit(name[0], name[2:]):
            self.arrived.append(name)
            await self._stay[name].wait()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def visits() -> Visits:
    return Visits(FairSemaphore("pages", permits=2, waiting=6, timeout=30))


async def test_a_domain_alone_gets_every_place_in_the_order_of_arrival(visits: Visits) -> None:
    await visits.come("a1", "a2", "a3", "a4")
    assert visits.arrived == ["a1", "a2"]
    await visits.go("a2", "a1")
    assert visits.arrived == ["a1", "a2", "a3", "a4"]
    await visits.go("a3", "a4")
    assert (visits.semaphore.inside, visits.semaphore.waiting) == (0, 0)


async def test_a_domain_that_hangs_keeps_no_more_than_its_share_from_others(visits: Visits) -> None:
    await visits.come("h1", "h2", "h3", "h4", "h5", "q1", "q2", "q3")
    await visits.go("h1")
    # One place is busy with what hangs, so the other is for the quick ones, however many others wait longer.
    await visits.go("q1", "q2")
    assert visits.arrived == ["h1", "h2", "q1", "q2", "q3"]
    await visits.go("q3")
    assert visits.arrived[-1] == "h3"


async def test_domains_take_turns(visits: Visits) -> None:
    await visits.come("x1", "x2", "a1", "a2", "b1", "b2", "c1", "c2")
    for leaving in ("x1", "x2", "a1", "b1", "c1", "a2"):
        await visits.go(leaving)
    assert visits.arrived[2:] == ["a1", "b1", "c1", "a2", "b2", "c2"]


async def test_the_longest_queue_makes_room_for_another_domain(visits: Visits) -> None:
    await visits.come("h1", "h2", *(f"h{number}" for number in range(3, 9)), "q1")
    with pytest.raises(ExtractionError, match="no more room for pages") as refused:
        await visits.tasks["h8"]
    assert refused.value.problem.status == 503
    assert refused.value.retry_after
    assert visits.semaphore.waiting == 6
    # One more of the domain that fills the queue is refused itself.
    await visits.come("h9")
    with pytest.raises(ExtractionError, match="no more room for pages"):
        await visits.tasks["h9"]
    await visits.go("h1")
    assert visits.arrived[-1] == "q1"


async def test_who_leaves_the_queue_takes_no_place(visits: Visits) -> None:
    await visits.come("a1", "a2", "a3", "b1")
    visits.tasks["a3"].cancel()
    await settled()
    await visits.go("a1", "a2")
    assert visits.arrived == ["a1", "a2", "b1"]
    assert (visits.semaphore.inside, visits.semaphore.waiting) == (1, 0)


async def test_who_leaves_at_the_moment_of_his_turn_passes_it_on(visits: Visits) -> None:
    await visits.come("a1", "a2", "b1", "c1")
    visits._stay["a1"].set()
    await asyncio.sleep(0)  # b1 has its turn, and does not know yet
    visits.tasks["b1"].cancel()
    await settled()
    assert visits.arrived == ["a1", "a2", "c1"]
    assert visits.semaphore.inside == 2


async def test_patience_ends_with_a_refusal() -> None:
    semaphore = FairSemaphore("pages", permits=1, waiting=1, timeout=0.01)
    async with AsyncExitStack() as inside:
        await inside.enter_async_context(semaphore.permit("a"))
        with pytest.raises(ExtractionError, match="too busy for"):
            await semaphore.permit("b").__aenter__()
        assert semaphore.waiting == 0
    async with semaphore.permit("b"):
        assert semaphore.inside == 1


@pytest.fixture
def reserved() -> Visits:
    return Visits(FairSemaphore("extraction", permits=2, waiting=20, timeout=30, reserve=True))


async def test_a_domain_that_holds_every_place_keeps_none_from_another(reserved: Visits) -> None:
    await reserved.come("a1k", "a2k", "a3k", "b1k", "b2k")
    assert reserved.arrived == ["a1k", "a2k", "b1k"]
    await reserved.go("b1k")
    assert reserved.arrived == ["a1k", "a2k", "b1k", "b2k"]
    await reserved.go("a1k", "a2k", "b2k")
    assert reserved.arrived[4:] == ["a3k"]
    await reserved.go("a3k")
    assert (reserved.semaphore.inside, reserved.semaphore.waiting) == (0, 0)


async def test_a_key_that_holds_every_place_keeps_none_from_another(reserved: Visits) -> None:
    await reserved.come("a1k", "b1k", "c1k", "d1k", "e1m", "e2m", "a1n")
    assert reserved.arrived == ["a1k", "b1k", "c1k", "e1m"]
    await reserved.go("c1k", "e1m")  # What comes free is first for a key and a domain that hold none.
    assert reserved.arrived[4:] == ["e2m"]
    await reserved.go("a1k")
    assert reserved.arrived[5:] == ["a1n"]
    await reserved.go("b1k")
    assert reserved.arrived[6:] == ["d1k"]
    await reserved.go("a1n", "e2m", "d1k")
    assert (reserved.semaphore.inside, reserved.semaphore.waiting) == (0, 0)


async def test_a_lone_key_and_domain_has_every_place_but_the_reserve(reserved: Visits) -> None:
    await reserved.come("a1k", "a2k", "a3k", "a4k")
    assert reserved.arrived == ["a1k", "a2k"]


async def test_a_place_is_not_lost_to_one_who_leaves_the_queue_at_the_same_moment(visits: Visits) -> None:
    await visits.come("a1", "a2", "b1", "c1")
    visits.tasks["b1"].cancel()
    await visits.go("a1")
    assert visits.arrived == ["a1", "a2", "c1"]
    await visits.go("a2", "c1")
    assert (visits.semaphore.inside, visits.semaphore.waiting) == (0, 0)
