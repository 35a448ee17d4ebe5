"""One call of the command, from its options to its exit code: a check of the lines, or a session that runs them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.extraction.input_lines import CallError, LineParser, Source, StopError
from scrapy_ext.commands.extraction.progress import Numbers, Progress, ToldByProgress, lines, say, waiting
from scrapy_ext.commands.extraction.records import Recorder, RecordWriter
from scrapy_ext.commands.extraction.resume import Comparison, Done, OutputFile
from scrapy_ext.commands.extraction.run import Run, ServiceOptions, opened_service
from scrapy_ext.commands.subcommand import FAILED, OK
from scrapy_ext.commands.terminal.text import printable
from scrapy_ext.crawl.extraction.from_settings import faults_of, params_of
from scrapy_ext.crawl.session.embedded import Configured, EmbeddedServerError
from scrapy_ext.settings import SettingError


def check_lines(source: Source, parser: LineParser, extra_fields: Collection[str]) -> tuple[int, int]:
    """Print what is wrong with each line; how many lines there are, and how many of them break a rule.

    Raises :class:`OSError`.
    """
    number = broken = 0
    for batch in source.lines():
        number += len(batch)
        for line in batch:
            violations = parser.parse(line).violations(extra_fields)
            broken += bool(violations)
            for violation in violations:
                sys.stdout.write(f"line {line.number}: {printable(str(violation))}\n")
    sys.stdout.flush()
    return number, broken


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


WRONG_CALL: Final = 2
#: What a shell adds to the number of the signal that ended a process.
SIGNALLED: Final = 128


class ExtractCall(msgspec.Struct, frozen=True):
    """What the command line asks for; ``fields`` are those of every request."""

    source: Source
    fields: Mapping[str, Any]
    recorder: Recorder
    output: str | None = None
    concurrency: int | None = None
    retry_failed: bool = False
    check: bool = False
    quiet: bool = False
    has_log: bool = False

    @property
    def is_single(self) -> bool:
        """Whether it is about one page, which needs no count."""
        return len(self.source.urls) == 1


def execute(settings: BaseSettings, call: ExtractCall) -> int:
    """Do what a call asks for, tell what there is to tell, and return the exit code."""
    try:
        with contextlib.ExitStack() as kept:
            return _check(settings, call) if call.check else _extract(settings, call, kept)
    except (CallError, SettingError) as error:
        say(str(error))
        return WRONG_CALL
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT
    except BrokenPipeError:
        pass  # The reader has seen enough.
    except OSError as error:
        say(f"{error.filename or call.output or 'standard output'}: {error.strerror}")
    return FAILED


def _parser(settings: BaseSettings, call: ExtractCall) -> LineParser:
    """Fields for every request that are wrong by themselves are told before there is one."""
    params = params_of(settings)
    faults = faults_of(call.fields, names.EXTRACT_API_EXTRA_FIELDS.read(settings))
    if faults:
        raise CallError(f"--field or --params: {ContractError(faults)}")
    return LineParser(params, call.fields)


def _check(settings: BaseSettings, call: ExtractCall) -> int:
    call.source.check_readable()
    extra_fields: list[str] = names.EXTRACT_API_EXTRA_FIELDS.read(settings)
    number, broken = check_lines(call.source, _parser(settings, call), extra_fields)
    say(f"{broken} of {lines(number)} cannot be sent" if broken else f"{lines(number)}, all in order")
    return FAILED if broken else OK


def _extract(settings: BaseSettings, call: ExtractCall, kept: contextlib.ExitStack) -> int:
    options, comparison = _prepared(settings, call, kept)
    output = comparison.output
    with waiting("looking at what is done ...", quiet=call.quiet or output is None):
        if output is not None:
            output.look(again=call.retry_failed)
        numbers = Numbers(comparison.count(), output.done if output is not None else Done())
    if not numbers.is_all:
        progress = Progress(numbers, quiet=call.quiet)
        session = ExtractSession(options, comparison, call.recorder, progress, has_log=call.has_log)
        try:
            ended = asyncio.run(session.run())
        except (StopError, EmbeddedServerError) as error:
            say(f"{str(error).rstrip('.')}. {_stopped(call, comparison, numbers)}".rstrip())
            return FAILED
        if ended is not None and not numbers.is_all:
            say(_stopped(call, comparison, numbers) or "stopped")
            return SIGNALLED + ended
    if numbers.failed or not (call.quiet or call.is_single):
        say(numbers.summary())
    return FAILED if numbers.failed else OK


def _prepared(
    settings: BaseSettings, call: ExtractCall, kept: contextlib.ExitStack
) -> tuple[ServiceOptions, Comparison]:
    """What can be known to be wrong is told before anything is made."""
    Configured.read(settings)
    call.source.check_readable()
    options = ServiceOptions(settings, call.concurrency)
    parser = _parser(settings, call)
    output = None
    if call.output is not None:
        output = OutputFile(call.output)
        kept.callback(output.close)
    for folder in (call.recorder.bodies, call.recorder.screenshots):
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
    return options, Comparison(call.source, parser, output)


def _stopped(call: ExtractCall, comparison: Comparison, numbers: Numbers) -> str:
    """How far it is, and how to go on; nothing for a single page."""
    if call.is_single:
        return ""
    of = f" of {numbers.total}" if numbers.total is not None else ""
    told = f"Stopped with {f'{numbers.done}{of} lines' if of else lines(numbers.done)} done"
    if comparison.output is None or not comparison.output.is_kept:
        return f"{told}. With --output FILE, the same command could go on from here."
    again = "the same command" if call.source.can_be_read_twice else "the same command with the same input"
    return f"{told}; {again} goes on from here."
