"""Execution of one attempt at a job on this node, from its environment to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

from scrapy_ext.api.platform.jobs import FAILED, FINISHED, SHUTDOWN, JobState
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.jobprocess.messages import NO_SPIDER, Launch
from scrapy_ext.jobprocess.proc import Process, kernel_kills, shared_memory
from scrapy_ext.server.auth.tokens import AttemptTokens
from scrapy_ext.server.jobs.attempts.output import LiveLines, OutputLine, add_lines, keep_adding, with_whole_tracebacks
from scrapy_ext.server.jobs.attempts.plan import (
    JobLimits,
    NoScriptError,
    environment_of,
    group_settings_of,
    launch_of,
    limits_of,
    running_seconds,
    settings_of,
)
from scrapy_ext.server.jobs.attempts.process import JobProcess
from scrapy_ext.server.jobs.attempts.samples import Sampler
from scrapy_ext.server.jobs.confining import ConfinementError
from scrapy_ext.server.jobs.versions.environments import BuildError, Environments, NoVersionError, Prepared
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.rows import StoredJob

T = TypeVar("T")

_RETRY: Final = 1.0
_LONG_RETRY: Final = 60.0
#: Maximum seconds of a start that delays the next one.
_START: Final = 30.0

#: Seconds in which a crawl whose job was deleted closes by itself. It sends records more often.
_NOTICE: Final = 10.0

#: Close reasons of jobs.
SPIDER_NOT_FOUND: Final = "spider_not_found"
SCRIPT_NOT_FOUND: Final = "script_not_found"
NO_VERSION: Final = "no_version"
BUILD_FAILED: Final = "build_failed"
TIMED_OUT: Final = "timed out"
OUT_OF_MEMORY: Final = "killed by oom"

logger = logging.getLogger(__name__)


class Intent(IntEnum):
    """Reason of a request to end a job; a higher one replaces a lower one."""

    NONE = 0
    DRAIN = 1
    END = 2
    TIME = 3
    CANCEL = 4
    MEMORY = 5
    LOST = 6


#: Intents after which a job is killed at once.
_AT_ONCE: Final = (Intent.MEMORY, Intent.LOST)


class Terms(NamedTuple):
    """Conditions of all jobs of a node."""

    #: URL of the server, for the processes of the jobs.
    url: str
    #: Seconds between the request to end a job and its kill.
    grace: float = 30.0
    #: MiB of memory per unit.
    unit_memory: int = 1024
    #: Seconds that jobs without a timeout of their own may run; None: without limit.
    timeout: float | None = None
    #: Whether processes of deployed versions get the variables of OpenTelemetry.
    opentelemetry: bool = False


class Execution:
    """Execution of an attempt, which runs as ``task``. ``starts`` bounds the number of concurrent starts."""

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
        self._stopping = asyncio.Event()
        self._process: JobProcess | None = None
        self._limits = JobLimits(0, None)
        self._timers: list[asyncio.TimerHandle] = []
        self._paused = False
        self._is_discarded = False
        self._kills: int | None = None
        self._memory = 0
        self._script_began = False
        self._sampler = Sampler(store, attempt)
        #: Number of the worker in its job; None for the only one.
        self._worker: int | None = None
        #: True once its end is stored.
        self.is_settled = False
        self.task = asyncio.create_task(self._run())

    @property
    def pid(self) -> int | None:
        """ID of the supervisor of its process, while it runs."""
        return self._process.pid if self._process is not None else None

    def stop(self, intent: Intent) -> None:
        """Request the end of the job, and kill it after the grace period, or at once for some intents."""
        if intent <= self._intent:
            return
        was_stopping = self._intent is not Intent.NONE
        self._intent = intent
        self._stopping.set()
        if self._process is None:
            return
        if intent in _AT_ONCE:
            self._process.kill()
        elif not was_stopping:
            self._terminate(self._process)

    def discard(self) -> None:
        """End the job, which was deleted. A crawl closes by itself, with the reason, as soon as a call is refused."""
        if self._is_discarded:
            return
        self._is_discarded = True
        if self._process is None or self._script_began:
            self.stop(Intent.END)
        else:
            self._timers.append(asyncio.get_running_loop().call_later(_NOTICE, self.stop, Intent.END))

    def pause(self) -> None:
        """Stop the processes of the job (SIGSTOP), since the node may be dead to others. Safe in any thread."""
        if self._process is not None and not self._paused:
            self._paused = True
            self._process.pause()

    def resume(self) -> None:
        """Continue the processes of the job after :meth:`pause`."""
        if self._process is not None and self._paused:
            self._paused = False
            self._process.resume()

    async def measure(self, tree: list[Process], kills: int | None) -> None:
        """Kill the job when its processes use too much memory; take a sample when one is due."""
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

    def _terminate(self, process: JobProcess) -> None:
        process.terminate()
        self._timers.append(asyncio.get_running_loop().call_later(self._terms.grace, process.kill))

    async def _run(self) -> None:
        try:
            reason = await self._reason()
        except ContractError as error:  # the job was deleted meanwhile
            logger.info("Job %s did not start: %s", self._attempt, error)
            reason = FAILED
        except Exception:
            logger.exception("Job %s failed before it ran", self._attempt)
            reason = FAILED
        await self._settle(reason)

    async def _reason(self) -> str | None:
        """Run the job; return its close reason, None for the one that its process has sent."""
        key = self._attempt.key
        job = await _retried(lambda: self._store.jobs.get(key))
        if job is None or job.state is JobState.DELETED or self._intent:
            return SHUTDOWN
        self._worker = await _retried(lambda: self._store.groups.worker(self._attempt))
        try:
            prepared = await self._unless_stopping(
                _retried(lambda: self._environments.prepare(key.project, job.metadata.get("version")))
            )
        except NoVersionError as error:
            await self._log([OutputLine(logging.ERROR, str(error))])
            return NO_VERSION
        except BuildError as error:
            await self._log([OutputLine(logging.ERROR, line) for line in str(error).splitlines()])
            return BUILD_FAILED
        if prepared is None:  # the build continues for other jobs
            return SHUTDOWN
        stored = await _retried(lambda: self._store.projects.settings(key.project))
        settings = settings_of(job, stored)
        if self._worker is not None:
            settings |= group_settings_of(job)
            self._sampler.in_group = True
        self._limits = limits_of(job, settings, self._terms.unit_memory, self._terms.timeout)
        if self._worker is not None:
            self._limits = self._limits.after(running_seconds(job, self._store.clock()))
        try:
            launch = await asyncio.to_thread(launch_of, job, prepared, settings, self._limits)
        except NoScriptError as error:
            await self._log([OutputLine(logging.ERROR, str(error))])
            return SCRIPT_NOT_FOUND
        await _retried(lambda: self._store.jobs.note(key, {"version": prepared.version}))
        await self._acquire_start()
        if self._intent:
            return SHUTDOWN
        return await self._process_of(job, prepared, launch)

    async def _acquire_start(self) -> None:
        """Wait until this job may start, or is stopped."""
        if await self._unless_stopping(self._starts.acquire()) and self._intent:
            self._starts.release()

    async def _unless_stopping(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of some work; None when the job is stopped first."""
        doing, stopping = asyncio.ensure_future(work), asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([doing, stopping], return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            doing.cancel()
            stopping.cancel()

    async def _process_of(self, job: StoredJob, prepared: Prepared, launch: Launch) -> str | None:
        script = bool(launch.script)
        live = LiveLines() if script else None
        adding: asyncio.Task[None] | None = None
        try:
            token = await _retried(lambda: AttemptTokens(self._store).token(self._attempt))
            environment = environment_of(job, prepared, self._terms.url, token, opentelemetry=self._terms.opentelemetry)
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
            await self._log([OutputLine(logging.ERROR, f"The process of the job could not be started: {error}")])
            return FAILED
        except BaseException:
            self._starts.release()
            raise
        self._script_began = script
        up = asyncio.create_task(self._up(process))
        if live is not None:
            adding = asyncio.create_task(keep_adding(self._store, self._attempt, live))
        self._process = process
        if self._intent:
            self._terminate(process)
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
            await self._log(_last(process, status, script=script))
            await self._sampler.take(0)
        return self._outcome(status, script=script)

    async def _up(self, process: JobProcess) -> None:
        try:
            with contextlib.suppress(*TIMEOUT_ERRORS):
                await asyncio.wait_for(process.up(), _START)
        finally:
            self._starts.release()

    def _outcome(self, status: int, *, script: bool) -> str | None:
        if self._intent is Intent.MEMORY or (status == -signal.SIGKILL and not self._intent and self._kernel_did_it()):
            return OUT_OF_MEMORY
        if self._intent is Intent.TIME and not (script and status == 0):
            return TIMED_OUT
        # A crawl that is stopped before its session is open ends with 0 and has sent no reason. One that was complete
        # has sent its own, which counts (``Attempts.end``).
        if self._intent and (status or not script):
            return SHUTDOWN
        return _reason_of(status, script=script)

    def _kernel_did_it(self) -> bool:
        now = kernel_kills()
        return now is not None and self._kills is not None and now > self._kills

    async def _log(self, lines: list[OutputLine]) -> None:
        if self._worker is not None:  # as the worker's own lines
            lines = [line._replace(text=f"[{self._worker}] {line.text}") for line in lines]
        try:
            await add_lines(self._store, self._attempt.key, lines)
        except ContractError as error:  # the job was deleted
            logger.info("The output of job %s was dropped: %s", self._attempt, error)
        except StoreError as error:
            logger.warning("The output of job %s could not be added to its log: %s", self._attempt, error)

    async def _settle(self, reason: str | None) -> None:
        intent, attempts = self._intent, self._store.attempts
        while True:
            try:
                # A script cannot resume: its work would be repeated.
                if intent is Intent.DRAIN and not self._script_began:
                    await _retried(lambda: attempts.give_back(self._attempt))
                elif intent is not Intent.LOST:
                    await _retried(lambda: attempts.end(self._attempt, reason))
                break
            # A job that is abandoned now would run again.
            except Exception:
                logger.exception("The end of job %s could not be stored; it is retried", self._attempt)
                await asyncio.sleep(_LONG_RETRY)
        self.is_settled = True


def _last(process: JobProcess, status: int, *, script: bool) -> list[OutputLine]:
    """Return the end of the output. A crawl writes there what it cannot log: an error only if the crawl failed."""
    lines = process.output.tail.lines()
    if script:
        return lines
    level = logging.ERROR if status else logging.INFO
    return list(with_whole_tracebacks(OutputLine(level, line.text) for line in lines))


async def _retried(write: Callable[[], Awaitable[T]]) -> T:
    """Run a call, retried for as long as the database is unavailable."""
    while True:
        try:
            return await write()
        except StoreError as error:
            logger.warning("%s The call is retried.", error)
            await asyncio.sleep(_RETRY)


def _reason_of(status: int, *, script: bool) -> str | None:
    """Return the close reason for an exit status; None for the one that the process has sent."""
    if status == NO_SPIDER and not script:
        return SPIDER_NOT_FOUND
    if status < 0:
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"
    if script:  # it sends no reason
        return FAILED if status else FINISHED
    return None
