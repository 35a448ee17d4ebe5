"""One attempt at a job on this node: from its environment to its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
import signal
from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from scrapy_ext.api.launch import Launch
from scrapy_ext.api.platform.versions import LOCAL
from scrapy_ext.server.attempt_tokens import AttemptTokens
from scrapy_ext.server.jobs.environments import BuildError, Environments, NoVersionError, Prepared
from scrapy_ext.server.jobs.job_log import add_lines
from scrapy_ext.server.jobs.outcome import BUILD_FAILED, FAILED, NO_VERSION, reason_of
from scrapy_ext.server.jobs.process import Ended, JobProcess
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.attempts import Attempt
from scrapy_ext.server.store.errors import StoreError
from scrapy_ext.server.store.job_rows import StoredJob

_SCRIPT: Final = "py:"
#: Of the server's environment, what processes of deployed code get.
_PASSED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME", "SSL_CERT_FILE")
#: What no process of a job gets, however it was deployed.
_KEPT_BACK: Final = ("SERVER_", "PG", "ATTRIBUTES_API_KEY")
_RETRY: Final = 1.0

logger = logging.getLogger(__name__)


class Intent(IntEnum):
    """Why a job is asked to end; a higher one takes the place of a lower one."""

    NONE = 0
    DRAIN = 1
    END = 2
    CANCEL = 3
    LOST = 4


class Door(NamedTuple):
    """Where the processes of jobs find the services."""

    url: str


class Execution:
    """Runs as ``task`` from the moment that it is made."""

    def __init__(self, store: Store, environments: Environments, door: Door, attempt: Attempt, grace: float) -> None:
        self._store = store
        self._environments = environments
        self._door = door
        self._attempt = attempt
        self._grace = grace
        self._intent = Intent.NONE
        self._process: JobProcess | None = None
        self._killing: asyncio.TimerHandle | None = None
        self._paused = False
        #: Whether the store knows of its end, so that it is no longer among the jobs of the node.
        self.is_settled = False
        self.task = asyncio.create_task(self._run())

    @property
    def pid(self) -> int | None:
        """The process, and the group of all that it has started; None before there is one."""
        return None if self._process is None else self._process.pid

    def stop(self, intent: Intent) -> None:
        """Ask the job to end, and kill it if it does not; of one that is another's, kill it now."""
        if intent <= self._intent:
            return
        self._intent = intent
        if self._process is None:
            return
        if intent is Intent.LOST:
            self._process.signal(signal.SIGKILL)
        elif self._killing is None:
            self._ask(self._process)

    def pause(self) -> None:
        """Stop the job where it is: nobody may know any more that this node has it. Safe in any thread."""
        if self._process is not None and not self._paused:
            self._paused = True
            self._process.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """The end of :meth:`pause`."""
        if self._process is not None and self._paused:
            self._paused = False
            self._process.signal(signal.SIGCONT)

    def _ask(self, process: JobProcess) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)  # not to what it has started: that is its own to end
        self._killing = asyncio.get_running_loop().call_later(self._grace, process.signal, signal.SIGKILL)

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
            return FAILED
        try:
            prepared = await self._environments.prepare(key.project, job.metadata.get("version"))
        except NoVersionError as error:
            await self._tell([str(error)])
            return NO_VERSION
        except BuildError as error:
            await self._tell(str(error).splitlines())
            return BUILD_FAILED
        if self._intent:  # a build takes its time
            return FAILED
        await _stubborn(lambda: self._store.jobs.merge(key, {"version": prepared.version}))
        ended = await self._process_of(job, prepared)
        script = job.spider.startswith(_SCRIPT)
        reason = reason_of(ended.status, script=script)
        level = logging.INFO if script and not ended.status else logging.ERROR
        if self._intent is not Intent.LOST:
            await self._tell(ended.output, level)
        return reason

    async def _process_of(self, job: StoredJob, prepared: Prepared) -> Ended:
        environment = await self._environment(job, prepared)
        self._process = await JobProcess.start(prepared.python, prepared.directory, environment, _launch(job, prepared))
        if self._intent:
            self._ask(self._process)
        try:
            return await self._process.wait()
        finally:
            if self._killing is not None:
                self._killing.cancel()

    async def _environment(self, job: StoredJob, prepared: Prepared) -> dict[str, str]:
        """What the process finds in its environment: the server's, without its secrets, and where the services are."""
        if prepared.version == LOCAL:
            base = {name: value for name, value in os.environ.items() if not name.startswith(_KEPT_BACK)}
        else:
            base = {name: value for name, value in os.environ.items() if name in _PASSED}
        asked = job.metadata.get("environment")
        given = {str(name): _text(value) for name, value in asked.items()} if isinstance(asked, Mapping) else {}
        token = await AttemptTokens(self._store).token(self._attempt)
        url = self._door.url
        return {
            **base,
            **given,
            "PLATFORM_URL": url,
            "PLATFORM_API_KEY": token,
            "PLATFORM_PROJECT": str(job.key.project),
            "PLATFORM_JOB": str(job.key),
            "EXTRACT_API_URL": f"{url}/v1",
            "EXTRACT_API_KEY": token,
            "PYTHONUNBUFFERED": "1",
        }

    async def _tell(self, lines: list[str], level: int = logging.ERROR) -> None:
        try:
            await add_lines(self._store, self._attempt.key, lines, level)
        except StoreError as error:
            logger.warning("The output of job %s could not be added to its log: %s", self._attempt, error)

    async def _settle(self, reason: str | None) -> None:
        intent, attempts = self._intent, self._store.attempts
        if intent is Intent.DRAIN:
            await _stubborn(lambda: attempts.give_back(self._attempt))
        elif intent is not Intent.LOST:
            await _stubborn(lambda: attempts.end(self._attempt, reason))
        self.is_settled = True


def _launch(job: StoredJob, prepared: Prepared) -> Launch:
    arguments, settings = job.metadata.get("spider_args"), job.metadata.get("job_settings")
    if job.spider.startswith(_SCRIPT):
        words = job.metadata.get("cmd_args")
        folder = prepared.scripts or prepared.directory
        return Launch(
            parent=os.getpid(),
            script=str(folder / job.spider.removeprefix(_SCRIPT)),
            words=shlex.split(words) if isinstance(words, str) else [],
        )
    return Launch(
        parent=os.getpid(),
        spider=job.spider,
        arguments={name: _text(value) for name, value in arguments.items()} if isinstance(arguments, dict) else {},
        settings=settings if isinstance(settings, dict) else {},
    )


def _text(value: Any) -> str:
    """A value as a spider argument or an environment variable has it."""
    return value if isinstance(value, str) else json.dumps(value)


async def _stubborn(write: Callable[[], Awaitable[Any]]) -> Any:
    """Do what must be done, however long the database is away."""
    while True:
        try:
            return await write()
        except StoreError as error:
            logger.warning("Will be tried again: %s", error)
            await asyncio.sleep(_RETRY)
