"""The one error of the extraction service: a row of the contract's table of problems, and what happened.

Which cause is which problem (extraction-api.md, Errors):

* 421 ``/website/domain-unreachable``: the name does not resolve, nobody listens, or the address is one that
  this server does not fetch. Sending the request again changes nothing.
* 451 ``/download/domain-forbidden``: the domain is on the operator's block list.
* 520 ``/download/temporary-error``: the target did not answer in time, or broke off. It may do better later.
* 521 ``/download/internal-error``: the target answered, with something that can never become a result (bad
  certificate, endless redirects, more bytes than the limit, a download where a page was asked for).

A target's own 4xx and 5xx answers are none of these: they are results, with their ``statusCode``.
"""

from __future__ import annotations

import errno
from typing import Final

from scrapy_ext.api.extraction import PROBLEM_TYPES, Cause, Problem

#: ``Retry-After`` by problem, in seconds, where the table says that there is one and nothing tells a better one.
RETRY_AFTER: Final = {"/limits/over-global-limit": 2, "/download/temporary-error": 5}


class ExtractionError(Exception):
    """A request that ends in a problem of the contract's table.

    ``detail`` is shown to the caller: it names what was asked for, never an address, a path or a secret of
    the server.
    """

    def __init__(
        self,
        type: str,
        detail: str,
        *,
        blocked_domain: str | None = None,
        retry_after: int | None = None,
        cause: Cause | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem.of(type, detail, blocked_domain=blocked_domain)
        self.cause = cause
        if retry_after is None and PROBLEM_TYPES[type].retry_after:
            retry_after = RETRY_AFTER[type]
        self.retry_after = retry_after


def unreachable(detail: str, cause: Cause | None = None) -> ExtractionError:
    """The target cannot be reached, now or later (421)."""
    return ExtractionError("/website/domain-unreachable", detail, cause=cause)


def forbidden(host: str, domain: str) -> ExtractionError:
    """The operator lets nobody extract from this domain (451)."""
    detail = f"The operator of this server does not let anything be extracted from {host}."
    return ExtractionError("/download/domain-forbidden", detail, blocked_domain=domain)


def temporary(detail: str, cause: Cause | None = None) -> ExtractionError:
    """The target failed in a way that may pass (520)."""
    return ExtractionError("/download/temporary-error", detail, cause=cause)


def permanent(detail: str, cause: Cause | None = None) -> ExtractionError:
    """The target's answer can never become a result (521)."""
    return ExtractionError("/download/internal-error", detail, cause=cause)


def unprocessable(detail: str) -> ExtractionError:
    """The request asks for something that this server does not do (422)."""
    return ExtractionError("/request/unprocessable", detail)


def overloaded(detail: str) -> ExtractionError:
    """The server has as much work as it takes on (503)."""
    return ExtractionError("/limits/over-global-limit", detail)


def over_limit(type: str, detail: str, wait: int) -> ExtractionError:
    """A key, a domain, or the two together are over their rate (429); ``wait`` in seconds."""
    return ExtractionError(type, detail, retry_after=wait)


def timed_out(detail: str) -> ExtractionError:
    """The whole request took too long (500)."""
    return ExtractionError("/server/timed-out", detail, cause=Cause.TIMEOUT)


def internal(detail: str) -> ExtractionError:
    """The server's own fault (500)."""
    return ExtractionError("/server/internal", detail)


_UNREACHABLE: Final = {
    errno.ECONNREFUSED: "refused the connection",
    errno.ENETUNREACH: "is on a network that cannot be reached",
    errno.EHOSTUNREACH: "cannot be reached",
    errno.EADDRNOTAVAIL: "cannot be reached",
    errno.EACCES: "cannot be reached",
}


def connection_failed(host: str, port: int, error: OSError) -> ExtractionError:
    """What a connection that could not be made, or that broke, tells the caller."""
    reason = _UNREACHABLE.get(error.errno or 0)
    if reason is not None:
        refused = error.errno == errno.ECONNREFUSED
        return unreachable(f"{host}:{port} {reason}.", Cause.CONNECTION_REFUSED if refused else None)
    if isinstance(error, TimeoutError):
        return temporary(f"{host}:{port} did not answer in time.", Cause.TIMEOUT)
    return temporary(f"The connection to {host}:{port} broke off.")
