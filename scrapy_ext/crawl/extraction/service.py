"""The extraction service of one crawl: an :class:`~scrapy_ext.crawl.extraction.plan.Exchange` is sent, and its result
returned.

The service is opened by the first exchange, with the ledger of paid answers. What it accepts besides the contract is
known from its first answer, or from a question before a request that depends on it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import EXTENSIONS, PROBLEM_TYPES
from scrapy_ext.client.extraction import ExtractClient, ExtractError, ExtractTransport, RequestAttempt
from scrapy_ext.client.extraction.budget import Budget, Spent
from scrapy_ext.client.extraction.errors import UnreachableServiceError, redacted
from scrapy_ext.client.extraction.ledger import Ledger, key_of
from scrapy_ext.client.extraction.memory import seconds_of
from scrapy_ext.client.extraction.tally import Tally
from scrapy_ext.crawl.commit.tracking import Entry, current
from scrapy_ext.crawl.extraction.from_settings import ClientOptions, ledger_path, limiter_for
from scrapy_ext.crawl.extraction.plan import FOLLOW_REDIRECT, Exchange
from scrapy_ext.crawl.session.grants import SharedBudget, former_spent
from scrapy_ext.crawl.session.scrapy_engine import watch
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)

#: Seconds for which an answer waits in memory for the commit that makes it unnecessary: those of a commit besides
#: PLATFORM_FLUSH_INTERVAL, and the most of both, since a kill loses these answers.
_COMMIT_SECONDS: Final = 1.0
_LONGEST_HOLD: Final = 5.0
#: Seconds between two updates of the stats while requests are sent.
_STATS_INTERVAL: Final = 1.0


class Answer(NamedTuple):
    """Decoded answer of the service, and the fields that were sent for it."""

    result: dict[str, Any]
    sent: Mapping[str, Any]


class Service:
    """The client, the ledger and the counts of one crawl. Raises :class:`SettingError`."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self._options = ClientOptions.of(crawler.settings)
        self.limiter = limiter_for(crawler, session.may_start)
        session.route(self.limiter)
        self.counts = Counts(crawler)
        #: Fields that the service accepts besides those of the contract; None until an answer has shown them.
        self._accepted = self._options.extra_fields if self._options.strict else None
        self._job_id: str | None = None
        self._client: ExtractClient | None = None
        self._answers: KeptAnswers | None = None
        self._opening: asyncio.Future[None] | None = None
        self._asking = asyncio.Lock()

    @property
    def accepted(self) -> frozenset[str]:
        """Fields that the service is known to accept besides those of the contract."""
        return self._options.extra_fields if self._accepted is None else self._accepted

    async def opened(self) -> str | None:
        """Open the service once, and return the running job."""
        if self._client is None:
            self._opening = self._opening or asyncio.ensure_future(self._open())
            await asyncio.shield(self._opening)
        return self._job_id

    async def send(self, exchange: Exchange) -> Answer:
        """Return the answer to an exchange. Raises the errors of :meth:`ExtractClient.extract`."""
        if exchange.depends_on_service and self._accepted is None:
            await self._ask()
        known = self.accepted
        answer = await self._posted(exchange, exchange.fields_for(known))
        if self.accepted == known or not exchange.is_safe or not answer.result.get("redirects"):
            return answer
        fields = exchange.fields_for(self.accepted)
        # It was sent before an answer had shown that the service lets Scrapy follow redirects: it is sent once more.
        return await self._posted(exchange, fields) if FOLLOW_REDIRECT in fields.keys() - answer.sent.keys() else answer

    async def _ask(self) -> None:
        """Ask the service which fields it accepts. Those of a service that does not answer are not known: the request
        itself reports it."""
        transport = self._opened_client().transport
        async with self._asking:
            try:
                if transport.extensions is None:
                    await transport.ask_extensions()
            except UnreachableServiceError as error:
                logger.debug("%s", error)
        self._learn(transport.extensions)

    async def _posted(self, exchange: Exchange, fields: Mapping[str, Any]) -> Answer:
        client, answers = self._opened_client(), self._answers
        if self._options.log_requests:
            logger.debug("POST /extract %s", msgspec.json.encode(redacted(fields)).decode())
        # Without the fields for this service: whether it accepts them is not yet known to the first requests of a run.
        key = key_of(exchange.identity) if answers is not None else b""
        started = time.monotonic()
        try:
            result = await client.extract(
                fields,
                domain=exchange.host,
                kind=exchange.kind,
                policy=exchange.policy,
                bounds=exchange.bounds,
                ledger_key=key,
                may_share=exchange.may_share,
            )
        finally:
            if answers is not None:
                answers.keep(exchange.request, key)
            self._learn(client.transport.extensions)
        # Without the wait for the domain's delay and for the service, which AutoThrottle would add to the delay.
        latency = seconds_of(result)
        exchange.request.meta["download_latency"] = time.monotonic() - started if latency is None else latency
        return Answer(result, fields)

    def is_lost(self, error: ExtractError) -> bool:
        """Return true if each further request would fail with the same error."""
        return self._client is not None and self._client.is_fatal(error)

    def keep_answers(self, request: Request) -> None:
        """Keep the answers of a request that returns to the queue: its next run needs them."""
        if self._answers is not None:
            self._answers.leave(request)

    async def close(self, reason: str) -> None:
        """Write the counts, and close the client and the ledger."""
        self.counts.close(self._client)
        if self._client is not None:
            await self._client.close()
        if self._answers is not None:
            await self._answers.close(reason)

    def _opened_client(self) -> ExtractClient:
        if self._client is None:
            raise RuntimeError("there is no extraction service: the crawl could not be opened")
        return self._client

    def _learn(self, extensions: frozenset[str] | None) -> None:
        if extensions is not None and self._accepted is None:
            self._accepted = extensions | self._options.extra_fields

    async def _open(self) -> None:
        await self._session.open()
        services = self._session.services
        if services is None:
            raise RuntimeError("there is no extraction service: the crawl could not be opened")
        options = self._options
        job = self._session.job_key
        self._answers = answers = await KeptAnswers.opened(self._crawler, self._session)
        ledger = answers.ledger if answers is not None else None
        spent = ledger.spent if ledger is not None else Spent()
        self._client = ExtractClient(
            ExtractTransport(services.extract_url, services.extract_key, options.timeout),
            self.limiter,
            options.policy.at_first(),
            extra_fields=options.extra_fields,
            strict=options.strict,
            budget=self._budget(spent),
            prices=options.prices,
            ledger=ledger,
            memory=options.memory,
            observe=self._observe,
        )
        self._job_id = str(job) if job else None
        if not names.EXTRACT_API_URL.read(self._crawler.settings):
            self._learn(frozenset(EXTENSIONS))  # The embedded service is of this version.

    def _budget(self, spent: Spent) -> Budget:
        options, group = self._options, self._session.group
        if group is None:
            return Budget(options.max_requests, options.max_cost, msgspec.structs.replace(spent))
        former = former_spent(self._session.job.former)
        budget = SharedBudget(options.max_requests, options.max_cost, former, group.reports.hurry)
        group.shares.spend(budget)
        return budget

    def _observe(self, attempt: RequestAttempt) -> None:
        self.counts.add(attempt, self._client)


class KeptAnswers:
    """Paid answers in the ledger of a crawl, kept until their results are safe: until the frontier has committed them,
    else until the engine has released the request."""

    def __init__(self, ledger: Ledger, *, by_commit: bool) -> None:
        self.ledger = ledger
        self._by_commit = by_commit
        self._keys: WeakKeyDictionary[Request, list[bytes]] = WeakKeyDictionary()

    @classmethod
    async def opened(cls, crawler: Crawler, session: Session) -> KeptAnswers | None:
        """Open the ledger of a crawl that can be resumed; None for another one. Raises :class:`LedgerError`."""
        settings = crawler.settings
        by_commit = session.items is not None
        worker = session.job.worker if session.job_key is not None else 0
        path = ledger_path(settings, session.job_key if by_commit else None, worker)
        if path is None:
            return None
        interval: float = names.PLATFORM_FLUSH_INTERVAL.read(settings)
        hold_time = min(interval + _COMMIT_SECONDS, _LONGEST_HOLD) if by_commit else 0.0
        ledger = await Ledger.open(path, hold_time=hold_time)
        answers = cls(ledger, by_commit=by_commit)
        session.keep_answers_in(ledger)
        watch(crawler, answers.release)
        # The embedded service bills nothing.
        if ledger.unanswered and names.EXTRACT_API_URL.read(settings):
            logger.warning(
                "%d extraction requests of an earlier run may have been billed, and their answers are not known: "
                "they are sent again",
                ledger.unanswered,
            )
        return answers

    def keep(self, request: Request, key: bytes) -> None:
        """Keep the answer to an exchange."""
        entry = current.get()
        if self._by_commit and isinstance(entry, Entry):
            entry.answers.append(key)
        else:
            self._keys.setdefault(request, []).append(key)

    def leave(self, request: Request) -> None:
        """Leave the answers of a request to the next run."""
        self._keys.pop(request, None)

    def release(self, request: Request) -> None:
        """Remove the answers of a request that the engine has released."""
        for key in self._keys.pop(request, ()):
            self.ledger.finished(key)

    async def close(self, reason: str) -> None:
        await self.ledger.close(complete=reason == "finished" or not self.ledger.spent.requests)


class Counts:
    """Stats and log of the attempts of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._tally = Tally()
        self._due = 0.0

    def add(self, attempt: RequestAttempt, client: ExtractClient | None) -> None:
        """Count an attempt, and write the stats once per interval."""
        error = attempt.error
        if error is None:
            self._tally.answered(attempt.domain, attempt.kind, attempt.seconds, attempt.cost)
        else:
            self._tally.failed(
                attempt.domain,
                attempt.kind,
                attempt.seconds,
                error.type.strip("/") if error.type in PROBLEM_TYPES else type(error).__name__,
                retried=attempt.wait is not None,
                ambiguous=error.ambiguous,
                cost=attempt.cost,
            )
            if attempt.wait is not None:
                logger.debug("%s Trying again in %.1f s", error, attempt.wait)
        if attempt.paused:
            self._tally.throttled(attempt.domain, attempt.paused)
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _STATS_INTERVAL
            self._write(client, domains=False)

    def escalated(self, exchange: Exchange, reason: str) -> None:
        """Count a page that goes to the browser."""
        self._tally.escalated(reason)
        logger.debug("%s goes to the browser (%s)", exchange.request, reason)

    def close(self, client: ExtractClient | None) -> None:
        """Write the stats of all domains, and a table to the log."""
        self._write(client, domains=True)
        if table := self._tally.table():
            logger.info("Extraction requests:\n%s", table)

    def _write(self, client: ExtractClient | None, *, domains: bool) -> None:
        stats = self._crawler.stats
        for name, value in self._tally.stats(domains=domains).items():
            stats.set_value(name, value)
        if client is not None and client.shared:
            stats.set_value("extract_api/shared", client.shared)
        if client is not None and client.reused:
            stats.set_value("extract_api/reused", client.reused)
