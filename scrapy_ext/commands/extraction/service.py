"""The extraction service of the settings, opened for a run: the one place where the command makes a client."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import (
    Bounds,
    ExtractClient,
    ExtractError,
    ExtractTransport,
    Limiter,
    RetryPolicy,
)
from scrapy_ext.client.extraction.budget import Budget, Prices
from scrapy_ext.client.extraction.errors import (
    AccountSuspendedError,
    KeyRefusedError,
    UnexpectedAnswerError,
    UnreachableServiceError,
)
from scrapy_ext.client.extraction.retry import NO_CONNECTION
from scrapy_ext.embedded import EmbeddedServerError, services
from scrapy_ext.settings import SettingError

_NO_SUCH_PATH: Final = (404, 405)


class ExtractService:
    """A client with its limiter and its budget, and what is known of the service from its answers so far."""

    def __init__(self, client: ExtractClient, limiter: Limiter, options: ServiceOptions) -> None:
        self.limiter = limiter
        self.concurrency = options.concurrency
        self._client = client
        self._options = options
        # A wrong address is to be told at once, not after the patience that a service in use deserves.
        self._first_policy = options.policy.with_overrides({NO_CONNECTION: 2}, "")
        self._has_answered = False

    @property
    def cost(self) -> float | None:
        """What was spent; None where there are no prices."""
        return self._options.budget.spent.cost if self._options.has_prices else None

    async def extract(self, fields: Mapping[str, Any], domain: str) -> dict[str, Any]:
        """As :meth:`~scrapy_ext.client.extraction.client.ExtractClient.extract`."""
        policy = None if self._has_answered else self._first_policy
        result = await self._client.extract(fields, domain=domain, policy=policy, bounds=self._options.bounds)
        self._has_answered = True
        return result

    def is_fatal(self, error: ExtractError) -> bool:
        """Whether every further request would fail in the same way."""
        if isinstance(error, KeyRefusedError | AccountSuspendedError):
            return True
        if isinstance(error, UnreachableServiceError) and not error.ambiguous:
            return True
        if self._has_answered:
            return False
        # No such service is at the address.
        return error.status in _NO_SUCH_PATH or isinstance(error, UnreachableServiceError | UnexpectedAnswerError)


class ServiceOptions:
    """What the settings say about requests. ``concurrency`` replaces Scrapy's caps, in all and for a site.

    Raises :class:`SettingError`.
    """

    def __init__(self, settings: BaseSettings, concurrency: int | None) -> None:
        self.settings = settings
        self.concurrency = concurrency or max(1, settings.getint("CONCURRENT_REQUESTS"))
        self.per_domain = concurrency or settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self.bounds = Bounds(max_size=settings.getint("DOWNLOAD_MAXSIZE"))
        self.extra_fields: list[str] = names.EXTRACT_API_EXTRA_FIELDS.read(settings)
        self.policy = _policy(settings)
        self.prices = _prices(settings)
        self.has_prices = bool(names.EXTRACT_API_PRICES.read(settings))
        self.budget = Budget(names.EXTRACT_API_MAX_REQUESTS.read(settings), names.EXTRACT_API_MAX_COST.read(settings))
        self._slots: dict[str, Any] = settings.getdict("DOWNLOAD_SLOTS")
        self._delay = settings.getfloat("DOWNLOAD_DELAY")
        self._jitter = settings.getfloat("DOWNLOAD_DELAY_JITTER")

    def limiter(self) -> Limiter:
        """The caps and delays of a crawl."""
        caps = {domain: int(slot["concurrency"]) for domain, slot in self._slots.items() if "concurrency" in slot}
        return Limiter(self.concurrency, self.per_domain, caps=caps, delay_of=self._delay_of)

    def _delay_of(self, domain: str) -> float:
        slot = self._slots.get(domain, {})
        jitter = float(slot.get("jitter", self._jitter))
        return float(slot.get("delay", self._delay)) * (1 + random.uniform(-jitter, jitter))


@contextlib.asynccontextmanager
async def opened_service(
    options: ServiceOptions, on_lost: Callable[[EmbeddedServerError], None]
) -> AsyncIterator[ExtractService]:
    """The service that the settings name, or an embedded one. Raises :class:`SettingError` and
    :class:`EmbeddedServerError`."""
    async with services(options.settings, extraction=True, platform=False, on_lost=on_lost) as found:
        limiter = options.limiter()
        client = ExtractClient(
            ExtractTransport(found.extract_url, found.extract_key, options.timeout),
            limiter,
            options.policy,
            extra_fields=options.extra_fields,
            budget=options.budget,
            prices=options.prices,
        )
        try:
            yield ExtractService(client, limiter, options)
        finally:
            await client.close()


def _policy(settings: BaseSettings) -> RetryPolicy:
    try:
        return RetryPolicy.merged(names.EXTRACT_API_RETRY_POLICY.read(settings))
    except ContractError as error:
        raise SettingError("EXTRACT_API_RETRY_POLICY", "cannot be read", str(error)) from None


def _prices(settings: BaseSettings) -> Prices:
    try:
        prices = Prices(names.EXTRACT_API_PRICES.read(settings))
    except ContractError as error:
        raise SettingError("EXTRACT_API_PRICES", "cannot be read", str(error)) from None
    if names.EXTRACT_API_MAX_COST.read(settings) and prices.missing:
        missing = " and ".join(prices.missing)
        raise SettingError("EXTRACT_API_PRICES", f"has no price for {missing}", "EXTRACT_API_MAX_COST needs it.")
    return prices
