"""Spans without OpenTelemetry, and URLs in spans."""

import pytest

from scrapy_ext.telemetry import spans


@pytest.mark.parametrize(
    ("url", "recorded"),
    [
        ("https://shop.example/a/b", "https://shop.example/a/b"),
        ("https://shop.example:8443/a?page=3&key=k#part", "https://shop.example:8443/a?page=REDACTED&key=REDACTED"),
        ("https://ann:pass@shop.example/", "https://REDACTED:REDACTED@shop.example/"),
        ("https://a@b@shop.example/", "https://REDACTED:REDACTED@shop.example/"),
        # A parameter without a value may be a token.
        ("https://shop.example/?token", "https://shop.example/?REDACTED"),
        ("https://shop.example/?a=1=2&&", "https://shop.example/?a=REDACTED&&"),
        ("http://[::1", "REDACTED"),
    ],
)
def test_a_url_is_recorded_without_credentials_and_values_of_its_query(url: str, recorded: str) -> None:
    assert spans.redacted(url) == recorded


def test_a_long_url_is_cut_and_what_is_cut_is_not_secret() -> None:
    url = "https://shop.example/?" + "&".join(f"p{number}=secret" for number in range(200))
    assert len(spans.redacted(url)) <= 500
    assert "secret" not in spans.redacted(url)


def test_nothing_is_recorded_without_a_recorder() -> None:
    with spans.request_span("GET", "https://shop.example/") as span:
        assert span is spans.NO_SPAN
        assert span.headers == {}
        assert spans.client_span("GET", "https://shop.example/") is spans.NO_SPAN
        assert spans.server_span("GET", "/", []) is spans.NO_SPAN
        assert spans.inner_span("commit") is spans.NO_SPAN
        assert spans.trace_id() == ""
