"""Process of one job: started, terminated, paused, and killed.

The process is the supervisor of the job (``scrapy_ext.jobprocess.supervisor``), which ends when all processes of the
job have ended. The process group with its ID contains the supervised processes without the supervisor, so that a signal
to that group reaches the job.
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
    """A job's process, started by :meth:`start`."""

    def __init__(self, child: Child, live: LiveLines | None, up: int) -> None:
        self._child = child
        self.pid = child.pid
        self.output = Output(live)
        #: The processes below it, as measured last.
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
        """Start a job; raise ``OSError``. ``live``: receives its output. ``confinement``: for a deployed version."""
        up, remote_up = os.pipe()
        try:
            child = await Child.start(
                [python, "-m", "scrapy_ext.jobprocess.launch"],
                environment=environment,
                folder=directory,
                given=msgspec.json.encode(msgspec.structs.replace(launch, up=remote_up)),
                descriptors=[remote_up],
                errors=asyncio.subprocess.PIPE,
                supervision=Supervision(confinement),
                session=False,  # its process group is the job's, without the supervisor
            )
        except BaseException:
            os.close(up)
            raise
        finally:
            os.close(remote_up)
        return cls(child, live, up)

    async def up(self) -> None:
        """Wait until the crawl has started, or has ended."""
        await self._is_up.wait()

    async def wait(self) -> int:
        """Wait for the end of all its processes; return the exit status, negative for a signal."""
        status = await self._child.wait()
        self._note_up()
        # Processes remain only if the supervisor itself was killed.
        await asyncio.to_thread(kill_same, self.tree)
        self._child.kill_group()
        _, late = await asyncio.wait(self._readers, timeout=5)
        for reader in late:  # a process that has left the job holds the other end
            reader.cancel()
        return status

    def terminate(self) -> None:
        """Send SIGTERM to the main process of the job, which ends those that it has started."""
        self._child.terminate()

    def kill(self) -> None:
        if self._killing is None:
            self._killing = asyncio.create_task(self._child.end())

    def pause(self) -> None:
        """Stop all its processes (SIGSTOP). Safe in any thread."""
        signal_below(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue its processes (SIGCONT). Safe in any thread."""
        signal_below(self.pid, signal.SIGCONT)

    def _note_up(self) -> None:
        if not self._is_up.is_set():
            self._is_up.set()
            asyncio.get_running_loop().remove_reader(self._up)
            os.close(self._up)
