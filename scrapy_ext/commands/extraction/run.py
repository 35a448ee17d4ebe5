"""A run of ``scrapy extract``: lines are read on demand, and records are written as answers arrive.

Memory holds a window of unsent requests by domain, so that other domains proceed while one waits, and one answer per
request in flight. A request keeps its permit until its record is written, so that a slow reader of the output slows
the requests down. Requests that wait for the limits of the service lend their permit to others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, Final

from scrapy import Request
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.api.extraction.fields import MIN_PROBABILITY, PAGE_OPTIONS
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import Bounds, ExtractClient, ExtractError, ExtractTransport
from scrapy_ext.client.extraction.budget import Budget, OverBudgetError
from scrapy_ext.client.extraction.errors import BrowserMissingError, UnreachableServiceError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.commands.extraction.input_lines import CallError, InputLine, LineRequest, SourceReader, StopError
from scrapy_ext.commands.extraction.progress import Numbers
from scrapy_ext.commands.extraction.records import NOT_SENT, Recorder, RecordWriter, failed, refused, type_of
from scrapy_ext.commands.extraction.resume import Comparison, Done
from scrapy_ext.crawl.extraction.doubtful import Doubts, for_service, without_doubts
from scrapy_ext.crawl.extraction.from_settings import limiter_of, memory_of, policy_of, prices_of
from scrapy_ext.crawl.extraction.response import to_response
from scrapy_ext.crawl.extraction.rule_files import UsedRules
from scrapy_ext.crawl.extraction.site_rules import NotAppliedError, RuleReports, are_applied, corrected, with_rules
from scrapy_ext.crawl.session.embedded import EmbeddedServerError
from scrapy_ext.crawl.session.services import Services, services


class ExtractService:
    """The extraction service, with the settings of its requests, its limiter and its budget. ``concurrency`` replaces
    Scrapy's limits, in all and per domain.

    Raises :class:`~scrapy_ext.settings.SettingError`.
    """

    def __init__(self, settings: BaseSettings, concurrency: int | None) -> None:
        self.limiter = limiter_of(settings, concurrency)
        self.concurrency = concurrency or max(1, settings.getint("CONCURRENT_REQUESTS"))
        self.is_open = False
        self._settings = settings
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._extra_fields = frozenset(names.EXTRACT_API_EXTRA_FIELDS.read(settings))
        self._strict: bool = names.EXTRACT_API_STRICT.read(settings)
        self._asking = asyncio.Lock()
        #: What the rules of sites did.
        self.rules = RuleReports()
        #: What is left out for its probability.
        self.doubts = Doubts()
        self._bounds = Bounds(max_size=settings.getint("DOWNLOAD_MAXSIZE"))
        self._has_prices = bool(names.EXTRACT_API_PRICES.read(settings))
        self._budget = Budget(names.EXTRACT_API_MAX_REQUESTS.read(settings), names.EXTRACT_API_MAX_COST.read(settings))
        self._new_client = partial(
            ExtractClient,
            limiter=self.limiter,
            policy=policy_of(settings).at_first(),
            extra_fields=self._extra_fields,
            strict=self._strict,
            budget=self._budget,
            prices=prices_of(settings),
            memory=memory_of(settings),
        )
        self._client: ExtractClient

    @contextlib.asynccontextmanager
    async def opened(self, on_lost: Callable[[EmbeddedServerError], None]) -> AsyncIterator[None]:
        """Open the service that the settings name, or an embedded one.

        Raises :class:`~scrapy_ext.settings.SettingError` and :class:`EmbeddedServerError`.
        """
        async with (
            services(self._settings, extraction=True, platform=False, on_lost=on_lost) as found,
            self.connected(found),
        ):
            yield

    @contextlib.asynccontextmanager
    async def connected(self, found: Services) -> AsyncIterator[None]:
        """Use the extraction service among those found."""
        self._client = self._new_client(ExtractTransport(found.extract_url, found.extract_key, self._timeout))
        self.is_open = True
        try:
            yield
        finally:
            await self._client.close()

    @property
    def cost(self) -> float | None:
        """The cost of all answers; None without prices."""
        return self._budget.spent.cost if self._has_prices else None

    async def extract(self, fields: Mapping[str, Any], domain: str, used: UsedRules | None = None) -> dict[str, Any]:
        """As :meth:`~scrapy_ext.client.extraction.client.ExtractClient.extract`, with the rules of the site and
        ``minProbability`` applied, by the service or here."""
        depends = used is not None or MIN_PROBABILITY in fields
        accepted = await self.accepted() if depends else frozenset()
        sent = for_service(with_rules(fields, used, accepted), accepted)
        result = await self._client.extract(sent, domain=domain, bounds=self._bounds)
        if used is not None and result.get(used.kind) is not None:
            result = await self._corrected(fields["url"], used, result)
        result = without_doubts(fields, result)
        self.doubts.add(fields, result, result.get("url") or fields["url"])
        return result

    async def _corrected(self, requested: str, used: UsedRules, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result with the item after the rules of its site, applied by the service or here."""
        url = result.get("url") or requested
        if not are_applied(result):
            response = to_response(Request(requested), result)
            try:
                found = await asyncio.to_thread(corrected, used, response)
            except NotAppliedError as error:
                self.rules.not_applied(used, url, error)
                return result
            # The result may be that of several requests.
            result = {**result, used.kind: found.item, EXTRACT_RULES: found.report}
        self.rules.add(used, result[EXTRACT_RULES], url)
        return result

    async def accepted(self) -> frozenset[str]:
        """Return the fields that the service accepts besides those of the contract; without an answer of it, those of
        the settings."""
        transport = self._client.transport
        if self._strict:
            return self._extra_fields
        async with self._asking:
            if transport.extensions is None:
                # The request itself reports an error.
                with contextlib.suppress(UnreachableServiceError):
                    await transport.ask_extensions()
        return (transport.extensions or frozenset()) | self._extra_fields

    def is_fatal(self, error: ExtractError) -> bool:
        """Return true when each further request would fail in the same way."""
        return self._client.is_fatal(error)


#: Maximum requests of the window, and bytes of their lines from which on no further one is read.
MOST: Final = 1000
MOST_BYTES: Final = 32 * 2**20


class RequestWindow:
    """Unsent requests by domain. Domains alternate; the requests of a domain keep their order."""

    def __init__(self) -> None:
        self._domains: OrderedDict[str, deque[LineRequest]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Return true when no further request fits."""
        return self._count >= MOST or self._bytes >= MOST_BYTES

    def add(self, request: LineRequest) -> None:
        """Add a request at the end of its domain."""
        self._domains.setdefault(request.domain, deque()).append(request)
        self._count += 1
        self._bytes += request.size

    def take(self, has_room: Callable[[str], bool]) -> LineRequest | None:
        """Remove and return the next request whose domain has room; None without one."""
        domain = next((name for name in self._domains if has_room(name)), None)
        if domain is None:
            return None
        requests = self._domains[domain]
        request = requests.popleft()
        if requests:
            self._domains.move_to_end(domain)
        else:
            del self._domains[domain]
        self._count -= 1
        self._bytes -= request.size
        return request

    def clear(self) -> None:
        self._domains.clear()
        self._count = self._bytes = 0


#: Maximum requests that wait for the limits of the service, or for another attempt.
_MOST_HELD: Final = 1000
#: Prefix of violations of a setting, such as a table of prices without a required one.
_SETTING: Final = "EXTRACT_API_"


def _by_http(fields: Mapping[str, Any]) -> str:
    """Return the way to load the page of a request without a browser; "" for outputs of a browser."""
    if not any(fields.get(name) for name in PAGE_OPTIONS):
        return ""
    option = """--params '{"extractFrom": "httpResponseBody"}'"""
    return f"Or load the pages by HTTP, without what their scripts add: {option}"


class ExtractRun:
    """Extraction of all lines of a source that are not done."""

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
        #: Other input was compared completely before the run.
        self._compares = comparison.output is not None and not comparison.source.can_be_read_twice
        self._recorder = recorder
        self._writer = writer
        self._numbers = numbers
        self._window = RequestWindow()
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
        """The number of requests without a record."""
        return len(self._tasks)

    def stop(self) -> None:
        """Send no further request, and let those in flight finish."""
        self._stopping = True
        self._window.clear()
        self._service.limiter.close()
        self._changed.set()

    def fail(self, error: BaseException) -> None:
        """Stop, and end the run with this error."""
        self._fault = self._fault or error
        self.stop()
        if isinstance(error, OSError):
            for task in self._tasks:
                task.cancel()  # Their answers could not be written.

    async def work(self) -> None:
        """Run until all lines are done, or until all requests in flight have finished after :meth:`stop`.

        Raises :class:`StopError` when the run cannot continue, :class:`CallError` when the input differs from that of
        the earlier run, and :class:`OSError` when records cannot be written.
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
        """Move read lines into the window, and read more when none is left."""
        while not self._stopping and not self._window.is_full:
            line = self._reader.next()
            if line is not None:
                self._take(line)
                continue
            self._reader.read()
            return

    def _take(self, line: InputLine) -> None:
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
            request = self._window.take(limiter.has_room)
            if request is None:
                return
            task = asyncio.create_task(self._one(request))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
            self._changed.set()  # The window has room.
            await asyncio.sleep(0)  # The task enters the limiter.

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._numbers.cost = self._service.cost
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
        self._changed.set()

    async def _one(self, request: LineRequest) -> None:
        """Process a line, from its request to its record."""
        try:
            await self._answered(request)
        except Closing:
            pass  # It was not sent, and has no record for the next run.
        except OverBudgetError as error:
            raise StopError(str(error)) from None
        except ContractError as error:
            if any(violation.field.startswith(_SETTING) for violation in error.violations):
                raise StopError(str(error)) from None
            await self._writer.write(refused(request, error.violations))
            self._numbers.add_failure(NOT_SENT, str(error))
        except ExtractError as error:
            if self._service.is_fatal(error):
                raise StopError(str(error)) from None
            if isinstance(error, BrowserMissingError) and not self._numbers.answered:
                raise StopError(f"{error} {_by_http(request.fields)}".rstrip()) from None
            await self._writer.write(failed(request, error))
            self._numbers.add_failure(type_of(error), str(error))

    async def _answered(self, request: LineRequest) -> None:
        if request.faults:
            raise ContractError(request.faults)
        result = await self._service.extract(request.fields, request.domain, request.rules)
        if self._recorder.computes(result):
            record, files = await asyncio.to_thread(self._recorder.answered, request, result)
        else:
            record, files = self._recorder.answered(request, result)
        await self._writer.write(record, files)
        self._numbers.answered += 1
        self._numbers.left_out = self._service.doubts.by_name
