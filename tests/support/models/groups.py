"""Groups: the workers of one job, of which one at a time runs ``start()``, and the last one ends the job, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.workers import Report, ReportAnswer, Silent
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.states import Change
from tests.support.models.history import REFUSED, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import StoreWorld

#: The highest number of workers, and the losses that close a crawl.
MOST = 1
MOST_LOSSES = 5 * MOST


class Join(NamedTuple):
    nonce: int
    resume: bool


class Send(NamedTuple):
    """A report. ``silent``: pairs of attempt and report number."""

    attempt: int
    number: int
    done: bool
    closing: str | None
    silent: tuple[tuple[int, int], ...]


class Last(NamedTuple):
    attempt: int
    number: int
    outcome: str


class Cancel(NamedTuple):
    pass


class Reopen(NamedTuple):
    """The job becomes running again, as before a new start."""


class Look(NamedTuple):
    pass


class Row(NamedTuple):
    attempt: int
    worker: int
    nonce: int
    number: int


class State(NamedTuple):
    """``ends``: how often the job has ended."""

    running: bool = True
    cancelled: bool = False
    reason: str | None = None
    ends: int = 0
    last_attempt: int = 0
    rows: tuple[Row, ...] = ()
    closing: str | None = None
    starter: int | None = None
    started: bool = False
    losses: int = 0
    found_end: bool = False

    def row(self, attempt: int) -> Row | None:
        """The row of an attempt."""
        return next((row for row in self.rows if row.attempt == attempt), None)

    def without(self, attempt: int) -> State:
        """The state without the row of an attempt."""
        return self._replace(rows=tuple(row for row in self.rows if row.attempt != attempt))

    def closed(self, reason: str) -> State:
        """The state of a crawl that closes; the first reason stays."""
        return self if self.closing is not None else self._replace(closing=reason)

    def seen(self) -> State:
        """The state after a report has seen whether the job is cancelled."""
        return self.closed("cancelled") if self.cancelled else self

    def with_starter(self, attempt: int) -> State:
        """The state with a worker that runs ``start()``."""
        if self.started or self.closing is not None or self.row(self.starter or 0):
            return self
        return self._replace(starter=attempt)

    def answer(self, attempt: int) -> Any:
        """The answer to a report of an attempt."""
        workers = tuple((row.attempt, row.worker, row.number) for row in sorted(self.rows, key=lambda row: row.worker))
        return workers, self.closing, self.starter == attempt and not self.started


class Groups:
    """The model: the group of one job, without nodes."""

    tables = ("attempts", "worker_groups", "jobs")

    def initial(self, part: Any) -> State:
        return State()

    def parts(self, call: Call) -> Iterator[tuple[str, Call]]:
        yield "job", call

    def step(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        match operation:
            case Join():
                yield from self._join(state, operation, result)
            case Send() | Last():
                row = state.row(operation.attempt)
                if row is None:
                    yield from only(either(result, REFUSED), state)
                elif operation.number <= row.number:
                    state = state.seen()
                    yield from only(either(result, state.answer(row.attempt)), state)
                elif isinstance(operation, Send):
                    yield from self._send(state, row, operation, result)
                else:
                    yield from self._last(state, row, operation, result)
            case Cancel():
                after = state._replace(cancelled=state.cancelled or state.running)
                yield from only(either(result, state.running), after)
            case Reopen():
                after = state if state.running else state._replace(running=True, cancelled=False, reason=None)
                yield from only(either(result, state.running), after)
            case Look():
                yield from only(either(result, (state.running, state.reason, state.ends)), state)

    def _join(self, state: State, join: Join, result: Any) -> Iterator[State]:
        if not state.running:
            yield from only(either(result, REFUSED), state)
            return
        row = next((row for row in state.rows if row.nonce == join.nonce), None)
        if row is None:
            if join.resume:
                state = state._replace(rows=(), closing=None, starter=None, losses=0, found_end=False)
            free = min(set(range(9)) - {row.worker for row in state.rows})
            row = Row(state.last_attempt + 1, free, join.nonce, 1)
            state = state._replace(last_attempt=row.attempt, rows=(*state.rows, row)).seen().with_starter(row.attempt)
        else:
            state = state.seen()
        yield from only(either(result, (row.attempt, row.worker, *state.answer(row.attempt))), state)

    def _send(self, state: State, row: Row, send: Send, result: Any) -> Iterator[State]:
        if send.done and state.starter != row.attempt:
            yield from only(either(result, REFUSED), state)
            return
        after = state.without(row.attempt)
        after = after._replace(rows=(*after.rows, row._replace(number=send.number)), started=state.started or send.done)
        for attempt, number in send.silent:
            other = after.row(attempt)
            if other is not None and attempt != row.attempt and other.number == number:
                after = after.without(attempt)._replace(losses=after.losses + 1, found_end=False)
                after = after.closed("node_lost") if after.losses >= MOST_LOSSES else after
        after = after if send.closing is None else after.closed(send.closing)
        after = after.seen().with_starter(row.attempt)
        yield from only(either(result, after.answer(row.attempt)), after)

    def _last(self, state: State, row: Row, last: Last, result: Any) -> Iterator[State]:
        # The answer has what was decided before the end of the worker.
        after = state._replace(found_end=last.outcome == "finished").without(row.attempt).seen()
        expected = after.answer(row.attempt)
        if last.outcome not in ("finished", "shutdown"):
            after = after.closed(last.outcome)
        if not after.rows:
            reason = after.closing or ("finished" if after.found_end else "shutdown")
            after = after._replace(running=False, reason=reason, ends=after.ends + 1, found_end=False)
        yield from only(either(result, expected), after)

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        attempts, numbers = st.integers(1, 4), st.integers(1, 5)
        silent = st.lists(st.tuples(attempts, numbers), max_size=2).map(tuple)
        joins = made(Join, st.integers(1, 4), st.just(False))
        send = made(Send, attempts, numbers, st.just(False), st.just(None), silent)
        start = made(Send, attempts, numbers, st.booleans(), st.sampled_from([None, None, "limit"]), silent)
        last = made(Last, attempts, numbers, st.sampled_from(["finished", "finished", "shutdown", "failed"]))
        resume = made(Join, st.integers(5, 6), st.just(True))
        return st.one_of(
            [*(joins, joins, joins, send, send, start, last, last), *(resume, st.just(Reopen()), st.just(Look()))]
            + [st.just(Cancel())] * (not at_once)
        )


class OnStores:
    """Operations of two stores in turn, on a job of its own."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        self._world, self._project, self._turn = world, project, 0
        (key,) = world.run(world.stores[0].jobs.add(project, [NewJob("s", JobState.RUNNING, {})], "me"))
        self._key: JobKey = key

    def resolved(self, operation: Any) -> Any:
        return operation

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store = self._world.stores[self._turn % 2]
        match operation:
            case Join(nonce, resume):
                answer = await self._report(number=1, nonce=f"{nonce:032x}", resume=resume, workers=str(MOST))
                return answer.attempt, answer.worker, *_seen(answer)
            case Send(attempt, number, done, closing, silent):
                named = tuple(Silent(*each) for each in silent)
                start: Any = "done" if done else None
                return _seen(
                    await self._report(attempt=attempt, number=number, start=start, closing=closing, silent=named)
                )
            case Last(attempt, number, outcome):
                return _seen(await self._report(attempt=attempt, number=number, last=True, outcome=outcome))
            case Cancel():
                return (await store.jobs.cancel(self._project, [self._key], "me"))[0] is JobState.RUNNING
            case Reopen():
                changed = await store.jobs.change(self._project, [Change(self._key, JobState.RUNNING, {})], "me")
                return changed[0] is JobState.RUNNING
        return await self._look()

    async def _report(self, **fields: Any) -> ReportAnswer:
        store = self._world.stores[self._turn % 2]
        return await store.groups.report(self._key, Report(job=str(self._key), **fields))

    async def _look(self) -> Any:
        async def look(tx: Any) -> Any:
            """The job, and the events of its ends, in one state of the database."""
            job = await tx.fetchrow(
                "SELECT state, metadata FROM jobs WHERE project = $1 AND spider = $2 AND job = $3", *self._key
            )
            return job, await tx.fetch("SELECT event FROM activity WHERE project = $1", self._project)

        (state, metadata), events = await self._world.stores[0]._engine.read(look)
        ends = sum(b'"job:completed"' in event for (event,) in events)
        return state == "running", msgspec.json.decode(metadata).get("close_reason"), ends

    async def end(self) -> None:
        """Leave no running job."""
        await self._world.stores[0].jobs.delete(self._project, [self._key], "me")


def _seen(answer: ReportAnswer) -> Any:
    workers = tuple((each.attempt, each.worker, each.number) for each in answer.workers)
    return workers, answer.closing and answer.closing.reason, answer.run_start
