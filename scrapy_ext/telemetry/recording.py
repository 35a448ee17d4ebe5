"""Recorder of spans with OpenTelemetry's API, by its semantic conventions for HTTP.

The spans of a spider's request and of a received request are current in their blocks: spans within become their
children. The others have no children. A name is of few values: what varies is in attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import Token
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from scrapy_ext.telemetry.spans import NO_SPAN, Attributes, Span, redacted

#: W3C trace context alone: baggage may hold what the other side must not know.
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_CARRIED: Final = (b"traceparent", b"tracestate")
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"))
_LONGEST_TYPE: Final = 100
_LONGEST_PATH: Final = 200
_PORTS: Final = {"http": 80, "https": 443}


class _Recorded(Span):
    """A span that is recorded; ``is_parent``: it is current in its block."""

    __slots__ = ("_is_parent", "_kind", "_span", "_token")

    def __init__(self, span: trace.Span, kind: SpanKind, *, is_parent: bool = False) -> None:
        self._span = span
        self._kind = kind
        self._is_parent = is_parent
        self._token: Token[Context] | None = None

    @property
    def is_recorded(self) -> bool:
        return self._span.is_recording()  # One that is not sampled only carries the decision on.

    @property
    def headers(self) -> Mapping[str, str]:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(self._span, Context()))
        return carrier

    def __enter__(self) -> Span:
        if self._is_parent:
            self._token = contexts.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            contexts.detach(self._token)
        if error is not None:
            self.failed(error)
        self._span.end()

    def set(self, name: str, value: str | int | float | bool) -> None:
        self._span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def answered(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
        # A refused request is an error of the client, not of the server.
        if status >= (500 if self._kind is SpanKind.SERVER else 400):
            self.failed(str(status))

    def failed(self, error: BaseException | str) -> None:
        kind = error if isinstance(error, str) else _type_of(error)
        self._span.set_attribute("error.type", kind)
        # Without a description: the text of an error may have URLs with secrets.
        self._span.set_status(Status(StatusCode.ERROR))


def _type_of(error: BaseException) -> str:
    """Return the problem type that an error of an extraction has, else its class."""
    named = getattr(getattr(error, "problem", error), "type", "")
    if isinstance(named, str) and named.startswith("/"):
        return named[:_LONGEST_TYPE]
    return type(error).__qualname__


class OpenTelemetryRecorder:
    """Recorder with a tracer. ``parent`` is a ``traceparent`` to which the roots of traces are linked."""

    def __init__(self, tracer: Tracer, parent: str = "") -> None:
        self._tracer = tracer
        found = trace.get_current_span(_PROPAGATOR.extract({"traceparent": parent}, Context())).get_span_context()
        self._links = [Link(found)] if found.is_valid else None

    def request_span(self, method: str, url: str, attributes: Attributes) -> Span:
        return self._started(
            "scrapy.request",
            SpanKind.INTERNAL,
            {"http.request.method": _method(method), "url.full": redacted(url), **attributes},
            Context(),
            is_parent=True,
        )

    def client_span(self, method: str, url: str, template: str, resend: int, *, own_trace: bool) -> Span:
        attributes: dict[str, str | int | float | bool] = {
            "http.request.method": _method(method),
            "url.full": redacted(url),
        }
        try:
            parts = urlsplit(url)
            attributes["server.address"] = parts.hostname or ""
            attributes["server.port"] = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            pass
        if template:
            attributes["url.template"] = template
        if resend:
            attributes["http.request.resend_count"] = resend
        name = f"{_method(method)} {template}".rstrip()
        return self._started(name, SpanKind.CLIENT, attributes, Context() if own_trace else None)

    def server_span(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Span:
        carrier = {name.decode(): value.decode("latin-1") for name, value in headers if name in _CARRIED}
        attributes = {"http.request.method": _method(method), "url.path": path[:_LONGEST_PATH], "url.scheme": "http"}
        context = _PROPAGATOR.extract(carrier, Context()) if carrier else Context()
        return self._started(_method(method), SpanKind.SERVER, attributes, context, is_parent=True)

    def inner_span(self, name: str, attributes: Attributes) -> Span:
        if not trace.get_current_span().is_recording():
            return NO_SPAN
        return self._started(name, SpanKind.INTERNAL, attributes, None)

    def trace_id(self) -> str:
        found = trace.get_current_span().get_span_context()
        return trace.format_trace_id(found.trace_id) if found.is_valid else ""

    def _started(
        self, name: str, kind: SpanKind, attributes: Attributes, context: Context | None, *, is_parent: bool = False
    ) -> Span:
        is_root = context is not None and kind is not SpanKind.SERVER
        span = self._tracer.start_span(
            name, context, kind, dict(attributes), self._links if is_root else None, record_exception=False
        )
        return _Recorded(span, kind, is_parent=is_parent)


def _method(method: str) -> str:
    return method if method in _METHODS else "_OTHER"
