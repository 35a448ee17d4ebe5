"""The process of one job: started, asked to end, stopped for a while, killed.

What is started is the supervisor of the job (``scrapy_ext.jobprocess.supervisor``), which ends when all of the job has
ended. The group of its process ID is that of what it supervises, without itself: who stops that group stops the job.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from scrapy_ext.jobprocess.child import Child, Supervision
from scrapy_ext.jobprocess.confinement import Confinement
from scrapy_ext.jobprocess.messages import Launch
from scrapy_ext.jobprocess.proc import Process, kill_same, signal_below
from scrapy_ext.server.jobs.attempts.output import LiveLines, Output


class JobProcess:
    """Made by :meth:`start`."""

    def __init__(self, child: Child, live: LiveLines | None, up: int) -> None:
        self._child = child
        self.pid = child.pid
        self.output = Output(live)
        #: What was below it when that was looked at last.
        self.tree: Sequence[Process] = ()
        self._killing: asyncio.Task[None] | None = None
        self._up = up
        self._is_up = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(up, self._note_up)
        levels = ((child.output, logging.INFO), (child.errors, logging.ERROR))
        self._readers = [loop.create_task(self.output.read(stream, level)) for stream, level in levels]

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
        try:
            child = await Child.start(
                [python, "-m", "scrapy_ext.jobprocess.launch"],
                environment=environment,
                folder=directory,
                given=msgspec.json.encode(msgspec.structs.replace(launch, up=up_there)),
                descriptors=[up_there],
                errors=asyncio.subprocess.PIPE,
                supervision=Supervision(confinement),
                session=False,  # its group is that of the work, without the supervisor
            )
        except BaseException:
            os.close(up)
            raise
        finally:
            os.close(up_there)
        return cls(child, live, up)

    async def up(self) -> None:
        """Wait until the crawl is under way, or has ended."""
        await self._is_up.wait()

    async def wait(self) -> int:
        """Wait until all of it has ended; returns the exit status, negative for a signal."""
        status = await self._child.wait()
        self._note_up()
        # Nothing is left, unless the supervisor itself was killed.
        await asyncio.to_thread(kill_same, self.tree)
        self._child.kill_group()
        _, late = await asyncio.wait(self._readers, timeout=5)
        for reader in late:  # somebody who is no part of the job any more holds the other end
            reader.cancel()
        return status

    def ask(self) -> None:
        """Ask it to end: the one that does the work, for what that has started is its own to end."""
        self._child.terminate()

    def kill(self) -> None:
        """Kill it with all that it has started."""
        if self._killing is None:
            self._killing = asyncio.create_task(self._child.end())

    def pause(self) -> None:
        """Stop what does the work, and all that it has started. Safe in any thread."""
        signal_below(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """The end of :meth:`pause`. Safe in any thread."""
        signal_below(self.pid, signal.SIGCONT)

    def _note_up(self) -> None:
        if not self._is_up.is_set():
            self._is_up.set()
            asyncio.get_running_loop().remove_reader(self._up)
            os.close(self._up)
