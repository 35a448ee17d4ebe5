"""Attempts: a job has one at a time and a number for each, and whoever has an earlier one writes nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.attempts import RUNNER
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.jobs.placing import place_one
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.jobs.states import SHUTDOWN, Stamp
from scrapy_ext.server.store.records.chunks import ITEMS
from tests.support.models.history import REFUSED, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import StoreWorld
from tests.support.packing import pack_chunk

NAMES = ("n1", "n2")
UNITS = 2
#: How often a job may lose its node.
MOST_LOSSES = 2


class Push(NamedTuple):
    pass


class Join(NamedTuple):
    node: str


class Beat(NamedTuple):
    node: str
    beat: int


class Place(NamedTuple):
    """``alone``: nobody else can have the turn."""

    alone: bool


class Write(NamedTuple):
    """An item of the process of an attempt."""

    job: int
    attempt: int


class Said(NamedTuple):
    job: int
    attempt: int
    reason: str


class End(NamedTuple):
    job: int
    attempt: int
    reason: str | None


class GiveBack(NamedTuple):
    job: int
    attempt: int


class Cancel(NamedTuple):
    job: int


class Reap(NamedTuple):
    node: str
    beat: int


class Look(NamedTuple):
    job: int


class Job(NamedTuple):
    state: JobState = JobState.PENDING
    attempts: int = 0
    node: str | None = None
    reason: str | None = None
    said: str | None = None
    cancelled: bool = False
    losses: int = 0
    items: int = 0

    def ended(self, reason: str) -> Job:
        """The job after its process has ended."""
        job = self._replace(node=None, said=None)
        if job.state not in (JobState.PENDING, JobState.RUNNING):
            return job
        if job.cancelled and reason in (None, SHUTDOWN):
            reason = "cancelled"
        return job._replace(state=JobState.FINISHED, reason=reason)


class State(NamedTuple):
    """``nodes``: the name of each with its beat."""

    jobs: tuple[Job, ...] = ()
    nodes: tuple[tuple[str, int], ...] = ()

    def with_job(self, number: int, job: Job) -> State:
        """The state with another job of a number, which counts from 1."""
        return self._replace(jobs=(*self.jobs[: number - 1], job, *self.jobs[number:]))

    def job(self, number: int) -> Job | None:
        """The job of a number."""
        return self.jobs[number - 1] if number <= len(self.jobs) else None

    def used(self, node: str) -> int:
        """Units that the jobs of a node take."""
        return sum(job.node == node for job in self.jobs)


class Nodes:
    """The model: jobs that all need the same, and nodes that have the code of their project."""

    tables = ("attempts", "jobs", "nodes")

    def initial(self, part: Any) -> State:
        return State()

    def parts(self, call: Call) -> Iterator[tuple[str, Call]]:
        yield "project", call

    def step(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        match operation:
            case Push():
                yield from only(either(result, len(state.jobs) + 1), state._replace(jobs=(*state.jobs, Job())))
            case Join(node):
                nodes = {**dict(state.nodes), node: 0}
                yield state._replace(nodes=tuple(sorted(nodes.items())))
            case Beat(node, beat):
                nodes = dict(state.nodes)
                if either(result, node in nodes):
                    yield state._replace(nodes=tuple(sorted((nodes | ({node: beat} if node in nodes else {})).items())))
            case Place(alone):
                yield from self._place(state, alone, result)
            case Reap(node, beat):
                yield from self._reap(state, node, beat, result)
            case Cancel(number):
                job = state.job(number)
                if either(result, job and job.state):
                    yield state if job is None else state.with_job(number, cancelled(job))
            case Look(number):
                job = state.job(number)
                seen = job and (job.state, job.attempts, job.node and job.attempts, job.reason, job.items)
                yield from only(either(result, seen), state)
            case _:
                yield from self._of_attempt(state, operation, result)

    def _place(self, state: State, alone: bool, result: Any) -> Iterator[State]:
        free = {node: UNITS - state.used(node) for node, _ in state.nodes}
        number = next((n for n, job in enumerate(state.jobs, 1) if job.state is JobState.PENDING), None)
        node = max(free, key=lambda node: (free[node], node), default=None)
        if number is None or node is None or free[node] <= 0:
            yield from only(either(result, None), state)
            return
        if not alone and either(result, None):  # another has the turn, or has taken this job
            yield state
        job = state.jobs[number - 1]
        if either(result, (number, job.attempts + 1)):
            placed = job._replace(state=JobState.RUNNING, attempts=job.attempts + 1, node=node, said=None, reason=None)
            yield state.with_job(number, placed._replace(cancelled=False))

    def _reap(self, state: State, node: str, beat: int, result: Any) -> Iterator[State]:
        nodes = dict(state.nodes)
        over = []
        if nodes.get(node, beat) == beat:
            nodes.pop(node, None)
            state = state._replace(nodes=tuple(sorted(nodes.items())))
            for number, job in enumerate(state.jobs, 1):
                if job.node == node:
                    over.append((number, job.attempts))
                    losses = job.losses + 1
                    state = state.with_job(number, given_back(job._replace(losses=losses), lost=True))
        yield from only(either(result, sorted(over)), state)

    def _of_attempt(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        job = state.job(operation.job)
        is_current = job is not None and job.node is not None and job.attempts == operation.attempt
        if job is None or not is_current:
            refused = REFUSED if isinstance(operation, Write | Said) else False
            yield from only(either(result, refused), state)
            return
        match operation:
            case Write():
                job, expected = job._replace(items=job.items + 1), job.items
            case Said(_, _, reason):
                job, expected = job._replace(said=reason), None
            case End(_, _, reason):
                said = job.said
                reason_of_end = said if said not in (None, SHUTDOWN) else reason or said or "failed"
                job, expected = job.ended(reason_of_end), True
            case _:
                job, expected = given_back(job, lost=False), True
        yield from only(either(result, expected), state.with_job(operation.job, job))

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        nodes, jobs, attempts = st.sampled_from(NAMES), st.integers(1, 4), st.integers(1, 3)
        beats, reasons = st.integers(0, 1), st.sampled_from(["finished", SHUTDOWN, "other"])
        place = st.just(Place(alone=not at_once))
        each: list[st.SearchStrategy[Any]] = [
            *(st.just(Push()), st.just(Push()), made(Join, nodes), place, place, place),
            *(made(Beat, nodes, beats), made(Write, jobs, attempts), made(Write, jobs, attempts)),
            *(made(Said, jobs, attempts, reasons), made(End, jobs, attempts, st.none() | reasons)),
            *(made(GiveBack, jobs, attempts), made(Cancel, jobs), made(Look, jobs)),
        ]
        if not at_once:  # one transaction for the node, and one for each job
            each.append(made(Reap, nodes, beats))
        return st.one_of(each)


def cancelled(job: Job) -> Job:
    """A job that somebody has cancelled."""
    if job.state is JobState.PENDING:
        return job._replace(state=JobState.FINISHED, cancelled=True, reason="cancelled")
    return job._replace(cancelled=True) if job.state is JobState.RUNNING else job


def given_back(job: Job, *, lost: bool) -> Job:
    """A job whose node does not have it any more."""
    if job.said not in (None, SHUTDOWN):
        return job.ended(str(job.said))
    if job.cancelled:
        return job.ended("cancelled")
    if lost and job.losses >= MOST_LOSSES:
        return job.ended("node_lost")
    waits = job.state is JobState.RUNNING
    return job._replace(state=JobState.PENDING if waits else job.state, node=None, said=None)


class OnStores:
    """Operations of two stores in turn."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        self._world, self._project, self._turn = world, project, 0

    def resolved(self, operation: Any) -> Any:
        return operation

    def _node(self, name: str) -> str:
        return f"{self._project}-{name}"

    def _key(self, number: int) -> JobKey:
        return JobKey(self._project, 1, number)

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store = self._world.stores[self._turn % 2]
        match operation:
            case Push():
                (added,) = await store.jobs.add(self._project, [NewJob("s", JobState.PENDING, {})], "me")
                return added.job
            case Join(node):
                named = StoredNode(self._node(node), "host", UNITS, frozenset(), self._project, 0, 0, False)
                await store.nodes.join(named)
            case Beat(node, beat):
                return await store.nodes.heartbeat(self._node(node), beat)
            case Place():
                placed = await store._engine.write(place_one, Stamp(RUNNER, self._world.clock.now), None)
                return placed and (placed[0].job, placed[1])
            case Reap(node, beat):
                over = await store.attempts.release_jobs(self._node(node), beat, MOST_LOSSES)
                return sorted((attempt.key.job, attempt.number) for attempt in over)
            case Cancel(number):
                return (await store.jobs.cancel(self._project, [self._key(number)], "me"))[0]
            case Look(number):
                return await self._look(self._key(number))
            case Write(number, attempt):
                key, chunks = self._key(number), [pack_chunk(ITEMS, [b"{}"], [{}])]
                return await store.items.write(key, None, chunks, attempt=Attempt(key, attempt))
            case Said(number, attempt, reason):
                await store.attempts.said(Attempt(self._key(number), attempt), reason)
            case End(number, attempt, reason):
                return await store.attempts.end(Attempt(self._key(number), attempt), reason)
            case GiveBack(number, attempt):
                return await store.attempts.give_back(Attempt(self._key(number), attempt))
        return None

    async def _look(self, key: JobKey) -> Any:
        async def look(tx: Any) -> Any:
            """All of a job in one state of the database."""
            job = await tx.fetchrow("SELECT state FROM jobs WHERE project = $1 AND spider = $2 AND job = $3", *key)
            attempt = await tx.fetchrow(
                "SELECT attempt FROM attempts WHERE project = $1 AND spider = $2 AND job = $3", *key
            )
            items = await tx.fetchrow(
                "SELECT records FROM record_totals WHERE project = $1 AND spider = $2 AND job = $3", *key
            )
            return job and (await get_job(tx, key), attempt and attempt[0], items[0] if items else 0)

        found = await self._world.stores[0]._engine.read(look)
        if found is None:
            return None
        job, attempt, items = found
        metadata = job.metadata
        return job.state, metadata.get("attempt", 0), attempt, metadata.get("close_reason"), items

    async def end(self) -> None:
        """Leave no job for the nodes of others, and no node."""
        store = self._world.stores[0]
        for number in range(1, 60):
            key = self._key(number)
            for attempt in await store.attempts.numbers(key):
                await store.attempts.end(Attempt(key, attempt), "over")
        await store.jobs.cancel_some(self._project, 100, "me")
        for node in NAMES:
            await store.nodes.leave(self._node(node))
