"""Spans of requests, without OpenTelemetry: until a recorder is set, each of these functions returns :data:`NO_SPAN`.

A span has no body, key, cookie or message of an error, and of a URL neither credentials nor values of the query
(:func:`redacted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Final, Protocol
from urllib.parse import urlsplit

Attributes = Mapping[str, str | int | float | bool]
NO_ATTRIBUTES: Final[Attributes] = MappingProxyType({})

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_HIDDEN: Final = "REDACTED"
#: Characters of a URL, and parts of its query, that are recorded.
_LONGEST: Final = 500
_MOST_PARAMETERS: Final = 50


class Span:
    """A span for the time of a ``with`` block; an error that leaves the block is its status. This class records
    nothing."""

    __slots__ = ()

    @property
    def is_recorded(self) -> bool:
        """Return false if nothing is recorded."""
        return False

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that make the called service continue the trace."""
        return _NO_HEADERS

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Set an attribute."""

    def rename(self, name: str) -> None:
        """Replace the name."""

    def answered(self, status: int) -> None:
        """Set the status of an HTTP answer, which may be an error."""

    def failed(self, error: BaseException | str) -> None:
        """Set the status to an error, of which the type is recorded."""


NO_SPAN: Final = Span()


class Recorder(Protocol):
    """Source of spans that are recorded."""

    def request_span(self, method: str, url: str, attributes: Attributes) -> Span: ...

    def client_span(self, method: str, url: str, template: str, resend: int, *, own_trace: bool) -> Span: ...

    def server_span(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Span: ...

    def inner_span(self, name: str, attributes: Attributes) -> Span: ...

    def trace_id(self) -> str: ...


_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> None:
    """Record all spans from now on, or none."""
    global _recorder  # noqa: PLW0603  (one for the process)
    _recorder = recorder


def request_span(method: str, url: str, attributes: Attributes = NO_ATTRIBUTES) -> Span:
    """Return the span of a request of a spider, the root of a trace, for all spans within its block."""
    return NO_SPAN if _recorder is None else _recorder.request_span(method, url, attributes)


def client_span(method: str, url: str, template: str = "", resend: int = 0, *, own_trace: bool = False) -> Span:
    """Return the span of an HTTP request that is sent. ``resend``: number of earlier attempts; ``template``: the URL's
    path without what varies; ``own_trace``: it is the root of a trace, since it belongs to many requests."""
    if _recorder is None:
        return NO_SPAN
    return _recorder.client_span(method, url, template, resend, own_trace=own_trace)


def server_span(method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Span:
    """Return the span of a received request, for all spans within its block. It continues the caller's trace."""
    return NO_SPAN if _recorder is None else _recorder.server_span(method, path, headers)


def inner_span(name: str, attributes: Attributes = NO_ATTRIBUTES) -> Span:
    """Return the span of a part of the work for a request; outside of one, nothing is recorded."""
    return NO_SPAN if _recorder is None else _recorder.inner_span(name, attributes)


def trace_id() -> str:
    """Return the id of the current trace in hexadecimal, for the log; empty if there is none."""
    return "" if _recorder is None else _recorder.trace_id()


def redacted(url: str) -> str:
    """Return a URL without its fragment, with its credentials and the values of its query replaced."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _HIDDEN
    location = parts.netloc
    if "@" in location:
        location = f"{_HIDDEN}:{_HIDDEN}@{location.rpartition('@')[2]}"
    query = "&".join(map(_without_value, parts.query.split("&", _MOST_PARAMETERS)[:_MOST_PARAMETERS]))
    return parts._replace(netloc=location, query=query, fragment="").geturl()[:_LONGEST]


def _without_value(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}={_HIDDEN}" if equals else _HIDDEN * bool(name)
