"""Mixed writes to a platform whose clients keep account of them, for tests in which something dies meanwhile.

Each client writes what only it writes, one call after the other, and notes what was answered with 200. A call that
breaks, or that is refused for now (503, 507), may have been done or not; a client that can say so sends it again as
it was. At the end all of it is read: what was answered is there, nothing is there twice, and what the platform counts
is what there is.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import aiohttp

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from tests.support.http import Answer, Http

#: Between two attempts of a call that was not answered.
_PAUSE = 0.03
_TIMEOUT = 300.0


class Caller:
    """Calls one of several servers at random."""

    def __init__(self, servers: Sequence[Http], chance: random.Random, *, old_reads: bool = False) -> None:
        self._servers = servers
        self._chance = chance
        #: Whether a server may read what is no longer so.
        self.old_reads = old_reads
        self.answered = 0
        #: Calls that were refused for now, by status.
        self.refused: Counter[int] = Counter()
        self.broken = 0

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer | None:
        """The answer; None for a call that may have been done or not."""
        try:
            answer = await self._chance.choice(self._servers).call(method, path, body, **headers)
        except (aiohttp.ClientError, OSError, *TIMEOUT_ERRORS):
            self.broken += 1
            await asyncio.sleep(_PAUSE)
            return None
        if answer.status in (503, 507):
            assert answer.status == 507 or int(answer.headers["Retry-After"]) > 0
            self.refused[answer.status] += 1
            await asyncio.sleep(_PAUSE)
            return None
        assert answer.status == 200, (method, path, answer)
        self.answered += 1
        return answer

    async def surely(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """The answer, however often it has to be asked for."""
        while (answer := await self(method, path, body, **headers)) is None:
            pass
        return answer


class Client(Protocol):
    """One that keeps account."""

    async def step(self, call: Caller) -> None:
        """One write, or what was not answered of it again."""

    async def check(self, call: Caller) -> None:
        """Compare what is there with the account; nothing fails any more."""


class NumberedItems:
    """Says where its items belong, by ``start`` or ``Content-Range``, and sends again what was not answered.

    The first item may have any index, which ``Content-Range`` sets.
    """

    def __init__(self, number: int, chance: random.Random) -> None:
        self._path = f"/items/{number}/1/1"
        self._chance = chance
        self._first = chance.choice((0, 500))
        self._stored: list[dict[str, Any]] = []
        self._pending: list[dict[str, Any]] = []

    async def step(self, call: Caller) -> None:
        start = self._first + len(self._stored)
        if not self._pending:
            numbers = range(start, start + self._chance.choice((1, 3, 40, 1100)))
            self._pending = [{"n": n, f"field {n % 3}": "x" * (n % 50)} for n in numbers]
        if self._stored and self._chance.random() < 0.5:
            answer = await call("POST", f"{self._path}?start={start}", self._pending)
        else:
            answer = await call("POST", self._path, self._pending, Content_Range=f"items {start}-/*")
        if answer is not None:
            self._stored += self._pending
            self._pending = []

    async def check(self, call: Caller) -> None:
        while self._pending:
            await self.step(call)
        found = (await call.surely("GET", f"{self._path}?meta=_key")).lines
        keys = [f"{self._path.removeprefix('/items/')}/{self._first + place}" for place in range(len(self._stored))]
        assert found == [item | {"_key": key} for item, key in zip(self._stored, keys, strict=True)]
        stats = (await call.surely("GET", f"{self._path}/stats")).json
        assert stats["totals"]["input_values"] == len(self._stored)
        assert stats["counts"] == Counter(field for item in self._stored for field in item)


class AppendedItems:
    """Appends, and so does not send again what was not answered."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self._path = f"/items/{number}/1/1"
        self._chance = chance
        self._sent = 0
        self._answered: set[int] = set()

    async def step(self, call: Caller) -> None:
        marks = range(self._sent, self._sent + self._chance.choice((1, 2, 10)))
        self._sent = marks.stop
        if await call("POST", self._path, [{"mark": mark} for mark in marks]) is not None:
            self._answered.update(marks)

    async def check(self, call: Caller) -> None:
        found = [item["mark"] for item in (await call.surely("GET", self._path)).lines]
        assert len(set(found)) == len(found)
        assert self._answered <= set(found) <= set(range(self._sent))
        assert found == sorted(found)
        stats = (await call.surely("GET", f"{self._path}/stats")).json
        assert stats["totals"]["input_values"] == stats["counts"].get("mark", 0) == len(found)


class Records:
    """Writes and deletes the records of a collection, many at a time."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self._path = f"/collections/{number}/s/c"
        self._chance = chance
        self._turn = 0
        #: Every value that a record may have; None is that it is not there.
        self._values: dict[str, set[int | None]] = {}

    async def step(self, call: Caller) -> None:
        self._turn += 1
        first = self._chance.randrange(200)
        keys = [f"{n:03}" for n in range(first, first + self._chance.choice((1, 20)))]
        value: int | None = self._turn
        if self._chance.random() < 0.3:
            value, answer = None, await call("POST", f"{self._path}/deleted", json.dumps(keys).encode())
        else:
            answer = await call("POST", self._path, [{"_key": key, "value": value} for key in keys])
        for key in keys:
            before = set[int | None]() if answer is not None else self._values.get(key, {None})
            self._values[key] = before | {value}

    async def check(self, call: Caller) -> None:
        await call.surely("POST", self._path, [{"_key": "there is one", "value": 0}])
        self._values["there is one"] = {0}
        lines = (await call.surely("GET", f"{self._path}?meta=_key")).lines
        found = {line["_key"]: line["value"] for line in lines}
        assert len(found) == len(lines)
        for key in self._values.keys() | found.keys():
            assert found.get(key) in self._values[key], key
        assert (await call.surely("GET", f"{self._path}/count")).json["count"] == len(found)


class Queue:
    """Adds requests to a slot, some of them again; each addition returns the number of new ones."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.path = f"/hcf/{number}/f/s/0"
        self._chance = chance
        self.added = 0
        self._pending: range | None = None
        self._is_repeated = False

    async def step(self, call: Caller) -> None:
        new = self._pending or range(self.added, self.added + self._chance.choice((1, 7, 130)))
        known = [self._chance.randrange(new.start) for _ in range(5)] if new.start else []
        requests = [{"fp": f"{n}", "qdata": n, "p": n % 2} for n in (*known, *new)]
        self._chance.shuffle(requests)
        answer = await call("POST", self.path, requests)
        if answer is None:
            self._pending, self._is_repeated = new, True
            return
        assert answer.json["newcount"] in ({len(new), 0} if self._is_repeated else {len(new)})
        self.added, self._pending, self._is_repeated = new.stop, None, False

    async def check(self, call: Caller) -> None:
        while self._pending:
            await self.step(call)
        fingerprints = [line["fp"] for line in (await call.surely("GET", f"{self.path}/f")).lines]
        assert sorted(fingerprints) == fingerprints
        assert sorted(map(int, fingerprints)) == list(range(self.added))


class Consumer:
    """Reads and deletes what a :class:`Queue` has added. A batch has the same requests for ever."""

    def __init__(self, queue: Queue, chance: random.Random) -> None:
        self._queue = queue
        self._chance = chance
        self._batches: dict[str, list[Any]] = {}
        self._deleted: set[str] = set()
        self._perhaps_deleted: set[str] = set()

    async def step(self, call: Caller) -> None:
        read = await call("GET", f"{self._queue.path}/q?mincount={self._chance.choice((1, 50, 300))}")
        if read is None:
            return
        for batch in read.lines:
            assert call.old_reads or batch["id"] not in self._deleted
            assert self._batches.setdefault(batch["id"], batch["requests"]) == batch["requests"]
        ids = [batch["id"] for batch in read.lines if self._chance.random() < 0.8]
        answer = await call("POST", f"{self._queue.path}/q/deleted", json.dumps(ids).encode())
        (self._perhaps_deleted if answer is None else self._deleted).update(ids)

    async def check(self, call: Caller) -> None:
        left = (await call.surely("GET", f"{self._queue.path}/q?mincount=1000000")).lines
        assert not self._deleted & {batch["id"] for batch in left}
        gone = (self._deleted | self._perhaps_deleted) - {batch["id"] for batch in left}
        requests = [pair for batch in left for pair in batch["requests"]]
        requests += [pair for id_ in gone for pair in self._batches[id_]]
        assert sorted(qdata for _, qdata in requests) == list(range(self._queue.added))
        count = (await call.surely("GET", f"{self._queue.path}/q/count")).json["count"]
        assert count == sum(len(batch["requests"]) for batch in left)


class Jobs:
    """Pushes jobs and updates them."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self._project = number
        self._chance = chance
        self._pushed = 0
        self._keys: dict[str, str] = {}
        #: What a job may say that its turn is.
        self._turns: dict[str, set[int | None]] = {}
        self._states: dict[str, set[str]] = {}

    async def step(self, call: Caller) -> None:
        if len(self._keys) < 3 or self._chance.random() < 0.3:
            await self._push(call)
        else:
            await self._update(call, self._chance.choice(list(self._keys)))

    async def _push(self, call: Caller) -> None:
        mark = f"mark-{self._pushed}"
        self._pushed += 1
        answer = await call("POST", f"/jobq/{self._project}/push", [{"spider": "s", "tags": [mark]}])
        if answer is not None:
            self._keys[mark] = answer.json["key"]
            self._turns[mark], self._states[mark] = {None}, {"pending"}

    async def _update(self, call: Caller, mark: str) -> None:
        turn = self._chance.randrange(10**6)
        state = "running" if self._states[mark] == {"pending"} else "finished"
        if "finished" in self._states[mark]:
            state = "finished"
        change = {"key": self._keys[mark], "turn": turn, "state": state}
        answer = await call("POST", f"/jobq/{self._project}/update", [change])
        if answer is None:
            self._turns[mark].add(turn)
            self._states[mark].add(state)
        else:
            self._turns[mark], self._states[mark] = {turn}, {state}

    async def check(self, call: Caller) -> None:
        states = "&".join(f"state={state}" for state in ("pending", "running", "finished"))
        fields = "&".join(f"jobmeta={name}" for name in ("tags", "turn", "state", "key"))
        jobs = (await call.surely("GET", f"/jobq/{self._project}/list?{states}&{fields}&count=1000")).lines
        by_mark = {job["tags"][0]: job for job in jobs}
        assert len(by_mark) == len(jobs) == len({job["key"] for job in jobs}) <= self._pushed
        for mark, key in self._keys.items():
            job = by_mark[mark]
            assert job["key"] == key
            assert job.get("turn") in self._turns[mark]
            assert job["state"] in self._states[mark]
        assert (await call.surely("GET", f"/jobq/{self._project}/count?{states}")).json == len(jobs)


def make_clients(chance: random.Random, base: int = 0) -> list[Client]:
    """Two clients of each kind, in projects of their own: 100 to 501, counted from ``base``."""
    made: list[Client] = []
    for number in range(base, base + 2):
        queue = Queue(500 + number, chance)
        kinds = (NumberedItems, AppendedItems, Records, Jobs)
        made += [kind(100 * place + number, chance) for place, kind in enumerate(kinds, 1)]
        made += [queue, Consumer(queue, chance)]
    return made


async def write_through(
    servers: Sequence[Http],
    seed: int,
    times: int,
    strike: Callable[[int], Awaitable[None]],
    *,
    old_reads: bool = False,
) -> Caller:
    """Write; each time when some more was answered, at any moment, ``strike``; then check all there is.

    ``old_reads``: until a strike has ended, a server may read what is no longer so.
    """
    chance = random.Random(seed)
    call = Caller(servers, chance, old_reads=old_reads)
    clients = make_clients(chance)
    ended = asyncio.Event()

    async def work(client: Client) -> None:
        while not ended.is_set():
            await client.step(call)

    async def fail() -> None:
        for time in range(times):
            goal = call.answered + chance.randrange(20, 80)
            while call.answered < goal:
                await asyncio.sleep(0.01)
            await asyncio.sleep(chance.random() * 0.05)
            await strike(time)
        goal = call.answered + 50
        while call.answered < goal:
            await asyncio.sleep(0.01)
        ended.set()

    async with timeout_after(_TIMEOUT + 30 * times), asyncio.TaskGroup() as group:
        group.create_task(fail())
        for client in clients:
            group.create_task(work(client))
    await check_all(clients, call)
    return call


async def check_all(clients: Sequence[Client], call: Caller) -> None:
    """Check what all clients have written; a queue is complete before its consumer counts it."""
    for client in sorted(clients, key=lambda each: isinstance(each, Consumer)):
        await client.check(call)
