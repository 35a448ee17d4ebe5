"""Spans as OpenTelemetry's SDK records them."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from scrapy_ext.api.extraction.problems import temporary
from scrapy_ext.telemetry import spans
from scrapy_ext.telemetry.recording import OpenTelemetryRecorder


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans.record_with(OpenTelemetryRecorder(provider.get_tracer("test")))
    yield exporter
    spans.record_with(None)


def recorded(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_a_server_continues_the_trace_whose_headers_it_receives(exporter: InMemorySpanExporter) -> None:
    url = "http://service.example/v1/extract"
    with (
        spans.request_span("GET", "https://shop.example/"),
        spans.client_span("POST", url, "/v1/extract", 2) as sent,
    ):
        headers = [(name.encode(), value.encode()) for name, value in sent.headers.items()]
    with spans.server_span("POST", "/v1/extract", headers), spans.inner_span("commit"):
        trace_id = spans.trace_id()
    found = recorded(exporter)
    assert [name for name, _ in headers] == [b"traceparent"]
    assert found["POST"].parent.span_id == found["POST /v1/extract"].context.span_id
    assert found["commit"].parent.span_id == found["POST"].context.span_id
    assert len({span.context.trace_id for span in found.values()}) == 1
    assert trace_id == f"{found['POST'].context.trace_id:032x}"
    attributes = found["POST /v1/extract"].attributes
    assert (attributes["server.address"], attributes["server.port"]) == ("service.example", 80)
    assert attributes["http.request.resend_count"] == 2


def test_a_call_for_many_requests_is_in_a_trace_of_its_own(exporter: InMemorySpanExporter) -> None:
    with spans.request_span("GET", "https://shop.example/"), spans.client_span("POST", "http://a/b", own_trace=True):
        pass
    assert {span.parent for span in recorded(exporter).values()} == {None}


def test_work_outside_of_a_request_is_not_recorded(exporter: InMemorySpanExporter) -> None:
    with spans.inner_span("commit"):
        pass
    assert recorded(exporter) == {}


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("https://a/?secret"), "ValueError"), (temporary("secret"), "/download/temporary-error")],
)
def test_an_error_is_recorded_by_its_type_and_not_its_text(
    exporter: InMemorySpanExporter, error: Exception, kind: str
) -> None:
    with pytest.raises(type(error)), spans.request_span("GET", "https://shop.example/"):
        raise error
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == kind
    assert "secret" not in span.to_json()


@pytest.mark.parametrize(("status", "is_error"), [(200, False), (404, False), (503, True)])
def test_a_refused_request_is_no_error_of_the_server(
    exporter: InMemorySpanExporter, status: int, is_error: bool
) -> None:
    with spans.server_span("GET", "/", []) as span:
        span.answered(status)
    (span,) = exporter.get_finished_spans()
    assert (span.status.status_code is StatusCode.ERROR) is is_error


def test_names_have_few_values(exporter: InMemorySpanExporter) -> None:
    with spans.server_span("BREW", "/pot/1", []):
        pass
    assert recorded(exporter).keys() == {"_OTHER"}
