"""Errors of calls to the platform: one class per reaction of the caller.

Messages name the call and the remedy, and never contain the key.
"""
# Named as HTTP names them, so that reading an ``except`` needs no table.
# ruff: noqa: N818

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scrapy_ext.api.masking import without_secrets


class PlatformError(Exception):
    """A call that failed.

    ``status`` is the HTTP status, None without an answer; ``retryable``: the same call may work later;
    ``retry_after``: seconds until then, None when the server named none.
    """

    retryable = False
    remedy = ""

    def __init__(
        self,
        message: str,
        *,
        method: str = "",
        path: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message = without_secrets(message)
        self.method = method
        self.path = path
        self.status = status
        self.retry_after = retry_after
        super().__init__(self.message)

    def __str__(self) -> str:
        text = self.message.rstrip(".") + "."
        if self.path:
            answered = f" answered {self.status}" if self.status is not None else ""
            text = f"{self.method} {self.path}{answered}: {text}"
        return f"{text} {self.remedy}".rstrip()


class BadRequest(PlatformError):
    """400, or another 4xx without a class of its own: the platform does not accept the call."""


class DuplicateJob(BadRequest):
    """An equal job is already pending or running."""

    remedy = "Wait until it has ended, stop it, or give other arguments."


class Unauthorized(PlatformError):
    """401: the key is missing or unknown."""

    remedy = "Check the setting PLATFORM_API_KEY: it is the key of the platform, not that of the extraction service."


class Forbidden(PlatformError):
    """403: the key may not do this."""

    remedy = "Check that the key in PLATFORM_API_KEY has access to the project in PLATFORM_PROJECT."


class AttemptOver(Forbidden):
    """403: the attempt at a job that this process runs is over. Another process may run the job."""

    remedy = ""


class NotFound(PlatformError):
    """404: the resource does not exist."""


class Gone(PlatformError):
    """410: the job was deleted, or its records were removed. Nothing can be read or written there any more."""


class TooLarge(PlatformError):
    """413: a record or a body over the limit."""


class RateLimited(PlatformError):
    """429: too many calls."""

    retryable = True


class ServerError(PlatformError):
    """5xx: the platform, or a proxy in front of it, failed."""

    retryable = True


class Unreachable(PlatformError):
    """No whole answer: no connection, a connection that broke, or a timeout."""

    retryable = True
    remedy = "Check PLATFORM_URL (or PLATFORM_APP_URL, PLATFORM_STORAGE_URL, PLATFORM_JOBQ_URL) and that it is up."


class UnexpectedAnswer(PlatformError):
    """An answer that is not what the platform sends, such as the HTML page of a load balancer."""

    retryable = True
    remedy = "Check that PLATFORM_URL leads to the platform, and check the proxies in front of it."


class _Timeout(ServerError):
    """408: the server gave up waiting for the request; it may be sent again."""


_BY_STATUS: Final[Mapping[int, type[PlatformError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: _Timeout,
    410: Gone,
    413: TooLarge,
    429: RateLimited,
}


#: Errors of a process that may write nothing more to its job.
JOB_ENDED: Final = (AttemptOver, Gone)


def error_class(status: int) -> type[PlatformError]:
    if status >= 500:
        return ServerError
    if 300 <= status < 400:
        return UnexpectedAnswer
    return _BY_STATUS.get(status, BadRequest)
