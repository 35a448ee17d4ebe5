"""Bans in the browser: challenges that scripts pass, CAPTCHAs, and pages through proxies."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from scrapy_ext.server.net.pool import Scope
from tests.acceptance.server.extraction.browser.conftest import LIMITS
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Call, Target, self_signed
from tests.support.refusing_site import CHALLENGE, COOKIE, ENDLESS, RefusingSite
from tests.support.upstream_proxy import Upstream

#: Addresses of this machine from which the proxies connect.
SOURCES = ("127.0.0.21", "127.0.0.22", "127.0.0.23")


@pytest.fixture(scope="module")
def refusing() -> Iterator[RefusingSite]:
    with RefusingSite() as site:
        yield site


@pytest.fixture(scope="module")
def serving(refusing: RefusingSite) -> Iterator[Service]:
    with Service(allow_hosts=(refusing.host,), limits=LIMITS) as running:
        yield running


@pytest.fixture(autouse=True)
def _clean(refusing: RefusingSite) -> None:
    refusing.banned, refusing.challenges = set(), False
    refusing.calls.clear()
    refusing.sent.clear()


def retries(service: Service) -> dict[str, float]:
    families = {family.name: family for family in service.service.metrics()}
    return {labels["reason"]: number for labels, number in families["scrapy_ext_extraction_retries_total"].samples}


def test_an_http_request_that_is_challenged_gets_the_page_by_browser(refusing: RefusingSite, serving: Service) -> None:
    refusing.challenges = True
    before = retries(serving).get("browser", 0)
    result = serving.result(
        url=f"{refusing.url}/page/1", httpResponseBody=True, httpResponseHeaders=True, responseCookies=True
    )
    # The document as the site sent it, not as the browser shows it.
    body = base64.b64decode(result["httpResponseBody"])
    assert body == b"<html><title>/page/1</title><body><h1>Page /page/1</h1></body></html>"
    assert result["statusCode"] == 200
    assert {"name": "content-length", "value": str(len(body))} in [
        {**header, "name": header["name"].lower()} for header in result["httpResponseHeaders"]
    ]
    assert COOKIE in [f"{cookie['name']}={cookie['value']}" for cookie in result["responseCookies"]]
    assert retries(serving)["browser"] == before + 1


@pytest.mark.long
def test_extraction_by_http_of_a_challenged_page_has_the_page(refusing: RefusingSite, serving: Service) -> None:
    refusing.challenges = True
    options: dict[str, Any] = {"pageContent": True, "pageContentOptions": {"extractFrom": "httpResponseBody"}}
    result = serving.result(url=f"{refusing.url}/page/2", **options)
    assert "Page /page/2" in str(result["pageContent"])


@pytest.mark.parametrize(
    "fields",
    [
        {"browserHtml": True},
        {"pageContent": True},
        {"browserHtml": True, "actions": [{"action": "waitForSelector", "selector": {"type": "css", "value": "h1"}}]},
    ],
    ids=["html", "extraction", "actions"],
)
def test_a_page_is_read_behind_its_challenge(refusing: RefusingSite, serving: Service, fields: dict[str, Any]) -> None:
    refusing.challenges = True
    result = serving.result(url=f"{refusing.url}/page/3", **fields)
    assert result["statusCode"] == 200
    assert "Page /page/3" in str(result)
    assert all(action["status"] == "success" for action in result.get("actions", ()))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("output", ["httpResponseBody", "browserHtml", "screenshot"])
def test_a_captcha_is_520_with_retry_after(refusing: RefusingSite, output: str) -> None:
    refusing.banned = {"127.0.0.1"}
    with Service(allow_hosts=(refusing.host,), limits=LIMITS) as service:
        answer = service.extract(url=f"{refusing.url}/page/4", **{output: True})
        calls = refusing.calls["127.0.0.1"]
        again = service.extract(url=f"{refusing.url}/page/4", httpResponseBody=True)
    assert (answer.status, answer.json["type"]) == (520, "/download/temporary-error")
    assert answer.headers["retry-after"] == "30"
    assert answer.headers["extract-cause"] == "ban"
    by_http = output == "httpResponseBody"
    assert ("Tried: direct, the browser." if by_http else "Tried: direct.") in answer.json["detail"]
    assert calls == 1 + by_http
    # A page that the browser did not get lately is not loaded again in place of an HTTP request.
    assert again.status == 520
    assert refusing.calls["127.0.0.1"] == calls + (1 if by_http else 2)


@pytest.mark.long
def test_a_page_arrives_by_the_browser_through_the_proxy_that_is_left(refusing: RefusingSite, tmp_path: Path) -> None:
    refusing.banned = set(SOURCES[:2])
    certificate = self_signed(tmp_path)
    with ExitStack() as stack:
        # Chromium itself knows no SOCKS5 with a password.
        kinds: tuple[dict[str, Any], ...] = ({}, {"scheme": "https", "tls": certificate}, {"scheme": "socks5"})
        proxies = [
            stack.enter_context(Upstream(source=source, **kind)) for source, kind in zip(SOURCES, kinds, strict=True)
        ]
        rules = tuple(f"*:*={each.address}{'?verify=no' if each.scheme == 'https' else ''}" for each in proxies)
        service = stack.enter_context(Service(allow_hosts=(refusing.host,), proxies=rules, limits=LIMITS))
        for number in range(4):
            result = service.result(url=f"{refusing.url}/page/{number}", browserHtml=True)
            assert f"Page /page/{number}" in result["browserHtml"]
    assert all(refusing.calls[source] <= 1 for source in SOURCES[:2])
    assert refusing.calls["127.0.0.1"] == 0


@pytest.fixture
def rules() -> Iterator[tuple[str, ...]]:
    with ExitStack() as stack:
        running = [stack.enter_context(Upstream(source=source)) for source in SOURCES]
        yield tuple(f"*:*={proxy.address}?name=p{number}" for number, proxy in enumerate(running))


@pytest.mark.long
def test_requests_at_once_through_proxies_pass_a_challenge_and_reuse_its_cookies(
    refusing: RefusingSite, rules: tuple[str, ...]
) -> None:
    refusing.challenges = True
    with Service(allow_hosts=(refusing.host,), proxies=rules, limits=LIMITS) as service:

        def status(number: int) -> int:
            time.sleep(0.2 * number)
            return service.extract(url=f"{refusing.url}/page/{number}", httpResponseBody=True).status

        with ThreadPoolExecutor(10) as pool:
            assert list(pool.map(status, range(10))) == [200] * 10
        assert service.service.pool.cooling() == 0
        # By now HTTP has the cookies of each proxy that is used, or gets them once.
        before = retries(service)["browser"]
        for number in range(12):
            assert status(0) == 200, number
        assert retries(service)["browser"] - before <= len(rules)
        # Another organisation does not get them.
        assert [scope.organisation for scope in service.service._bans.learned._cleared] == ["tests"]


@pytest.mark.long
def test_a_challenge_of_a_post_does_not_stop_pages_of_the_browser(
    refusing: RefusingSite, rules: tuple[str, ...]
) -> None:
    refusing.challenges = True
    with Service(allow_hosts=(refusing.host,), proxies=rules, limits=LIMITS) as service:
        for number in range(4):
            fields = {"httpRequestMethod": "POST", "httpResponseBody": True}
            assert service.extract(url=f"{refusing.url}/page/{number}", **fields).status == 520
        assert service.result(url=f"{refusing.url}/page/5", browserHtml=True)["statusCode"] == 200


def test_after_a_429_that_bans_the_browser_is_no_second_further_try(
    refusing: RefusingSite, rules: tuple[str, ...]
) -> None:
    refusing.banned, ban = set(SOURCES), refusing.ban
    refusing.ban = (429, "<title>Slow down</title><p>Too many requests from your address. Are you a robot?")
    try:
        with Service(allow_hosts=(refusing.host,), proxies=rules, limits=LIMITS) as service:
            assert service.extract(url=f"{refusing.url}/page/1", httpResponseBody=True).status == 520
            assert sorted(refusing.calls.values()) == [1, 1]
    finally:
        refusing.ban = ban


@pytest.mark.long
def test_a_session_keeps_its_proxy_where_the_browser_is_the_first_try(
    refusing: RefusingSite, rules: tuple[str, ...]
) -> None:
    with Service(allow_hosts=(refusing.host,), proxies=rules, limits=LIMITS) as service:
        scope, bans = Scope(refusing.host, "http", "tests"), service.service._bans
        for number in range(4):
            fields: dict[str, Any] = {"session": {"id": str(uuid4())}, "httpResponseBody": True}
            refusing.calls.clear()
            service.result(url=f"{refusing.url}/page/{number}", **fields)
            for name in ("one", "two", "three"):
                bans.learned.passed_by_browser(scope, (name, number))
            assert bans.learned.is_challenged(scope)
            service.result(url=f"{refusing.url}/page/{number}", **fields)
            assert list(refusing.calls.values()) == [2]
            bans.learned.passed_by_http(scope)


@pytest.mark.long
def test_a_page_that_keeps_itself_busy_is_loaded_once_and_not_the_fault_of_a_proxy(
    site: Target, rules: tuple[str, ...]
) -> None:
    url = site.page("/busy", "<h1>Busy</h1><script>setTimeout(() => { for (;;); }, 100)</script>")
    limits = msgspec.structs.replace(LIMITS, load=2, read_page=2)
    with Service(allow_hosts=(site.host,), proxies=rules, limits=limits) as service:
        answer = service.extract(url=url, browserHtml=True)
        assert (answer.status, answer.headers["extract-cause"]) == (520, "timeout")
        assert len(site.calls_of("/busy")) == 1
        assert sum(each.failed for each in service.service.pool.totals()) == 0


@pytest.mark.long
@pytest.mark.parametrize("wait", ["setTimeout(() => location.reload(), 300)", "location.reload()"])
def test_a_refusal_behind_a_challenge_is_the_result_of_http(site: Target, wait: str) -> None:
    challenge = CHALLENGE.replace("setTimeout(() => location.reload(), 300)", wait).encode()

    async def handler(call: Call, writer: asyncio.StreamWriter) -> None:
        page = b"<h1>For members only</h1>" if COOKIE in (call.header("cookie") or "") else challenge
        head = b"HTTP/1.1 403 X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page)
        writer.write(head + page)
        await writer.drain()

    url = site.handle("/members", handler)
    with Service(allow_hosts=(site.host,), limits=LIMITS) as service:
        for _ in range(2):
            result = service.result(url=url, httpResponseBody=True)
            assert (result["statusCode"], base64.b64decode(result["httpResponseBody"])) == (
                403,
                b"<h1>For members only</h1>",
            )
        assert not list(service.service._bans.learned._in_vain.cooling())


@pytest.mark.long
def test_a_suspicion_of_the_browser_alone_is_the_result(site: Target) -> None:
    url = site.page("/members", "<h1>For members only</h1>", 403)
    with Service(allow_hosts=(site.host,), domain_rate=0.0001, limits=LIMITS) as service:
        for name in ("one", "two", "three"):
            service.service._bans.learned.passed_by_browser(Scope(site.host, "http", "tests"), name)
        # The rate leaves no further try by HTTP.
        assert service.result(url=url, httpResponseBody=True)["statusCode"] == 403
        assert len(site.calls_of("/members")) == 1


@pytest.mark.long
def test_a_page_whose_html_is_large_has_a_screenshot(site: Target) -> None:
    url = site.page("/large", "<h1>Large</h1>" + "<p>word</p>" * 1000)
    with Service(allow_hosts=(site.host,), limits=msgspec.structs.replace(LIMITS, html_bytes=5000)) as service:
        assert service.result(url=url, screenshot=True)["screenshot"]
        assert service.extract(url=url, screenshot=True, browserHtml=True).status == 521


@pytest.mark.long
def test_a_pdf_that_is_fetched_after_the_browser_counts_once_more(site: Target) -> None:
    url = site.page("/file", b"%PDF-1.4", Content_Type="application/pdf")
    with Service(allow_hosts=(site.host,), domain_rate=0.0001, limits=LIMITS) as service:
        answer = service.extract(url=url, pageContent=True)
        assert (answer.status, answer.json["type"]) == (429, "/limits/over-domain-limit")
        assert len(site.calls_of("/file")) == 1


@pytest.mark.long
def test_a_page_without_javascript_does_not_wait_for_a_challenge(refusing: RefusingSite) -> None:
    refusing.banned, ban, refusing.ban = {"127.0.0.1"}, refusing.ban, (403, ENDLESS)
    limits = msgspec.structs.replace(LIMITS, challenge=600)
    try:
        with Service(allow_hosts=(refusing.host,), limits=limits) as service:
            # The wait would end the connection of the test.
            answer = service.extract(url=f"{refusing.url}/page/1", browserHtml=True, javascript=False)
        assert (answer.status, answer.headers["extract-cause"]) == (520, "ban")
    finally:
        refusing.ban = ban


@pytest.mark.long
def test_pages_of_a_site_whose_challenges_do_not_pass_wait_a_shorter_time(
    refusing: RefusingSite, rules: tuple[str, ...]
) -> None:
    refusing.banned, ban, refusing.ban = set(SOURCES), refusing.ban, (403, ENDLESS)
    limits = msgspec.structs.replace(LIMITS, challenge=4)
    times = []
    try:
        with Service(allow_hosts=(refusing.host,), proxies=rules, limits=limits) as service:
            for number in (1, 2, 3, 4, 4):
                begun = time.monotonic()
                assert service.extract(url=f"{refusing.url}/page/{number}", browserHtml=True).status == 520
                times.append(time.monotonic() - begun)
            learned = service.service._bans.learned
            assert [scope.by for scope, _ in learned._in_vain.cooling()] == ["browser"]
    finally:
        refusing.ban = ban
    # The first try of a page waits for 4 s, its others for one.
    assert min(times[:3]) >= 6
    assert times[4] < min(times[:3]) / 2
