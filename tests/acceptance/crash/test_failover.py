"""A standby of PostgreSQL that takes the place of its primary, under load: what was answered with 200 is there, once.

The servers have the address of both. Commits wait for the standby (``synchronous_standby_names``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from tests.support.acknowledged_writes import write_through
from tests.support.crash.lives import Crawls, Platform, finished, until
from tests.support.crash.maze import Maze
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import Cluster
from tests.support.replication import Replicated, replicated


@pytest.fixture
def pair() -> Iterator[Replicated]:
    with replicated() as pair:
        yield pair


@pytest.fixture
def on_pair(tmp_path: Path, pair: Replicated) -> Iterator[Platform]:
    """A server on both."""
    with closing(Platform(tmp_path / "data", database=pair.url)) as platform:
        yield platform


def killed(primary: Cluster) -> None:
    """No longer there."""
    primary.kill()


def hanging(primary: Cluster) -> None:
    """Its machine accepts connections, and nothing answers."""
    primary.pause()


def cut_off(_: Cluster) -> None:
    """It lives on, and takes itself for the primary: the network between it and its standby is split."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("harm", [killed, hanging, cut_off])
async def test_nothing_that_was_acknowledged_is_lost_when_a_standby_takes_over(
    tmp_path: Path, pair: Replicated, on_pair: Platform, harm
) -> None:
    other = Platform(tmp_path / "data", database=pair.url, key=on_pair.key)
    with closing(other):

        async def strike(_: int) -> None:
            await asyncio.to_thread(harm, pair.primary)
            await asyncio.to_thread(pair.take_over)
            # A server that can write has left the old primary, which it may have read from until then.
            for client in clients:
                write = partial(client.post, "/collections/900/s/c", [{"_key": "k", "value": 0}])
                await eventually_async(write, lambda answer: answer.status == 200)

        try:
            async with AsyncExitStack() as stack:
                clients = [await stack.enter_async_context(Http(each.url, each.key)) for each in (on_pair, other)]
                call = await write_through(clients, seed=20, times=1, strike=strike, old_reads=harm is cut_off)
        finally:
            if harm is hanging:
                pair.primary.go_on()
    assert call.answered > 50
    assert pair.count(pair.standby, "jobs") > 0
    if harm is cut_off:  # what the old one has is older, though it never stopped
        assert pair.count(pair.primary, "record_chunks") < pair.count(pair.standby, "record_chunks")


def test_a_crawl_outlives_the_primary_and_stores_each_item_once(
    tmp_path: Path, pair: Replicated, on_pair: Platform
) -> None:
    with closing(Maze(48, 30)) as maze, Crawls(tmp_path, on_pair, maze) as crawls:
        life = crawls.worker(start_items=2).start(proxied=False)
        until(lambda: maze.is_at_gate, "the crawl is in the middle of it", life)
        pair.primary.kill()
        maze.open_gate()
        pair.take_over()
        finished(life)
        crawls.check(start_items=2)


async def test_without_a_primary_calls_get_503_and_the_reason_until_a_standby_is_promoted(
    pair: Replicated, on_pair: Platform
) -> None:
    async with Http(on_pair.url, on_pair.key) as http:
        assert (await http.post("/items/1/1/1?start=0", [{"n": 0}])).status == 200
        await asyncio.to_thread(pair.primary.kill)
        refused = await asyncio.gather(
            http.post("/items/1/1/1?start=1", [{"n": 1}]), http.get("/items/1/1/1"), http.get("/collections/1/s/c/k")
        )
        assert [answer.status for answer in refused] == [503] * 3
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
        ready = await http.get("/readyz")
        assert ready.status == 503
        assert f"127.0.0.1:{pair.standby.port} is a standby" in ready.text
        assert "promote a standby" in ready.text
        await asyncio.to_thread(pair.take_over)
        assert (await http.post("/items/1/1/1?start=1", [{"n": 1}])).status == 200
        assert [each["n"] for each in (await http.get("/items/1/1/1?format=jl")).lines] == [0, 1]
        await eventually_async(lambda: http.get("/readyz"), lambda answer: answer.status == 200)
    assert "has no primary" in on_pair.log
    assert "is back after" in on_pair.log


async def test_a_commit_waits_for_the_standby_and_its_caller_does_not_wait_for_ever(
    pair: Replicated, on_pair: Platform
) -> None:
    async with Http(on_pair.url, on_pair.key) as http:
        assert (await http.post("/items/1/1/1?start=0", [{"n": 0}])).status == 200
        await asyncio.to_thread(pair.standby.kill)
        writing = asyncio.create_task(http.post("/items/1/1/1?start=1", [{"n": 1}]))
        ready = await eventually_async(lambda: http.get("/readyz"), lambda answer: "synchronous" in answer.text)
        assert ready.status == 503
        assert "pg_stat_replication" in ready.text
        # What others see is on the standby, too: this is not.
        assert len((await http.get("/items/1/1/1?format=jl")).lines) == 1
        refused = await writing
        assert refused.status == 503
        assert "may be stored or not" in refused.text
        assert int(refused.headers["Retry-After"]) > 0
        pair.standby.start()  # in this thread, with which it ends
        # Sent again as it was, it is there once.
        assert (await http.post("/items/1/1/1?start=1", [{"n": 1}])).status == 200
        assert [each["n"] for each in (await http.get("/items/1/1/1?format=jl")).lines] == [0, 1]
        await eventually_async(lambda: http.get("/readyz"), lambda answer: answer.status == 200)
