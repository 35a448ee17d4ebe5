"""A collector of OpenTelemetry on this machine: OTLP over HTTP, with what it has received as plain values."""

from __future__ import annotations

import gzip
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.eventually import eventually

_KINDS = {1: "internal", 2: "server", 3: "client"}


@dataclass
class ExportedSpan:
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    is_error: bool
    service: str
    links: list[str] = field(default_factory=list)


class Collector:
    """A collector on a free port. ``status`` is that of its answers; ``hangs`` set: it never answers."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[ExportedSpan] = []
        #: The last points of each metric: its attributes and its value, the numbers of a histogram as a list.
        self.metrics: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        #: Whole bodies, decompressed.
        self.bodies: list[bytes] = []
        #: Errors of the collector itself, such as connections that a killed process breaks.
        self.faults: list[str] = []
        self.hangs = threading.Event()
        self.released = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.bodies.append(body)
                if collector.hangs.is_set():
                    collector.released.wait(120)
                if status == 200:
                    collector._take(self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *arguments: object) -> None:
                collector.faults.append(traceback.format_exc())

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process that exports here, soon after each span."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_METRIC_EXPORT_INTERVAL": "300",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, condition: Callable[[], Any]) -> None:
        """Wait until what was received fulfils a condition."""
        eventually(condition)

    def named(self, name: str, kind: str = "") -> list[ExportedSpan]:
        return [span for span in self.spans if span.name == name and kind in ("", span.kind)]

    def children(self, span: ExportedSpan) -> list[ExportedSpan]:
        return [other for other in self.spans if other.parent == span.id]

    def _take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = _attributes(resource.resource.attributes)["service.name"]
                self.spans += [_span(span, service) for scope in resource.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                    self.metrics[metric.name] = _points(metric)


def _span(span: Any, service: str) -> ExportedSpan:
    return ExportedSpan(
        span.name,
        _KINDS.get(span.kind, str(span.kind)),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _attributes(span.attributes),
        span.status.code == 2,
        service,
        [link.trace_id.hex() for link in span.links],
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def _points(metric: Any) -> list[tuple[dict[str, Any], Any]]:
    kind = metric.WhichOneof("data")
    points = getattr(metric, kind).data_points
    if kind == "histogram":
        return [(_attributes(point.attributes), list(point.bucket_counts)) for point in points]
    return [(_attributes(point.attributes), getattr(point, point.WhichOneof("value"))) for point in points]
