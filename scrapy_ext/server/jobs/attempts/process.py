"""The process of one job: started, asked to end, stopped for a while, killed.

What is started is the supervisor of the job (``scrapy_ext.jobprocess.supervisor``), which ends when all of the job has
ended. The group of its process ID is that of what it supervises, without itself: who stops that group stops the job.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from scrapy_ext.jobprocess import supervisor
from scrapy_ext.jobprocess.confinement import Confinement, own_ports
from scrapy_ext.jobprocess.messages import Launch
from scrapy_ext.jobprocess.proc import Process, kill_same, signal_below
from scrapy_ext.server.jobs.attempts.output import LiveLines, Output

#: Seconds for the supervisor to kill what is below it.
_PATIENCE: Final = 12.0


class JobProcess:
    """Made by :meth:`start`."""

    def __init__(self, process: asyncio.subprocess.Process, live: LiveLines | None, up: int) -> None:
        self._process = process
        self.pid = process.pid
        self.output = Output(live)
        #: What was below it when that was looked at last.
        self.tree: Sequence[Process] = ()
        self._killing: asyncio.TimerHandle | None = None
        self._up = up
        self._is_up = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(up, self._note_up)
        levels = ((process.stdout, logging.INFO), (process.stderr, logging.ERROR))
        self._readers = [loop.create_task(self.output.read(stream, level)) for stream, level in levels if stream]

    @classmethod
    async def start(
        cls,
        python: str,
        directory: Path,
        environment: Mapping[str, str],
        launch: Launch,
        *,
        live: LiveLines | None = None,
        confinement: Confinement | None = None,
    ) -> JobProcess:
        """Start a job; raises ``OSError``. ``live``: where the lines go that it writes. ``confinement``: that of a
        deployed version."""
        up, up_there = os.pipe()
        task = supervisor.Task(
            parent=os.getpid(),
            command=[python, "-m", "scrapy_ext.jobprocess.launch"],
            folder=str(directory),
            environment=environment,
            input=msgspec.json.encode(msgspec.structs.replace(launch, up=up_there)).decode(),
            keep=[up_there],
            confinement=None if confinement is None else confinement._asdict(),
            own_ports=own_ports.descriptor(),
        )
        try:
            process = await asyncio.create_subprocess_exec(
                *supervisor.command(),
                env=supervisor.environment(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=supervisor.descriptors(task),
            )
        except BaseException:
            os.close(up)
            raise
        finally:
            os.close(up_there)
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        started = cls(process, live, up)
        process.stdin.write(supervisor.line_of(task))
        return started

    async def up(self) -> None:
        """Wait until the crawl is under way, or has ended."""
        await self._is_up.wait()

    async def wait(self) -> int:
        """Wait until all of it has ended; returns the exit status, negative for a signal."""
        status = await self._process.wait()
        self._note_up()
        if self._killing is not None:
            self._killing.cancel()
        # Nothing is left, unless the supervisor itself was killed.
        await asyncio.to_thread(kill_same, self.tree)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        _, late = await asyncio.wait(self._readers, timeout=5)
        for reader in late:  # somebody who is no part of the job any more holds the other end
            reader.cancel()
        return status

    def ask(self) -> None:
        """Ask it to end: the one that does the work, for what that has started is its own to end."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with all that it has started."""
        if self._killing is not None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._killing = asyncio.get_running_loop().call_later(_PATIENCE, self._kill_the_supervisor)

    def pause(self) -> None:
        """Stop what does the work, and all that it has started. Safe in any thread."""
        signal_below(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """The end of :meth:`pause`. Safe in any thread."""
        signal_below(self.pid, signal.SIGCONT)

    def _kill_the_supervisor(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _note_up(self) -> None:
        if not self._is_up.is_set():
            self._is_up.set()
            asyncio.get_running_loop().remove_reader(self._up)
            os.close(self._up)
