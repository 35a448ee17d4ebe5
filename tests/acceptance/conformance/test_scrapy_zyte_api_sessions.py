"""The session management of scrapy-zyte-api from PyPI, unchanged, against the real service."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support import forked
from tests.support.extraction_service import KEY, Service
from tests.support.handwritten_site import Call, Target

SETTINGS = """
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
ADDONS = {"scrapy_poet.Addon": 300, "scrapy_zyte_api.Addon": 500}
ROBOTSTXT_OBEY = False
DOWNLOAD_DELAY = 0
RETRY_TIMES = 50
ZYTE_API_SESSION_ENABLED = True
ZYTE_API_SESSION_POOL_SIZE = 2
ZYTE_API_SESSION_QUEUE_WAIT_TIME = 0.1
# Minutes: a browser may take long to begin a session on a machine that does much else.
ZYTE_API_SESSION_QUEUE_MAX_ATTEMPTS = 2000
ZYTE_API_SESSION_CHECKER = "shop.spiders.Checker"
"""

SPIDER = """
import asyncio

import scrapy


class Checker:
    def check(self, response, request):
        return b"used up" not in response.body


class ShopSpider(scrapy.Spider):
    name = "shop"
    pause = "0"

    async def start(self):
        for number in range(6):
            yield scrapy.Request(f"{self.site}/item?{number}", meta={"number": number})
            await asyncio.sleep(float(self.pause))

    def parse(self, response):
        yield {"number": response.meta["number"], "text": response.css("p::text").get()}
"""
#: Pages that one login is good for.
USES = 2


@pytest.fixture
def site() -> Iterator[Target]:
    """A shop whose pages need a login, each of which is good for some pages."""
    site = Target().start()
    logins = 0
    used: Counter[str] = Counter()

    async def answer(writer: asyncio.StreamWriter, page: str, *headers: str) -> None:
        data = f"<p>{page}</p>".encode()
        lines = "\r\n".join(("HTTP/1.1 200 X", "Content-Type: text/html", *headers, f"Content-Length: {len(data)}"))
        writer.write(lines.encode() + b"\r\n\r\n" + data)
        await writer.drain()

    async def login(_call: Call, writer: asyncio.StreamWriter) -> None:
        nonlocal logins
        logins += 1
        await answer(writer, "in", f"Set-Cookie: sid=login-{logins}; Path=/; HttpOnly")

    async def item(call: Call, writer: asyncio.StreamWriter) -> None:
        sid = (call.header("cookie") or "no login").removeprefix("sid=")
        used[sid] += 1
        await answer(writer, sid if used[sid] <= USES else "used up")

    site.handle("/login", login)
    site.handle("/item", item)
    yield site
    site.stop()


def crawled(
    folder: Path, service: Service, site: Target, *arguments: str, **settings: Any
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Items and stats of a crawl."""
    written = SETTINGS + "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    files = {
        "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
        "shop/__init__.py": "",
        "shop/settings.py": written,
        "shop/spiders/__init__.py": SPIDER,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = forked.run(
        [sys.executable, "-m", "scrapy", "crawl", "shop", "-a", f"site={site.url('')}", "-O", "items.jsonl",
         "-s", f"ZYTE_API_URL=http://127.0.0.1:{service.port}/v1/", *arguments],
        cwd=folder,
        env={**os.environ, "ZYTE_API_KEY": KEY},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert " ERROR: " not in done.stderr, done.stderr
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    stats = re.findall(r"'scrapy-zyte-api/sessions/([^']+)': (\d+)", done.stderr)
    return items, {name: int(value) for name, value in stats}


def every_item_has_a_login(items: list[dict[str, Any]]) -> Counter[str]:
    """Each page came once, by a login; the pages of each login."""
    assert sorted(item["number"] for item in items) == list(range(6))
    pages = Counter(item["text"] for item in items)
    assert all(name.startswith("login-") for name in pages)
    assert max(pages.values()) <= USES
    return pages


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="sessions"),
        pytest.param({"ZYTE_API_SESSION_COOKIE_MODE": True}, id="cookies", marks=pytest.mark.long),
    ],
)
def test_sessions_are_begun_kept_checked_and_replaced(tmp_path: Path, site: Target, settings: dict[str, Any]) -> None:
    with Service(allow_hosts=(site.host,)) as service:
        begin = {"url": site.url("/login"), "browserHtml": True}
        items, stats = crawled(tmp_path, service, site, ZYTE_API_SESSION_PARAMS=begin, **settings)
    pages = every_item_has_a_login(items)
    assert len(pages) >= 3
    assert stats["use/check-passed"] == 6
    assert stats["init/check-passed"] >= len(pages)
    assert not {"init/failed", "use/failed", "use/expired", "init/check-failed"} & stats.keys()


@pytest.mark.long
def test_a_session_that_has_expired_is_replaced(tmp_path: Path, site: Target) -> None:
    with Service(allow_hosts=(site.host,), limits=ServiceLimits(session_idle=0.5)) as service:
        begin = {"url": site.url("/login"), "httpResponseBody": True}
        given = {"ZYTE_API_SESSION_PARAMS": begin, "ZYTE_API_SESSION_POOL_SIZE": 1, "CONCURRENT_REQUESTS": 1}
        items, stats = crawled(tmp_path, service, site, "-a", "pause=0.6", **given)
    every_item_has_a_login(items)
    assert stats["use/expired"] >= 1


@pytest.mark.long
def test_sessions_beyond_the_limit_are_waited_for(tmp_path: Path, site: Target) -> None:
    with Service(allow_hosts=(site.host,), limits=ServiceLimits(sessions_of_key=2, session_idle=1.0)) as service:
        begin = {"url": site.url("/login"), "httpResponseBody": True}
        given = {"ZYTE_API_SESSION_PARAMS": begin, "ZYTE_API_SESSION_CREATION_RETRY_DELAY": 0.3}
        items, stats = crawled(tmp_path, service, site, **given)
    every_item_has_a_login(items)
    assert stats["init/over-limit"] >= 1
