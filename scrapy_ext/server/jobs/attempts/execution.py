"""One attempt at a job on this node: from its environment to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

from scrapy_ext.api.platform.jobs import FAILED, FINISHED, SHUTDOWN
from scrapy_ext.jobprocess.messages import NO_SPIDER, Launch
from scrapy_ext.jobprocess.proc import Process, kernel_kills, shared_memory
from scrapy_ext.server.auth.tokens import AttemptTokens
from scrapy_ext.server.jobs.attempts.output import Line, LiveLines, add_lines, keep_adding
from scrapy_ext.server.jobs.attempts.plan import (
    JobLimits,
    NoScriptError,
    environment_of,
    launch_of,
    limits_of,
    settings_of,
)
from scrapy_ext.server.jobs.attempts.process import JobProcess
from scrapy_ext.server.jobs.attempts.samples import Sampler
from scrapy_ext.server.jobs.confining import ConfinementError
from scrapy_ext.server.jobs.versions.environments import BuildError, Environments, NoVersionError, Prepared
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.jobs.attempts import Attempt
from scrapy_ext.server.store.jobs.rows import StoredJob

T = TypeVar("T")

_RETRY: Final = 1.0
_LONG_RETRY: Final = 60.0
#: Seconds for a start until the next one may begin, however far it is.
_START: Final = 30.0

#: Reasons for the end of a job, as its ``close_reason``.
SPIDER_NOT_FOUND: Final = "spider_not_found"
SCRIPT_NOT_FOUND: Final = "script_not_found"
NO_VERSION: Final = "no_version"
BUILD_FAILED: Final = "build_failed"
TIMED_OUT: Final = "timed out"
OUT_OF_MEMORY: Final = "killed by oom"

logger = logging.getLogger(__name__)


class Intent(IntEnum):
    """Why a job is asked to end; a higher one takes the place of a lower one."""

    NONE = 0
    DRAIN = 1
    END = 2
    TIME = 3
    CANCEL = 4
    MEMORY = 5
    LOST = 6


#: Those after which a job is killed at once.
_AT_ONCE: Final = (Intent.MEMORY, Intent.LOST)


class Terms(NamedTuple):
    """What holds for all jobs of a node: where their processes find the services (``url``), seconds to end when they
    are asked to (``grace``), MiB of memory of a unit, seconds to run if they say nothing of that."""

    url: str
    grace: float = 30.0
    unit_memory: int = 1024
    timeout: float | None = None


class Execution:
    """Runs as ``task`` from the moment that it is made. ``starts`` bounds how many start at a time."""

    def __init__(
        self,
        store: Store,
        environments: Environments,
        terms: Terms,
        attempt: Attempt,
        starts: asyncio.Semaphore,
    ) -> None:
        self._store = store
        self._environments = environments
        self._terms = terms
        self._attempt = attempt
        self._starts = starts
        self._intent = Intent.NONE
        self._asked = asyncio.Event()
        self._process: JobProcess | None = None
        self._limits = JobLimits(0, None)
        self._timers: list[asyncio.TimerHandle] = []
        self._paused = False
        self._kills: int | None = None
        self._memory = 0
        self._script_began = False
        self._sampler = Sampler(store.fenced(attempt), attempt)
        #: Whether the store knows of its end, so that it is no longer among the jobs of the node.
        self.is_settled = False
        self.task = asyncio.create_task(self._run())

    @property
    def pid(self) -> int | None:
        """Its first process, while it has one."""
        return self._process.pid if self._process is not None else None

    def stop(self, intent: Intent) -> None:
        """Ask the job to end, and kill it if it does not; of one that is another's, kill it now."""
        if intent <= self._intent:
            return
        was_asked = self._intent is not Intent.NONE
        self._intent = intent
        self._asked.set()
        if self._process is None:
            return
        if intent in _AT_ONCE:
            self._process.kill()
        elif not was_asked:
            self._ask(self._process)

    def pause(self) -> None:
        """Stop the job where it is: nobody may know any more that this node has it. Safe in any thread."""
        if self._process is not None and not self._paused:
            self._paused = True
            self._process.pause()

    def go_on(self) -> None:
        """The end of :meth:`pause`."""
        if self._process is not None and self._paused:
            self._paused = False
            self._process.go_on()

    async def look(self, tree: list[Process], kills: int | None) -> None:
        """See what its processes are: kill them when they have too much memory, take a sample when one is due."""
        process = self._process
        if process is None or not tree:
            return
        process.tree = tree
        self._kills = kills
        shared = await asyncio.to_thread(shared_memory, [each.pid for each in tree])
        self._memory = sum(each.memory for each in tree) + shared
        if self._memory > self._limits.memory:
            self.stop(Intent.MEMORY)
        elif self._sampler.is_due:
            await self._sampler.take(self._memory)

    def _ask(self, process: JobProcess) -> None:
        process.ask()
        self._timers.append(asyncio.get_running_loop().call_later(self._terms.grace, process.kill))

    async def _run(self) -> None:
        try:
            reason = await self._reason()
        except Exception:
            logger.exception("Job %s failed before it ran", self._attempt)
            reason = FAILED
        await self._settle(reason)

    async def _reason(self) -> str | None:
        """Run the job; returns the reason of its end, None for that which its process gave."""
        key = self._attempt.key
        job = await _stubborn(lambda: self._store.jobs.get(key))
        if job is None or self._intent:
            return SHUTDOWN
        try:
            prepared = await self._unless_asked(
                _stubborn(lambda: self._environments.prepare(key.project, job.metadata.get("version")))
            )
        except NoVersionError as error:
            await self._tell([Line(logging.ERROR, str(error))])
            return NO_VERSION
        except BuildError as error:
            await self._tell([Line(logging.ERROR, line) for line in str(error).splitlines()])
            return BUILD_FAILED
        if prepared is None:  # a build that others may want goes on
            return SHUTDOWN
        stored = await _stubborn(lambda: self._store.projects.settings(key.project))
        settings = settings_of(job, stored)
        self._limits = limits_of(job, settings, self._terms.unit_memory, self._terms.timeout)
        try:
            launch = await asyncio.to_thread(launch_of, job, prepared, settings, self._limits)
        except NoScriptError as error:
            await self._tell([Line(logging.ERROR, str(error))])
            return SCRIPT_NOT_FOUND
        await _stubborn(lambda: self._store.jobs.note(key, {"version": prepared.version}))
        await self._turn()
        if self._intent:  # a build takes its time, and so does the turn
            return SHUTDOWN
        return await self._process_of(job, prepared, launch)

    async def _turn(self) -> None:
        """Wait until this one may start, or is not to any more."""
        if await self._unless_asked(self._starts.acquire()) and self._intent:
            self._starts.release()

    async def _unless_asked(self, what: Coroutine[Any, Any, T]) -> T | None:
        """Wait for something, or until the job is asked to end: then None."""
        doing, asked = asyncio.ensure_future(what), asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait([doing, asked], return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            doing.cancel()
            asked.cancel()

    async def _process_of(self, job: StoredJob, prepared: Prepared, launch: Launch) -> str | None:
        script = bool(launch.script)
        live = LiveLines() if script else None
        adding: asyncio.Task[None] | None = None
        fenced = self._store.fenced(self._attempt)
        try:
            token = await _stubborn(lambda: AttemptTokens(self._store).token(self._attempt))
            environment = environment_of(job, prepared, self._terms.url, token)
            self._kills = kernel_kills()
            confinement = await self._environments.confinement(prepared, self._limits.memory)
            process = await JobProcess.start(
                prepared.python,
                prepared.work,
                environment,
                launch,
                live=live,
                confinement=confinement,
            )
        except (OSError, ConfinementError) as error:
            self._starts.release()
            await self._tell([Line(logging.ERROR, f"The process of the job could not be started: {error}")])
            return FAILED
        except BaseException:
            self._starts.release()
            raise
        self._script_began = script
        up = asyncio.create_task(self._up(process))
        if live is not None:
            adding = asyncio.create_task(keep_adding(fenced, self._attempt.key, live))
        self._process = process
        if self._intent:
            self._ask(process)
        if self._limits.seconds is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(self._limits.seconds, self.stop, Intent.TIME))
        try:
            status = await process.wait()
        finally:
            self._process = None
            for timer in self._timers:
                timer.cancel()
            await up
            if live is not None and adding is not None:
                live.close()
                await adding
        if self._intent is not Intent.LOST:
            await self._tell(_last(process, status, script=script))
            await self._sampler.take(0)
        return self._outcome(status, script=script)

    async def _up(self, process: JobProcess) -> None:
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.up(), _START)
        finally:
            self._starts.release()

    def _outcome(self, status: int, *, script: bool) -> str | None:
        if self._intent is Intent.MEMORY or (status == -signal.SIGKILL and not self._intent and self._kernel_did_it()):
            return OUT_OF_MEMORY
        if self._intent is Intent.TIME and not (script and status == 0):
            return TIMED_OUT
        if self._intent and status:
            return SHUTDOWN
        return _reason_of(status, script=script)

    def _kernel_did_it(self) -> bool:
        now = kernel_kills()
        return now is not None and self._kills is not None and now > self._kills

    async def _tell(self, lines: list[Line]) -> None:
        try:
            await add_lines(self._store, self._attempt.key, lines)
        except StoreError as error:
            logger.warning("The output of job %s could not be added to its log: %s", self._attempt, error)

    async def _settle(self, reason: str | None) -> None:
        intent, attempts = self._intent, self._store.attempts
        while True:
            try:
                # A script does not go on where it was: what it has done would be done again.
                if intent is Intent.DRAIN and not self._script_began:
                    await _stubborn(lambda: attempts.give_back(self._attempt))
                elif intent is not Intent.LOST:
                    await _stubborn(lambda: attempts.end(self._attempt, reason))
                break
            except Exception:  # who let go of it now would run it again
                logger.exception("The end of job %s could not be stored; it will be tried again", self._attempt)
                await asyncio.sleep(_LONG_RETRY)
        self.is_settled = True


def _last(process: JobProcess, status: int, *, script: bool) -> list[Line]:
    """The end of the output. What a crawl writes there is what it could not log; that of one that ended well is no
    error."""
    lines = process.output.tail.lines()
    if script or status:
        return lines if script else [Line(logging.ERROR, line.text) for line in lines]
    return [Line(logging.INFO, line.text) for line in lines]


async def _stubborn(write: Callable[[], Awaitable[T]]) -> T:
    """Do what must be done, however long the database is away."""
    while True:
        try:
            return await write()
        except StoreError as error:
            logger.warning("Will be tried again: %s", error)
            await asyncio.sleep(_RETRY)


def _reason_of(status: int, *, script: bool) -> str | None:
    """The reason by the exit status of the process; None: what the process has said itself, if anything."""
    if status == NO_SPIDER and not script:
        return SPIDER_NOT_FOUND
    if status < 0:
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"
    if script:  # which reports no reason itself
        return FAILED if status else FINISHED
    return None
