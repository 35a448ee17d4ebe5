"""Refusals, and small answers.

The hosts of the API report a fault in different forms: the storage host as a line of text, the app and the job queue as
a JSON object with a ``message``. Faults of the server (5xx) are JSON everywhere but on ``/metrics``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
from starlette.background import BackgroundTask
from starlette.responses import Response

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.logs import REQUEST_ID, Repeats
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError, StoreError, StoreFullError

T = TypeVar("T")

logger = logging.getLogger(__name__)
_disk: Final = logging.getLogger("scrapy_ext.server.disk")

TEXT: Final = "text/plain; charset=UTF-8"
JSON: Final = "application/json; charset=UTF-8"
_JSON: Final = ((b"content-type", JSON.encode()),)
_TEXT: Final = ((b"content-type", TEXT.encode()),)
#: Writes that a full disk refused.
_full = Repeats()
#: Seconds until a client may try again when the database was locked.
_RETRY_AFTER: Final = "1"


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure
    """End of a request with a status and a message; with ``as_text``, the answer is a line of text on every host."""

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None, *, as_text: bool = False
    ) -> None:
        super().__init__(message)
        self.as_text = as_text
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


def not_found(message: str = "Not Found") -> Refusal:
    """Return the refusal of a path or resource that does not exist."""
    return Refusal(404, message)


def method_not_allowed(*allowed: str) -> Refusal:
    choices = ", ".join(allowed)
    return Refusal(405, f"Method Not Allowed. Use {choices} for this path.", {"Allow": choices})


def found(value: T | None, message: str = "Not Found") -> T:
    """Return a value; raises :class:`Refusal` (404) without one."""
    if value is None:
        raise not_found(message)
    return value


class BytesResponse(Response):
    """Answer 200 with headers that are bytes already, in lower case; Starlette encodes them for each answer."""

    def __init__(self, data: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.status_code = HTTPStatus.OK.value
        self.background = None
        self.body = data
        self.raw_headers = [(b"content-length", b"%d" % len(data)), *headers]


def json(value: object, status: int = 200, background: BackgroundTask | None = None) -> Response:
    if status == HTTPStatus.OK and background is None:
        return BytesResponse(msgspec.json.encode(value), _JSON)
    return Response(msgspec.json.encode(value), status, media_type=JSON, background=background)


def plain_text(value: str) -> Response:
    """Return a text, which is a number in most cases, and so JSON as well."""
    return BytesResponse(value.encode(), _TEXT)


def empty(background: BackgroundTask | None = None) -> Response:
    return Response(b"", media_type=TEXT, background=background)


def refusal_of(error: Exception, *, trusted: bool) -> Refusal:
    """Return the refusal for an error that a handler raised.

    The log, and the answer to a caller who is ``trusted`` with all projects, name the database and its fault.
    """
    match error:
        case Refusal():
            return error
        case ContractError():
            return Refusal(error.status, _text_of(error))
        case StoreFullError():
            if (refused := _full.due()) > 1:
                _disk.error(
                    "%s %d more writes were refused since this was last logged. Make room on the disk.", error, refused
                )
            elif refused:
                _disk.error("%s", error)
            return Refusal(507, _shown(error, trusted))
        case StoreBusyError():
            if not isinstance(error, StoreAwayError):  # the store logs it once, not for each request
                logger.warning("%s", error)
            return Refusal(503, _shown(error, trusted), {"Retry-After": _RETRY_AFTER})
        case StoreError():
            logger.error("%s", error)
            return Refusal(500, _shown(error, trusted))
        case _ if isinstance(error, TIMEOUT_ERRORS):
            message = "This took too long and was given up. A write may still be done: send it again as it was."
            return Refusal(503, message, {"Retry-After": _RETRY_AFTER})
        case _:
            logger.error("A request failed", exc_info=error)
            return Refusal(500, "The server failed to handle this request. Ask the operator: its log has the error.")


def _shown(error: StoreError, trusted: bool) -> str:
    return str(error) if trusted else error.public


def _text_of(error: ContractError) -> str:
    text = "; ".join(map(str, error.violations))
    # The storage host has always reported a wrong body with these first words; programs match them.
    return f"Error parsing data, {text}" if error.violations[0].field.startswith(("line ", "body")) else text


def answer_of(refusal: Refusal, host: Host) -> Response:
    """Return the response that a client of this host expects."""
    if refusal.as_text or (host is Host.STORAGE and refusal.status < 500):
        return Response(refusal.message + "\n", refusal.status, refusal.headers, media_type=TEXT)
    if host is Host.JOBQ and refusal.status < 500:
        body = {"error": HTTPStatus(refusal.status).phrase, "message": refusal.message}
    else:
        body = {"status": "badrequest" if refusal.status == 400 else "error", "message": refusal.message}
        if refusal.status >= 500:
            body["request_id"] = REQUEST_ID.get()
    return Response(msgspec.json.encode(body), refusal.status, refusal.headers, media_type=JSON)
