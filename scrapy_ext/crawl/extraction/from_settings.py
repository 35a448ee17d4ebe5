"""What the settings say about extraction, for whoever makes a client: a crawl, or a command.

Every function raises :class:`~scrapy_ext.settings.SettingError`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import check
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.budget import Prices
from scrapy_ext.client.extraction.limiter import Limiter
from scrapy_ext.client.extraction.memory import AnswerMemory
from scrapy_ext.client.extraction.retry_policy import FAILURES, RetryPolicy
from scrapy_ext.jobprocess.proc import machine_memory
from scrapy_ext.settings import SettingError

_MIB: Final = 2**20
#: The parts of a machine's memory, and of what a process may have, that answers take.
_MACHINE_SHARE: Final = 8
_PROCESS_SHARE: Final = 4
_LEAST_MEMORY: Final = 64 * _MIB
_MOST_MEMORY: Final = 1024 * _MIB


def params_of(settings: BaseSettings) -> dict[str, Any]:
    """Return the fields of EXTRACT_API_PARAMS, after a check of each."""
    params: dict[str, Any] = names.EXTRACT_API_PARAMS.read(settings)
    faults = faults_of(params, names.EXTRACT_API_EXTRA_FIELDS.read(settings))
    if faults:
        raise SettingError("EXTRACT_API_PARAMS", "has a field that cannot be sent", str(ContractError(faults)))
    return params


def faults_of(fields: Mapping[str, Any], extra_fields: Collection[str]) -> list[Violation]:
    """Return the faults of fields that are meant for many requests. Rules on several fields depend on the request."""
    given = {name: value for name, value in fields.items() if value is not None}
    broken = check({"url": "https://example.com/", **given}, extra_fields=extra_fields)
    return [fault for fault in broken if fault.status == 400]


def policy_of(settings: BaseSettings) -> RetryPolicy:
    """Return the default policy with EXTRACT_API_RETRY_POLICY. Without Scrapy's retries (RETRY_ENABLED, RETRY_TIMES),
    failed requests are not sent again unless that setting says so; rate limits are no failures."""
    retries = settings.getbool("RETRY_ENABLED") and settings.getint("RETRY_TIMES") > 0
    overrides = names.EXTRACT_API_RETRY_POLICY.read(settings)
    try:
        return RetryPolicy.merged(overrides if retries else {**dict.fromkeys(FAILURES, 1), **overrides})
    except ContractError as error:
        raise SettingError("EXTRACT_API_RETRY_POLICY", "cannot be read", str(error)) from None


def prices_of(settings: BaseSettings) -> Prices:
    """Return EXTRACT_API_PRICES, required with EXTRACT_API_MAX_COST."""
    table, max_cost = names.EXTRACT_API_PRICES.read(settings), names.EXTRACT_API_MAX_COST.read(settings)
    if max_cost and not table:
        raise SettingError(
            "EXTRACT_API_MAX_COST",
            "needs prices",
            'Set EXTRACT_API_PRICES = {"http": 0.0002, "browser": 0.001}, with what your service charges.',
        )
    try:
        return Prices(table, required=bool(max_cost))
    except ContractError as error:
        raise SettingError("EXTRACT_API_PRICES", "cannot be read", str(error)) from None


def memory_of(settings: BaseSettings) -> AnswerMemory:
    """Return a memory of EXTRACT_API_MEMORY_LIMIT_MB, or of a share of the available memory."""
    limit = names.EXTRACT_API_MEMORY_LIMIT_MB.read(settings) * _MIB
    if not limit:
        limit = min(max(machine_memory() // _MACHINE_SHARE, _LEAST_MEMORY), _MOST_MEMORY)
        of_process = settings.getint("MEMUSAGE_LIMIT_MB") * _MIB
        if of_process:
            limit = min(limit, of_process // _PROCESS_SHARE)
    return AnswerMemory(limit)


def limiter_of(settings: BaseSettings, concurrency: int | None = None) -> Limiter:
    """Return a limiter with the limits and delays per domain of Scrapy's downloader.

    ``concurrency`` replaces CONCURRENT_REQUESTS and CONCURRENT_REQUESTS_PER_DOMAIN.
    """
    slots = settings.getdict("DOWNLOAD_SLOTS")
    return Limiter(
        concurrency or settings.getint("CONCURRENT_REQUESTS"),
        concurrency or settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"),
        caps={domain: int(slot["concurrency"]) for domain, slot in slots.items() if "concurrency" in slot},
        delay_of=_delays(settings, slots),
    )


def _delays(settings: BaseSettings, slots: Mapping[str, Any]) -> Callable[[str], float] | None:
    delay, default_jitter = settings.getfloat("DOWNLOAD_DELAY"), settings.getfloat("DOWNLOAD_DELAY_JITTER")
    if not delay and not any(slot.get("delay") for slot in slots.values()):
        return None

    def delay_of(domain: str) -> float:
        slot = slots.get(domain, {})
        jitter = float(slot.get("jitter", default_jitter))
        return float(slot.get("delay", delay)) * (1 + random.uniform(-jitter, jitter))

    return delay_of
