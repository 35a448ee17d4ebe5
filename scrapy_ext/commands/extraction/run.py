"""A run: lines are read as there is room for them, and records are written as answers come.

Held at any time: a window of requests that were read and not begun, by domain, so that a site that has to wait is
passed by others; and as many answers as requests may be in flight. An answer keeps its permit until its record is
written, so that a slow reader of the output slows the requests down. Requests that wait for the service's limits
lend their permit to others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import Bounds, ExtractClient, ExtractError, ExtractTransport
from scrapy_ext.client.extraction.budget import Budget, OverBudgetError
from scrapy_ext.client.extraction.errors import is_fatal
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.client.extraction.retry_policy import FIRST_ATTEMPTS, NO_CONNECTION
from scrapy_ext.commands.extraction.input_lines import CallError, Line, SourceReader, StopError, Wanted
from scrapy_ext.commands.extraction.progress import Numbers
from scrapy_ext.commands.extraction.records import NOT_SENT, Recorder, RecordWriter, failed, refused, type_of
from scrapy_ext.commands.extraction.resume import Comparison, Done
from scrapy_ext.crawl.extraction.from_settings import limiter_of, memory_of, policy_of, prices_of
from scrapy_ext.crawl.session.embedded import EmbeddedServerError, services


class ExtractService:
    """A client with its limiter and its budget, and what is known of the service from its answers so far."""

    def __init__(self, client: ExtractClient, options: ServiceOptions) -> None:
        self.limiter = options.limiter
        self.concurrency = options.concurrency
        self._client = client
        self._options = options
        self._first_policy = options.policy.at_first()

    @property
    def cost(self) -> float | None:
        """What was spent; None where there are no prices."""
        return self._options.budget.spent.cost if self._options.has_prices else None

    async def extract(self, fields: Mapping[str, Any], domain: str) -> dict[str, Any]:
        """As :meth:`~scrapy_ext.client.extraction.client.ExtractClient.extract`."""
        policy = None if self._client.is_there else self._first_policy
        return await self._client.extract(fields, domain=domain, policy=policy, bounds=self._options.bounds)

    def is_fatal(self, error: ExtractError) -> bool:
        """Whether every further request would fail in the same way."""
        attempts = self._options.policy.attempts(NO_CONNECTION) if self._client.is_there else FIRST_ATTEMPTS
        return is_fatal(error, has_answered=self._client.is_there, attempts=attempts)


class ServiceOptions:
    """What the settings say. ``concurrency`` replaces Scrapy's caps, in all and for a site.

    Raises :class:`~scrapy_ext.settings.SettingError`.
    """

    def __init__(self, settings: BaseSettings, concurrency: int | None) -> None:
        self.settings = settings
        self.concurrency = concurrency or max(1, settings.getint("CONCURRENT_REQUESTS"))
        self.timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self.bounds = Bounds(max_size=settings.getint("DOWNLOAD_MAXSIZE"))
        self.extra_fields: list[str] = names.EXTRACT_API_EXTRA_FIELDS.read(settings)
        self.policy = policy_of(settings)
        self.prices = prices_of(settings)
        self.has_prices = bool(names.EXTRACT_API_PRICES.read(settings))
        self.budget = Budget(names.EXTRACT_API_MAX_REQUESTS.read(settings), names.EXTRACT_API_MAX_COST.read(settings))
        self.limiter = limiter_of(settings, concurrency)
        self.memory = memory_of(settings)


@contextlib.asynccontextmanager
async def opened_service(
    options: ServiceOptions, on_lost: Callable[[EmbeddedServerError], None]
) -> AsyncIterator[ExtractService]:
    """The service that the settings name, or an embedded one. Raises
    :class:`~scrapy_ext.settings.SettingError` and :class:`EmbeddedServerError`."""
    async with services(options.settings, extraction=True, platform=False, on_lost=on_lost) as found:
        client = ExtractClient(
            ExtractTransport(found.extract_url, found.extract_key, options.timeout),
            options.limiter,
            options.policy,
            extra_fields=options.extra_fields,
            budget=options.budget,
            prices=options.prices,
            memory=options.memory,
        )
        try:
            yield ExtractService(client, options)
        finally:
            await client.close()


#: Requests held at most,
MOST: Final = 1000
#: and the bytes of their lines, beyond which there is no further one.
MOST_BYTES: Final = 32 * 2**20


class Window:
    """Requests by domain. Domains take turns, and the requests of one keep their order."""

    def __init__(self) -> None:
        self._domains: OrderedDict[str, deque[Wanted]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether no further request is to be read."""
        return self._count >= MOST or self._bytes >= MOST_BYTES

    def add(self, wanted: Wanted) -> None:
        """A request was read."""
        self._domains.setdefault(wanted.domain, deque()).append(wanted)
        self._count += 1
        self._bytes += wanted.size

    def take(self, has_room: Callable[[str], bool]) -> Wanted | None:
        """The next request whose domain has room; None: there is none."""
        domain = next((name for name in self._domains if has_room(name)), None)
        if domain is None:
            return None
        requests = self._domains[domain]
        wanted = requests.popleft()
        if requests:
            self._domains.move_to_end(domain)
        else:
            del self._domains[domain]
        self._count -= 1
        self._bytes -= wanted.size
        return wanted

    def clear(self) -> None:
        """Drop them all."""
        self._domains.clear()
        self._count = self._bytes = 0


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
