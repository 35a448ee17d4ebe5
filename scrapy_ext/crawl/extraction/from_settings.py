"""Settings of extraction as objects of the client, for a crawl or a command.

Every function raises :class:`~scrapy_ext.settings.SettingError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import check
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.budget import Prices
from scrapy_ext.client.extraction.limiter import Limiter
from scrapy_ext.client.extraction.memory import AnswerMemory
from scrapy_ext.client.extraction.retry_policy import FAILURES, NO_CONNECTION, RetryPolicy
from scrapy_ext.compatibility.scrapy import slot_of
from scrapy_ext.crawl.session.job import CrawlJob
from scrapy_ext.crawl.session.project import project_data
from scrapy_ext.crawl.session.scrapy_engine import DownloaderSlots
from scrapy_ext.jobprocess.proc import machine_memory
from scrapy_ext.settings import SettingError

#: Policies of single requests that are kept, by their meta.
_POLICIES: Final = 1000
#: Slots that are kept of a command that has no downloader.
_SLOTS: Final = 10_000
_RETRY_META: Final = 'meta["extract_api_retry_policy"]'
_MIB: Final = 2**20
#: Parts of a machine's memory, and of a process's limit, for answers.
_MACHINE_SHARE: Final = 8
_PROCESS_SHARE: Final = 4
_LEAST_MEMORY: Final = 64 * _MIB
_MOST_MEMORY: Final = 1024 * _MIB


def params_of(settings: BaseSettings) -> dict[str, Any]:
    """Return the fields of EXTRACT_API_PARAMS, after a check of each."""
    params: dict[str, Any] = names.EXTRACT_API_PARAMS.read(settings)
    faults = faults_of(params, settings)
    if faults:
        raise SettingError("EXTRACT_API_PARAMS", "has a field that cannot be sent", str(ContractError(faults)))
    return params


def faults_of(fields: Mapping[str, Any], settings: BaseSettings) -> list[Violation]:
    """Return the faults of fields that are meant for many requests. Rules on several fields depend on the request."""
    given = {name: value for name, value in fields.items() if value is not None}
    extra_fields, strict = names.EXTRACT_API_EXTRA_FIELDS.read(settings), names.EXTRACT_API_STRICT.read(settings)
    broken = check({"url": "https://example.com/", **given}, extra_fields=extra_fields, strict=strict)
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
    """Return a limiter with the limits and delays per domain of Scrapy's downloader, where there is none.

    ``concurrency`` replaces CONCURRENT_REQUESTS and CONCURRENT_REQUESTS_PER_DOMAIN.
    """
    slots = lru_cache(maxsize=_SLOTS)(partial(slot_of, settings))
    given = settings.getdict("DOWNLOAD_SLOTS")

    def cap_of(domain: str) -> int:
        has_own = "concurrency" in given.get(domain, {})
        return int(slots(domain).concurrency) if has_own or concurrency is None else concurrency

    return Limiter(
        concurrency or settings.getint("CONCURRENT_REQUESTS"),
        concurrency or settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"),
        cap_of=cap_of,
        delay_of=lambda domain: slots(domain).download_delay(),
    )


def limiter_for(crawler: Crawler) -> Limiter:
    """Return a limiter with the limits and delays of the slots of a crawl's downloader, as they are at any time."""
    slots = DownloaderSlots(crawler)
    return Limiter(
        crawler.settings.getint("CONCURRENT_REQUESTS"),
        crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"),
        cap_of=slots.concurrency_of,
        delay_of=slots.delay_of,
    )


def ledger_path(settings: BaseSettings, job: CrawlJob | None) -> Path | None:
    """Return the path of the ledger of a crawl that can be resumed, by its directory or its job; None for other
    crawls. Each worker of a job has a ledger of its own."""
    if not names.EXTRACT_API_LEDGER.read(settings):
        return None
    if directory := job_dir(settings):
        return Path(directory, "extract-ledger.sqlite")
    if job is None:
        return None
    folder = project_data("extract-ledger")
    folder.mkdir(parents=True, exist_ok=True)
    name = str(job.key).replace("/", "-")
    return folder / (f"{name}-worker-{job.worker}.sqlite" if job.worker else f"{name}.sqlite")


class ClientOptions(msgspec.Struct, frozen=True):
    """Options of a crawl's :class:`~scrapy_ext.client.extraction.ExtractClient`."""

    policy: RetryPolicy
    prices: Prices
    memory: AnswerMemory
    #: Seconds, 0 for no limit.
    timeout: float
    max_requests: int
    max_cost: float
    #: Fields of the service that this version does not have.
    extra_fields: frozenset[str]
    #: Whether fields that the contract does not define are refused.
    strict: bool
    log_requests: bool

    @classmethod
    def of(cls, settings: BaseSettings) -> ClientOptions:
        return cls(
            policy=policy_of(settings),
            prices=prices_of(settings),
            memory=memory_of(settings),
            timeout=settings.getfloat("DOWNLOAD_TIMEOUT"),
            max_requests=names.EXTRACT_API_MAX_REQUESTS.read(settings),
            max_cost=names.EXTRACT_API_MAX_COST.read(settings),
            extra_fields=frozenset(names.EXTRACT_API_EXTRA_FIELDS.read(settings)),
            strict=names.EXTRACT_API_STRICT.read(settings),
            log_requests=names.EXTRACT_API_LOG_REQUESTS.read(settings),
        )


class RequestPolicies:
    def __init__(self, default: RetryPolicy) -> None:
        self._default = default
        self._first = default.at_first()
        self._once = RetryPolicy({})
        #: For meta ``max_retry_times`` 0, the equivalent of RETRY_TIMES = 0 for one request.
        self._failing_once = default.with_overrides(dict.fromkeys(FAILURES, 1), "")
        self._first_failing_once = self._failing_once.at_first()
        self._by_meta: dict[tuple[bool, bytes], RetryPolicy] = {}

    def of(self, request: Request) -> RetryPolicy:
        """Return the retry policy of a request, which has few attempts to connect until the service has answered.
        Raises :class:`ContractError` naming the meta key."""
        if request.meta.get("dont_retry"):
            return self._once
        overrides = request.meta.get("extract_api_retry_policy")
        fails_once = request.meta.get("max_retry_times") == 0
        if not overrides:
            return self._first_failing_once if fails_once else self._first
        base = self._failing_once if fails_once else self._default
        if not isinstance(overrides, Mapping):
            overrides = {str(overrides): None}  # Refused, with a message on the right form.
        key = fails_once, msgspec.json.encode(overrides, order="deterministic", enc_hook=repr)
        policy = self._by_meta.get(key)
        if policy is None:
            policy = base.with_overrides(overrides, _RETRY_META)
            # Whoever gives attempts to connect for this request gets them.
            policy = policy if NO_CONNECTION in overrides else policy.at_first()
            if len(self._by_meta) >= _POLICIES:
                self._by_meta.clear()
            self._by_meta[key] = policy
        return policy
