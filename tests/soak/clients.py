"""Clients of the API in rounds (:mod:`tests.support.acknowledged_writes`), and one of the extraction service."""

from __future__ import annotations

import asyncio
import json
import random
from base64 import b64decode
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import aiohttp

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, run_together
from tests.soak.sites import leaf
from tests.soak.system import AS_FORM, System, ask
from tests.support.acknowledged_writes import Caller, Client, Jobs, Queue, Records, check_all, make_clients
from tests.support.http import Answer, Http

#: Seconds of a round; then all that its clients have written is checked.
ROUND = 60.0
#: Rounds that are kept until the end of the run; older ones are checked once more, and deleted.
KEPT = 2
#: Seconds between two calls of a client, at most.
_PAUSE = 0.5
#: Projects of a round, from this one on.
_PROJECTS = 1000


class CountingCaller(Caller):
    """Counts the records that were acknowledged."""

    def __init__(self, servers: Sequence[Http], chance: random.Random) -> None:
        super().__init__(servers, chance)
        self.records = 0

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer | None:
        answer = await super().__call__(method, path, body, **headers)
        if answer is not None and method == "POST":
            self.records += len(body) if isinstance(body, list) else 1
        return answer


class Round:
    """Some clients in projects of their own."""

    def __init__(self, number: int, clients: list[Http], seed: int) -> None:
        self._base = _PROJECTS * number
        self._number = number
        self._http = clients
        self._chance = random.Random(f"round {seed} {number}")
        self.call = CountingCaller(clients, self._chance)
        self._clients = make_clients(self._chance, self._base)
        self.is_over = False
        self.faults: list[str] = []

    async def begin(self) -> None:
        """Give the items of the clients a job each, which is deleted in the end."""
        for project in self._item_projects:
            job = [{"spider": "s", "state": "running"}]
            answer = await ask(self._http, "POST", f"/jobq/{project}/push", job)
            assert answer.status == 200, answer

    async def run(self) -> None:
        await run_together(*map(self._run, self._clients))

    async def _run(self, client: Client) -> None:
        while not self.is_over:
            try:
                await client.step(self.call)
            except AssertionError as error:
                self.faults.append(f"round {self._number}, {type(client).__name__}: {_described(error)}")
                return
            await asyncio.sleep(self._chance.random() * _PAUSE)

    async def check(self) -> None:
        """Compare what is there with what was acknowledged."""
        try:
            await check_all(self._clients, self.call)
        except AssertionError as error:
            self.faults.append(f"round {self._number}: {_described(error)}")

    async def delete(self) -> None:
        """Delete all of it from the platform."""
        for client in self._clients:
            if isinstance(client, Jobs):
                await self._delete_jobs(client._project, sorted(client._keys.values()))
            elif isinstance(client, Records):
                await self._ask("DELETE", client._path)
            elif isinstance(client, Queue):
                await self._ask("DELETE", client.path)
        for project in self._item_projects:
            await self._delete_jobs(project, [f"{project}/1/1"])

    @property
    def _item_projects(self) -> list[int]:
        return [self._base + place + number for place in (100, 200) for number in (0, 1)]

    async def _delete_jobs(self, project: int, keys: list[str]) -> None:
        if keys:
            form = urlencode([("project", str(project)), *(("job", key) for key in keys)]).encode()
            await self._ask("POST", "/api/jobs/delete.json", form, **AS_FORM)

    async def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return await ask(self._http, method, path, body, **headers)


def _described(error: AssertionError) -> str:
    """The assertion that failed, by its line, as Python alone does not say more."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"line {trace.tb_lineno} of {trace.tb_frame.f_code.co_name}" if trace is not None else ""
    return f"{place}: {str(error)[:400]}"


class Rounds:
    """One round after the other."""

    def __init__(self, system: System, clients: list[Http], seed: int) -> None:
        self._system = system
        self._http = clients
        self._seed = seed
        self._number = 0
        self._kept: deque[Round] = deque()
        self._ended = 0
        self._calls = 0
        self.refused: Counter[int] = Counter()
        self.broken = 0
        self._present: Round | None = None
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0

    @property
    def records(self) -> int:
        return self._ended + (self._present.call.records if self._present is not None else 0)

    @property
    def calls(self) -> int:
        return self._calls + (self._present.call.answered if self._present is not None else 0)

    @property
    def is_due(self) -> bool:
        """True once the present round has lasted long enough."""
        return self._system.now() > self._began + ROUND

    async def begin(self) -> None:
        self._number += 1
        self._began = self._system.now()
        self._present = Round(self._number, self._http, self._seed)
        await self._present.begin()
        self._task = asyncio.create_task(self._present.run())

    async def end(self) -> None:
        """End and check the present round. Nothing is harmed meanwhile: a call that arrives late would change what is
        compared."""
        present, task = self._present, self._task
        assert present is not None
        assert task is not None
        present.is_over = True
        await task
        self._present = None
        self._kept.append(present)
        await self._check(present)
        self._ended += present.call.records
        self._calls += present.call.answered
        self.refused += present.call.refused
        self.broken += present.call.broken
        if len(self._kept) > KEPT:
            old = self._kept.popleft()
            await self._check(old)
            await old.delete()
            self._report(old)

    async def close(self) -> None:
        """End the present round without a check."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def check(self) -> None:
        """Compare all that is kept once more."""
        for each in self._kept:
            await self._check(each)

    async def _check(self, each: Round) -> None:
        await each.check()
        self._report(each)

    def _report(self, each: Round) -> None:
        for fault in each.faults:
            self._system.fault(fault)
        each.faults.clear()


class Leaves:
    """A client of the extraction service of both servers: what is answered is right, and each page was fetched for
    each call at most once."""

    def __init__(self, system: System, seed: int) -> None:
        self._system = system
        self._chance = random.Random(f"leaves {seed}")
        self._number = 0
        #: Calls of each page that is not checked yet.
        self._asked: Counter[str] = Counter()
        self.answered = 0
        self.is_over = False

    async def run(self) -> None:
        auth = aiohttp.BasicAuth(self._system.keys.extract, "")
        timeout = aiohttp.ClientTimeout(total=90)
        async with aiohttp.ClientSession(auth=auth, timeout=timeout) as session:
            while not self.is_over:
                self._number += 1
                await self._ask(session, str(self._number))
                await asyncio.sleep(self._chance.random())

    async def _ask(self, session: aiohttp.ClientSession, name: str) -> None:
        for _ in range(1000):
            self._asked[name] += 1
            node = self._chance.choice(self._system.servers)
            assert node.to_clients is not None
            query = {"url": f"http://{self._system.trees.host}/leaf/{name}", "httpResponseBody": True}
            try:
                url = f"http://127.0.0.1:{node.to_clients.port}/v1/extract"
                async with session.post(url, json=query) as answer:
                    body = await answer.read()
            except (aiohttp.ClientError, OSError, *TIMEOUT_ERRORS):
                await asyncio.sleep(0.3)
                continue
            if answer.status == 200:
                self._check(name, json.loads(body))
                return
            if answer.status not in (429, 500, 503, 520, 521):
                self._system.fault(f"extraction of leaf {name}: {answer.status} {body[:200]!r}")
                return
            await asyncio.sleep(0.3)

    def _check(self, name: str, answer: dict[str, Any]) -> None:
        self.answered += 1
        if b64decode(answer["httpResponseBody"]) != leaf(name):
            self._system.fault(f"extraction of leaf {name}: the body is another")
        asked, path = self._asked.pop(name), f"/leaf/{name}"
        hits = self._system.trees.hits[path]
        if not 1 <= hits <= asked * (2 if self._system.site_was_harmed else 1):
            self._system.fault(f"leaf {name} was fetched {hits} times for {asked} calls")
        self._system.trees.forget(path)
