"""Cookies of routed requests, over HTTP and in a real browser, are in Scrapy's jar as those of direct requests are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.crawls import Crawl, Project
from tests.support.handwritten_site import Call, Target
from tests.support.planned_crawls import ALONE
from tests.support.servers import ForkedServer, RunningServer

SPIDER = """
import json

import scrapy


class Steps(scrapy.Spider):
    name = "steps"

    async def start(self):
        for step in json.load(open("steps.json")):
            request = scrapy.Request(self.site + step.pop("path"), **step)
            response = await self.crawler.engine.download_async(request)
            yield {"status": response.status, "text": response.text}
"""
BROWSER = {"extract_api": {"browserHtml": True}}


@pytest.fixture(scope="module")
def site() -> Iterator[Target]:
    site = Target().start()

    async def login(call: Call, writer: asyncio.StreamWriter) -> None:
        good = b"user=me&password=pw" in call.body
        cookie = b"Set-Cookie: sid=secret; HttpOnly\r\n" if good else b""
        writer.write(b"HTTP/1.1 302 X\r\nLocation: /home\r\n%bContent-Length: 0\r\n\r\n" % cookie)
        await writer.drain()

    async def home(call: Call, writer: asyncio.StreamWriter) -> None:
        sent = sorted((call.header("cookie") or "nothing").split("; "))
        page = f"<p>{' '.join(sent)}</p>".encode()
        status = 200 if "sid=secret" in sent else 403
        head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n"
        writer.write(head.encode() + page)
        await writer.drain()

    async def show(call: Call, writer: asyncio.StreamWriter) -> None:
        page = (call.header("cookie") or "nothing").encode()
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page))
        await writer.drain()

    site.handle("/account/show", show)
    site.page("/account/login", "<p>in", Set_Cookie="sid=1; Path=/account; HttpOnly")
    site.page("/account/again", "<p>in", Set_Cookie="sid=2; Path=/account")
    site.page("/account/logout", "<p>out", Set_Cookie="sid=x; Path=/account; Max-Age=0")
    site.page("/whole", "<p>in", Set_Cookie="sid=1; Path=/")
    site.handle("/login", login)
    site.handle("/home", home)
    site.page("/by-script", "<script>document.cookie = 'sid=secret'; document.cookie = 'seen=1; max-age=900'</script>")
    site.page("/changed", "<script>document.cookie = 'sid=secret'</script>")
    site.page("/logout", "<p>bye", Set_Cookie="sid=; Max-Age=0")
    site.page("/hop", "", 302, Location="/end", Set_Cookie="hop=1; Path=/")
    site.page("/old", "<p>old", Set_Cookie="sid=old; Path=/")
    site.page("/end", "<p>end")
    yield site
    site.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, site: Target) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("server"), allow_hosts=[site.host]) as server:
        yield server


def crawled(
    folder: Path, site: Target, server: RunningServer, steps: list[dict[str, Any]], **settings: Any
) -> tuple[list[dict[str, Any]], Crawl]:
    given = {"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": server.extract_key, **settings}
    project = Project(folder, SPIDER, ALONE + "".join(f"{name} = {value!r}\n" for name, value in given.items()))
    (folder / "steps.json").write_text(json.dumps(steps))
    crawl = project.crawl("steps", "-a", f"site={site.url('')}", "-O", "items.json")
    assert (crawl.returncode, crawl.errors) == (0, []), crawl.log[-5000:]
    return json.loads((folder / "items.json").read_text()), crawl


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["text"].replace("<html><head></head><body>", "").replace("</body></html>", "") for item in items]


def form(**more: Any) -> dict[str, Any]:
    return {"path": "/login", "method": "POST", "body": "user=me&password=pw", **more}


@pytest.mark.long
def test_a_spider_that_logs_in_works_routed_as_it_does_direct(
    tmp_path: Path, site: Target, server: RunningServer
) -> None:
    steps = [{"path": "/home"}, form(), {"path": "/home"}, {"path": "/hop"}, {"path": "/home"}]
    for step in steps[:1]:
        step["meta"] = {"handle_httpstatus_list": [403]}
    routed, _ = crawled(tmp_path / "routed", site, server, steps)
    direct, _ = crawled(tmp_path / "direct", site, server, steps, EXTRACT_API_ENABLED=False)
    assert routed == direct
    assert texts(routed) == [
        "<p>nothing</p>",
        "<p>sid=secret</p>",
        "<p>sid=secret</p>",
        "<p>end",
        "<p>hop=1 sid=secret</p>",
    ]


@pytest.mark.long
def test_a_cookie_keeps_its_path_so_that_a_page_can_change_and_delete_it(
    tmp_path: Path, site: Target, server: RunningServer
) -> None:
    paths = ["whole", "account/login", "account/again", "account/show", "account/logout", "account/show"]
    steps = [
        {"path": f"/{path}", "dont_filter": True, "meta": {"cookiejar": number, **meta}}
        for number, meta in enumerate(({}, BROWSER))
        for path in paths
    ]
    routed, _ = crawled(tmp_path / "routed", site, server, steps)
    direct, _ = crawled(tmp_path / "direct", site, server, steps, EXTRACT_API_ENABLED=False)
    for crawl in (routed, direct):
        shown = [text for text, step in zip(texts(crawl), steps, strict=True) if step["path"].endswith("show")]
        assert shown == ["sid=2; sid=1", "sid=1"] * 2


@pytest.mark.long
def test_cookies_of_a_browser_are_sent_by_http_and_come_from_it(
    tmp_path: Path, site: Target, server: RunningServer
) -> None:
    # By scripts, by a redirect, changed and deleted; each is in the jar once, with its last value.
    steps = [
        {"path": "/by-script", "meta": BROWSER},
        {"path": "/home"},
        {"path": "/hop", "meta": BROWSER},
        {"path": "/home", "meta": BROWSER},
        {"path": "/logout", "meta": BROWSER},
        {"path": "/home"},
        {"path": "/old"},
        {"path": "/changed", "meta": BROWSER},
        {"path": "/home"},
    ]
    found, crawl = crawled(tmp_path, site, server, steps, COOKIES_DEBUG=True)
    read = texts(found)
    assert read[1] == "<p>seen=1 sid=secret</p>"
    assert read[3] == "<p>hop=1 seen=1 sid=secret</p>"
    assert read[5] == "<p>hop=1 seen=1</p>"
    assert read[8] == "<p>hop=1 seen=1 sid=secret</p>"
    assert f"Received cookies from: <200 {site.url('/by-script')}>" in crawl.log


@pytest.mark.long
def test_jars_are_apart_and_may_be_left_alone(tmp_path: Path, site: Target, server: RunningServer) -> None:
    other: dict[str, Any] = {**BROWSER, "cookiejar": "other"}
    alone: dict[str, Any] = {**BROWSER, "dont_merge_cookies": True}
    steps = [
        {"path": "/by-script", "meta": other},
        {"path": "/hop", "meta": alone},
        {"path": "/home", "meta": {"handle_httpstatus_list": [403]}},
        {"path": "/home", "meta": {"cookiejar": "other"}},
    ]
    found, _ = crawled(tmp_path, site, server, steps)
    assert texts(found)[2:] == ["<p>nothing</p>", "<p>seen=1 sid=secret</p>"]


@pytest.mark.long
def test_without_cookies_none_are_kept(tmp_path: Path, site: Target, server: RunningServer) -> None:
    steps = [{"path": "/by-script", "meta": BROWSER}, {"path": "/home", "meta": {"handle_httpstatus_list": [403]}}]
    found, _ = crawled(tmp_path, site, server, steps, COOKIES_ENABLED=False)
    assert texts(found)[1] == "<p>nothing</p>"


def test_extensions_are_refused_where_the_document_is_kept_to(
    tmp_path: Path, site: Target, server: RunningServer
) -> None:
    given = {"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": server.extract_key, "EXTRACT_API_STRICT": True}
    project = Project(tmp_path, SPIDER, ALONE + "".join(f"{name} = {value!r}\n" for name, value in given.items()))
    steps = [{"path": "/hop"}, {"path": "/end", "meta": {"extract_api": {"device": "mobile"}}}]
    (tmp_path / "steps.json").write_text(json.dumps(steps))
    site.calls.clear()
    crawl = project.crawl("steps", "-a", f"site={site.url('')}", "-O", "items.json")
    assert "device: is an extension of the included service, which EXTRACT_API_STRICT excludes" in crawl.log
    # The service has followed the redirect: it was not asked for the redirect itself.
    assert [call.path for call in site.calls] == ["/hop", "/end"]
