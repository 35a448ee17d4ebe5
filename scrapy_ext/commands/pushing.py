"""``scrapy platform frontier add``: requests from arguments, lines or a spider, on their way into a frontier.

- Every line is checked before the first is sent, so that a bad one stops the push without half of it being queued. For
  that the input is copied to a temporary file. With ``--skip-bad``, lines are sent as they come, and bad ones reported.
- A batch has the number of its first line. A push that is repeated with the same ID queues nothing twice, whatever the
  batches of its last attempt: requests with ``dont_filter`` have a fingerprint of the ID and the line, all others that
  of their page.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from typing import IO, Any, Final, NamedTuple

from scrapy_ext.api.platform.feeding import FedCount, parsed
from scrapy_ext.api.platform.frontier import MAX_REQUEST_BYTES
from scrapy_ext.api.platform.job_data import frontier_of
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform.errors import NotFound, PlatformError
from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.commands.extraction.input_lines import CallError, Source
from scrapy_ext.commands.output import bar
from scrapy_ext.commands.spider_requests import RequestMaker
from scrapy_ext.commands.subcommand import FAILED, CommandError, View

#: Limits of a batch.
_LINES: Final = 1000
_BYTES: Final = 2 * MAX_REQUEST_BYTES
#: Blank or bad lines that a batch may have between two others.
_GAP: Final = 100
#: Bytes from which the copy of the input is on disk.
_IN_MEMORY: Final = 8 * 2**20
#: Bad lines that are reported one by one.
_SHOWN: Final = 20


class Line(NamedTuple):
    """A line of the input that is not blank: its number, from 1, and its bytes."""

    number: int
    data: bytes


#: Lines in the groups in which they are read.
Groups = AsyncIterator[list[Line]]


class _Push(NamedTuple):
    """A push: the frontier, its ID, and the number of lines, if that is known."""

    frontier: str
    id: str
    total: int | None = None


async def add(view: View) -> int | None:
    """Push the requests that the options name."""
    options = view.options
    push = _Push(await _frontier(view, options.target), options.push_id or secrets.token_hex(8))
    maker = RequestMaker.of(view.settings, options.spider) if options.spider else None
    bad = _BadLines(view, skips=options.skip_bad)
    with ExitStack() as opened:
        name, groups = _input(view, opened, maker)
        checked = _checked(groups, name, maker, bad)
        if not options.skip_bad:
            copy = opened.enter_context(_copy())
            push = push._replace(total=await _spool(checked, copy, bad))
            checked = _again(copy)
        return await _send(view, push, checked, bad)


async def _frontier(view: View, target: str) -> str:
    """Return the frontier of a name or of a job."""
    if "/" not in target:
        return target
    try:
        key = JobKey.parse(target, "TARGET")
    except ContractError as error:
        raise CommandError(str(error)) from None
    try:
        metadata = await view.client.jobs.metadata(key)
    except NotFound:
        metadata = {}
    if not metadata:
        raise CommandError(f"there is no job {key}; `scrapy platform jobs` lists the jobs")
    named = metadata.get("frontier")
    if not isinstance(named, str) or named == frontier_of(key):
        return frontier_of(key)
    if metadata.get("state") != JobState.RUNNING.value:
        raise CommandError(
            f"job {key} does not run. Its frontier {named} keeps requests for the next crawl: push into {named}"
        )
    return named


def _input(view: View, opened: ExitStack, maker: RequestMaker | None) -> tuple[str, Groups]:
    """Return the name of a line of the input, for messages, and the lines."""
    options = view.options
    if (bool(options.url) + (options.file is not None) + (options.method is not None)) > 1:
        raise CommandError("URLs, --file and --method exclude each other; use one of them")
    if options.method is not None:
        if maker is None:
            raise CommandError("--method needs the spider of the method; name it with --spider")
        return f"request {{number}} of {options.method}()", _of_method(maker, options.method)
    source = Source(options.url, None if options.file in (None, "-") else options.file)
    try:
        source.check_readable()
    except CallError as error:
        raise CommandError(str(error)) from None
    if not source.urls and source.path is None and sys.stdin.isatty():
        view.say("Reading URLs or JSON objects, one per line, until Ctrl-D")
    calls = BlockingCalls("input")
    opened.callback(calls.close)
    name = "URL {number}" if source.urls else f"{source.path}, line {{number}}" if source.path else "line {number}"
    return name, _of_source(source, calls)


async def _of_source(source: Source, calls: BlockingCalls) -> Groups:
    groups = source.lines()
    while (group := await calls(lambda: next(groups, None))) is not None:
        # A line that is too long is so here as well: only its beginning is kept.
        yield [Line(line.number, line.text + b" " * (MAX_REQUEST_BYTES * line.is_too_long)) for line in group]


async def _of_method(maker: RequestMaker, method: str) -> Groups:
    number = 0
    async with aclosing(maker.of_method(method)) as records:
        async for record in records:
            number += 1
            yield [Line(number, record)]


class _BadLines:
    """Bad lines of the input: with ``skips`` they are reported and left out, else the first ones are the error."""

    def __init__(self, view: View, *, skips: bool) -> None:
        self._view = view
        self._skips = skips
        self.count = 0
        self._faults: list[str] = []

    def add(self, fault: str) -> None:
        self.count += 1
        if self.count > _SHOWN:
            return
        if self._skips:
            self._view.say(f"Skipped: {fault}")
        else:
            self._faults.append(fault)

    def check(self) -> None:
        """Raise :class:`CommandError` for bad lines."""
        if self.count:
            more = f" (and {self.count - _SHOWN} more bad lines)" if self.count > _SHOWN else ""
            raise CommandError(
                f"nothing is pushed. {' '.join(self._faults)}{more} Correct them, or push the others with --skip-bad"
            )


async def _checked(groups: Groups, name: str, maker: RequestMaker | None, bad: _BadLines) -> Groups:
    """Yield the valid lines as they are sent."""
    async for group in groups:
        checked = []
        for number, data in group:
            place = name.format(number=number)
            try:
                request = parsed(data, place)
                checked.append(Line(number, data.strip() if maker is None else maker.record(request, place)))
            except ContractError as error:
                bad.add(str(error.violations[0]))
        yield checked


# ── the copy of the input ──


@contextmanager
def _copy() -> Iterator[IO[bytes]]:
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
        yield copy


async def _spool(groups: Groups, copy: IO[bytes], bad: _BadLines) -> int:
    """Copy all lines, with their numbers, and return how many they are. Raises :class:`CommandError` for bad ones."""
    total = 0
    async for group in groups:
        total += len(group)
        copy.writelines(b"%d %b\n" % line for line in group)
    bad.check()
    copy.seek(0)
    return total


async def _again(copy: IO[bytes]) -> Groups:
    """Yield copied lines, as many as a batch has."""
    group: list[Line] = []
    for line in copy:
        number, data = line.rstrip(b"\n").split(b" ", 1)
        group.append(Line(int(number), data))
        if len(group) == _LINES:
            yield group
            group = []
    yield group


# ── sending ──


def _batches(group: list[Line]) -> Iterator[list[Line]]:
    """Yield the lines of a group in batches."""
    batch: list[Line] = []
    size = 0
    for line in group:
        if batch and (len(batch) >= _LINES or size >= _BYTES or line.number - batch[-1].number > _GAP):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line.data)
    if batch:
        yield batch


def _body(batch: list[Line]) -> bytes:
    """Return the lines of a batch at their places; a blank one stands for each that is left out."""
    first = batch[0].number
    lines = [b""] * (batch[-1].number - first + 1)
    for number, data in batch:
        lines[number - first] = data
    return b"\n".join(lines) + b"\n"


async def _send(view: View, push: _Push, groups: Groups, bad: _BadLines) -> int | None:
    new = known = 0
    frontier, client = push.frontier, view.client.frontier
    with bar("requests", push.total) as advance, _resumable(view, push.id):
        async for group in groups:
            for batch in _batches(group):
                count: FedCount = await client.push(
                    view.project,
                    frontier,
                    _body(batch),
                    push=push.id,
                    start=batch[0].number - 1,
                    slots=view.options.slots,
                )
                new, known = new + count.new, known + count.known
                advance(len(batch))
    await view.output.records(_each({"frontier": frontier, "new": new, "known": known, "skipped": bad.count}))
    return FAILED if bad.count and not new + known else None


async def _each(record: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield record


@contextmanager
def _resumable(view: View, push: str) -> Iterator[None]:
    """Say after an interruption how the push is continued."""
    try:
        yield
    except (PlatformError, asyncio.CancelledError) as error:
        if not isinstance(error, PlatformError) or error.retryable:
            view.say(f"Interrupted. To continue, repeat the command with --push-id {push}: nothing is queued twice")
        raise
