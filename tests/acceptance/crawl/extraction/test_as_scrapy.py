"""A spider collects through the service what it collects without it: the same spider is run both ways."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.crawls import Crawl, Project

SPIDER = """
import json

import scrapy
from scrapy import signals

from scrapy_ext.compatibility import scrapy as classes

META = (
    "redirect_urls", "redirect_times", "redirect_reasons", "redirect_ttl", "retry_times", "depth", "download_slot"
)
SIGNALS = (
    "request_reached_downloader", "headers_received", "bytes_received", "response_downloaded",
    "request_left_downloader", "response_received",
)


class Both(scrapy.Spider):
    name = "both"
    handle_httpstatus_list = [410]

    @classmethod
    def from_crawler(cls, crawler, **arguments):
        spider = super().from_crawler(crawler, **arguments)
        spider.seen, spider.sent, spider.handlers = [], [], []
        for name in SIGNALS:
            def handler(request, name=name):
                spider.sent.append([name, request.method, request.url])
            spider.handlers.append(handler)
            crawler.signals.connect(handler, signal=getattr(signals, name))
        return spider

    async def start(self):
        for number, row in enumerate(json.load(open("cases.json"))):
            then = row.pop("then", None)
            yield scrapy.Request(
                **{**row, "url": row["url"] if row["url"].startswith("http") else self.site + row["url"]},
                callback=self.parse, errback=self.failed, dont_filter=True,
                cb_kwargs={"number": str(number), "then": then},
            )

    def parse(self, response, number, then):
        self.saw(number, response)
        if then:
            yield response.follow(
                then, self.parse, errback=self.failed, cb_kwargs={"number": number + "+", "then": None},
                dont_filter=True, meta={"cookiejar": response.meta.get("cookiejar")},
            )

    def saw(self, number, response, error=None):
        request, meta = response.request, response.meta
        self.seen.append({
            "number": number, "error": error, "url": response.url, "status": response.status,
            "kind": next(kind.__name__ for kind in type(response).__mro__ if kind.__module__.startswith("scrapy.")),
            "body": response.body.decode("latin-1"), "encoding": getattr(response, "encoding", None),
            "headers": sorted(
                [name.decode(), [value.decode() for value in values]]
                for name, values in response.headers.items() if name not in (b"Date", b"Content-Length")
            ),
            "flags": [flag for flag in response.flags if flag != "extract-api"],
            "request": [request.method, request.url, request.body.decode()],
            "cookie": request.headers.getlist("Cookie") and request.headers["Cookie"].decode(),
            "meta": {name: meta[name] for name in META if name in meta},
            "has_latency": isinstance(meta.get("download_latency"), float),
        })

    def failed(self, failure):
        error, number = failure.value, failure.request.cb_kwargs["number"]
        response = getattr(error, "response", None)
        if isinstance(response, scrapy.http.Response):
            self.saw(number, response, type(error).__name__)
        else:
            # Scrapy 2.14 has those of Twisted.
            kinds = [
                kind.__name__ for kind in type(error).__mro__
                if kind.__module__ == "scrapy.exceptions" or kind in vars(classes).values()
            ]
            self.seen.append({"number": number, "error": kinds, "meta": {"depth": failure.request.meta.get("depth")}})

    def closed(self, reason):
        stats = {
            name: value for name, value in self.crawler.stats.get_stats().items()
            if name.startswith(("downloader/re", "response_", "httperror/", "offsite/", "retry/", "scheduler/"))
            and not name.endswith("bytes")
        }
        seen = sorted(self.seen, key=lambda outcome: outcome["number"])
        json.dump({"seen": seen, "sent": self.sent, "stats": stats}, open(self.to, "w"))
"""
SETTINGS = """
PLATFORM_ENABLED = False
FRONTIER_ENABLED = False
ROBOTSTXT_OBEY = False
CONCURRENT_REQUESTS = 1
REDIRECT_MAX_TIMES = 4
REFERRER_POLICY = "no-referrer"
# The service names seconds to wait before each further attempt.
EXTRACT_API_RETRY_POLICY = {"/download/temporary-error": 2, "network": {"wait": 0.01, "longest": 0.01}}
"""

REDIRECTS: list[dict[str, Any]] = [
    {"url": "/to?/page"},
    {"url": "/to?/page%23there"},
    {"url": "/to?/page#here"},
    {"url": "/chain/3"},
    {"url": "/chain/5"},
    {"url": "/to?/page", "meta": {"dont_redirect": True}},
    {"url": "/to?/page", "meta": {"handle_httpstatus_list": [302]}},
    {"url": "/to?/page&301", "meta": {"handle_httpstatus_list": [302]}},
    {"url": "/to?/page", "meta": {"handle_httpstatus_all": True}},
    {"url": "/to?/echo&301", "method": "POST", "body": "a=1"},
    {"url": "/to?/echo&307", "method": "POST", "body": "a=1"},
    {"url": "/to?/echo&303", "method": "PUT", "body": "a=1"},
    {"url": "/to?/page", "method": "HEAD"},
    {"url": "/to?mailto:a@b.example"},
    {"url": "/cookie-and-to?/echo", "meta": {"cookiejar": "way"}},
    {"url": "/refresh"},
]
PAGES: list[dict[str, Any]] = [
    {"url": "/page?a=b c#part"},
    {"url": ""},
    {"url": "/status?404"},
    {"url": "/status?404", "meta": {"handle_httpstatus_list": [404]}},
    {"url": "/status?410"},
    {"url": "/status?503", "meta": {"dont_retry": True}},
    {"url": "/once-503"},
    {"url": "/status?204", "meta": {"handle_httpstatus_all": True}},
    {"url": "/several"},
    {"url": "/cookie", "meta": {"cookiejar": "one"}, "then": "/echo"},
    {"url": "/echo", "cookies": {"a": "1"}, "meta": {"cookiejar": "two"}},
    {"url": "/echo", "cookies": [{"name": "a", "value": "1", "path": "/elsewhere"}], "meta": {"cookiejar": "three"}},
    {"url": "/echo", "headers": {"Cookie": "a=1"}, "meta": {"dont_merge_cookies": True}},
    {"url": "/large", "meta": {"download_maxsize": 1000}},
]
FAILURES: list[dict[str, Any]] = [
    {"url": "http://nowhere.invalid/"},
    {"url": "/cut"},
    {"url": "/dropped"},
    {"url": "/never", "meta": {"download_timeout": 0.5}},
]


class Site:
    """The site, on the same port for both crawls."""

    def __init__(self) -> None:
        site = self
        self.hits: dict[str, int] = {}
        self.over = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                site.hits[self.path] = site.hits.get(self.path, 0) + 1
                parts = urlsplit(self.path)
                if parts.path == "/never":
                    site.over.wait(60)
                if parts.path in ("/never", "/dropped"):
                    self.close_connection = True
                    return
                status, text, headers = site.answer(parts.path, parts.query, self, body)
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Length", str(len(text) + 9 * (parts.path == "/cut")))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else text)
                if parts.path == "/cut":
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        for method in ("POST", "PUT", "HEAD"):
            setattr(Handler, f"do_{method}", Handler.do_GET)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that does not wait breaks its connection."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.host = f"localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(
        self, path: str, query: str, call: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, bytes, list[tuple[str, str]]]:
        if path in ("/to", "/cookie-and-to"):
            target, _, status = query.partition("&")
            cookie = [("Set-Cookie", "way=1; Path=/")] if path != "/to" else []
            return int(status or 302), b"moved", [("Location", target.replace("%23", "#")), *cookie]
        if path.startswith("/chain/") and not path.endswith("/0"):
            return 302, b"", [("Location", f"/chain/{int(path[7:]) - 1}")]
        if path == "/refresh":
            return 200, b'<meta http-equiv="refresh" content="0; url=/page">', []
        if path == "/status":
            return int(query), b"" if query == "204" else b"status", []
        if path == "/once-503":
            return (503 if self.hits["/once-503"] == 1 else 200), b"at last", []
        if path == "/several":
            return 200, b"several", [("X-A", "1"), ("Link", "<a>"), ("X-A", "2")]
        if path == "/cookie":
            return 200, b"set", [("Set-Cookie", "id=7; Path=/")]
        if path == "/large":
            return 200, b"x" * 5000, []
        if path == "/echo":
            seen = {"method": call.command, "body": body.decode(), "cookie": call.headers.get("Cookie")}
            return 200, json.dumps(seen).encode(), []
        if path == "/headers":
            return 200, json.dumps({name.lower(): value for name, value in call.headers.items()}).encode(), []
        return 200, b"<html><title>page</title></html>", []


class Compared:
    """Both crawls of some cases."""

    def __init__(self, folder: Path, site: Site, cases: list[dict[str, Any]], settings: str = SETTINGS) -> None:
        source = f"{settings}\nSERVER_ALLOW_HOSTS = [{site.host!r}]\n"
        self.project = Project(folder, SPIDER, source)
        (folder / "cases.json").write_text(json.dumps(cases))
        self.cases = cases
        self.site = site
        self.direct = self.crawl("direct", "-s", "EXTRACT_API_ENABLED=False")
        self.routed = self.crawl("routed")

    def crawl(self, name: str, *options: str) -> dict[str, Any]:
        self.site.hits.clear()
        to = self.project.folder / f"{name}.json"
        arguments = ("-a", f"site=http://{self.site.host}", "-a", f"to={to}")
        crawl: Crawl = self.project.crawl("both", *arguments, *options)
        assert (crawl.returncode, crawl.reason) == (0, "finished"), crawl.log[-3000:]
        seen: dict[str, Any] = json.loads(to.read_text())
        return seen


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.over.set()
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture(scope="module")
def compared(tmp_path_factory, site: Site) -> Compared:
    return Compared(tmp_path_factory.mktemp("compared"), site, [*REDIRECTS, *PAGES, *FAILURES])


def outcomes(crawl: dict[str, Any]) -> dict[str, Any]:
    return {outcome["number"]: outcome for outcome in crawl["seen"]}


def test_each_request_has_the_response_or_the_error_that_it_has_without_the_service(compared: Compared) -> None:
    direct, routed = outcomes(compared.direct), outcomes(compared.routed)
    assert direct.keys() == routed.keys()
    for number, outcome in direct.items():
        assert routed[number] == outcome, compared.cases[int(number.rstrip("+"))]


def test_the_signals_of_a_download_are_sent_in_their_order(compared: Compared) -> None:
    # Those of what failed are sent for each attempt; the client makes its attempts by itself.
    urls = {f"http://{compared.site.host}{case['url'].partition('#')[0]}" for case in (*REDIRECTS, *PAGES)}
    direct, routed = (
        [entry for entry in crawl["sent"] if entry[2] in urls and "/large" not in entry[2]]
        for crawl in (compared.direct, compared.routed)
    )
    for url in urls:
        assert [entry[:2] for entry in routed if entry[2] == url] == [entry[:2] for entry in direct if entry[2] == url]


def test_the_stats_of_the_responses_are_the_same(compared: Compared) -> None:
    names = ("downloader/response", "response_", "httperror/", "offsite/")
    direct, routed = (
        {name: value for name, value in crawl["stats"].items() if name.startswith(names)}
        for crawl in (compared.direct, compared.routed)
    )
    assert routed == direct


@pytest.mark.parametrize("setting", ["REDIRECT_ENABLED = False", "METAREFRESH_ENABLED = False"])
@pytest.mark.full
def test_redirects_obey_the_settings(tmp_path, site: Site, setting: str) -> None:
    compared = Compared(tmp_path, site, REDIRECTS, f"{SETTINGS}\n{setting}\n")
    assert compared.routed["seen"] == compared.direct["seen"]


@pytest.mark.long
def test_a_header_of_none_is_not_sent(tmp_path, site: Site) -> None:
    none = {"User-Agent": None, "Accept-Language": None}
    settings = f"{SETTINGS}\nDEFAULT_REQUEST_HEADERS = {{'Accept': None, 'X-Own': '1'}}\n"
    compared = Compared(tmp_path, site, [{"url": "/headers"}, {"url": "/headers", "headers": none}], settings)
    some, fewer = (json.loads(outcome["body"]) for outcome in compared.routed["seen"])
    assert {"user-agent", "accept-language", "x-own"} <= some.keys()
    assert not {"user-agent", "accept-language", "accept"} & fewer.keys()
    assert "accept" not in some
