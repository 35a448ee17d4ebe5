"""The error of the extraction service: a row of the contract's table of problems, with details.

Causes by problem (extraction-api.md, Errors):

* 421 ``/website/domain-unreachable``: the name does not resolve, the connection is refused, or this server does not
  fetch from the address. A retry does not help.
* 451 ``/download/domain-forbidden``: the domain is on the operator's block list.
* 520 ``/download/temporary-error``: the target timed out or broke the connection. A retry may help.
* 521 ``/download/internal-error``: the target's answer can never become a result (bad certificate, endless redirects,
  more bytes than the limit, a download instead of a page).

The target's own 4xx and 5xx responses are results, with their ``statusCode``.
"""

from __future__ import annotations

import errno
from typing import Final

from scrapy_ext.api.extraction import PROBLEM_TYPES, Cause, Problem

#: Default ``Retry-After`` in seconds, by problem.
RETRY_AFTER: Final = {"/limits/over-global-limit": 2, "/download/temporary-error": 5}


class ExtractionError(Exception):
    """A request that ends in a problem of the contract's table.

    ``detail`` is shown to the caller: it never contains an address, a path or a secret of the server.
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
    """Return the problem of an unreachable target (421)."""
    return ExtractionError("/website/domain-unreachable", detail, cause=cause)


def forbidden(host: str, domain: str) -> ExtractionError:
    """Return the problem of a domain that the operator blocks (451)."""
    detail = f"The operator of this server has blocked extraction from {host}."
    return ExtractionError("/download/domain-forbidden", detail, blocked_domain=domain)


def temporary(detail: str, cause: Cause | None = None) -> ExtractionError:
    """Return the problem of a target that may succeed later (520)."""
    return ExtractionError("/download/temporary-error", detail, cause=cause)


def permanent(detail: str, cause: Cause | None = None) -> ExtractionError:
    """Return the problem of a target that can never give a result (521)."""
    return ExtractionError("/download/internal-error", detail, cause=cause)


def unprocessable(detail: str) -> ExtractionError:
    """Return the problem of an unsupported request (422)."""
    return ExtractionError("/request/unprocessable", detail)


def overloaded(detail: str) -> ExtractionError:
    """Return the problem of a server at capacity (503)."""
    return ExtractionError("/limits/over-global-limit", detail)


def over_limit(type: str, detail: str, wait: int) -> ExtractionError:
    """Return the problem of an exceeded rate of a key, a domain, or both (429); ``wait`` in seconds."""
    return ExtractionError(type, detail, retry_after=wait)


def timed_out(detail: str) -> ExtractionError:
    """Return the problem of a request that took too long (500)."""
    return ExtractionError("/server/timed-out", detail, cause=Cause.TIMEOUT)


def internal(detail: str) -> ExtractionError:
    """Return the problem of an internal error (500)."""
    return ExtractionError("/server/internal", detail)


_UNREACHABLE: Final = {
    errno.ECONNREFUSED: "refused the connection",
    errno.ENETUNREACH: "is on a network that cannot be reached",
    errno.EHOSTUNREACH: "cannot be reached",
    errno.EADDRNOTAVAIL: "cannot be reached",
    errno.EACCES: "cannot be reached",
}


def connection_failed(host: str, port: int, error: OSError) -> ExtractionError:
    """Return the problem of a connection that failed or broke."""
    reason = _UNREACHABLE.get(error.errno or 0)
    if reason is not None:
        refused = error.errno == errno.ECONNREFUSED
        return unreachable(f"{host}:{port} {reason}.", Cause.CONNECTION_REFUSED if refused else None)
    if isinstance(error, TimeoutError):
        return temporary(f"{host}:{port} did not answer in time.", Cause.TIMEOUT)
    return temporary(f"The connection to {host}:{port} broke off.")
