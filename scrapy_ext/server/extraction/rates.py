"""How often the operator lets pages be asked for: by one key, of one domain, and by one organisation of one domain.

An organisation is that of a key; a key that has none is one by itself.

Each is off unless it is set. A request that one of them refuses uses up nothing of the others. One that breaks a rule
of the contract does not count: a mistake is told as what it is. The domain is the host of the URL. The limits are those
of one process, and let through at once what comes together in two seconds.
"""

from __future__ import annotations

import math

from scrapy_ext.api.extraction.errors import over_limit
from scrapy_ext.server.auth.api_keys import Caller
from scrapy_ext.server.auth.rates import RateLimits
from scrapy_ext.server.config.config import ServerConfig


class ExtractionRates:
    """The limits of a server."""

    def __init__(self, config: ServerConfig) -> None:
        self._by_key = _limits(config.extract_rate)
        self._by_domain = _limits(config.domain_rate)
        self._by_both = _limits(config.key_domain_rate)

    def take(self, caller: Caller, host: str) -> None:
        """Count a request of a caller for a host; raises :class:`ExtractionError` (429) for one too many."""
        scopes = (
            (self._by_key, caller.name, "/limits/over-user-limit", "This key asks"),
            (self._by_domain, host, "/limits/over-domain-limit", f"{host} is asked"),
            (
                self._by_both,
                f"{caller.organisation} {host}",
                "/limits/over-org-domain-limit",
                f"This key or its organisation asks {host}",
            ),
        )
        for limits, bucket, problem, who in scopes:
            wait = 0 if limits is None else limits.wait(bucket)
            if wait:
                raise over_limit(problem, f"{who} more often than this server lets it. Try again in {wait} s.", wait)
        for limits, bucket, *_ in scopes:
            if limits is not None:  # one without buckets is empty, and false
                limits.take(bucket)


def _limits(rate: float | None) -> RateLimits | None:
    return None if rate is None else RateLimits(rate, math.ceil(2 * rate))
