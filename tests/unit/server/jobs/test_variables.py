"""Environment variables of processes of jobs."""

import pytest

from scrapy_ext.server.jobs.versions.variables import job_environment, local_environment


def test_deployed_code_gets_the_variables_of_opentelemetry_only_where_the_operator_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer secret")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "the-server")
    assert not [name for name in job_environment() if name.startswith("OTEL_")]
    allowed = job_environment(opentelemetry=True)
    assert allowed.keys() - job_environment().keys() == {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"}
    assert "PATH" in allowed


def test_a_job_does_not_have_the_name_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "the-server")
    assert "OTEL_SERVICE_NAME" not in local_environment()
