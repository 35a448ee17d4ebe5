"""One call of ``scrapy extract``, from its options to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.extraction.explain import ExplainCall, explain
from scrapy_ext.commands.extraction.input_lines import CallError, LineParser, Source, StopError
from scrapy_ext.commands.extraction.progress import Numbers, ProgressDisplay, ProgressHandler, say
from scrapy_ext.commands.extraction.records import Recorder, RecordWriter
from scrapy_ext.commands.extraction.resume import Comparison, Done, OutputFile
from scrapy_ext.commands.extraction.run import ExtractRun, ExtractService
from scrapy_ext.commands.output import status
from scrapy_ext.commands.subcommand import FAILED, OK
from scrapy_ext.commands.text import counted, printable
from scrapy_ext.crawl.extraction.from_settings import faults_of, params_of
from scrapy_ext.crawl.extraction.rule_files import SiteRules
from scrapy_ext.crawl.session.embedded import EmbeddedServerError
from scrapy_ext.crawl.session.services import Configured
from scrapy_ext.settings import SettingError

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def _handle(loop: asyncio.AbstractEventLoop, number: int, handler: Callable[[int], None] | None) -> None:
    """Call a function in the loop for each signal of a number; None: the signal has its usual effect again."""
    try:
        if handler is None:
            loop.remove_signal_handler(number)
        else:
            loop.add_signal_handler(number, handler, number)
    except NotImplementedError:  # the event loops of Windows
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual if handler is None else lambda *_: loop.call_soon_threadsafe(handler, number))


def check_lines(
    source: Source, parser: LineParser, extra_fields: Collection[str], *, strict: bool = False
) -> tuple[int, int]:
    """Print the violations of each line, and return the number of lines and the number of invalid ones.

    Raises :class:`OSError`.
    """
    number = broken = 0
    for batch in source.lines():
        number += len(batch)
        for line in batch:
            violations = parser.parse(line).violations(extra_fields, strict=strict)
            broken += bool(violations)
            for violation in violations:
                sys.stdout.write(f"line {line.number}: {printable(str(violation))}\n")
    sys.stdout.flush()
    return number, broken


class ExtractSession:
    """A run with its progress and signals. ``has_log``: warnings are written to a log."""

    def __init__(
        self,
        service: ExtractService,
        comparison: Comparison,
        recorder: Recorder,
        progress: ProgressDisplay,
        *,
        has_log: bool,
    ) -> None:
        output = comparison.output
        self._service = service
        self._writer = RecordWriter(sys.stdout.fileno() if output is None else output.file)
        # Records in the terminal replace the bar.
        self._writer.before_terminal = progress.hide
        self._run = ExtractRun(service, comparison, recorder, self._writer, progress.numbers)
        self._progress = progress
        self._has_log = has_log
        self._task: asyncio.Task[Any] | None = None
        self._signal: int | None = None

    async def run(self) -> int | None:
        """Process all lines; return None, or the number of the signal that ended the run."""
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            _handle(loop, number, self._signalled)
        self._progress.open()
        try:
            with self._warnings():
                await self._extract()
        except asyncio.CancelledError:
            if self._signal is None:
                raise
            # Errors of interrupted threads are not reported.
            loop.set_exception_handler(lambda _loop, _context: None)
        finally:
            self._progress.close()
        return self._signal

    async def _extract(self) -> None:
        self._progress.wait_for(lambda: "" if self._service.is_open else "waiting for the service ...")
        async with self._service.opened(self._run.fail):
            try:
                await self._run.work()
            finally:
                self._writer.close()

    def _signalled(self, number: int) -> None:
        """Finish the requests in flight after the first signal; end after the second."""
        first, self._signal = self._signal is None, number
        if first and self._run.in_flight:
            self._run.stop()
            self._progress.wait_for(self._finishing)
            if not self._progress.is_bar:
                say(self._finishing())
            return
        for each in _SIGNALS:
            _handle(asyncio.get_running_loop(), each, None)
        if self._task is not None:
            self._task.cancel()

    def _finishing(self) -> str:
        left = self._run.in_flight
        return f"waiting for {left} in flight; press Ctrl-C again to stop at once" if left else "stopping ..."

    @contextlib.contextmanager
    def _warnings(self) -> Iterator[None]:
        """Show warnings with the progress, unless there is a log."""
        logger, handler = logging.getLogger("scrapy_ext"), ProgressHandler(self._progress)
        if not self._has_log:
            logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)


WRONG_CALL: Final = 2
#: Added to the number of a signal for the exit code, as in shells.
SIGNALLED: Final = 128


class ExtractCall(msgspec.Struct, frozen=True):
    """The parsed command line; ``fields`` are those of all requests."""

    source: Source
    fields: Mapping[str, Any]
    recorder: Recorder
    output: str | None = None
    concurrency: int | None = None
    retry_failed: bool = False
    check: bool = False
    quiet: bool = False
    has_log: bool = False
    #: The page to explain, instead of a run.
    explains: ExplainCall | None = None

    @property
    def is_single(self) -> bool:
        """Return true for a single URL, for which counts are not shown."""
        return len(self.source.urls) == 1


def execute(settings: BaseSettings, call: ExtractCall) -> int:
    """Run the command, report its result, and return the exit code."""
    try:
        if call.explains is not None:
            return explain(settings, call.explains)
        with contextlib.ExitStack() as kept:
            return _check(settings, call) if call.check else _extract(settings, call, kept)
    except (CallError, SettingError) as error:
        say(str(error))
        return WRONG_CALL
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT
    except BrokenPipeError:
        pass  # The reader of the pipe has closed it.
    except OSError as error:
        say(f"{error.filename or call.output or 'standard output'}: {error.strerror}")
    return FAILED


def _parser(settings: BaseSettings, call: ExtractCall) -> LineParser:
    """Return the parser of the lines; raises :class:`CallError` for invalid fields of the command line."""
    params = params_of(settings)
    faults = faults_of(call.fields, settings)
    if faults:
        raise CallError(f"--field or --params: {ContractError(faults)}")
    return LineParser(params, call.fields, SiteRules.of(settings).require_selectors())


def _check_screenshots(call: ExtractCall, parser: LineParser) -> None:
    """Raise :class:`CallError` for a folder of screenshots that no URL of the command line requests."""
    if call.recorder.screenshots is not None and call.source.urls:
        requests = (parser.parse(line) for batch in call.source.lines() for line in batch)
        if not any(request.fields.get("screenshot") or request.faults for request in requests):
            raise CallError("--screenshots writes requested screenshots, and none is requested: add --field screenshot")


def _check(settings: BaseSettings, call: ExtractCall) -> int:
    call.source.check_readable()
    extra_fields: list[str] = names.EXTRACT_API_EXTRA_FIELDS.read(settings)
    strict: bool = names.EXTRACT_API_STRICT.read(settings)
    number, broken = check_lines(call.source, _parser(settings, call), extra_fields, strict=strict)
    say(f"{broken} of {counted(number, 'line')} cannot be sent" if broken else f"{counted(number, 'line')}, all valid")
    return FAILED if broken else OK


def _extract(settings: BaseSettings, call: ExtractCall, kept: contextlib.ExitStack) -> int:
    service, comparison = _prepared(settings, call, kept)
    output = comparison.output
    with status("reading the records of the previous run ...", quiet=call.quiet or output is None):
        if output is not None:
            output.read_done(drop_failed=call.retry_failed)
        numbers = Numbers(comparison.count(), output.done if output is not None else Done())
    if not numbers.is_all:
        progress = ProgressDisplay(numbers, quiet=call.quiet)
        session = ExtractSession(service, comparison, call.recorder, progress, has_log=call.has_log)
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
) -> tuple[ExtractService, Comparison]:
    """Check settings and input, then open the output and make the folders."""
    Configured.read(settings)
    call.source.check_readable()
    service = ExtractService(settings, call.concurrency)
    parser = _parser(settings, call)
    _check_screenshots(call, parser)
    output = None
    if call.output is not None:
        output = OutputFile(call.output)
        kept.callback(output.close)
    for folder in (call.recorder.bodies, call.recorder.screenshots, call.recorder.markdown):
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
    return service, Comparison(call.source, parser, output)


def _stopped(call: ExtractCall, comparison: Comparison, numbers: Numbers) -> str:
    """Return the progress and the way to continue, "" for a single page."""
    if call.is_single:
        return ""
    of = f" of {numbers.total}" if numbers.total is not None else ""
    stopped = f"Stopped with {f'{numbers.done}{of} lines' if of else counted(numbers.done, 'line')} done"
    if comparison.output is None or not comparison.output.is_kept:
        return f"{stopped}. With --output FILE, the same command would continue from here."
    again = "the same command" if call.source.can_be_read_twice else "the same command with the same input"
    return f"{stopped}; {again} continues from here."
