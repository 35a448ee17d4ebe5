"""The run: lines are read as there is room for them, and records are written as answers come.

What is held at any time: a window of requests that were read, and as many answers as requests may be in flight. An
answer keeps its place until its record is written, so that a slow reader of the output slows the requests down.
Those that wait for the service's limits lend their place to others.
"""

from __future__ import annotations

import asyncio
from typing import Final

from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import ExtractError
from scrapy_ext.client.extraction.budget import OverBudgetError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.commands.extraction.errors import CallError, StopError
from scrapy_ext.commands.extraction.numbers import Numbers
from scrapy_ext.commands.extraction.records import NOT_SENT, Recorder, RecordWriter, failed, refused, type_of
from scrapy_ext.commands.extraction.request_lines import Line, Wanted
from scrapy_ext.commands.extraction.resume import Comparison, Done
from scrapy_ext.commands.extraction.service import ExtractService
from scrapy_ext.commands.extraction.sources import SourceReader
from scrapy_ext.commands.extraction.window import Window

#: Requests that may wait for the service's limits, or for another attempt, at the same time.
_MOST_HELD: Final = 1000
#: A rule that is broken by a setting, such as a table of prices without the one that is needed.
_SETTING: Final = "EXTRACT_API_"


class Run:
    """Every line of a source that is not done, through a service, into records."""

    def __init__(
        self,
        service: ExtractService,
        comparison: Comparison,
        recorder: Recorder,
        writer: RecordWriter,
        numbers: Numbers,
    ) -> None:
        self._service = service
        self._parser = comparison.parser
        self._comparison = comparison
        self._done = comparison.output.done if comparison.output is not None else Done()
        #: A file was compared as a whole before the run began.
        self._compares = comparison.output is not None and not comparison.source.can_be_read_twice
        self._recorder = recorder
        self._writer = writer
        self._numbers = numbers
        self._window = Window()
        self._reader = SourceReader(comparison.source, self._read)
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopping = False
        self._fault: BaseException | None = None
        service.limiter.on_room.append(lambda _domain: self._changed.set())
        service.limiter.on_held = self._changed.set
        self._changed.set()

    @property
    def in_flight(self) -> int:
        """Requests that were begun and have no record yet."""
        return len(self._tasks)

    def stop(self) -> None:
        """Begin no further request. Those that were sent finish."""
        self._stopping = True
        self._window.clear()
        self._service.limiter.close()
        self._changed.set()

    def fail(self, error: BaseException) -> None:
        """Stop, and let the run end with this error."""
        self._fault = self._fault or error
        self.stop()
        if isinstance(error, OSError):
            for task in self._tasks:
                task.cancel()  # Their answers could not be kept.

    async def work(self) -> None:
        """Until everything is done, or :meth:`stop` was called and what was in flight has finished.

        Raises :class:`StopError` when nothing more can be sent, :class:`CallError` when the input is not the one that
        the output was made of, and :class:`OSError` when records cannot be written.
        """
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                self._fill()
                await self._begin()
                if not self._tasks and not len(self._window) and (self._stopping or self._reader.has_ended):
                    break
            if self._fault is not None:
                raise self._fault
            if self._compares and not self._stopping:
                self._comparison.compare_end(self._reader.last)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._reader.close()

    # ── lines ──

    def _read(self, error: OSError | None) -> None:
        if error is not None:
            self.fail(StopError(f"{self._comparison.source.name} cannot be read: {error.strerror}"))
        self._changed.set()

    def _fill(self) -> None:
        """Take lines that were read into the window; have more read when they are used up."""
        while not self._stopping and not self._window.is_full:
            line = self._reader.next()
            if line is not None:
                self._take(line)
                continue
            self._reader.read()
            return

    def _take(self, line: Line) -> None:
        if line.number not in self._done:
            self._window.add(self._parser.parse(line))
        elif self._compares:
            try:
                self._comparison.compare(self._parser.parse(line))
            except CallError as error:
                self.fail(error)

    # ── requests ──

    async def _begin(self) -> None:
        limiter = self._service.limiter
        while len(self._tasks) < self._service.concurrency + min(limiter.held, _MOST_HELD):
            wanted = self._window.take(limiter.has_room)
            if wanted is None:
                return
            task = asyncio.create_task(self._one(wanted))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
            self._changed.set()  # The window has room.
            await asyncio.sleep(0)  # The limiter hears that it has begun.

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._numbers.cost = self._service.cost
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
        self._changed.set()

    async def _one(self, wanted: Wanted) -> None:
        """A line, from its request to its record."""
        try:
            await self._answered(wanted)
        except Closing:
            pass  # It was not sent, and has no record: another run does it.
        except OverBudgetError as error:
            raise StopError(str(error)) from None
        except ContractError as error:
            if any(violation.field.startswith(_SETTING) for violation in error.violations):
                raise StopError(str(error)) from None
            await self._writer.write(refused(wanted, error.violations))
            self._numbers.add_failure(NOT_SENT, str(error))
        except ExtractError as error:
            if self._service.is_fatal(error):
                raise StopError(str(error)) from None
            await self._writer.write(failed(wanted, error))
            self._numbers.add_failure(type_of(error), str(error))

    async def _answered(self, wanted: Wanted) -> None:
        if wanted.faults:
            raise ContractError(wanted.faults)
        result = await self._service.extract(wanted.fields, wanted.domain)
        record, files = self._recorder.answered(wanted, result)
        await self._writer.write(record, files)
        self._numbers.add_answer()
