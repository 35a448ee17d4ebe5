"""Errors of an extraction as errbacks for direct requests expect them.

One that says that the site could not be downloaded becomes also an instance of the class that Scrapy raises for that
cause. It keeps the name of its own class, by which errors are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)

from scrapy_ext.api.extraction.problems import PROBLEM_TYPES, Cause
from scrapy_ext.client.extraction.errors import ExtractError, TooLargeError

_BY_CAUSE: Final[Mapping[str, type[Exception]]] = {
    Cause.HOST_NOT_FOUND.value: CannotResolveHostError,
    Cause.HOST_NOT_ALLOWED.value: DownloadFailedError,
    Cause.CONNECTION_REFUSED.value: DownloadConnectionRefusedError,
    Cause.TIMEOUT.value: DownloadTimeoutError,
    Cause.CUT_SHORT.value: ResponseDataLossError,
    Cause.TOO_LARGE.value: DownloadCancelledError,
}
#: Where the service names no cause.
_BY_TYPE: Final[Mapping[str, type[Exception]]] = {
    "/website/domain-unreachable": CannotResolveHostError,
    "/server/timed-out": DownloadTimeoutError,
    "/download/temporary-error": DownloadFailedError,
    "/download/internal-error": DownloadFailedError,
}


def mark(error: ExtractError) -> None:
    """Make an error an instance of the class, too, that Scrapy raises for its cause, if there is one."""
    scrapys = _class_of(error)
    if scrapys is not None and not isinstance(error, scrapys):
        # mypy takes the hash of a class for that of its instances.
        error.__class__ = _both(type(error), scrapys)  # type: ignore[arg-type]


def _class_of(error: ExtractError) -> type[Exception] | None:
    if isinstance(error, TooLargeError):
        return DownloadCancelledError
    if error.cause in _BY_CAUSE:
        return _BY_CAUSE[error.cause]
    row = PROBLEM_TYPES.get(error.type)
    if row is None and error.status is not None:
        row = next((row for row in PROBLEM_TYPES.values() if row.status == error.status), None)
    return _BY_TYPE.get(row.type) if row is not None else None


@cache
def _both(kind: type[ExtractError], scrapys: type[Exception]) -> type[ExtractError]:
    return type(kind.__name__, (kind, scrapys), {"__doc__": kind.__doc__, "__module__": kind.__module__})
