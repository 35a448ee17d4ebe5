"""The head of a request by HTTP is that of Chromium: names in their case, order, and values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from scrapy_ext.server.extraction.browser import find_browser
from scrapy_ext.server.extraction.outgoing import LANGUAGE, accept_language, user_agent
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

pytestmark = pytest.mark.long
IMAGE = re.compile(r"image/\w+,")
BRANDS = re.compile(r', "(?:HeadlessChrome|Google Chrome)";v="\d+"')


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    target = Target().start()
    target.page("/head", "<p>text</p>")
    yield target
    target.stop()


@pytest.mark.parametrize("host", ["localhost", "shop.example"])
def test_the_head_of_a_request_by_http_is_that_of_chromium(target: Target, host: str) -> None:
    rules = f"MAP shop.example:80 127.0.0.1:{target.port}"
    identity = [f"--accept-lang={accept_language(LANGUAGE)}", f"--user-agent={user_agent()}"]
    arguments = ["--no-sandbox", f"--host-rules={rules}", *identity]
    url = target.url("/head") if host == "localhost" else f"http://{host}/head"
    with sync_playwright() as driver:
        path = find_browser(None, os.environ, Path(driver.chromium.executable_path))
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        browser.new_page().goto(url)
        browser.close()
    by_browser = target.calls_of("/head")[-1].headers
    with Service(allow_hosts=[target.host], connect_to=(f"shop.example:80=127.0.0.1:{target.port}",)) as service:
        service.result(url=url, httpResponseBody=True)
    by_http = target.calls_of("/head")[-1].headers
    assert _without_versions(by_http) == _without_versions(by_browser)


def _without_versions(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers without what differs between versions and builds of Chromium."""
    values = ((name, IMAGE.sub("", BRANDS.sub("", value))) for name, value in headers)
    return [(name, re.sub(r"\d+", "0", value)) for name, value in values]
