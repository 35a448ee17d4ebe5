"""The port of the tools: calls to the platform and the extraction service, with the rights of one caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from scrapy_ext.api.violations import escaped

T = TypeVar("T")

JSON: Final = "application/json"
JSON_LINES: Final = "application/x-jsonlines"
FORM: Final = "application/x-www-form-urlencoded"
#: Bytes of an answer that a tool reads. More of a listing is left unread; more of another answer is an error.
MOST: Final = 4 * 1024 * 1024
#: Bytes of an answer of the extraction service.
MOST_EXTRACTED: Final = 32 * 1024 * 1024
#: Characters of an error's message.
_SHOWN: Final = 1000


class ApiError(Exception):
    """A call that failed. ``status`` is its HTTP status; None: there was no answer.

    ``note`` has no foreign text, and explains the message, which may have.
    """

    note: str | None = None

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ApiCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call to the platform. ``path`` is percent-encoded; ``kind`` is the content type of ``body``."""

    method: str = "GET"
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    kind: str = JSON
    accept: str = JSON
    limit: int = MOST


class ApiAnswer(NamedTuple):
    """The body of an answer without an error; ``is_whole`` False: only its beginning was read."""

    body: bytes
    is_whole: bool


class Services(Protocol):
    """The services with the rights of one caller. Both methods raise :class:`ApiError`."""

    async def call(self, call: ApiCall) -> ApiAnswer:
        """Make a call to the platform."""

    async def extract(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of an extraction request."""


class Need(Enum):
    """The right that a tool needs."""

    READ = "read"
    RUN = "run"
    WRITE = "write"
    EXTRACT = "extract"


class Agent(msgspec.Struct, frozen=True):
    """A caller of tools. ``withheld`` has the reason for each right that the caller lacks."""

    services: Services
    withheld: Mapping[Need, str]


def path_of(*parts: object) -> str:
    """Return the path of these parts, each percent-encoded, so that none reaches another path."""
    return "/" + "/".join(quote(str(part), safe="") for part in parts)


def pairs(*parameters: tuple[str, str | int | Iterable[str] | None]) -> tuple[tuple[str, str], ...]:
    """Return the set parameters of a query or a form; a sequence repeats its parameter."""
    found: list[tuple[str, str]] = []
    for name, value in parameters:
        if isinstance(value, str | int):
            found.append((name, str(value)))
        elif value is not None:
            found.extend((name, each) for each in value)
    return tuple(found)


def message_of(body: bytes) -> str:
    """Return the message of an error: that of a JSON object or a problem, else the text."""
    try:
        decoded = msgspec.json.decode(body[: 16 * _SHOWN])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decoded = None
    if isinstance(decoded, dict):
        for name in ("detail", "message", "error", "title"):
            if isinstance(decoded.get(name), str):
                return escaped(str(decoded[name]))[:_SHOWN]
    return escaped(" ".join(body[: 4 * _SHOWN].decode("utf-8", "replace").split()))[:_SHOWN]


def decoded(answer: ApiAnswer, kind: type[T]) -> T:
    """Return a JSON answer; raises :class:`ApiError`."""
    if not answer.is_whole:
        raise ApiError(f"The answer has over {len(answer.body)} bytes, which is more than a tool reads. Request less.")
    return decoded_json(answer.body, kind)


def decoded_json(data: bytes, kind: type[T]) -> T:
    """Return JSON of the platform; raises :class:`ApiError`."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ApiError(
            "The platform returned another answer than the one expected. Check that PLATFORM_URL leads to it."
        ) from None


def lines_of(answer: ApiAnswer) -> list[bytes]:
    """Return the whole lines of an answer in JSON lines."""
    lines = answer.body.split(b"\n")
    if not answer.is_whole:
        lines.pop()
    return [line for line in lines if line.strip()]
