"""The reasons for the platform's own mechanisms beside Procrastinate: a job that its would lose, double or delay.

Each test shows the same event twice: to Procrastinate alone, with its own calls, and to the platform.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import procrastinate
import pytest
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.periodic import PeriodicDeferrer

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.jobs.nodes import dead_nodes
from scrapy_ext.server.jobs.nodes.dead_nodes import DEAD_AFTER, Detection
from scrapy_ext.server.jobs.nodes.notifier import LocalNotifier
from scrapy_ext.server.jobs.nodes.procrastinate import Connector, ProcrastinateNotifier
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.jobs.attempts import Attempt
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import Node
from tests.support.eventually import eventually_async
from tests.support.postgresql import Cluster
from tests.support.schedules import books

#: Seconds that the database is away in these tests.
OUTAGE = 20.0


class Both:
    """One database with the platform's tables and Procrastinate's."""

    def __init__(self, cluster: Cluster, store: Store, url: str) -> None:
        self._cluster = cluster
        self.store = store
        self.url = url
        self.app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=2))
        self.engine = self.app.job_manager

        @self.app.task(name="crawl", queue="jobs")
        async def crawl() -> None:
            await asyncio.Event().wait()

        self.crawl = crawl

    def query(self, sql: str) -> list[list[str]]:
        return self._cluster.query(self.url, sql)

    async def fetched(self, worker: int) -> Job | None:
        """Next job of a worker of Procrastinate."""
        return await self.engine.fetch_job(queues=["jobs"], worker_id=worker)

    async def stalled(self) -> list[Any]:
        """The jobs that Procrastinate takes for those of dead workers."""
        return [job.id for job in await self.engine.get_stalled_jobs(seconds_since_heartbeat=DEAD_AFTER)]

    async def again(self, job: Job) -> None:
        """Retry of stalled jobs as in Procrastinate's docs."""
        await self.engine.retry_job(job)

    async def add(self, **metadata: Any) -> JobKey:
        (key,) = await self.store.jobs.add(1, [NewJob("spider", JobState.PENDING, metadata)], "tests")
        assert isinstance(key, JobKey)
        return key

    async def join(self, name: str, units: int = 1) -> None:
        await self.store.nodes.join(Node(name, "host", units, frozenset(), 1, 1, 1, draining=False))

    async def placed(self) -> list[Attempt]:
        return await self.store.attempts.place()

    async def node_of(self, key: JobKey) -> str:
        job = await self.store.jobs.get(key)
        assert job is not None
        return str(job.metadata["node"])


@pytest.fixture
async def both(postgresql: Cluster) -> AsyncIterator[Both]:
    async with AsyncExitStack() as stack:
        url = postgresql.database()
        store = await Store.open(DatabaseUrl(url))
        stack.push_async_callback(store.close)
        await ProcrastinateNotifier.open(store, DatabaseUrl(url))
        both = Both(postgresql, store, url)
        await stack.enter_async_context(both.app.open_async())
        yield both


async def test_a_job_goes_to_a_node_with_room_for_it(both: Both) -> None:
    """Delayed: Procrastinate counts jobs. A worker with one unit left takes one of four, and another stands idle."""
    small = await both.engine.register_worker()
    await both.engine.register_worker()  # with room
    await both.crawl.defer_async()
    assert await both.fetched(small) is not None
    await both.join("small", 1)
    await both.join("large", 4)
    key = await both.add(units=4)
    assert len(await both.placed()) == 1
    assert await both.node_of(key) == "large"


async def test_jobs_are_spread_over_the_nodes(both: Both) -> None:
    """Delayed: the worker that asks first takes as many as it may, and its jobs share one machine."""
    first = await both.engine.register_worker()
    await both.engine.register_worker()
    for _ in range(2):
        await both.crawl.defer_async()
    assert [await both.fetched(first) is not None for _ in range(2)] == [True, True]
    keys = [await both.add() for _ in range(2)]
    for name in ("a", "b"):
        await both.join(name, 2)
    await both.placed()
    assert {await both.node_of(key) for key in keys} == {"a", "b"}


async def test_each_job_that_is_added_is_notified(both: Both) -> None:
    """Delayed: one message for all may be read before a job is committed for which no other could be written."""
    worker = await both.engine.register_worker()
    await both.crawl.configure(queueing_lock="pending").defer_async()
    with pytest.raises(AlreadyEnqueued):
        await both.crawl.configure(queueing_lock="pending").defer_async()
    read = await both.fetched(worker)
    assert read is not None
    await both.engine.finish_job(read, Status.SUCCEEDED, delete_job=True)
    assert await both.fetched(worker) is None
    notified = asyncio.Queue[None]()
    listening = await Connector.connect(DatabaseUrl(both.url), lambda: notified.put_nowait(None))
    try:
        for _ in range(2):
            await both.add()
            await asyncio.wait_for(notified.get(), 60)
    finally:
        listening.break_off()


async def test_as_many_jobs_of_a_project_run_as_it_may(both: Both) -> None:
    """Delayed: a lock of Procrastinate's lets one run, where a project may run two at once."""
    worker = await both.engine.register_worker()
    for _ in range(3):
        await both.crawl.configure(lock="project 1").defer_async()
    assert [await both.fetched(worker) is not None for _ in range(3)] == [True, False, False]
    await both.store.projects.merge(1, {"max_running": b"2"})
    await both.join("node", 8)
    for _ in range(3):
        await both.add()
    assert len(await both.placed()) == 2


async def test_an_outage_of_the_database_is_nobodys_death(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubled: after an outage the heartbeats of all live workers are old, and their jobs are started once more."""
    lives, other = await both.engine.register_worker(), await both.engine.register_worker()
    await both.crawl.defer_async()
    job = await both.fetched(lives)
    assert job is not None
    both.query(f"UPDATE procrastinate_workers SET last_heartbeat = now() - interval '{OUTAGE} s'")
    assert await both.stalled() == [job.id]
    await both.again(job)
    twice = await both.fetched(other)
    assert twice is not None
    assert twice.id == job.id
    now = 1000.0
    monkeypatch.setattr(dead_nodes, "elapsing", lambda: now)
    detection = Detection(both.store, LocalNotifier(), 5)
    await both.join("node")
    await both.add()
    (attempt,) = await both.placed()
    await detection.poll()
    now += OUTAGE
    await detection.poll()
    assert await both.store.attempts.current(attempt.key) == attempt.number
    for _ in range(9):  # it is dead when it is silent while the database answers
        now += 1.0
        await detection.poll()
    assert await both.store.attempts.current(attempt.key) is None


async def test_a_node_that_was_found_dead_knows_it_at_its_next_heartbeat(both: Both) -> None:
    """Doubled: a worker that was taken for dead notices nothing, and each job of it counts as stalled from then on."""
    worker = await both.engine.register_worker()
    assert await both.engine.prune_stalled_workers(-1) == [worker]
    await both.engine.update_heartbeat(worker)
    assert both.query("SELECT count(*) FROM procrastinate_workers") == [["0"]]
    await both.crawl.defer_async()
    with pytest.raises(ConnectorException):  # its next job is refused to it, and it ends with all that it runs
        await both.fetched(worker)
    await both.join("node")
    assert await both.store.attempts.reap("node", 1, 5) == []
    assert await both.store.nodes.beat("node", 2) is False


async def test_the_end_of_an_earlier_attempt_ends_no_later_one(both: Both) -> None:
    """Lost: whoever had a job before may finish it, and the attempt that runs now cannot any more."""
    first, second = await both.engine.register_worker(), await both.engine.register_worker()
    await both.crawl.defer_async()
    early = await both.fetched(first)
    assert early is not None
    await both.again(early)
    late = await both.fetched(second)
    assert late is not None
    await both.engine.finish_job(early, Status.FAILED, delete_job=True)
    with pytest.raises(ConnectorException):
        await both.engine.finish_job(late, Status.SUCCEEDED, delete_job=True)
    await both.join("a")
    key = await both.add()
    (attempt,) = await both.placed()
    await both.store.attempts.reap("a", 1, 5)
    await both.join("b")
    (again,) = await both.placed()
    assert await both.store.attempts.end(attempt, "failed") is False
    assert await both.store.attempts.current(key) == again.number
    assert await both.store.attempts.end(again, "finished") is True


async def test_a_process_that_dies_while_it_places_holds_nobody_up(both: Both) -> None:
    """Delayed: the lock of a dead worker's job stays until it is stalled; a row lock ends with its connection."""
    dead, lives = await both.engine.register_worker(), await both.engine.register_worker()
    for _ in range(2):
        await both.crawl.configure(lock="placing").defer_async()
    assert await both.fetched(dead) is not None
    assert await both.fetched(lives) is None
    await both.join("node", 2)
    await both.add()
    assert len(await both.placed()) == 1  # which has made the row
    dying = await asyncpg.connect(both.url)
    await dying.execute("BEGIN")
    await dying.execute("SELECT taken FROM turns WHERE name = 'placing' FOR UPDATE")
    await both.add()
    assert await both.placed() == []
    dying.terminate()
    assert len(await eventually_async(both.placed)) == 1


async def test_a_connection_that_is_lost_ends_no_heartbeat(both: Both) -> None:
    """Doubled: after a heartbeat that failed a worker sends no other. It runs on, and its jobs count as stalled."""
    began = asyncio.Event()
    connector = await Connector.connect(DatabaseUrl(both.url), lambda: None)
    app = procrastinate.App(connector=connector)

    @app.task(name="long", queue="long")
    async def long() -> None:
        began.set()
        await asyncio.Event().wait()

    both.query("INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('long', 'long')")
    worker = asyncio.create_task(
        app.run_worker_async(
            queues=["long"],
            update_heartbeat_interval=0.05,
            shutdown_graceful_timeout=0,
            install_signal_handlers=False,
        )
    )
    await asyncio.wait_for(began.wait(), 60)
    connector.break_off()
    await eventually_async(lambda: both.engine.get_stalled_jobs(seconds_since_heartbeat=2), list)
    assert not worker.done()
    worker.cancel()
    with contextlib.suppress(asyncio.CancelledError, ConnectorException):
        await worker


async def test_schedules_are_added_and_made_up_for_while_it_runs(both: Both) -> None:
    """Delayed or lost: Procrastinate's schedules are those of its code as it starts, and ten minutes late is never."""
    deferrer = PeriodicDeferrer(both.app.periodic_registry)
    await deferrer.worker()  # ends at once: there is no schedule, and it will not look again
    both.app.periodic(cron="0 4 * * *")(both.crawl)
    four = 1_773_115_200  # 2026-03-10, 04:00 UTC
    assert [at for _, at in PeriodicDeferrer(both.app.periodic_registry).get_previous_tasks(four + 11 * 60)] == []
    now = (four - 60) * 1000
    store = await Store.open(DatabaseUrl(both.url), lambda: now)
    try:
        await store.periodic.add(books())
        now = (four + 11 * 60) * 1000
        (due,) = await store.periodic.due()
        run = await store.periodic.run(due)
        assert run is not None
        assert len(run.jobs) == 1
    finally:
        await store.close()
