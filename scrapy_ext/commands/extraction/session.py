"""The part of a call that runs in an event loop: a service, a run, and the signals that end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Iterator
from typing import Any

from scrapy_ext.commands.extraction.progress import Progress, ToldByProgress, say
from scrapy_ext.commands.extraction.records import Recorder, RecordWriter
from scrapy_ext.commands.extraction.resume import Comparison
from scrapy_ext.commands.extraction.run import Run
from scrapy_ext.commands.extraction.service import ServiceOptions, opened_service
from scrapy_ext.crawl.session.embedded import EmbeddedServerError


class ExtractSession:
    """See :meth:`run`. ``has_log``: warnings are in a log already."""

    def __init__(
        self,
        options: ServiceOptions,
        comparison: Comparison,
        recorder: Recorder,
        progress: Progress,
        *,
        has_log: bool,
    ) -> None:
        self._options = options
        self._comparison = comparison
        self._recorder = recorder
        self._progress = progress
        self._has_log = has_log
        self._run: Run | None = None
        self._task: asyncio.Task[Any] | None = None
        self._signal: int | None = None

    async def run(self) -> int | None:
        """Until all is done: None; or the number of the signal that ended it."""
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled, number)
        self._progress.open()
        try:
            with self._warnings():
                await self._extract()
        except asyncio.CancelledError:
            if self._signal is None:
                raise
            # What it cuts off elsewhere is no error to tell of.
            loop.set_exception_handler(lambda _loop, _context: None)
        finally:
            self._progress.close()
        return self._signal

    async def _extract(self) -> None:
        self._progress.wait_for(lambda: "" if self._run is not None else "waiting for the service ...")
        output = self._comparison.output
        writer = RecordWriter(sys.stdout.fileno() if output is None else output.file)
        # The records in the terminal show how far it is.
        writer.before_terminal = self._progress.hide
        async with opened_service(self._options, self._lost) as service:
            self._run = Run(service, self._comparison, self._recorder, writer, self._progress.numbers)
            try:
                await self._run.work()
            finally:
                writer.close()

    def _lost(self, error: EmbeddedServerError) -> None:
        if self._run is not None:
            self._run.fail(error)

    def _signalled(self, number: int) -> None:
        """The first time: finish what was sent. The second: end."""
        first, self._signal = self._signal is None, number
        if first and self._run is not None and self._run.in_flight:
            self._run.stop()
            self._progress.wait_for(self._finishing)
            if not self._progress.is_bar:
                say(self._finishing())
            return
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(each)
        if self._task is not None:
            self._task.cancel()

    def _finishing(self) -> str:
        left = self._run.in_flight if self._run is not None else 0
        return f"waiting for {left} in flight; again to stop at once" if left else "stopping ..."

    @contextlib.contextmanager
    def _warnings(self) -> Iterator[None]:
        """Warnings go to the person, unless there is a log."""
        logger, handler = logging.getLogger("scrapy_ext"), ToldByProgress(self._progress)
        if not self._has_log:
            logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
