"""A run of the soak from its start to the verdict."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from tests.soak.clients import Leaves, Rounds
from tests.soak.crawls import Work
from tests.soak.database import AWAY
from tests.soak.harms import Harms
from tests.soak.progress import Show
from tests.soak.referee import Verdict, counted
from tests.soak.report import Run, write_report
from tests.soak.samples import Sampler
from tests.soak.system import RECOVERY_SECONDS, System
from tests.support.http import Http

#: Seconds for what was begun to end, at most.
_LAST = 420.0
#: Seconds between two harms, at most.
_CALM = 4.0
#: Tables that are empty when nothing is under way.
_EMPTY = ("attempts",)


class Soak:
    """Made and run once. A first :meth:`end` lets it come to its verdict early."""

    def __init__(self, system: System, seed: int, seconds: float, show: Show) -> None:
        self._system = system
        self._seconds = seconds
        self._show = show
        self._chance = random.Random(f"soak {seed}")
        self._seed = seed
        self._ending = asyncio.Event()
        self._cut_short = ""
        self.sampler = Sampler(system, lambda: self._records)
        self._harms = Harms(system, seed)
        self._leaves = Leaves(system, seed)
        self.figures: dict[str, object] = {}

    @property
    def _records(self) -> int:
        return self._rounds.records + self._work.records + self._leaves.answered

    def end(self) -> None:
        """Draw no more harms, and come to the verdict."""
        if not self._ending.is_set() and (now := self._system.now()) < self._seconds:
            self._cut_short = f"Interrupted after {now:.0f} s of {self._seconds:.0f} s: "
        self._ending.set()

    async def run(self) -> Verdict:
        """Work and be harmed for the given time, then compare."""
        async with contextlib.AsyncExitStack() as opened:
            clients = [await opened.enter_async_context(http) for http in self._system.clients()]
            return await self._run(clients)

    async def _run(self, clients: list[Http]) -> Verdict:
        self._work = Work(self._system, clients, self._seed)
        self._rounds = Rounds(self._system, clients, self._seed)
        parts = {
            "the jobs": self._work.run(),
            "the client of the extraction service": self._leaves.run(),
            "the samples": self.sampler.run(),
        }
        tasks = [asyncio.create_task(self._part(name, part)) for name, part in parts.items()]
        work, leaves, samples = tasks
        try:
            await self._step("the harms", self._harm)
            await self._step("the end of the work", lambda: self._let_all_end(work, leaves))
            await self._step("the comparison", self._compare)
            samples.cancel()
            await self._step("the end of the processes", self._end_processes)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._rounds.close()
            self._work.close()
        return self._verdict()

    async def _part(self, name: str, part: Coroutine[Any, Any, None]) -> None:
        """Run a part; one that fails is a fault, and ends the run."""
        await self._step(name, lambda: part)
        self._ending.set()

    async def _step(self, name: str, do: Callable[[], Awaitable[None]]) -> None:
        try:
            await do()
        except Exception as error:  # whatever it is, the verdict has to say so
            self._system.fault(f"{name}: {type(error).__name__}: {str(error)[:500]}")

    # ── the run ──

    async def _harm(self) -> None:
        await self._rounds.begin()
        await self._pause(2 * _CALM)
        while self._system.now() < self._seconds and not self._ending.is_set():
            plans = self._harms.draw()
            self._say(f"now: {', '.join(plan.kind for plan in plans)}")
            await self._harms.strike(plans)
            self._say("calm")
            await self._pause(self._chance.uniform(1, _CALM))
            if self._rounds.is_due:
                await self._rounds.end()
                await self._rounds.begin()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(*TIMEOUT_ERRORS):
            await asyncio.wait_for(self._ending.wait(), seconds)

    def _say(self, what: str, *, now: bool = False) -> None:
        harms, jobs = counted(len(self._harms.done), "harm"), counted(self._work.jobs, "job")
        faults = f", {len(self._system.faults)} FAULTS" if self._system.faults else ""
        so_far = f"{harms}, {jobs} ended, {self._records:,} records acknowledged{faults}"
        self._show.update(self._system.now(), f"{so_far}; {what}", now=now)

    # ── the end ──

    async def _let_all_end(self, work: asyncio.Task[None], leaves: asyncio.Task[None]) -> None:
        self._say(f"{self._cut_short}no more harms; what was begun ends", now=True)
        self._lasted = self._system.now()
        self._system.mend()
        await self._system.revive()
        if await self._system.well() is None:
            self._system.fault(f"not well at the end, after {RECOVERY_SECONDS:g} s")
        self._leaves.is_over = True
        await self._rounds.end()
        await self._work.end_schedule()
        self._work.is_ending = True
        _, late = await asyncio.wait([work, leaves], timeout=_LAST)
        for crawl in self._work.active if late else ():
            self._system.fault(f"not ended after {_LAST:g} s: {crawl.name}, jobs {crawl.running}")

    async def _compare(self) -> None:
        self._say("the referee compares", now=True)
        await self._rounds.check()
        await self._work.check()
        for table in _EMPTY:
            await self._until_empty(table)

    async def _until_empty(self, table: str) -> None:
        count = -1
        for _ in range(60):
            with contextlib.suppress(*AWAY):
                count = await self._system.database.count(table)
                if count == 0:
                    return
            await asyncio.sleep(0.5)
        self._system.fault(f"{count} rows are left in {table}")

    async def _end_processes(self) -> None:
        self._system.watch_processes()
        await asyncio.to_thread(self._system.stop_nodes)
        for _ in range(60):
            if not self._system.left_over():
                break
            await asyncio.sleep(0.5)
        if left := self._system.left_over():
            self._system.fault(f"processes are left: {left}")
        if names := await self._system.database.query("SELECT node FROM nodes"):
            self._system.fault(f"nodes that have left are listed: {[row[0] for row in names]}")

    def _verdict(self) -> Verdict:
        for name, slope in self.sampler.slopes().items():
            if slope.word == "grows":
                self._system.faults.append(f"{name} grows: {slope.growth:+.1f} an hour, from {slope.level:.1f}")
        work, rounds = self._work, self._rounds
        self.figures = {
            "Records acknowledged to clients of the API": f"{rounds.records:,} in {rounds.calls:,} calls",
            "Their calls that were refused for now, by status": dict(rounds.refused) or "none",
            "Their calls that broke": rounds.broken,
            "Items of jobs": f"{work.records:,}",
            "Answers of the extraction service to a client": self._leaves.answered,
            "Jobs, by spider": ", ".join(f"{name} {count}" for name, count in sorted(work.of_kind.items())),
            "Jobs that another process went on with": work.resumed,
            "Runs of the periodic job": work.ticks,
            "Failovers": self._system.database.failovers,
            "Clock steps": "of each node and its jobs"
            if self._system.has_clocks
            else "not done: there is no C compiler",
        }
        return Verdict(self._records, work.jobs, len(self._harms.done), self._system.faults, self._cut_short)

    def report(self, folder: Path, verdict: Verdict, command: str) -> None:
        """Write the report."""
        harms, slopes = self._harms.done, self.sampler.slopes()
        run = Run(verdict, command, self._system.now(), self.figures, harms, slopes)
        write_report(folder, run, self.sampler, self._logs())

    def _logs(self) -> Mapping[str, Path]:
        found = {file.name: file for file in self._system.folder.glob("*/logs/*.log")}
        for name, text in self._system.database.kept_logs().items():
            file = self._system.folder / name
            file.write_text(text)
            found[file.name] = file
        return found


async def soak(folder: Path, engine: str, seed: int, seconds: float, report: Path, command: str) -> Verdict:
    """Run to the verdict, and write the report. The first Ctrl-C asks for the verdict, the second ends everything: then
    this raises ``CancelledError``. ``folder`` is for all that is needed meanwhile. ``engine``: sqlite or postgresql."""
    asked = 0
    run: Soak | None = None
    task = asyncio.current_task()

    def interrupted() -> None:
        nonlocal asked
        asked += 1
        if run is not None:
            run.end()
        if asked == 2 and task is not None:
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    starting = asyncio.ensure_future(asyncio.to_thread(System, folder, engine))
    with Show(seconds) as show:
        try:
            run = Soak(await asyncio.shield(starting), seed, seconds, show)
            if asked:
                run.end()
            verdict = await run.run()
        finally:
            # What threads are at, such as a failover, ends before what they use is closed.
            await asyncio.wait([starting])
            await loop.shutdown_default_executor()
            if starting.exception() is None:
                starting.result().close()
    run.report(report, verdict, command)
    return verdict
