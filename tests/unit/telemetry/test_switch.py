"""The environment variables that switch OpenTelemetry on."""

import pytest

from scrapy_ext.telemetry.exporting import is_on

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environ", "signals"),
    [
        ({}, set()),
        ({"OTEL_SERVICE_NAME": "shop"}, set()),
        (ENDPOINT, {"TRACES", "METRICS"}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, {"TRACES"}),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "none"}, {"TRACES"}),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "prometheus, otlp"}, {"METRICS"}),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "True"}, set()),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, {"TRACES", "METRICS"}),
    ],
)
def test_it_is_on_where_the_environment_names_a_collector(environ: dict[str, str], signals: set[str]) -> None:
    assert {signal for signal in ("TRACES", "METRICS") if is_on(signal, environ)} == signals


def test_another_protocol_is_refused_with_its_remedy() -> None:
    with pytest.raises(ValueError, match="OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, got 'grpc'"):
        is_on("TRACES", ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
