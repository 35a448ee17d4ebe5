"""How the platform says no, and small answers.

The hosts of the API tell a fault differently: the storage host as a line of text, the app and the job queue as a
JSON object with a ``message``. What is not the client's fault (5xx) is JSON everywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http.repeats import Repeats
from scrapy_ext.server.observability.logs import REQUEST_ID
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError, StoreError, StoreFullError

logger = logging.getLogger(__name__)
_disk: Final = logging.getLogger("scrapy_ext.server.disk")

TEXT: Final = "text/plain; charset=UTF-8"
JSON: Final = "application/json; charset=UTF-8"
#: Writes that a full disk refused.
_full = Repeats()
#: Seconds after which a client may try again when the database was locked.
_RETRY_AFTER: Final = "1"


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure
    """Ends a request with this status and message."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


class NotFound(Refusal):
    """There is nothing at this path."""

    def __init__(self, message: str = "Not Found") -> None:
        super().__init__(404, message)


def method_not_allowed(*allowed: str) -> Refusal:
    """The refusal of a method."""
    choices = ", ".join(allowed)
    return Refusal(405, f"Method Not Allowed. This path takes {choices}.", {"Allow": choices})


def json(value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(msgspec.json.encode(value), status, media_type=JSON)


def empty() -> Response:
    """The answer of a write."""
    return Response(b"", media_type=TEXT)


def refusal_of(error: Exception, *, trusted: bool) -> Refusal:
    """What to answer when a handler raised ``error``. Where the database is, and what is wrong with it, is told to who
    is ``trusted`` with all projects, and to the log."""
    match error:
        case Refusal():
            return error
        case ContractError():
            return Refusal(error.status, _told(error))
        case StoreFullError():
            if (refused := _full.due()) > 1:
                _disk.error("%s %d writes were refused since this was last logged.", error, refused)
            elif refused:
                _disk.error("%s", error)
            return Refusal(507, _shown(error, trusted))
        case StoreBusyError():
            if not isinstance(error, StoreAwayError):  # of which the store tells once, and not for each request
                logger.warning("%s", error)
            return Refusal(503, _shown(error, trusted), {"Retry-After": _RETRY_AFTER})
        case StoreError():
            logger.error("%s", error)
            return Refusal(500, _shown(error, trusted))
        case TimeoutError():
            told = "This took too long and was given up. A write may still be done: send it again as it was."
            return Refusal(503, told, {"Retry-After": _RETRY_AFTER})
        case _:
            logger.error("A request failed", exc_info=error)
            return Refusal(500, "The server failed to handle this request; its log says why.")


def _shown(error: StoreError, trusted: bool) -> str:
    return str(error) if trusted else error.public


def _told(error: ContractError) -> str:
    text = "; ".join(map(str, error.violations))
    # How the storage host has always begun to say that a body is wrong; programs match it.
    return f"Error parsing data, {text}" if error.violations[0].field.startswith(("line ", "body")) else text


def answer_of(refusal: Refusal, host: Host) -> Response:
    """The response that a client of this host expects."""
    if host is Host.STORAGE and refusal.status < 500:
        return Response(refusal.message + "\n", refusal.status, refusal.headers, media_type=TEXT)
    if host is Host.JOBQ and refusal.status < 500:
        body = {"error": HTTPStatus(refusal.status).phrase, "message": refusal.message}
    else:
        body = {"status": "badrequest" if refusal.status == 400 else "error", "message": refusal.message}
        if refusal.status >= 500:
            body["request_id"] = REQUEST_ID.get()
    return Response(msgspec.json.encode(body), refusal.status, refusal.headers, media_type=JSON)
