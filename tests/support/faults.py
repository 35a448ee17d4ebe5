"""A proxy before the platform that shows faults which no healthy server does, on purpose and at a chosen place."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

import aiohttp
from aiohttp import web

from tests.support.threaded_server import ThreadedServer


class Fault(Enum):
    """Fate of a call."""

    LOST_REQUEST = "the connection breaks before the platform gets it"
    LOST_REPLY = "the platform does it, and the connection breaks before the answer"
    REFUSED = "403, which no repeating mends"
    UNAVAILABLE = "503"


#: Method, path, and how many calls there were before this one of that method and path; None lets it through.
Rule = Callable[[str, str, int], Fault | None]


class Step(Enum):
    """Step of a crawl that a call belongs to, in the order of its requests and items."""

    READ = "reading a slot"
    CHILDREN = "children to their slots"
    DEAD_LETTERS = "dead letters"
    PAYLOAD = "items put by"
    JOURNAL = "a record of the commit journal"
    ITEMS = "items stored"
    ACKNOWLEDGE = "batches acknowledged"
    ASSIGNMENT = "slots claimed"
    LOOK = "journals and what was put by, read"
    REPORT = "reports of a worker of a group"
    OTHER = "anything else"
    ANY = "any of all"


_STEPS: Mapping[Step, str] = {
    # Workers of a group have calls for several slots.
    Step.READ: r"GET /hcf/\d+/[^/]+/s/\d+/q|POST /hcf/\d+/[^/]+/q",
    Step.CHILDREN: r"POST /hcf/\d+/[^/]+/s(/\d+)?",
    Step.DEAD_LETTERS: r"POST /hcf/\d+/[^/]+/s/dead-letters",
    Step.PAYLOAD: r"POST /collections/.+",
    Step.JOURNAL: r"POST /hcf/\d+/[^/]+/s/commits-[^/]+",
    Step.ITEMS: r"POST /items/.+",
    Step.ACKNOWLEDGE: r"POST /hcf/\d+/[^/]+(/s/\d+)?/q/deleted",
    Step.ASSIGNMENT: r"POST /hcf/\d+/[^/]+/s/assignment",
    Step.REPORT: r"POST /jobq/\d+/report",
    Step.LOOK: r"GET (/hcf/\d+/[^/]+/s/(commits-[^/]+|assignment)/q|/collections/.+)",
}


def step_of(method: str, path: str) -> Step:
    """Return the step of a crawl that a call belongs to."""
    call = f"{method} {path}"
    return next((step for step, pattern in _STEPS.items() if re.fullmatch(pattern, call)), Step.OTHER)


class When(Enum):
    """Moment of a process's death, relative to a call of it."""

    BEFORE = "before the platform gets the call"
    LOST_REPLY = "when the platform has done it, before the answer"
    AFTER = "when it has the answer"
    HELD = "as BEFORE, but the call is not lost: it arrives later"
    WAITS = "it does not die: this call, and others of the same step, wait for a sign"
    STOPPED = "it does not die: it sleeps, and makes the call again when it wakes up"


class KillPoint(NamedTuple):
    """A place to kill a process at: its call of a step, counted from 0."""

    step: Step
    when: When
    number: int = 0

    def __str__(self) -> str:
        return f"{self.step.name}-{self.when.name}-{self.number}".lower().replace("_", "-")


class _Call(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


#: Seconds in which a process may do something with an answer before it is killed.
_AFTER = 0.05


class FaultProxy(ThreadedServer):
    """Passes calls on to ``target``, but for those that ``rule`` names a fault for.

    Each call and each answer takes half of ``latency`` seconds. At ``kill_at`` the process ``victim`` is killed;
    it must be set before the first call. From then on nothing passes, until :meth:`release` or :meth:`mend`.
    """

    def __init__(
        self, target: str, rule: Rule = lambda *_: None, *, latency: float = 0.0, kill_at: KillPoint | None = None
    ) -> None:
        self._target = target
        self._rule = rule
        self._calls: Counter[tuple[str, str]] = Counter()
        #: Calls of each step so far.
        self.steps: Counter[Step] = Counter()
        #: Faults that were shown.
        self.shown: list[tuple[str, str, Fault]] = []
        self.latency = latency
        self._kill_at = kill_at
        self.victim: int | None = None
        self._cut = False
        self._sign = asyncio.Event()
        #: Calls that wait for a sign.
        self.waiting = 0
        self._held: list[_Call] = []
        self._dark_until = 0.0
        self.url = ""
        super().__init__()

    # ── from the test ──

    def black_out(self, seconds: float) -> None:
        """From now on nothing comes through either way, and everybody waits, for so long."""
        self._dark_until = time.monotonic() + seconds

    def let_go(self) -> None:
        """Give those who wait their sign."""
        self._loop.call_soon_threadsafe(self._sign.set)

    @property
    def struck(self) -> bool:
        """True if the kill point was reached."""
        return self._cut

    def mend(self) -> None:
        """Calls pass again. What was kept back is forgotten."""
        self._held = []
        self._cut = False

    @property
    def held(self) -> list[Step]:
        """Calls that are held back."""
        return [step_of(call.method, call.path) for call in self._held]

    def release(self) -> list[int]:
        """Pass on what was kept back, in its order; returns the statuses of the answers, which nobody else sees."""
        return asyncio.run_coroutine_threadsafe(self._release(), self._loop).result(60)

    async def _release(self) -> list[int]:
        calls, self._held = self._held, []
        self._cut = False
        return [(await self._pass_on(call)).status for call in calls]

    # ── serving ──

    async def _run(self) -> None:
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{path:.*}", self._handle)
        async with aiohttp.ClientSession(auto_decompress=False) as self._session:
            runner = web.AppRunner(app, shutdown_timeout=1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._ready.set()
            await self._stop.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        # The body was decompressed when it was read.
        dropped = ("host", "content-length", "transfer-encoding", "content-encoding")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        call = _Call(request.method, request.path_qs, headers, await request.read())
        fault, when = self._fate(request)
        await asyncio.sleep(self.latency / 2)
        if await self._is_dark():
            return self._broken(request)
        if when is When.WAITS:
            self.waiting += 1
            await self._sign.wait()
        elif when in (When.BEFORE, When.HELD, When.STOPPED):
            self._kill(signal.SIGSTOP if when is When.STOPPED else signal.SIGKILL)
        if self._cut:
            # What a process sent just before it died may still arrive.
            if when not in (When.BEFORE, When.STOPPED) and call.method == "POST":
                self._held.append(call)
            return self._broken(request)
        if fault is Fault.LOST_REQUEST:
            return self._broken(request)
        if fault in (Fault.REFUSED, Fault.UNAVAILABLE):
            return web.Response(status=403 if fault is Fault.REFUSED else 503, text="no")
        try:
            answer = await self._pass_on(call)
        except aiohttp.ClientError:
            return self._broken(request)
        await asyncio.sleep(self.latency / 2)
        if when is When.LOST_REPLY:
            self._kill()
        elif when is When.AFTER:
            self._loop.call_later(_AFTER, self._kill)
        if await self._is_dark() or fault is Fault.LOST_REPLY or when is When.LOST_REPLY:
            return self._broken(request)
        return answer

    def _fate(self, request: web.Request) -> tuple[Fault | None, When | None]:
        """Return the fate of a call."""
        place = request.method, request.path
        fault = self._rule(*place, self._calls[place])
        self._calls[place] += 1
        if fault is not None:
            self.shown.append((*place, fault))
        step = step_of(*place)
        when = self._due(step)
        self.steps.update((step, Step.ANY))
        return fault, when

    def _due(self, step: Step) -> When | None:
        """Return the moment of the process's death by this call, if any."""
        point = self._kill_at
        if point is None or point.step not in (step, Step.ANY):
            return None
        calls = self.steps[point.step]
        return point.when if calls == point.number or (point.when is When.WAITS and calls > point.number) else None

    def _kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.victim is not None, "nobody to kill"
        if not self._cut:
            self._cut = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.victim, how)

    async def _is_dark(self) -> bool:
        """Return True if nothing is delivered, when the outage is over."""
        seconds = self._dark_until - time.monotonic()
        if seconds <= 0:
            return False
        await asyncio.sleep(seconds)
        return True

    async def _pass_on(self, call: _Call) -> web.Response:
        url = self._target + call.path
        async with self._session.request(call.method, url, data=io.BytesIO(call.body), headers=call.headers) as answer:
            kept = ("content-type", "content-encoding", "retry-after")
            passed = {name: value for name, value in answer.headers.items() if name.lower() in kept}
            return web.Response(status=answer.status, body=await answer.read(), headers=passed)

    @staticmethod
    def _broken(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
