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
from functools import partial
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
        cause: Cause | None = None,
        *,
        blocked_domain: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem.of(type, detail, blocked_domain=blocked_domain)
        self.cause = cause
        if retry_after is None and PROBLEM_TYPES[type].retry_after:
            retry_after = RETRY_AFTER[type]
        self.retry_after = retry_after


#: The target cannot be reached (421).
unreachable: Final = partial(ExtractionError, "/website/domain-unreachable")
#: The target may answer later (520).
temporary: Final = partial(ExtractionError, "/download/temporary-error")
#: The target's answer can never become a result (521).
permanent: Final = partial(ExtractionError, "/download/internal-error")
#: The request is not supported (422).
unprocessable: Final = partial(ExtractionError, "/request/unprocessable")
#: The server is at capacity (503).
overloaded: Final = partial(ExtractionError, "/limits/over-global-limit")
#: The request took too long (500).
timed_out: Final = partial(ExtractionError, "/server/timed-out", cause=Cause.TIMEOUT)
#: An internal error (500).
internal: Final = partial(ExtractionError, "/server/internal")


def forbidden(host: str, domain: str) -> ExtractionError:
    """Return the problem of a domain that the operator blocks (451)."""
    detail = f"The operator of this server has blocked extraction from {host}."
    return ExtractionError("/download/domain-forbidden", detail, blocked_domain=domain)


def over_limit(type: str, detail: str, wait: int) -> ExtractionError:
    """Return the problem of an exceeded rate of a key, a domain, or both (429); ``wait`` in seconds."""
    return ExtractionError(type, detail, retry_after=wait)


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
