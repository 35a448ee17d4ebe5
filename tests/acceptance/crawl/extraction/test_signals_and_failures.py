"""Handlers of Scrapy's signals, and errbacks, treat routed requests as direct ones."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.compatibility import scrapy as classes
from tests.support import faulty_service
from tests.support.crawls import Crawl, Project
from tests.support.faulty_service import HALF, NEVER, FaultyService, page, problem
from tests.support.planned_crawls import ALONE, IMPATIENT, KEY

SPIDER = """
import json

import scrapy
from scrapy import exceptions, signals

from scrapy_ext.compatibility import scrapy as classes

CHECKED = (
    "CannotResolveHostError", "DownloadConnectionRefusedError", "DownloadTimeoutError", "DownloadCancelledError",
    "DownloadFailedError", "ResponseDataLossError",
)


class Listening(scrapy.Spider):
    name = "listening"

    @classmethod
    def from_crawler(cls, crawler, **arguments):
        spider = super().from_crawler(crawler, **arguments)
        crawler.signals.connect(spider.headers_received, signal=signals.headers_received)
        crawler.signals.connect(spider.bytes_received, signal=signals.bytes_received)
        return spider

    async def start(self):
        for row in json.load(open("cases.json")):
            yield scrapy.Request(**row, callback=self.parse, errback=self.failed)

    def headers_received(self, headers, body_length, request, spider):
        request.meta["message"] = [headers.get("Content-Type", b"").decode(), body_length]
        if "stop_at_headers" in request.meta:
            raise exceptions.StopDownload(fail=request.meta["stop_at_headers"])

    def bytes_received(self, data, request, spider):
        request.meta["received"] = len(data)
        if "stop_at_bytes" in request.meta:
            raise exceptions.StopDownload(fail=request.meta["stop_at_bytes"])

    def parse(self, response):
        yield self.outcome(response.url, response)

    def failed(self, failure):
        response = getattr(failure.value, "response", None)
        checked = [name for name in CHECKED if failure.check(getattr(classes, name))]
        checked += ["StopDownload"] if failure.check(exceptions.StopDownload) else []
        yield {**self.outcome(failure.request.url, response), "checked": checked, "message": str(failure.value),
               "retry": failure.request.meta.get("retry_times", 0), "dont_retry": "dont_retry" in failure.request.meta,
               "type": type(failure.value).__name__}

    def outcome(self, url, response):
        if response is None:
            return {"url": url}
        meta = response.meta
        return {
            "url": url, "flags": response.flags, "size": len(response.body), "ip": response.ip_address,
            "certificate": response.certificate, "protocol": response.protocol,
            **{name: meta.get(name) for name in ("message", "received")},
            "delay": self.crawler.engine.downloader.slots[meta["download_slot"]].delay,
            "throttle": "autothrottle_dont_adjust_delay" in meta,
        }
"""
SITE = "https://site.example"


def crawled(folder: Path, cases: list[dict[str, Any]], environment: dict[str, str] | None = None, **settings: Any):
    project = Project(folder, SPIDER, ALONE + "".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    (folder / "cases.json").write_text(json.dumps(cases))
    crawl = project.crawl("listening", "-O", "items.json", environment=environment)
    text = (folder / "items.json").read_text()
    items = json.loads(text) if text else []
    return crawl, {item["url"].removeprefix(SITE): item for item in items}


def through(service: FaultyService) -> dict[str, Any]:
    return {"EXTRACT_API_URL": service.url, "EXTRACT_API_KEY": KEY, "EXTRACT_API_RETRY_POLICY": IMPATIENT}


class TestOneCrawl:
    @pytest.fixture(scope="class")
    @staticmethod
    def service() -> Iterator[FaultyService]:
        yield from faulty_service.running()

    @pytest.fixture(scope="class")
    @staticmethod
    def ended(service, tmp_path_factory) -> tuple[Crawl, dict[str, Any]]:
        causes = {
            "host-not-found": "/website/domain-unreachable",
            "connection-refused": "/website/domain-unreachable",
            "timeout": "/download/temporary-error",
            "cut-short": "/download/temporary-error",
            "too-large": "/download/internal-error",
        }
        for cause, kind in causes.items():
            answer = problem(kind, 0)
            headers = (*answer.headers, ("Extract-Cause", cause))
            service.plays(f"site.example/{cause}", replace(answer, headers=headers))
        for name, kind in {
            "unreachable": "/website/domain-unreachable",
            "banned": "/download/temporary-error",
            "never": "/download/internal-error",
            "slow": "/server/timed-out",
            "forbidden": "/download/domain-forbidden",
        }.items():
            service.plays(f"site.example/{name}", problem(kind, 0))
        service.plays("site.example/silent", NEVER)
        service.plays("site.example/half", HALF)
        service.plays("site.example/page", page(b"x" * 3000))
        cases = [
            *({"url": f"{SITE}/{name}"} for name in (*causes, "unreachable", "banned", "never", "slow", "forbidden")),
            {"url": f"{SITE}/silent", "meta": {"download_timeout": 0.3}},
            {"url": f"{SITE}/half"},
            {"url": f"{SITE}/page"},
            *(
                {"url": f"{SITE}/{where}-{fail}", "meta": {f"stop_at_{where}": fail}}
                for where in ("headers", "bytes")
                for fail in (True, False)
            ),
        ]
        folder = tmp_path_factory.mktemp("listening")
        throttle = {
            "AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.01, "AUTOTHROTTLE_MAX_DELAY": 0.05
        }  # fmt: skip
        return crawled(folder, cases, RETRY_TIMES=5, **throttle, **through(service))

    def test_the_crawl_ends_well(self, ended):
        assert (ended[0].returncode, ended[0].reason, ended[0].errors) == (0, "finished", [])

    @pytest.mark.parametrize(
        ("name", "checked"),
        [
            ("host-not-found", "CannotResolveHostError"),
            ("connection-refused", "DownloadConnectionRefusedError"),
            ("timeout", "DownloadTimeoutError"),
            ("cut-short", "ResponseDataLossError"),
            ("too-large", "DownloadCancelledError"),
            ("unreachable", "CannotResolveHostError"),
            ("banned", "DownloadFailedError"),
            ("never", "DownloadFailedError"),
            ("slow", "DownloadTimeoutError"),
            ("silent", "DownloadTimeoutError"),
        ],
    )
    def test_a_failure_of_the_site_is_the_class_of_scrapy_and_no_other(self, ended, name, checked):
        assert {getattr(classes, each) for each in ended[1][f"/{name}"]["checked"]} == {getattr(classes, checked)}

    def test_a_failure_of_the_service_is_none_of_them(self, ended):
        assert ended[1]["/forbidden"]["checked"] == ended[1]["/half"]["checked"] == []

    def test_scrapy_does_not_send_again_what_the_client_has_given_up(self, ended, service):
        attempts = {
            "host-not-found": 1, "connection-refused": 1, "timeout": 4, "cut-short": 4, "too-large": 1,
            "unreachable": 1, "banned": 4, "never": 1, "slow": 3, "silent": 3, "half": 3, "forbidden": 1,
        }  # fmt: skip
        assert {name: service.count(f"site.example/{name}") for name in attempts} == attempts
        assert ended[0].stat("retry/count") == 0
        assert not any(item.get("retry") or item.get("dont_retry") for item in ended[1].values())

    def test_handlers_get_headers_and_body(self, ended):
        item = ended[1]["/page"]
        assert (item["message"], item["received"], item["size"]) == (["text/html", 3000], 3000, 3000)
        assert (item["ip"], item["certificate"], item["protocol"]) == (None, None, None)

    @pytest.mark.parametrize("where", ["headers", "bytes"])
    def test_a_handler_can_stop_a_download(self, ended, where):
        to_callback, to_errback = ended[1][f"/{where}-False"], ended[1][f"/{where}-True"]
        assert to_errback["checked"] == ["StopDownload"]
        assert "checked" not in to_callback
        for item in (to_callback, to_errback):
            assert item["flags"] == ["extract-api", "download_stopped"]
            assert (item["size"] > 0) == (where == "bytes")

    def test_autothrottle_changes_their_delay(self, ended):
        # Towards the latency of the service, from AUTOTHROTTLE_START_DELAY.
        assert ended[1]["/page"]["delay"] not in (0, 0.01)
        assert not ended[1]["/page"]["throttle"]


def test_without_scrapys_retries_a_failure_is_final_and_a_limit_is_waited_for(tmp_path, service):
    service.plays("site.example/banned", problem("/download/temporary-error", 0))
    service.plays("site.example/half", HALF)
    service.plays("site.example/limited", problem("/limits/over-domain-limit", 0), page(b"<p>"))
    given = {name: value for name, value in through(service).items() if name != "EXTRACT_API_RETRY_POLICY"}
    cases = [{"url": f"{SITE}/{name}"} for name in ("banned", "half", "limited")]
    _, items = crawled(tmp_path, cases, RETRY_ENABLED=False, **given)
    assert [service.count(f"site.example/{name}") for name in ("banned", "half", "limited")] == [1, 1, 2]
    assert "checked" not in items["/limited"]


@pytest.mark.long
def test_retry_exceptions_that_name_ours_are_obeyed(tmp_path, service):
    service.plays("site.example/never", problem("/download/internal-error"))
    named = "scrapy_ext.client.extraction.errors.DownloadError"
    crawl, _ = crawled(
        tmp_path, [{"url": f"{SITE}/never"}], RETRY_EXCEPTIONS=[named], RETRY_TIMES=1, **through(service)
    )
    assert (service.count("site.example/never"), crawl.stat("retry/count")) == (2, 1)


@pytest.mark.long
def test_a_service_without_a_browser_fails_the_crawl_in_one_attempt_with_what_to_do(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"localhost:{listening.getsockname()[1]}"
        project = Project(
            tmp_path, SPIDER.replace("errback=self.failed", ""), ALONE + f"SERVER_ALLOW_HOSTS = [{host!r}]\n"
        )
        cases = [{"url": f"http://{host}/{n}", "meta": {"extract_api": {"browserHtml": True}}} for n in range(2)]
        (tmp_path / "cases.json").write_text(json.dumps([*cases, {"url": "http://localhost:9/"}]))
        crawl = project.crawl("listening", environment={"SCRAPY_EXT_BROWSER": "/nowhere/chromium"})
    assert (crawl.returncode != 0, crawl.reason) == (True, "extract_api_no_browser")
    assert crawl.stat("extract_api/attempts") == 3
    assert sum("playwright install chromium" in line for line in crawl.errors) == 4
    # Scrapy would put its own code between the request and the reason.
    assert "Traceback" not in crawl.log
    (refused,) = [line for line in crawl.errors if "localhost:9/>" in line]
    assert "SERVER_ALLOW_HOSTS = ['localhost:9']" in refused


@pytest.mark.long
def test_a_proxy_of_the_spider_is_not_ignored_without_a_word(tmp_path, service):
    cases = [{"url": f"{SITE}/{n}", "meta": {"proxy": "http://proxy.example:1"}} for n in range(2)]
    crawl, items = crawled(tmp_path, cases, **through(service))
    assert len(items) == 2
    (warning,) = [line for line in crawl.log.splitlines() if "meta key proxy" in line]
    assert "extract_api False" in warning
