"""One call of the command, from its options to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.extraction.checking import check_lines
from scrapy_ext.commands.extraction.errors import CallError, StopError
from scrapy_ext.commands.extraction.numbers import Numbers, lines
from scrapy_ext.commands.extraction.progress import Progress, say, waiting
from scrapy_ext.commands.extraction.records import Recorder
from scrapy_ext.commands.extraction.request_lines import LineParser
from scrapy_ext.commands.extraction.resume import Comparison, Done, OutputFile
from scrapy_ext.commands.extraction.service import ServiceOptions
from scrapy_ext.commands.extraction.session import ExtractSession
from scrapy_ext.commands.extraction.sources import Source
from scrapy_ext.commands.subcommand import FAILED, OK
from scrapy_ext.crawl.extraction.from_settings import faults_of, params_of
from scrapy_ext.crawl.session.embedded import Configured, EmbeddedServerError
from scrapy_ext.settings import SettingError

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
