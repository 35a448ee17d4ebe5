from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
import time
from types import SimpleNamespace

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client import retry
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.client.platform.errors import (
    BadRequest,
    DuplicateJob,
    Forbidden,
    NotFound,
    PlatformError,
    RateLimited,
    ServerError,
    TooLarge,
    Unauthorized,
    UnexpectedAnswer,
    Unreachable,
)
from scrapy_ext.client.retry import Backoff
from tests.support.played_server import PlayedServer, Reply, json_reply, lines_reply

KEY = "0123456789abcdef0123456789abcdef"
JOB = JobKey(1, 2, 3)
PAGE = Reply(body=b"<html><body>Sign in to the network</body></html>", type="text/html; charset=utf-8")


async def test_the_key_is_sent_as_the_user_name_with_an_empty_password(client, server):
    server.script = [json_reply({"spider": "books"})]
    await client.jobs.metadata(JOB)
    scheme, payload = server.requests[0].headers["authorization"].split(" ")
    assert scheme == "Basic"
    assert base64.b64decode(payload).decode() == f"{KEY}:"


async def test_reprs_show_the_hosts_and_never_the_key():
    urls = PlatformUrls("https://app.example.com", "https://storage.example.com/", "https://jobq.example.com")
    client = PlatformClient(urls, KEY)
    assert "https://storage.example.com" in repr(client)
    for thing in (client, client.jobs, client._transport, client.urls):
        assert KEY not in repr(thing)


async def test_a_wrong_key_names_the_setting_and_is_tried_once(client, server):
    server.script = [Reply(401, b"Unauthorized\n", "text/plain")]
    with pytest.raises(Unauthorized) as caught:
        await client.jobs.metadata(JOB)
    assert "PLATFORM_API_KEY" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("key", ["", "a7:b", " 77ff", "77ff\n"])
def test_a_key_that_cannot_be_one_is_refused_by_the_name_of_its_setting_and_not_shown(key):
    with pytest.raises(ValueError, match="PLATFORM_API_KEY") as caught:
        PlatformClient(PlatformUrls.single("http://127.0.0.1:1"), key)
    assert "7" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (403, Forbidden),
        (404, NotFound),
        (405, BadRequest),
        (413, TooLarge),
        (429, RateLimited),
        (500, ServerError),
        (503, ServerError),
        (504, ServerError),
    ],
)
async def test_each_status_has_its_error_with_the_message_of_the_body(client, server, status, kind):
    server.script = [json_reply({"message": "the reason"}, status)]
    with pytest.raises(kind) as caught:
        await client.jobs.metadata(JOB)
    error = caught.value
    assert (error.status, error.message, error.method, error.path) == (status, "the reason", "GET", "/jobs/1/2/3")
    assert str(error).startswith(f"GET /jobs/1/2/3 answered {status}: the reason.")


async def test_the_text_of_an_error_without_json_is_its_message(client, server):
    server.script = [Reply(413, b"Serialized value too large - max 1048576 bytes\n", "text/plain; charset=UTF-8")]
    with pytest.raises(TooLarge, match="max 1048576 bytes"):
        await client.items.write(JOB, b"{}\n", 0)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
async def test_an_error_body_can_be_anything(client, server, body):
    server.script = [Reply(404, body, None)]
    with pytest.raises(NotFound):
        await client.jobs.metadata(JOB)


async def test_the_page_of_a_load_balancer_is_reported_as_such_and_not_quoted(client, server):
    server.script = [Reply(503, b"<html>No server is available</html>", "text/html")]
    with pytest.raises(ServerError, match="an HTML page, not an answer of the platform"):
        await client.jobs.metadata(JOB)


async def test_a_page_with_status_200_is_no_success_of_a_write(client, server):
    server.script = [PAGE]
    with pytest.raises(UnexpectedAnswer, match="PLATFORM_URL leads to the platform"):
        await client.items.write(JOB, b"{}\n", 0)


async def test_an_empty_answer_of_the_type_of_a_page_is_a_success_of_a_write(client, server):
    server.script = [Reply(type="text/html; charset=utf-8")]
    await client.jobs.update(JOB, {"a": 1})


@pytest.mark.parametrize("body", [b"", b"null", b"3", b'{"count": "many"}', b"not JSON"])
async def test_an_answer_that_is_not_what_was_asked_for_is_an_error(client, server, body):
    server.script = [Reply(body=body)]
    with pytest.raises(UnexpectedAnswer, match="not the JSON that was expected"):
        await client.collections.count(1, "s", "seen")


async def test_a_redirect_is_reported_and_not_followed(client, server):
    server.script = [Reply(301, headers={"Location": "https://elsewhere.example/"})]
    with pytest.raises(UnexpectedAnswer, match="a redirect to https://elsewhere"):
        await client.jobs.metadata(JOB)


async def test_large_bodies_are_compressed_both_ways_and_small_ones_are_not(client, server):
    server.script = [json_reply({"text": "a" * 5000}, compress=True)]
    assert await client.jobs.metadata(JOB) == {"text": "a" * 5000}
    assert server.requests[0].headers["accept-encoding"] == "gzip"
    server.script = [Reply()]
    for size in (100, 5000, 500_000):
        await client.items.write(JOB, b"x" * size, 0)
    small, large, huge = server.requests[-3:]
    assert "content-encoding" not in small.headers
    assert large.headers["content-encoding"] == huge.headers["content-encoding"] == "gzip"
    assert (large.body, huge.body) == (b"x" * 5000, b"x" * 500_000)
    assert len(huge.raw_body) < 5000


async def test_compression_can_be_switched_off(server):
    server.script = [Reply()]
    async with PlatformClient(PlatformUrls.single(server.url), KEY, compress=False) as client:
        await client.items.write(JOB, b"x" * 5000, 0)
    assert server.requests[0].raw_body == b"x" * 5000
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_an_answer_compressed_in_several_members_is_read_whole(client, server):
    body = gzip.compress(b'{"a": "') + gzip.compress(b"b" * 3_000_000) + gzip.compress(b'"}')
    server.script = [Reply(body=body, headers={"Content-Encoding": "gzip"})]
    assert await client.jobs.metadata(JOB) == {"a": "b" * 3_000_000}


@pytest.mark.parametrize(
    "fault",
    [
        Reply(drop=True),
        Reply(500),
        Reply(502, b"<html></html>", "text/html"),
        Reply(408),
        PAGE,
        json_reply({"spider": "books"}, cut=5),
        json_reply({"spider": "books"}, cut=10, framed=False, compress=True),
        Reply(body=b"neither gzip", headers={"Content-Encoding": "gzip"}),
        Reply(body=b'{"spider": "bo'),
    ],
)
async def test_a_call_that_can_be_repeated_survives_faults(client, server, fault):
    server.script = [fault, fault, json_reply({"spider": "books"})]
    assert await client.jobs.metadata(JOB) == {"spider": "books"}
    assert len(server.requests) == 3


async def test_plain_calls_are_tried_five_times(client, server):
    server.script = [Reply(500)]
    with pytest.raises(ServerError):
        await client.jobs.metadata(JOB)
    assert len(server.requests) == 5


async def test_a_call_can_say_how_often_it_is_tried(client, server):
    server.script = [Reply(500)]
    with pytest.raises(ServerError):
        await client.items.write(JOB, b"{}\n", 0, attempts=1)
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [Reply(500), Reply(drop=True), Reply(429)])
async def test_what_would_happen_twice_is_sent_once(client, server, fault):
    server.script = [fault]
    for call in (
        client.jobq.push(1, "books"),
        client.jobs.run(1, "books"),
        client.activity.post(1, {"event": "x"}),
        client.periodic.create(1, {"cron": "0 0 * * *"}),
        client.collections.rename(1, "old", "new"),
    ):
        server.requests.clear()
        with pytest.raises(PlatformError):
            await call
        assert len(server.requests) == 1


async def test_retry_time_bounds_the_tries_instead_of_their_number(server, monkeypatch):
    server.script = [Reply(500)]
    urls = PlatformUrls.single(server.url)
    # A try fails each second, however long it takes here; the time is read at the first failure once more.
    seconds = itertools.count()
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    async with PlatformClient(urls, KEY, retry_time=10, backoff=Backoff(0.02, 0.02)) as client:
        with pytest.raises(ServerError):
            await client.jobs.metadata(JOB)
    assert len(server.requests) == 10


@pytest.mark.parametrize("status", [429, 503])
async def test_the_server_decides_when_to_try_again(client, server, status):
    server.script = [Reply(status, headers={"Retry-After": "1"}), json_reply({})]
    started = time.monotonic()
    await client.jobs.metadata(JOB)
    assert time.monotonic() - started >= 1.0


async def test_a_wait_longer_than_a_caller_would_expect_is_reported_instead_of_waited(client, server):
    server.script = [Reply(429, headers={"Retry-After": "86400"})]
    with pytest.raises(RateLimited) as caught:
        await client.jobs.metadata(JOB)
    assert caught.value.retry_after == 86400
    assert len(server.requests) == 1


async def test_a_server_that_does_not_answer_is_given_up_after_the_timeout(server):
    never = asyncio.Event()
    server.script = [Reply(until=never)]
    async with PlatformClient(PlatformUrls.single(server.url), KEY, timeout=1, attempts=2) as client:
        with pytest.raises(Unreachable, match="timed out"):
            await client.jobs.metadata(JOB)
    assert len(server.requests) == 2
    never.set()


async def test_a_connection_is_good_after_it_was_idle_for_longer_than_the_timeout(server):
    """The records come faster than they are read, so that aiohttp pauses reading."""
    server.script = [
        lines_reply(*({"_key": f"1/2/3/{n}", "text": "x" * 16_000} for n in range(52))),
        json_reply({"id": 1}),
    ]
    async with PlatformClient(PlatformUrls.single(server.url), KEY, timeout=1, attempts=1) as client:
        async for _ in client.items.iter(JOB):
            await asyncio.sleep(0.001)
        await asyncio.sleep(1.5)
        await client.jobs.metadata(JOB)


async def test_records_that_stop_coming_are_given_up_after_the_timeout(server):
    never = asyncio.Event()
    server.script = [lines_reply({"a": 1}, {"a": 2}, until=never, pause_at=5)]
    async with PlatformClient(PlatformUrls.single(server.url), KEY, timeout=1, attempts=1) as client:
        with pytest.raises(Unreachable, match="timed out"):
            [item async for item in client.items.iter(JOB)]
    never.set()


async def test_a_wrong_address_is_named_with_the_setting(server):
    await server.stop()
    async with PlatformClient(PlatformUrls.single(server.url), KEY, attempts=1) as client:
        with pytest.raises(Unreachable) as caught:
            await client.jobs.metadata(JOB)
    assert server.url in str(caught.value)
    assert "PLATFORM_URL" in str(caught.value)


async def test_errors_of_the_app_are_in_bodies_with_any_status(client, server):
    server.script = [json_reply({"status": "error", "message": "Authentication failed"})]
    with pytest.raises(Unauthorized):
        await client.jobs.list(1)
    server.script = [json_reply({"status": "badrequest", "message": "no such spider"})]
    with pytest.raises(BadRequest, match="no such spider"):
        await client.jobs.run(1, "books")
    server.script = [json_reply({"status": "error", "message": "books already scheduled"}, 400)]
    with pytest.raises(DuplicateJob):
        await client.jobs.run(1, "books")


async def test_a_job_that_is_already_active_is_reported_by_its_own_error(client, server):
    server.script = [lines_reply({"error": "Active job exists with key 1/2/3", "request": {}})]
    with pytest.raises(DuplicateJob, match="1/2/3"):
        await client.jobq.push(1, "books", unique="x")


async def test_each_host_serves_its_own_calls(server):
    other = PlayedServer()
    await other.start()
    server.script, other.script = [json_reply([])], [Reply(body=b"7")]
    async with PlatformClient(PlatformUrls("http://127.0.0.1:1", server.url, other.url), KEY) as client:
        assert await client.frontier.frontiers(1) == []
        assert await client.jobq.count(1) == 7
    assert [request.path for request in other.requests] == ["/jobq/1/count"]
    await other.stop()


async def test_a_closed_client_can_be_used_again(client, server):
    server.script = [json_reply({})]
    await client.jobs.metadata(JOB)
    await client.close()
    await client.jobs.metadata(JOB)
    assert len(server.requests) == 2
