"""The wait for pushes of a worker of a group: it ends when no worker has work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ext.crawl.frontier.end_of_crawl import EndOfCrawl


class Wait:
    """A wait for pushes that is over when it is ``due``; ``calls`` are those that the platform sees."""

    def __init__(self) -> None:
        self.is_due = self.is_closed = False
        self.calls: list[str] = []

    def waits(self) -> None:
        pass

    async def is_over(self) -> bool:
        if not self.is_due or self.is_closed:
            return self.is_due
        self.is_closed = True
        self.calls.append("close")
        return False

    async def reopen(self) -> None:
        if self.is_closed:
            self.is_closed = False
            self.calls.append("open")

    async def close(self) -> None:
        self.calls.append("end")


class Rest:
    """The other workers, and the closing and the end of this one in the group."""

    def __init__(self) -> None:
        self.done = self.alone = False

    async def are_done(self) -> bool:
        return self.done

    async def leaves_alone(self) -> bool:
        return self.alone

    async def found_by(self, look: Callable[[], Awaitable[bool]]) -> bool:
        return await look()


@pytest.fixture
def wait() -> Wait:
    return Wait()


@pytest.fixture
def rest() -> Rest:
    return Rest()


@pytest.fixture
def end(wait: Wait, rest: Rest) -> EndOfCrawl:
    """The end of a worker of a group that has nothing to do."""
    idle = SimpleNamespace(is_idle=True)
    sent = SimpleNamespace(nothing_is_behind=lambda: None, has_direct=False, only_direct=False)
    memory: Any = SimpleNamespace(sent=sent, tracker=SimpleNamespace(unfinished=0), wake=lambda: None)
    slots: Any = SimpleNamespace(has_work=False, poll=lambda slots=None: None)
    committer: Any = SimpleNamespace(commits=idle, hurry=lambda: None)
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(_start=None), settings=Settings())
    log: Any = SimpleNamespace(is_fenced=False)
    others: Any = rest
    group: Any = SimpleNamespace(closing=rest, end=rest)
    keep_alive: Any = wait
    return EndOfCrawl(
        *(crawler, memory, slots, committer, log),
        others=others,
        group=group,
        keep_alive=keep_alive,
        poll_interval=5.0,
        on_failure=lambda error: None,
    )


async def test_pushes_are_accepted_while_another_worker_has_work(end: EndOfCrawl, wait: Wait, rest: Rest) -> None:
    wait.is_due = True
    for _ in range(2):
        await end.when_empty()
        assert (end.is_drained, wait.calls) == (False, [])
    rest.done = True
    await end.when_empty()
    assert (end.is_drained, wait.calls) == (False, ["close"])
    await end.when_empty()
    assert end.is_drained


async def test_a_worker_that_has_ended_pushes_allows_them_again_when_another_has_work(
    end: EndOfCrawl, wait: Wait, rest: Rest
) -> None:
    wait.is_due = rest.done = True
    await end.when_empty()
    rest.done = False
    for _ in range(2):
        await end.when_empty()
        assert (end.is_drained, wait.calls) == (False, ["close", "open"])


@pytest.mark.parametrize("alone", [False, True])
async def test_a_worker_that_leaves_alone_ends_no_wait(end: EndOfCrawl, wait: Wait, rest: Rest, alone: bool) -> None:
    rest.alone = alone
    await end.close()
    assert wait.calls == ([] if alone else ["end"])
