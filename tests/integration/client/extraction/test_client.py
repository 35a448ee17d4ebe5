from __future__ import annotations

import asyncio
import base64
import time
import traceback
from collections.abc import AsyncIterator

import msgspec
import pytest

from scrapy_ext.api.extraction import Problem
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import Bounds, ExtractClient, ExtractTransport, Limiter, RequestAttempt, RetryPolicy
from scrapy_ext.client.extraction.errors import (
    DomainForbiddenError,
    ExtractError,
    KeyRefusedError,
    LimitError,
    ServiceError,
    UnexpectedAnswerError,
    UnreachableServiceError,
)
from scrapy_ext.crawl.extraction.download import as_scrapys
from tests.support.eventually import eventually_async
from tests.support.played_server import PlayedServer, Reply, Request, json_reply

KEY = "0123456789abcdef0123456789abcdef"
A, B = "a.example", "b.example"
RESULT = {"url": "https://a.example/", "browserHtml": "<p>"}
#: The default table with waits that a test can afford.
FAST = RetryPolicy.merged(
    {
        name: {"wait": 0.01, "longest": 0.01}
        for name in ("network", "unexpected-answer", "5xx", "/server/internal", "/server/timed-out")
    }
)


def fields(domain: str = A, **more) -> dict:
    return {"url": f"https://{domain}/", "browserHtml": True, **more}


def problem(type: str, retry_after: int | None = None) -> Reply:
    problem = Problem.of(type, "because", blocked_domain=A if "forbidden" in type else None)
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Reply(problem.status, msgspec.json.encode(problem), "application/problem+json", headers)


@pytest.fixture
def attempts() -> list[RequestAttempt]:
    return []


@pytest.fixture
async def client(server: PlayedServer, attempts: list[RequestAttempt]) -> AsyncIterator[ExtractClient]:
    transport = ExtractTransport(f"{server.url}/v1", KEY, 30.0)
    client = ExtractClient(transport, Limiter(16, 8), FAST, observe=attempts.append)
    yield client
    await client.close()


async def test_the_fields_are_posted_and_the_result_comes_back(client, server, attempts):
    server.script = [json_reply(RESULT)]
    assert await client.extract(fields(), domain=A) == RESULT
    (sent,) = server.requests
    assert (sent.method, sent.path, sent.json()) == ("POST", "/v1/extract", fields())
    assert sent.headers["content-type"] == "application/json"
    assert base64.b64decode(sent.headers["authorization"].split()[1]).decode() == f"{KEY}:"
    assert [(attempt.domain, attempt.kind, attempt.error) for attempt in attempts] == [(A, "browser", None)]


@pytest.mark.parametrize("slash", ["", "/"])
async def test_the_address_may_end_in_a_slash(server, slash):
    server.script = [json_reply(RESULT)]
    transport = ExtractTransport(f"{server.url}/v1{slash}", KEY, 30.0)
    await transport.post(b"{}")
    await transport.close()
    assert server.requests[0].raw_path == "/v1/extract"


def test_addresses_and_keys_that_are_none_are_refused_by_the_names_of_their_settings():
    with pytest.raises(ValueError, match="EXTRACT_API_URL"):
        ExtractTransport("extract.example.com/v1", KEY, 30.0)
    with pytest.raises(ValueError, match="EXTRACT_API_KEY is not set"):
        ExtractTransport("https://extract.example.com/v1", "", 30.0)


def test_reprs_do_not_show_the_key():
    transport = ExtractTransport("https://extract.example.com/v1", KEY, 30.0)
    assert KEY not in repr(transport) + repr(ExtractClient(transport, Limiter(1, 1)))


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({}, "at least one output"),
        ({"browserHtml": True, "httpResponseBody": True}, "cannot be combined with httpResponseBody"),
        ({"browserHtmls": True, "screenshot": True}, "Did you mean browserHtml"),
        ({"browserHtml": True, "url": "https://127.0.0.1/"}, "not an IP address"),
        ({"browserHtml": True, "echoData": "x" * 6_000_000}, "at most 5242880 bytes"),
        ({"browserHtml": True, "echoData": object()}, "cannot be written as JSON"),
    ],
)
async def test_what_must_fail_is_not_sent(client, server, wrong, rule):
    with pytest.raises(ContractError, match=rule):
        await client.extract({"url": "https://a.example/", **wrong}, domain=A)
    assert server.requests == []


async def test_fields_of_tomorrow_can_be_admitted(server):
    server.script = [json_reply(RESULT)]
    transport = ExtractTransport(f"{server.url}/v1", KEY, 30.0)
    client = ExtractClient(transport, Limiter(1, 1), extra_fields=["device"])
    await client.extract(fields(device="mobile"), domain=A)
    await client.close()
    assert server.requests[0].json()["device"] == "mobile"


@pytest.mark.parametrize(
    "type",
    [
        "/request/invalid",
        "/auth/key-not-found",
        "/auth/account-suspended",
        "/website/domain-unreachable",
        "/request/unprocessable",
        "/download/domain-forbidden",
        "/download/internal-error",
    ],
)
async def test_what_must_fail_again_is_posted_once(client, server, attempts, type):
    server.script = [problem(type)]
    with pytest.raises(ExtractError) as caught:
        await client.extract(fields(), domain=A)
    assert len(server.requests) == 1
    assert caught.value.type == type
    assert [attempt.wait for attempt in attempts] == [None]


async def test_errors_name_the_request_without_secrets(client, server):
    server.script = [problem("/download/domain-forbidden")]
    with pytest.raises(DomainForbiddenError) as caught:
        await client.extract(fields(requestCookies=[{"name": "a", "value": "hush"}]), domain=A)
    error = caught.value
    assert (error.blocked_domain, error.sent["browserHtml"]) == (A, True)
    assert "hush" not in str(error) + str(error.sent)
    assert KEY not in str(error)


async def test_a_wrong_key_names_the_setting(client, server):
    server.script = [Reply(401, b"", None, {"WWW-Authenticate": "Basic"})]
    with pytest.raises(KeyRefusedError, match="EXTRACT_API_KEY"):
        await client.extract(fields(), domain=A)


@pytest.mark.parametrize(
    "fault",
    [
        problem("/server/internal"),
        problem("/server/timed-out"),
        problem("/download/temporary-error", 0),
        problem("/limits/over-domain-limit", 0),
        problem("/limits/over-global-limit", 0),
        Reply(502, b"<html></html>", "text/html"),
        Reply(429, headers={"Retry-After": "0"}),
        Reply(drop=True),
        json_reply(RESULT, cut=7),
        Reply(body=b"<html>Sign in</html>", type="text/html"),
        Reply(),
        json_reply([1]),
    ],
)
async def test_what_may_pass_is_tried_again(client, server, attempts, fault):
    server.script = [fault, fault, json_reply(RESULT)]
    assert await client.extract(fields(), domain=A) == RESULT
    assert [attempt.error is None for attempt in attempts] == [False, False, True]
    assert [attempt.wait is None for attempt in attempts] == [False, False, True]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Reply(drop=True), UnreachableServiceError),
        (Reply(body=b"<html>Sign in</html>", type="text/html"), UnexpectedAnswerError),
        (problem("/server/internal"), ServiceError),
    ],
)
async def test_what_does_not_pass_is_given_up_after_a_few_attempts(client, server, fault, kind):
    server.script = [fault]
    with pytest.raises(kind):
        await client.extract(fields(), domain=A)
    assert len(server.requests) == 3


async def test_a_dropped_connection_may_have_been_billed_and_a_refused_one_was_not(client, server):
    server.script = [Reply(drop=True)]
    with pytest.raises(UnreachableServiceError) as caught:
        await client.extract(fields(), domain=A)
    assert caught.value.ambiguous
    assert "is up" not in str(caught.value)
    await server.stop()
    with pytest.raises(UnreachableServiceError, match="cannot connect") as caught:
        await client.extract(fields(), domain=A, policy=FAST.with_overrides({"no-connection": 1}, "meta"))
    assert not caught.value.ambiguous
    assert "EXTRACT_API_URL" in str(caught.value)


async def test_a_service_that_does_not_answer_is_given_up_after_the_timeout(server):
    never = asyncio.Event()
    server.script = [Reply(until=never), Reply(until=never)]
    transport = ExtractTransport(f"{server.url}/v1", KEY, 0.1)
    client = ExtractClient(transport, Limiter(1, 1), RetryPolicy.merged({"network": 1}))
    with pytest.raises(UnreachableServiceError, match=r"within 0.1 seconds") as caught:
        await client.extract(fields(), domain=A)
    assert caught.value.ambiguous
    assert "Raise the setting DOWNLOAD_TIMEOUT" in str(caught.value)
    assert "is up" not in str(caught.value)
    # Errbacks log either: each has the page, the cause and the remedy, and not the address of the service.
    for shown in (str(caught.value), repr(caught.value), repr(as_scrapys(caught.value))):
        assert f"extraction of {fields()['url']} failed: the service did not return the page within 0.1" in shown
        assert "Raise the setting DOWNLOAD_TIMEOUT" in shown
        assert server.url not in shown
    with pytest.raises(UnreachableServiceError, match=r"within 0.2 seconds") as caught:
        await client.extract(fields(), domain=A, bounds=Bounds(0.2))
    assert "Raise download_timeout" in str(caught.value)
    assert "is up" not in str(caught.value)
    await client.close()
    never.set()


async def test_attempts_of_a_request_can_be_its_own(client, server):
    server.script = [problem("/server/internal")]
    with pytest.raises(ServiceError):
        await client.extract(fields(), domain=A, policy=FAST.with_overrides({"/server/internal": 1}, "meta"))
    assert len(server.requests) == 1


async def test_the_service_decides_when_a_banned_page_is_tried_again(client, server):
    server.script = [problem("/download/temporary-error", 1), json_reply(RESULT)]
    started = time.monotonic()
    await client.extract(fields(), domain=A)
    assert time.monotonic() - started >= 1.0


class LimitedOnce:
    """Refuses its first request with a limit of one second; when it is asked for what is noted."""

    def __init__(self, type: str) -> None:
        self.type = type
        self.asked: list[tuple[str, float]] = []

    def __call__(self, request: Request) -> Reply:
        self.asked.append((request.json()["url"], time.monotonic()))
        return problem(self.type, 1) if len(self.asked) == 1 else json_reply(RESULT)

    def early(self) -> list[str]:
        """The pages that were asked for before the second was over."""
        return [url for url, when in self.asked[1:] if when - self.asked[0][1] < 1.0]


async def test_a_limited_domain_is_left_alone_as_long_as_it_says_and_others_go_on(client, server):
    site = server.script = LimitedOnce("/limits/over-domain-limit")
    first = asyncio.ensure_future(client.extract(fields(A), domain=A))
    await eventually_async(lambda: client._limiter.waiting != 0)
    more = [asyncio.ensure_future(client.extract(fields(A, echoData=n), domain=A)) for n in range(3)]
    for _ in range(5):
        await client.extract(fields(B), domain=B)
    await asyncio.gather(first, *more)
    assert fields(A)["url"] not in site.early()
    assert [url for url, _ in site.asked].count(fields(A)["url"]) == 5


async def test_a_limit_of_the_user_is_kept_by_every_domain(client, server):
    site = server.script = LimitedOnce("/limits/over-user-limit")
    first = asyncio.ensure_future(client.extract(fields(A), domain=A))
    await eventually_async(lambda: client._limiter.waiting != 0)
    await asyncio.gather(first, client.extract(fields(B), domain=B))
    assert site.early() == []
    assert len(site.asked) == 3


async def test_no_more_requests_are_sent_than_the_caps_allow(server):
    release = asyncio.Event()
    server.script = [Reply(body=msgspec.json.encode(RESULT), until=release)]
    transport = ExtractTransport(f"{server.url}/v1", KEY, 30.0)
    client = ExtractClient(transport, Limiter(3, 2))
    tasks = [
        asyncio.ensure_future(client.extract(fields(domain, echoData=n), domain=domain))
        for n, domain in enumerate([A] * 5 + [B] * 5)
    ]
    await eventually_async(lambda: len(server.requests) >= 3)
    sent = [request.json()["url"] for request in server.requests]
    assert len(sent) == 3
    assert sent.count(fields(A)["url"]) == 2
    release.set()
    await asyncio.gather(*tasks)
    assert len(server.requests) == 10
    await client.close()


async def test_an_extraction_can_be_cancelled_wherever_it_is(client, server):
    never = asyncio.Event()
    server.script = [Reply(until=never), Reply(until=never)]
    sending = asyncio.ensure_future(client.extract(fields(A), domain=A))
    await eventually_async(lambda: server.requests)
    server.script = [problem("/limits/over-domain-limit", 3600)]
    paused = asyncio.ensure_future(client.extract(fields(B), domain=B))
    await eventually_async(lambda: client._limiter.waiting != 0)
    server.script = [problem("/download/temporary-error", 3600)]
    banned = asyncio.ensure_future(client.extract(fields("c.example"), domain="c.example"))
    await eventually_async(lambda: len(server.requests) >= 3 and client._limiter.active <= 1)
    for task in (sending, paused, banned):
        task.cancel()
    results = await asyncio.gather(sending, paused, banned, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert (client._limiter.active, client._limiter.waiting) == (0, 0)
    never.set()


async def test_a_domain_that_is_always_limited_is_given_up_with_the_limit_as_its_error(server):
    server.script = [problem("/limits/over-domain-limit", 0)]
    transport = ExtractTransport(f"{server.url}/v1", KEY, 30.0)
    client = ExtractClient(transport, Limiter(8, 8), RetryPolicy.merged({"/limits/over-domain-limit": 3}))
    with pytest.raises(LimitError):
        await client.extract(fields(), domain=A)
    assert len(server.requests) == 3
    await client.close()


async def test_a_request_that_gives_up_still_holds_the_others_back(server):
    server.script = [problem("/limits/over-domain-limit", 1), json_reply(RESULT)]
    transport = ExtractTransport(f"{server.url}/v1", KEY, 30.0)
    client = ExtractClient(transport, Limiter(8, 8), RetryPolicy.merged({"/limits/over-domain-limit": 1}))
    started = time.monotonic()
    with pytest.raises(LimitError):
        await client.extract(fields(), domain=A)
    await client.extract(fields(), domain=A)
    assert time.monotonic() - started >= 1.0
    await client.close()


async def test_a_large_result_comes_whole(client, server):
    body = base64.b64encode(b"x" * 3_000_000).decode()
    server.script = [json_reply({"httpResponseBody": body}, compress=True)]
    asked = {"url": "https://a.example/", "httpResponseBody": True}
    assert await client.extract(asked, domain=A) == {"httpResponseBody": body}


async def test_the_password_of_a_proxy_is_in_no_error(monkeypatch):
    async with await asyncio.start_server(refuse_proxying, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://me:pr0xysecret@127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        transport = ExtractTransport("https://api.example/v1", "key", 5)
        try:
            with pytest.raises(UnreachableServiceError) as raised:
                await transport.post(b"{}")
        finally:
            await transport.close()
    text = "".join(traceback.format_exception(raised.value))
    assert "407" in text
    assert "pr0xysecret" not in text


async def refuse_proxying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    writer.close()
