"""The extraction service of the settings, opened for a run: the one place where the command makes a client."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.client.extraction import Bounds, ExtractClient, ExtractError, ExtractTransport
from scrapy_ext.client.extraction.budget import Budget
from scrapy_ext.client.extraction.errors import is_fatal
from scrapy_ext.client.extraction.retry_policy import FIRST_PATIENCE, NO_CONNECTION
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
        patience = self._options.policy.attempts(NO_CONNECTION) if self._client.is_there else FIRST_PATIENCE
        return is_fatal(error, has_answered=self._client.is_there, patience=patience)


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
