"""Traces and metrics of real crawls through a real server, as a collector receives them."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import pytest

from tests.support.collector import Collector, ExportedSpan
from tests.support.crawls import Crawl, Project
from tests.support.servers import RunningServer
from tests.support.sites import Site

SPIDER = """
import sys
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {"HTTPERROR_ALLOW_ALL": True, "RETRY_ENABLED": False}

    async def start(self):
        for path in self.paths.split(","):
            headers = {"X-Api-Key": "header-secret", "Cookie": "session=cookie-secret"}
            yield scrapy.Request(self.site + path, method="POST", body="body-secret", headers=headers)

    def parse(self, response):
        yield {"url": response.url}

    def closed(self, reason):
        self.logger.info("imported: %s", any(name.startswith("opentelemetry") for name in sys.modules))
"""
#: Most seconds that the end of a crawl and that of its server wait for a collector; its timeouts together are longer.
WAITS = 20.0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", SPIDER, 'BOT_NAME = "shop"\nLOG_LEVEL = "INFO"\n')


def services(server: RunningServer) -> dict[str, str]:
    """The variables of a crawl that uses a server."""
    return {
        "EXTRACT_API_URL": f"{server.url}/v1",
        "EXTRACT_API_KEY": server.extract_key,
        "PLATFORM_URL": server.url,
        "PLATFORM_API_KEY": server.platform_key,
    }


def crawl(project: Project, site: str, paths: str, environment: dict[str, str], *options: str) -> Crawl:
    crawl = project.crawl("pages", "-a", f"site={site}", "-a", f"paths={paths}", *options, environment=environment)
    assert crawl.reason == "finished", crawl.log[-3000:]
    return crawl


def only(spans: list[ExportedSpan]) -> ExportedSpan:
    assert len(spans) == 1, spans
    return spans[0]


@pytest.mark.long
def test_one_trace_joins_the_request_of_a_spider_with_the_fetch_of_its_page(
    tmp_path: Path, project: Project, site: Site
) -> None:
    parent = "0af7651916cd43dd8448eb211c80319c"
    with (
        Collector() as collector,
        RunningServer(
            tmp_path / "data",
            allow_hosts=[site.host],
            environment=collector.environment,
            # A third request at once is refused, and sent again.
            options=["--slow-request", "0.000001", "--log-format", "json", "--extract-rate", "1"],
        ) as server,
    ):
        environment = {
            **collector.environment,
            **services(server),
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer collector-secret",
            "TRACEPARENT": f"00-{parent}-b7ad6b7169203331-01",
        }
        address = f"http://user:password-secret@{site.host}"
        done = crawl(project, address, "/page/1?token=query-secret,/page/2,/page/3,/gone", environment)
        assert done.errors == []
        assert server.stop() == 0

        roots = collector.named("scrapy.request")
        assert sorted(span.attributes["http.response.status_code"] for span in roots) == [200, 200, 200, 404]
        root = only([span for span in roots if "token" in span.attributes["url.full"]])
        assert (root.kind, root.parent, root.service, root.links) == ("internal", "", "shop", [parent])
        assert root.attributes["scrapy.spider"] == "pages"
        assert root.attributes["scrapy.job"] == "1/1/1"
        assert root.attributes["url.full"] == f"http://REDACTED:REDACTED@{site.host}/page/1?token=REDACTED"

        sent = max(collector.children(root), key=lambda span: span.attributes["http.response.status_code"] == 200)
        assert (sent.name, sent.kind, sent.trace) == ("POST /v1/extract", "client", root.trace)
        assert sent.attributes["url.full"] == f"{server.url}/v1/extract"
        assert f"127.0.0.1:{sent.attributes['server.port']}" in server.url
        served = only(collector.children(sent))
        assert (served.name, served.kind, served.service) == ("POST /v1/extract", "server", "scrapy-ext")
        assert served.attributes["http.route"] == "/v1/extract"
        assert served.attributes["http.response.status_code"] == 200
        fetched = only(collector.children(served))
        assert (fetched.name, fetched.kind, fetched.trace) == ("POST", "client", root.trace)
        assert fetched.attributes["url.full"] == f"http://{site.host}/page/1?token=REDACTED"
        attempts = [span for each in roots for span in collector.children(each) if span.name == sent.name]
        refused = [span for span in attempts if span.attributes["http.response.status_code"] == 429]
        assert {(span.is_error, span.attributes["error.type"]) for span in refused} == {
            (True, "/limits/over-user-limit")
        }
        again = [span for span in attempts if span.attributes.get("http.request.resend_count")]
        assert len(again) == len(refused) == len(attempts) - 4 > 0
        assert {span.trace for span in again} <= {span.trace for span in refused}
        # The log names the trace.
        assert f'"trace_id":"{root.trace}"' in server.log()

        # Items are written for many requests, in traces of their own, down to the database.
        written = only(collector.named("POST /items", "client"))
        assert written.parent == ""
        stored = only(collector.children(written))
        assert stored.name == "POST /items/{project}/{spider}/{job}"
        assert {span.name for span in collector.children(stored)} == {"commit"}

        assert collector.metrics["scrapy.stats.item_scraped_count"] == [
            ({"scrapy.spider": "pages", "scrapy.job": "1/1/1"}, 4)
        ]
        assert collector.metrics["scrapy.stats.extract_api.attempts"][0][1] == len(attempts)
        labels = {"resource": "v1", "method": "POST", "status": "2xx"}
        assert (labels, 4) in collector.metrics["scrapy_ext_http_requests"]
        durations = collector.metrics["scrapy_ext_http_request_duration_seconds"]
        assert next(sum(numbers) for each, numbers in durations if each == labels) == 4

        assert collector.faults == []
        exported = b"\n".join(collector.bodies)
        for secret in (server.extract_key, server.platform_key, "secret", "Basic ", "Bearer"):
            assert secret.encode() not in exported, secret
    # Nothing of the trace reaches the site.
    assert not [name for names in site.headers for name in names if name.lower() in ("traceparent", "tracestate")]


@pytest.mark.long
@pytest.mark.parametrize("fault", ["hanging", "away", "refusing"])
def test_a_collector_that_fails_does_not_disturb_a_crawl(project: Project, site: Site, fault: str) -> None:
    refusing = 400 if fault == "refusing" else 200
    with Collector() as healthy, Collector(status=refusing) as collector, socket.socket() as bound:
        environment = collector.environment
        if fault == "away":
            bound.bind(("127.0.0.1", 0))  # and does not listen; nobody else has the port meanwhile
            environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{bound.getsockname()[1]}"
        if fault == "hanging":
            collector.hangs.set()
        paths = ",".join(f"/page/{number}" for number in range(20))
        options = ("-s", f"SERVER_ALLOW_HOSTS={site.host}")
        seconds = []
        for each in (healthy.environment, environment):
            began = time.monotonic()
            done = crawl(project, f"http://{site.host}", paths, each, *options)
            seconds.append(time.monotonic() - began)
        undisturbed, disturbed = seconds
        assert disturbed < 3 * undisturbed + WAITS
    assert done.stat("item_scraped_count") == 20
    assert done.errors == []
    own = [line for line in done.log.splitlines() if re.search(r"\[scrapy_ext.telemetry\] WARNING", line)]
    assert 1 <= len(own) <= 2
    assert "opentelemetry." not in done.log
    assert "urllib3" not in done.log


@pytest.mark.parametrize("off", ["no collector", "OPENTELEMETRY_ENABLED", "OTEL_SDK_DISABLED"])
@pytest.mark.long(keep=1)
def test_nothing_is_sent_or_imported_when_it_is_off(project: Project, site: Site, off: str) -> None:
    with Collector() as collector:
        environment = {} if off == "no collector" else collector.environment
        options = ["-s", f"SERVER_ALLOW_HOSTS={site.host}"]
        if off == "OTEL_SDK_DISABLED":
            environment[off] = "true"
        if off == "OPENTELEMETRY_ENABLED":
            options += ["-s", f"{off}=False"]
        done = crawl(project, f"http://{site.host}", "/page/1", environment, *options)
        assert "imported: False" in done.log
        assert collector.bodies == []
        assert "[scrapy_ext.telemetry]" not in done.log
