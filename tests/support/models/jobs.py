"""The job queue: numbers without gaps, one start for each job, states that never go back, doubles that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from hypothesis import strategies as st

from scrapy_ext.api.platform.jobs import TRANSITIONS, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.states import Change
from tests.support.models.history import REFUSED, UNKNOWN, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import HttpWorld, StoreWorld, accepted

SPIDERS = ("books", "shoes")
TAGS = ("x", "y")
_ACTIVE = (JobState.PENDING, JobState.RUNNING)
#: A job: the number of its spider and its own.
Key = tuple[int, int]


class Push(NamedTuple):
    spider: str
    priority: int
    unique: str | None
    state: JobState


class Start(NamedTuple):
    pass


class SetState(NamedTuple):
    """All of these jobs, or none."""

    jobs: tuple[Key, ...]
    state: JobState


class Cancel(NamedTuple):
    jobs: tuple[Key, ...]


class CancelSome(NamedTuple):
    count: int


class Tag(NamedTuple):
    job: Key
    add: tuple[str, ...]
    remove: tuple[str, ...]


class Get(NamedTuple):
    job: Key


class CountJobs(NamedTuple):
    """With a state, and one of these tags or none of the others."""

    state: JobState
    has_tags: tuple[str, ...]
    lacks_tags: tuple[str, ...]


class Listed(NamedTuple):
    state: JobState


class Job(NamedTuple):
    """A job; jobs of a state stand in the order in which they were pushed."""

    key: Key
    spider: str
    state: JobState
    priority: int
    unique: str | None
    tags: tuple[str, ...] = ()
    cancelled: bool = False

    def entered(self, state: JobState) -> Job:
        """The job in another state."""
        unique = self.unique if state in _ACTIVE else None
        return self._replace(state=state, unique=unique, cancelled=self.cancelled and state is not JobState.RUNNING)


State = tuple[Job, ...]


class Jobs:
    """The model: the jobs of a project in the order in which they were pushed."""

    tables = ("jobs", "job_tags", "counters")

    def initial(self, part: Any) -> State:
        return ()

    def parts(self, call: Call) -> Iterator[tuple[str, Call]]:
        yield "project", call

    def step(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        jobs = {job.key: job for job in state}
        match operation:
            case Push():
                yield from self._push(state, operation, result)
                return
            case Start():
                waiting = [job for job in state if job.state is JobState.PENDING]
                first = max(waiting, key=lambda job: job.priority, default=None)  # the first of equals
                if not either(result, first and first.key):
                    return
                if first is not None:
                    jobs[first.key] = first.entered(JobState.RUNNING)
            case SetState(keys, wanted):
                named = [jobs.get(key) for key in keys]
                possible = all(job is None or job.state is wanted or wanted in TRANSITIONS[job.state] for job in named)
                if not either(result, [job and job.state for job in named] if possible else REFUSED):
                    return
                if possible:
                    jobs |= {job.key: job.entered(wanted) for job in named if job and job.state is not wanted}
            case Cancel(keys):
                named = [jobs.get(key) for key in keys]
                if not either(
                    result,
                    [job and job.state for job in named],
                    sum(bool(job) and job.state in _ACTIVE for job in named),
                ):
                    return
                jobs |= {job.key: cancelled(job) for job in named if job is not None}
            case CancelSome(count):
                newest = [job for job in reversed(state) if job.state is JobState.PENDING]
                waiting = sorted(newest, key=lambda job: job.priority)  # those that would start last come first
                chosen = [*waiting, *(job for job in state if job.state is JobState.RUNNING)][:count]
                if result is UNKNOWN:
                    yield state
                elif result != len(chosen):
                    return
                if len(waiting) < len(chosen):  # running jobs are ordered by their start
                    running = [job for job in state if job.state is JobState.RUNNING]
                    if len(chosen) - len(waiting) < len(running):
                        yield from self._some_running(jobs, waiting, running, len(chosen) - len(waiting))
                        return
                jobs |= {job.key: cancelled(job) for job in chosen}
            case Tag(key, add, remove):
                job = jobs.get(key)
                is_deleted = job is not None and job.state is JobState.DELETED
                if not either(result, REFUSED if is_deleted else int(job is not None)):
                    return
                if job is not None and not is_deleted:
                    kept = [tag for tag in job.tags if tag not in remove]
                    jobs[key] = job._replace(tags=tuple(dict.fromkeys([*kept, *add])))
            case Get(key):
                job = jobs.get(key)
                yield from only(
                    either(result, job and (job.spider, job.state, job.priority, job.tags, job.cancelled)), state
                )
                return
            case CountJobs(wanted, has, lacks):
                matching = [
                    job
                    for job in state
                    if job.state is wanted
                    and (not has or not set(has).isdisjoint(job.tags))
                    and set(lacks).isdisjoint(job.tags)
                ]
                yield from only(either(result, len(matching)), state)
                return
            case Listed(wanted):
                yield from only(either(result, sorted(job.key for job in state if job.state is wanted)), state)
                return
        yield tuple(jobs.values())

    def _some_running(
        self, jobs: dict[Key, Job], waiting: list[Job], running: list[Job], count: int
    ) -> Iterator[State]:
        for chosen in combinations(running, count):
            yield tuple((jobs | {job.key: cancelled(job) for job in [*waiting, *chosen]}).values())

    def _push(self, state: State, operation: Push, result: Any) -> Iterator[State]:
        double = next((job for job in state if job.unique and job.unique == operation.unique), None)
        if double is not None:
            yield from only(either(result, ("double", double.key)), state)
            return
        numbers = {job.spider: job.key[0] for job in state}
        spider = numbers.get(operation.spider, len(numbers) + 1)
        number = sum(job.spider == operation.spider for job in state) + 1
        unique = operation.unique if operation.state in _ACTIVE else None
        job = Job((spider, number), operation.spider, operation.state, operation.priority, unique)
        yield from only(either(result, job.key), (*state, job))

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        keys = st.tuples(st.integers(1, 2), st.integers(1, 5))
        several = st.lists(keys, min_size=1, max_size=3, unique=True).map(tuple)
        tags = st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple)
        states = st.sampled_from(JobState)
        push = made(
            Push,
            st.sampled_from(SPIDERS),
            st.integers(0, 2),
            st.none() | st.sampled_from(["u", "v"]),
            st.sampled_from([JobState.PENDING, JobState.PENDING, JobState.RUNNING, JobState.FINISHED]),
        )
        each: list[st.SearchStrategy[Any]] = [
            *(push, push, push, st.just(Start()), st.just(Start())),
            *(made(SetState, several, states), made(SetState, several, states), made(Cancel, several)),
            *(made(Tag, keys, tags, tags), made(Get, keys), made(CountJobs, states, tags, tags)),
            made(Listed, states),
        ]
        if not at_once:  # it looks first, and cancels then what it has seen
            each.append(made(CancelSome, st.integers(1, 4)))
        return st.one_of(each)


def cancelled(job: Job) -> Job:
    """A job that somebody has cancelled."""
    if job.state not in _ACTIVE:
        return job
    job = job.entered(JobState.FINISHED) if job.state is JobState.PENDING else job
    return job._replace(cancelled=True)


class OnStores:
    """Operations of two stores in turn."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        self._world, self._project, self._turn = world, project, 0

    def resolved(self, operation: Any) -> Any:
        self._world.clock.now += 1
        return operation

    def _key(self, key: Key) -> JobKey:
        return JobKey(self._project, *key)

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store, project = self._world.stores[self._turn % 2].jobs, self._project
        match operation:
            case Push(spider, priority, unique, state):
                job = NewJob(spider, state, {"priority": priority}, unique)
                (added,) = await store.add(project, [job], "me")
                return ("double", added.key[1:]) if isinstance(added, DuplicateJobError) else added[1:]
            case Start():
                started = await store.start_next(project, {}, "me")
                return started and started.key[1:]
            case SetState(keys, state):
                return await store.change(project, [Change(self._key(key), state, {}) for key in keys], "me")
            case Cancel(keys):
                return await store.cancel(project, list(map(self._key, keys)), "me")
            case CancelSome(count):
                return await store.cancel_some(project, count, "me")
            case Tag(key, add, remove):
                return await store.tag([self._key(key)], add, remove)
            case Get(key):
                found = await store.get(self._key(key))
                if found is None:
                    return None
                assert found.metadata["state"] == found.state.value
                tags = tuple(found.metadata.get("tags", ()))
                return found.spider, found.state, found.metadata["priority"], tags, "cancelled_by" in found.metadata
            case CountJobs(state, has, lacks):
                return await store.count(project, JobFilter(states=(state,), has_tags=has, lacks_tags=lacks))
            case Listed(state):
                found = await store.listed(project, JobFilter(states=(state,)), JobPage(1000))
                assert found == sorted(found, key=lambda job: (job.changed, *job.key), reverse=True)
                return sorted(job.key[1:] for job in found)
        return None


class OverHttp:
    """The same over HTTP."""

    def __init__(self, world: HttpWorld, project: int) -> None:
        self._world, self._project = world, project

    def resolved(self, operation: Any) -> Any:
        return operation

    def _text(self, key: Key) -> str:
        return str(JobKey(self._project, *key))

    async def make(self, operation: Any) -> Any:
        http, queue = self._world.http, f"/jobq/{self._project}"
        match operation:
            case Push(spider, priority, unique, state):
                record = {"spider": spider, "priority": priority, "state": state.value, "unique": unique}
                (line,) = accepted(await http.post(f"{queue}/push", [record])).lines
                if "key" in line:
                    return JobKey.parse(line["key"])[1:]
                return "double", JobKey.parse(line["error"].rpartition(" ")[2])[1:]
            case Start():
                answer = accepted(await http.post(f"{queue}/startjob", b"{}"))
                return JobKey.parse(answer.json["key"])[1:] if answer.body else None
            case SetState(keys, state):
                body = [{"key": self._text(key), "state": state.value} for key in keys]
                lines = accepted(await http.post(f"{queue}/update", body), 400, 409).lines
                previous = {line["key"]: JobState(line["prevstate"]) for line in lines}
                return [previous.get(self._text(key)) for key in keys]
            case Cancel(keys):
                body = b"[" + b",".join(b'{"key":"%s"}' % self._text(key).encode() for key in keys) + b"]"
                return accepted(await http.post(f"{queue}/cancel", body)).json["count"]
            case CancelSome(count):
                return accepted(await http.post(f"{queue}/cancel?count={count}")).json["count"]
            case Tag(key, add, remove):
                fields = [("project", str(self._project)), ("job", self._text(key))]
                fields += [("add_tag", tag) for tag in add] + [("remove_tag", tag) for tag in remove]
                body = "&".join(f"{name}={value}" for name, value in fields).encode()
                return accepted(await http.post("/api/jobs/update.json", body), 410).json.get("count")
            case Get(key):
                answer = await http.get(f"/jobs/{self._text(key)}")
                found_job = None if answer.status == 404 else accepted(answer).json
                if not found_job:
                    return None
                tags = tuple(found_job.get("tags", ()))
                return (
                    found_job["spider"],
                    JobState(found_job["state"]),
                    found_job["priority"],
                    tags,
                    "cancelled_by" in found_job,
                )
            case CountJobs(state, has, lacks):
                query = [
                    f"state={state.value}",
                    *(f"has_tag={tag}" for tag in has),
                    *(f"lacks_tag={tag}" for tag in lacks),
                ]
                return int(accepted(await http.get(f"{queue}/count?{'&'.join(query)}")).text)
            case Listed(state):
                lines = accepted(await http.get(f"{queue}/list?state={state.value}")).lines
                return sorted(JobKey.parse(line["key"])[1:] for line in lines)
        return None
