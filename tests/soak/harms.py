"""The harms: drawn by a seeded random generator, one or two at a time, and ended before the next."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import aiohttp

from scrapy_ext.jobprocess.proc import table
from tests.soak.nodes import Node
from tests.soak.postgresql import Replicated
from tests.soak.system import AS_FORM, System, ask, pulses_of
from tests.support.http import Http

#: Bytes that a file may grow beyond the longest one, while the disk is full; not at the end of a page.
_ROOM = 16 * 8192 + 100
_BLOB = 100_000
_FILL_SECONDS = 12.0
#: The project of what fills the disk.
_FILLED = 900_000


#: Does a harm and ends it; returns a description, or "" when there was nothing to harm.
_Do = Callable[[], Awaitable[str]]
#: Draws what there is to draw of one.
_Make = Callable[[], _Do]


class Harm(NamedTuple):
    """A harm that was done: seconds of the run at its begin and its end, and until everything worked again."""

    kind: str
    description: str
    began: float
    ended: float
    well: float | None


class Plan(NamedTuple):
    """A harm that was drawn."""

    kind: str
    do: _Do


class Harms:
    """Draws harms. What is drawn depends on the seed alone; which job has which process does not."""

    def __init__(self, system: System, seed: int) -> None:
        self._system = system
        self._chance = random.Random(f"harms {seed}")
        of_database: list[tuple[str, _Make]] = [("full disk", self._full_disk)]
        of_nodes: list[tuple[str, _Make]] = [
            ("kill server", lambda: self._kill_node(self._chance.choice(self._system.servers))),
            ("stop node", lambda: self._stop_node(self._node())),
            ("kill guard", lambda: self._kill_child(self._node(), "scrapy_ext.server.jobs.nodes.watchdog")),
            ("kill extractor", lambda: self._kill_child(self._node(), "extractor_process")),
            ("step clock", lambda: self._step_clock(self._node())),
        ]
        of_jobs: list[tuple[str, _Make]] = [
            ("kill job", lambda: self._harm_job(signal.SIGKILL, supervisor=False)),
            ("kill supervisor", lambda: self._harm_job(signal.SIGKILL, supervisor=True)),
            ("stop job", lambda: self._harm_job(signal.SIGSTOP, supervisor=False)),
        ]
        of_connections: list[tuple[str, _Make]] = [
            ("cut client link", lambda: self._harm_link("cut", to_database=False)),
            ("hold client link", lambda: self._harm_link("hold", to_database=False)),
            ("slow client link", lambda: self._harm_link("slow", to_database=False)),
            ("slow site", lambda: self._harm_site(mute=False)),
            ("mute site", lambda: self._harm_site(mute=True)),
        ]
        if (database := system.replicated) is not None:
            of_database += [
                ("kill database", lambda: self._kill_database(database)),
                ("pause database", lambda: self._pause_database(database)),
                ("failover", lambda: self._failover(database)),
                ("kill standby", lambda: self._kill_standby(database)),
            ]
            of_nodes += [("kill worker", lambda: self._kill_node(self._chance.choice(self._workers)))]
            of_connections += [
                ("cut database link", lambda: self._harm_link("cut", to_database=True)),
                ("hold database link", lambda: self._harm_link("hold", to_database=True)),
                ("slow database link", lambda: self._harm_link("slow", to_database=True)),
            ]
        if not system.has_clocks:
            of_nodes = [each for each in of_nodes if each[0] != "step clock"]
        #: No two of one group at once.
        self._groups = [of_database, of_nodes, of_jobs, of_connections]
        #: Kinds of the present turn: each comes once before any comes again.
        self._left: list[list[tuple[str, _Make]]] = [[] for _ in self._groups]
        self.done: list[Harm] = []

    @property
    def _workers(self) -> list[Node]:
        return [node for node in self._system.nodes if not node.is_server]

    def _node(self) -> Node:
        return self._chance.choice(self._system.nodes)

    # ── drawing ──

    def draw(self) -> list[Plan]:
        """One harm, or two of different groups."""
        weights = [len(group) for group in self._groups]
        number = 2 if self._chance.random() < 0.3 else 1
        groups: list[int] = []
        while len(groups) < number:
            (group,) = self._chance.choices(range(len(weights)), weights)
            if group not in groups:
                groups.append(group)
        return [self._draw_from(group) for group in groups]

    def _draw_from(self, group: int) -> Plan:
        left = self._left[group]
        if not left:
            left += self._groups[group]
            self._chance.shuffle(left)
        kind, make = left.pop()
        return Plan(kind, make())

    async def strike(self, plans: list[Plan]) -> list[Harm]:
        """Do harms at once, end them, and wait until everything works again."""
        system, began = self._system, self._system.now()
        descriptions = await asyncio.gather(*(plan.do() for plan in plans))
        ended = system.now()
        system.mend()
        await system.revive()
        well = await system.well()
        if well is None:
            system.fault(f"not well again after {', '.join(filter(None, descriptions))}")
        harms = [
            Harm(plan.kind, each, began, ended, well) for plan, each in zip(plans, descriptions, strict=True) if each
        ]
        self.done += harms
        return harms

    def _seconds(self, least: float, most: float) -> float:
        return round(self._chance.uniform(least, most), 1)

    # ── processes ──

    def _kill_node(self, node: Node) -> _Do:
        away = self._seconds(0, 10)

        async def do() -> str:
            await asyncio.to_thread(node.kill)
            await asyncio.sleep(away)
            return f"SIGKILL of {node.name}, started again after {away:g} s"

        return do

    def _stop_node(self, node: Node) -> _Do:
        seconds = self._seconds(1, 20)

        async def do() -> str:
            node.send(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            node.send(signal.SIGCONT)
            return f"SIGSTOP of {node.name} for {seconds:g} s"

        return do

    def _kill_child(self, node: Node, module: str) -> _Do:
        async def do() -> str:
            pid = await asyncio.to_thread(node.child, module)
            if pid is None:
                return ""
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return f"SIGKILL of {module.rpartition('.')[2]} of {node.name}"

        return do

    def _step_clock(self, node: Node) -> _Do:
        step, seconds = self._chance.choice((-600, -90, -5, 5, 90, 600)), self._seconds(5, 15)

        async def do() -> str:
            assert node.clock is not None
            node.clock.step(step)
            if step > 0:
                self._system.clock_jumps.append(time.monotonic())
            await asyncio.sleep(seconds)
            node.clock.step(0)
            if step < 0:
                self._system.clock_jumps.append(time.monotonic())
            return f"clock of {node.name} and its jobs {step:+} s for {seconds:g} s"

        return do

    def _harm_job(self, number: signal.Signals, *, supervisor: bool) -> _Do:
        seconds, place = self._seconds(1, 20), self._chance.random()

        async def do() -> str:
            found = await asyncio.to_thread(self._working)
            if not found:
                return ""
            job, pid, parent = found[int(place * len(found))]
            victim = parent if supervisor else pid
            if number is signal.SIGKILL:
                self._system.killed_jobs.add(job)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, number)
            what = f"{number.name} of {'the supervisor' if supervisor else 'the process'} of job {job}"
            if number is not signal.SIGSTOP:
                return what
            await asyncio.sleep(seconds)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGCONT)
            return f"{what} for {seconds:g} s"

        return do

    def _working(self) -> list[tuple[str, int, int]]:
        """Jobs with a process that works: its PID, and that of its supervisor."""
        processes, found = table(), []
        for file in sorted(self._system.pulses.iterdir()):
            for pid, (_, last) in pulses_of(file).items():
                if pid in processes and time.monotonic() - last < 5 and (pid, processes[pid].started) in self._seen:
                    found.append((file.name.replace("-", "/"), pid, processes[pid].parent))
        return found

    @property
    def _seen(self) -> set[tuple[int, int]]:
        self._system.watch_processes()
        return self._system.seen

    # ── connections and sites ──

    def _harm_link(self, how: str, *, to_database: bool) -> _Do:
        node = self._node() if to_database else self._chance.choice(self._system.servers)
        seconds = self._seconds(1, 15)
        delay = self._chance.choice((0.05, 0.3))

        async def do() -> str:
            link = node.to_database if to_database else node.to_clients
            assert link is not None
            if how == "slow":
                link.slow(delay)
            else:
                (link.cut if how == "cut" else link.hold)()
            await asyncio.sleep(seconds)
            link.mend()
            between = f"{node.name} and {'the database' if to_database else 'its clients'}"
            slowed = f" by {delay:g} s" if how == "slow" else ""
            return f"{how} between {between}{slowed} for {seconds:g} s"

        return do

    def _harm_site(self, *, mute: bool) -> _Do:
        seconds, delay = self._seconds(3, 15), self._seconds(0.5, 4)

        async def do() -> str:
            self._system.site_was_harmed = True
            if mute:
                self._system.pace.mute()
            else:
                self._system.pace.slow(delay)
            await asyncio.sleep(seconds)
            self._system.pace.mend()
            return f"sites answer {'nothing' if mute else f'{delay:g} s later'} for {seconds:g} s"

        return do

    # ── the database ──

    def _kill_database(self, database: Replicated) -> _Do:
        away = self._seconds(0, 10)

        async def do() -> str:
            await asyncio.to_thread(database.primary.kill)
            await asyncio.sleep(away)
            await asyncio.to_thread(database.start_again)
            return f"SIGKILL of PostgreSQL, started again after {away:g} s"

        return do

    def _pause_database(self, database: Replicated) -> _Do:
        seconds = self._seconds(1, 15)

        async def do() -> str:
            primary = database.primary
            primary.pause()
            await asyncio.sleep(seconds)
            primary.go_on()
            return f"SIGSTOP of PostgreSQL for {seconds:g} s"

        return do

    def _kill_standby(self, database: Replicated) -> _Do:
        away = self._seconds(0, 6)

        async def do() -> str:
            standby = database.standby
            assert standby is not None
            await asyncio.to_thread(standby.kill)
            await asyncio.sleep(away)
            await asyncio.to_thread(database.start_again)
            return f"SIGKILL of the standby, started again after {away:g} s: commits wait for it"

        return do

    def _failover(self, database: Replicated) -> _Do:
        async def do() -> str:
            await asyncio.to_thread(database.fail_over)
            return "SIGKILL of PostgreSQL; the standby is the primary, and has a new standby"

        return do

    def _full_disk(self) -> _Do:
        async def do() -> str:
            database = self._system.database
            async with contextlib.AsyncExitStack() as opened:
                clients = [await opened.enter_async_context(http) for http in self._system.clients()]
                answer = await ask(clients, "POST", f"/jobq/{_FILLED}/push", [{"spider": "s"}])
                job = answer.json["key"]
                database.limit_files(database.longest_file() + _ROOM)
                try:
                    stored, refused = await self._fill(clients[0], job)
                finally:
                    with contextlib.suppress(OSError):  # it has ended over it
                        database.limit_files(None)
                await self._empty(clients, job, stored)
            return f"no table may be larger than the largest is: {refused} writes refused with 507"

        return do

    async def _fill(self, http: Http, job: str) -> tuple[int, int]:
        """Write until that is refused for want of room; returns how many items were stored, and how often it was."""
        blob, start, refused = os.urandom(_BLOB // 2).hex(), 0, 0
        deadline = time.monotonic() + _FILL_SECONDS
        while refused < 3 and time.monotonic() < deadline:
            try:
                answer = await http.call("POST", f"/items/{job}?start={start}", [{"blob": blob}] * 2)
            except (aiohttp.ClientError, OSError):
                continue
            start += 2 * (answer.status == 200)
            refused += answer.status == 507
        return start, refused

    async def _empty(self, clients: list[Http], job: str, stored: int) -> None:
        """Check that the acknowledged items are there, and delete the job."""
        answer = await ask(clients, "GET", f"/items/{job}?nodata=1&meta=_key")
        # A call whose answer was lost may have stored its two.
        if len(answer.lines) not in (stored, stored + 2):
            self._system.fault(f"full disk: {stored} items were acknowledged, and {len(answer.lines)} are there")
        form = f"project={_FILLED}&job={job}".encode()
        await ask(clients, "POST", "/api/jobs/delete.json", form, **AS_FORM)
