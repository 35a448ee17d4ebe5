from __future__ import annotations

import asyncio
import base64
import gzip
import random
import socket
import time
import tracemalloc
import zlib
from collections.abc import Iterator

import brotli
import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.http.bodies import zstd
from tests.support.extraction_service import LIMITS, Service
from tests.support.handwritten_site import Call, Target, self_signed

BODY = {"httpResponseBody": True}


def body_of(result: dict[str, str]) -> bytes:
    return base64.b64decode(result["httpResponseBody"])


# ── what the service knows beside the contract ──


def test_a_redirect_is_returned_itself_where_that_is_asked_for(service: Service, target: Target) -> None:
    url = target.page("/kept", "moved", 302, Location="/kept-target", Set_Cookie="a=1")
    before = len(target.calls_of("/kept-target"))
    result = service.result(url=url, followRedirect=False, httpResponseHeaders=True, **BODY)
    assert (result["url"], result["statusCode"], body_of(result)) == (url, 302, b"moved")
    assert {"name": "Location", "value": "/kept-target"} in result["httpResponseHeaders"]
    assert "redirects" not in result
    assert len(target.calls_of("/kept-target")) == before


def test_redirects_that_were_followed_are_in_the_answer(service: Service, target: Target) -> None:
    target.page("/chain-end", "end")
    second = target.page("/chain-2", "", 307, Location="/chain-end")
    first = target.page("/chain-1", "", 301, Location="/chain-2")
    result = service.result(url=first, **BODY)
    assert result["redirects"] == [{"url": first, "statusCode": 301}, {"url": second, "statusCode": 307}]
    assert "redirects" not in service.result(url=target.url("/chain-end"), **BODY)


def test_headers_of_the_service_can_be_left_out_and_those_of_the_caller_are_sent(
    service: Service, target: Target
) -> None:
    url = target.page("/omitted", "ok")
    names = ["user-agent", "Accept-Language", "Accept-Encoding", "Accept"]
    sent = [{"name": "Accept", "value": "text/plain"}]
    service.result(url=url, omitHttpRequestHeaders=names, customHttpRequestHeaders=sent, **BODY)
    call = target.calls_of("/omitted")[-1]
    assert [call.header(name) for name in names] == [None, None, None, "text/plain"]


def test_every_answer_names_the_fields_that_only_this_service_knows(service: Service, target: Target) -> None:
    answers = [service.extract(url=target.page("/named", "ok"), **BODY), service.send("OPTIONS"), service.extract()]
    assert [answer.status for answer in answers] == [200, 405, 400]
    for answer in answers:
        assert answer.headers["extract-extensions"].split(", ") == [
            "omitHttpRequestHeaders",
            "followRedirect",
            "fieldSources",
            "extractRules",
            "minProbability",
            "includeShadowRoots",
            "responseCookies",
            "viewport",
            "session",
            "sessionContext",
            "sessionContextParameters",
            "networkCapture",
            "javascript",
            "device",
            "markdown",
            "markdownOptions",
            "experimental",
        ]


def test_a_problem_has_its_cause_in_a_header(service: Service, target: Target) -> None:
    causes = {
        "http://nowhere.invalid/": "host-not-found",
        "http://localhost:1/": "host-not-allowed",
        target.raw("/cause/cut", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", then_close=True): "cut-short",
        target.page("/cause/large", b"x" * (LIMITS.body_bytes + 1)): "too-large",
        target.raw("/cause/gone", b"", then_close=True): None,
    }
    assert {url: service.extract(url=url, **BODY).headers.get("extract-cause") for url in causes} == causes


def test_the_cause_of_a_problem_is_a_timeout_where_nothing_comes(target: Target) -> None:
    async def silent(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    with Service(allow_hosts=(target.host,), limits=ServiceLimits(fetch=0.5)) as running:
        answer = running.extract(url=target.handle("/cause/silent", silent), **BODY)
    assert answer.headers["extract-cause"] == "timeout"


def test_a_refused_connection_is_distinguished_from_a_name_that_does_not_exist() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        host = f"localhost:{closed.getsockname()[1]}"
        with Service(allow_hosts=(host,)) as running:
            answer = running.extract(url=f"http://{host}/", **BODY)
    assert (answer.status, answer.headers["extract-cause"]) == (421, "connection-refused")


# ── answers ──


@pytest.mark.parametrize("data", [b"", b"hello", "naïve".encode("latin-1"), bytes(range(256)) * 100])
def test_the_body_comes_back_byte_for_byte(service: Service, target: Target, data: bytes) -> None:
    assert body_of(service.result(url=target.page("/bytes", data), **BODY)) == data


def test_response_headers_are_a_list_in_the_order_of_the_wire_with_duplicates(service: Service, target: Target) -> None:
    url = target.raw(
        "/headers",
        b"HTTP/1.1 200 OK\r\nX-One: 1\r\nSet-Cookie: a=1\r\nLink: <x>\r\nSet-Cookie: b=2\r\n"
        b"X-Latin: caf\xe9\r\nX-Utf: caf\xc3\xa9\r\nContent-Length: 0\r\n\r\n",
    )
    headers = service.result(url=url, httpResponseHeaders=True)["httpResponseHeaders"]
    assert [(header["name"], header["value"]) for header in headers] == [
        ("X-One", "1"),
        ("Set-Cookie", "a=1"),
        ("Link", "<x>"),
        ("Set-Cookie", "b=2"),
        ("X-Latin", "café"),
        ("X-Utf", "café"),
        ("Content-Length", "0"),
    ]


@pytest.mark.parametrize("status", [201, 204, 304, 404, 429, 500, 503])
def test_a_status_of_the_target_is_a_result(service: Service, target: Target, status: int) -> None:
    result = service.result(url=target.page(f"/status/{status}", "" if status in (204, 304) else "no", status), **BODY)
    assert result["statusCode"] == status


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", gzip.compress(b"plain" * 1000)),
        ("deflate", zlib.compress(b"plain" * 1000)),
        ("br", brotli.compress(b"plain" * 1000)),
        ("zstd", zstd.compress(b"plain" * 1000)),
        ("gzip, br", brotli.compress(gzip.compress(b"plain" * 1000))),
    ],
    ids=["gzip", "deflate", "br", "zstd", "two"],
)
def test_content_codings_are_undone(service: Service, target: Target, coding: str, data: bytes) -> None:
    url = target.page("/coded", data, Content_Encoding=coding)
    assert body_of(service.result(url=url, **BODY)) == b"plain" * 1000
    assert target.calls_of("/coded")[-1].header("accept-encoding") == "gzip, deflate, br, zstd"


def test_a_long_coded_body_is_undone_as_well(service: Service, target: Target) -> None:
    data = random.Random(1).randbytes(200_000)
    assert (
        body_of(service.result(url=target.page("/long", gzip.compress(data), Content_Encoding="gzip"), **BODY)) == data
    )


def test_a_coded_body_that_is_cut_short_is_a_result_and_one_that_is_none_is_521(
    service: Service, target: Target
) -> None:
    cut = target.page("/cut-short", gzip.compress(b"plain" * 1000)[:-4], Content_Encoding="gzip")
    assert body_of(service.result(url=cut, **BODY)) == b"plain" * 1000
    none = target.page("/cut-shorter", gzip.compress(b"plain" * 1000)[:10], Content_Encoding="gzip")
    service.problem(520, "/download/temporary-error", url=none, **BODY)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZip", "deflate", "br", "zstd", "gzip, br", "deflate, gzip"])
@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_body_without_the_coding_of_its_header_comes_as_it_is_without_that_header(
    service: Service, target: Target, coding: str, status: int
) -> None:
    for name, body in {"page": b"<h1>Access denied</h1>", "pdf": b"%PDF-1.7\n\0\1\2", "latin": b"\xe4" * 70}.items():
        url = target.page(f"/not-coded-{name}", body, status, Content_Encoding=coding)
        result = service.result(url=url, httpResponseHeaders=True, **BODY)
        assert (result["statusCode"], body_of(result)) == (status, body)
        assert "content-encoding" not in {header["name"].lower() for header in result["httpResponseHeaders"]}


def test_a_body_that_was_coded_once_though_its_header_says_twice_is_the_text(service: Service, target: Target) -> None:
    for codings in ("gzip, gzip", "br, gzip", "zstd, deflate, gzip"):
        url = target.page("/once", gzip.compress(b"<h1>text</h1>"), Content_Encoding=codings)
        result = service.result(url=url, httpResponseHeaders=True, **BODY)
        assert body_of(result) == b"<h1>text</h1>"


def test_the_length_of_what_head_does_not_send_is_not_held_against_it(service: Service, target: Target) -> None:
    url = target.raw(
        "/huge", b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\nContent-Encoding: gzip\r\n\r\n", then_close=True
    )
    result = service.result(url=url, httpRequestMethod="HEAD", httpResponseHeaders=True, **BODY)
    assert (result["statusCode"], body_of(result)) == (200, b"")
    assert {"name": "Content-Length", "value": "9000000000"} in result["httpResponseHeaders"]


def test_cookies_with_names_that_none_may_have_are_reported_once_by_their_site(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    illegal = b"HTTP/1.1 200 OK\r\nSet-Cookie: se{cret}\x80=1\r\nSet-Cookie: good=1\r\nContent-Length: 0\r\n\r\n"
    with Service(connect_to=(f"cookies.example:80=127.0.0.1:{target.port}",)) as service:
        for path in ("/illegal-1", "/illegal-2"):
            target.raw(path, illegal)
            cookies = service.result(url=f"http://cookies.example{path}", responseCookies=True, **BODY)[
                "responseCookies"
            ]
            assert [cookie["name"] for cookie in cookies] == ["good"]
    (message,) = [message for message in caplog.messages if "ookie" in message]
    assert message.startswith("cookies.example sets cookies whose names")
    assert "secret" not in message


def test_cookies_of_a_site_with_letters_of_its_language_are_in_the_result(target: Target) -> None:
    target.page("/letters", "hello", Set_Cookie="a=1")
    with Service(connect_to=(f"xn--bcher-kva.example:80=127.0.0.1:{target.port}",)) as service:
        result = service.result(url="http://bücher.example/letters", responseCookies=True, **BODY)
    assert [(cookie["name"], cookie["domain"]) for cookie in result["responseCookies"]] == [
        ("a", "xn--bcher-kva.example")
    ]


def test_a_connection_that_was_idle_after_a_large_page_is_used_again(target: Target) -> None:
    """The page comes faster than it is read, so that aiohttp pauses reading; the pause of the test is longer than the
    limit of a fetch, which does not hold for a connection that nobody uses."""
    url = target.page("/large-page", b"x" * 800_000)
    before = target.connections
    with Service(allow_hosts=(target.host,), limits=ServiceLimits(fetch=2.0)) as service:
        assert len(body_of(service.result(url=url, **BODY))) == 800_000
        time.sleep(2.5)
        assert len(body_of(service.result(url=url, **BODY))) == 800_000
    assert target.connections <= before + 1


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + OK,
        b"HTTP/1.1 102 Processing\r\n\r\n" * 50 + OK,
        CHUNKED + b"1\r\no\r\n1;a=b\r\nk\r\n0\r\nX-Trailer: 1\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 200 caf\xe9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: \xff=\x01;;;=\r\nSet-Cookie: a b c\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX-A: 1\r\nno colon here\r\n going on\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\nno colon here\nContent-Length: 2\n\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length:  2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok and more",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 Other\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nno colon here\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(500)) + b"Content-Length: 2\r\n\r\nok",
    ],
)
def test_answers_of_odd_servers_are_read(service: Service, target: Target, answer: bytes) -> None:
    result = service.result(url=target.raw("/odd-answer", answer, then_close=True), httpResponseHeaders=True, **BODY)
    assert (result["statusCode"], body_of(result)) == (200, b"ok")
    assert all(header["name"] != "X-Trailer" for header in result["httpResponseHeaders"])


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx", 521),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", 521),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 521),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", 521),
        (b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok", 521),
        (CHUNKED + b"zz\r\nok\r\n0\r\n\r\n", 521),
        (CHUNKED + b"5\r\nok", 520),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", 521),
        (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 50_000 + b"\r\n", 521),
    ],
)
def test_answers_that_cannot_be_trusted_are_none(service: Service, target: Target, answer: bytes, status: int) -> None:
    response = service.extract(url=target.raw("/untrusted", answer, then_close=True), **BODY)
    assert response.status == status, response.body[:300]


def test_a_header_of_tens_of_kilobytes_is_no_obstacle(service: Service, target: Target) -> None:
    assert service.result(url=target.page("/policy", "ok", Content_Security_Policy="x" * 40_000), **BODY)


# ── what is sent ──


def test_method_body_and_headers_are_sent_and_the_last_of_a_name_wins(service: Service, target: Target) -> None:
    url = target.page("/post", "ok")
    service.result(
        url=url,
        httpRequestMethod="POST",
        httpRequestText="größe",
        customHttpRequestHeaders=[
            {"name": "X-Test", "value": "first"},
            {"name": "Content-Type", "value": "text/plain"},
            {"name": "x-test", "value": "last"},
        ],
        **BODY,
    )
    call = target.calls_of("/post")[-1]
    assert (call.method, call.body) == ("POST", "größe".encode())
    assert call.values("x-test") == ["last"]
    assert call.values("content-type") == ["text/plain"]


def test_a_base64_body_is_sent_as_its_bytes(service: Service, target: Target) -> None:
    url = target.page("/binary", "ok")
    data = base64.b64encode(b"\x00\xff").decode()
    service.result(url=url, httpRequestMethod="PUT", httpRequestBody=data, **BODY)
    assert target.calls_of("/binary")[-1].body == b"\x00\xff"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "HEAD"])
def test_every_method_of_the_contract_is_sent(service: Service, target: Target, method: str) -> None:
    service.result(url=target.page("/method", "ok"), httpRequestMethod=method, **BODY)
    assert target.calls_of("/method")[-1].method == method


def test_headers_look_like_a_browsers_and_a_callers_replace_them(service: Service, target: Target) -> None:
    url = target.page("/agent", "ok")
    service.result(url=url, **BODY)
    service.result(url=url, customHttpRequestHeaders=[{"name": "user-agent", "value": "mine/1"}], **BODY)
    plain, own = target.calls_of("/agent")[-2:]
    assert "Chrome/" in (plain.header("user-agent") or "")
    assert "gzip" in (plain.header("accept-encoding") or "")
    assert own.values("user-agent") == ["mine/1"]


def test_headers_of_the_connection_are_not_the_callers_to_set(service: Service, target: Target) -> None:
    url = target.page("/hop", "ok")
    headers = [
        {"name": name, "value": value}
        for name, value in (("Host", "evil.example"), ("Content-Length", "5"), ("Transfer-Encoding", "chunked"))
    ]
    service.result(url=url, customHttpRequestHeaders=headers, **BODY)
    call = target.calls_of("/hop")[-1]
    assert call.values("host") == [target.host]
    assert not call.values("transfer-encoding")


def test_request_headers_go_with_a_request_for_headers_alone(service: Service, target: Target) -> None:
    url = target.page("/head-only", "ok")
    service.result(url=url, httpResponseHeaders=True, requestHeaders={"referer": "http://a.example/", "X-B": "2"})
    call = target.calls_of("/head-only")[-1]
    assert (call.header("Referer"), call.header("X-B")) == ("http://a.example/", "2")


def test_request_cookies_reach_their_host_and_no_other(service: Service, target: Target) -> None:
    target.page("/cookies", "ok")
    cookies = [
        {"name": "here", "value": "1"},
        {"name": "shop", "value": "2", "domain": "shop.example"},
        {"name": "other", "value": "3", "domain": "other.example"},
        {"name": "path", "value": "4", "path": "/elsewhere"},
    ]
    service.result(url="http://shop.example/cookies", requestCookies=cookies, **BODY)
    assert sorted((target.calls_of("/cookies")[-1].header("cookie") or "").split("; ")) == ["here=1", "shop=2"]


def test_oddly_named_cookies_are_sent_as_they_are(service: Service, target: Target) -> None:
    odd = {"cart[0]": "1", "a b": '"q"', "\xe9": "\xfc", "{x}": "a,b c=d", "path": "x", "": "alone"}
    cookies = [{"name": name, "value": value, "domain": "localhost"} for name, value in odd.items()]
    service.result(url=target.page("/odd", "ok"), requestCookies=cookies, **BODY)
    sent = (target.calls_of("/odd")[-1].header("cookie") or "").encode("latin-1").decode()
    assert sorted(sent.split("; ")) == sorted(f"{name}={value}".lstrip("=") for name, value in odd.items())


def test_cookies_of_one_name_are_all_sent(service: Service, target: Target) -> None:
    cookies = [{"name": "a", "value": value} for value in ("1", "2")] + [{"name": "b", "value": "3"}]
    service.result(url=target.page("/same-name", "ok"), requestCookies=cookies, **BODY)
    sent = (target.calls_of("/same-name")[-1].header("cookie") or "").split("; ")
    assert [pair for pair in sent if pair.startswith("a")] == ["a=1", "a=2"]
    assert "b=3" in sent


def test_cookies_of_one_name_are_sent_by_their_paths(service: Service, target: Target) -> None:
    paths = (("/", "1"), ("/paths", "2"), ("/paths/here", "3"), ("/pa", "4"), ("/else", "5"))
    cookies = [{"name": "a", "value": value, "path": path} for path, value in paths]
    service.result(url=target.page("/paths/here", "ok"), requestCookies=cookies, **BODY)
    assert target.calls_of("/paths/here")[-1].header("cookie") == "a=3; a=2; a=1"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"requestCookies": [{"name": "a"}]}, "requestCookies[0]"),
        ({"requestCookies": [{"name": "a=b", "value": "1"}]}, "requestCookies[0].name"),
        ({"requestCookies": [{"name": "a;b", "value": "1"}]}, "requestCookies[0].name"),
        ({"requestCookies": [{"name": "a\n", "value": "1"}]}, "requestCookies[0].name"),
        ({"requestCookies": [{"name": "", "value": ""}]}, "requestCookies[0]"),
        ({"requestCookies": [{"name": "a", "value": "1\r\nX: 1"}]}, "requestCookies[0].value"),
    ],
)
def test_a_cookie_that_cannot_be_sent_is_400_and_named(service: Service, fields: dict[str, object], named: str) -> None:
    assert named in service.problem(400, "/request/invalid", url="http://shop.example/", **BODY, **fields)


@pytest.mark.parametrize("headers", [{"Cookie": "a=1"}, {"X": 1}, {"X Y": "1"}, {"X": "a\r\nB: 1"}])
def test_a_request_header_that_cannot_be_sent_is_400(service: Service, headers: dict[str, object]) -> None:
    service.problem(
        400, "/request/invalid", url="http://shop.example/", httpResponseHeaders=True, requestHeaders=headers
    )


def test_one_request_leaves_nothing_for_the_next(service: Service, target: Target) -> None:
    url = target.page("/sets", "ok", Set_Cookie="seen=1; Path=/")
    service.result(url=url, **BODY)
    service.result(url=url, **BODY)
    assert all(call.header("cookie") is None for call in target.calls_of("/sets"))


# ── redirects ──


def redirect(target: Target, path: str, to: str, status: int = 302, **headers: str) -> str:
    return target.page(path, "moved", status, Location=to, **headers)


def test_redirects_are_followed_with_the_cookies_of_the_way(service: Service, target: Target) -> None:
    target.page("/end", "arrived")
    url = redirect(target, "/start", "/middle?a=1")
    redirect(target, "/middle", "end", Set_Cookie="way=1; Path=/")
    result = service.result(url=url, **BODY)
    assert (result["url"], result["statusCode"], body_of(result)) == (target.url("/end"), 200, b"arrived")
    assert target.calls_of("/end")[-1].header("cookie") == "way=1"


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_a_redirected_post_becomes_a_get_as_in_browsers(
    service: Service, target: Target, status: int, method: str
) -> None:
    target.page("/after", "ok")
    url = redirect(target, "/before", "/after", status)
    service.result(url=url, httpRequestMethod="POST", httpRequestText="x", **BODY)
    call = target.calls_of("/after")[-1]
    assert (call.method, call.body) == (method, b"x" if method == "POST" else b"")


def test_credentials_stay_on_the_origin_that_they_were_given_for(service: Service, target: Target) -> None:
    target.page("/landing", "ok")
    redirect(target, "/same", "/landing")
    redirect(target, "/other", "http://other.example/landing")
    keys = ("X-Api-Key", "Ocp-Apim-Subscription-Key", "X-Auth-Token", "X-CSRF-Token", "X-Hmac", "X-Cert", "X-License")
    sessions = ("Session-Id", "X-Sid", "PHPSESSID", "X-Ticket", "Authorization", "Bearer", "X-Passphrase", "X-Pwd")
    accounts = (
        "X-Pin",
        "X-Otp",
        "X-Identity",
        "X-Appid",
        "Client-Id",
        "Cf-Access-Client-Id",
        "X-User-Id",
        "X-Username",
    )
    private = keys + sessions + accounts
    plain = ("X-Plain", "X-Author", "X-Residence", "X-Shopping", "User-Agent", "Accept-Language", "Referer")
    headers = [{"name": name, "value": "given"} for name in private + plain]
    for path in ("/same", "/other"):
        service.result(url=f"http://shop.example{path}", customHttpRequestHeaders=headers, **BODY)
    same, other = target.calls_of("/landing")[-2:]
    assert {same.header(name.lower()) for name in private + plain} == {"given"}
    assert {other.header(name.lower()) for name in private} == {None}
    assert {other.header(name.lower()) for name in plain} == {"given"}


def test_credentials_in_the_url_are_sent_as_a_header_and_not_returned(service: Service, target: Target) -> None:
    target.page("/private", "ok")
    result = service.result(url="http://me:pass@shop.example/private", **BODY)
    expected = "Basic " + base64.b64encode(b"me:pass").decode()
    assert target.calls_of("/private")[-1].header("authorization") == expected
    assert result["url"] == "http://shop.example/private"


def test_a_3xx_without_location_is_a_result(service: Service, target: Target) -> None:
    assert service.result(url=target.page("/302", "", 302), **BODY)["statusCode"] == 302


def test_endless_redirects_are_521(service: Service, target: Target) -> None:
    url = redirect(target, "/loop", "/loop")
    assert "redirected more than" in service.problem(521, "/download/internal-error", url=url, **BODY)


@pytest.mark.parametrize(
    ("to", "arrives"),
    [
        ("//other.example/way", "http://other.example/way"),
        ("HTTP://OTHER.EXAMPLE:80/way", "http://other.example/way"),
        ("http://me:secret@other.example/way", "http://other.example/way"),
        ("?q=1", "http://shop.example/way?q=1"),
        ("./../../way#part", "http://shop.example/way#part"),
        ("  /way  ", "http://shop.example/way"),
        ("/wäy?a b", "http://shop.example/w%C3%A4y?a%20b"),
        ("\\way", "http://shop.example/way"),
        ("/\\other.example/way", "http://other.example/way"),
        ("http:\\\\other.example\\way", "http://other.example/way"),
    ],
)
def test_a_redirect_leads_where_it_leads_a_browser(service: Service, target: Target, to: str, arrives: str) -> None:
    async def way(call: Call, writer: asyncio.StreamWriter) -> None:
        first = call.header("host") == "shop.example" and call.path == "/way"
        lines = f"302 Found\r\nLocation: {to}" if first and not done else "200 OK"
        done.append(call.path)
        writer.write(f"HTTP/1.1 {lines}\r\nContent-Length: 0\r\n\r\n".encode())

    done: list[str] = []
    for path in ("/way", "/w%C3%A4y"):
        target.handle(path, way)
    result = service.result(url="http://shop.example/way", **BODY)
    assert (result["url"], result["statusCode"], len(done)) == (arrives, 200, 2)


@pytest.mark.parametrize(
    "to", ["file:///etc/passwd", "ftp://a.example/", "javascript:alert(1)", "http://", "http://[bad/"]
)
def test_a_redirect_to_anything_but_a_web_page_is_521(service: Service, target: Target, to: str) -> None:
    service.problem(521, "/download/internal-error", url=redirect(target, "/odd", to), **BODY)


# ── the guard on every hop ──


def test_the_callers_url_may_not_name_what_is_not_public(service: Service, forbidden: Target) -> None:
    detail = service.problem(421, "/website/domain-unreachable", url=forbidden.url(), **BODY)
    assert f"--allow-host localhost:{forbidden.port}" in detail
    assert forbidden.connections == 0


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "2130706433", "127.1", "0x7f000001", "0177.0.0.1"]
)
def test_a_redirect_may_not_lead_to_what_is_not_public(
    service: Service, target: Target, forbidden: Target, host: str
) -> None:
    url = redirect(target, "/trap", f"http://{host}:{forbidden.port}/")
    service.problem(421, "/website/domain-unreachable", url=url, **BODY)
    assert forbidden.connections == 0


def test_an_allowed_site_is_allowed_under_its_own_name_only(service: Service, target: Target) -> None:
    before = target.connections
    url = redirect(target, "/self", f"http://127.0.0.1:{target.port}/")
    service.problem(421, "/website/domain-unreachable", url=url, **BODY)
    assert target.connections <= before + 1


def test_a_name_that_resolves_to_a_private_address_is_not_connected_to(forbidden: Target) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    with Service(resolve=resolve) as running:
        url = f"http://inside.example:{forbidden.port}/"
        running.problem(421, "/website/domain-unreachable", url=url, **BODY)
    assert forbidden.connections == 0


def test_a_name_is_looked_up_once_for_a_connection_so_that_it_cannot_change_in_between(target: Target) -> None:
    lookups: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["127.0.0.99"]

    target.page("/once", "ok")
    with Service(
        resolve=resolve, allow_hosts=(f"once.example:{target.port}",), limits=ServiceLimits(resolve_cache=0)
    ) as running:
        assert running.result(url=f"http://once.example:{target.port}/once", **BODY)["statusCode"] == 200
    assert lookups == ["once.example"]


def test_a_redirect_to_a_name_that_has_turned_private_is_not_followed(target: Target, forbidden: Target) -> None:
    lookups = iter([["93.184.215.14"], ["127.0.0.1"]])

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "site.example" else next(lookups)

    target.page("/to-rebind", "", 302, Location=f"http://rebind.example:{forbidden.port}/")
    allowed = (f"site.example:{target.port}",)
    with Service(resolve=resolve, allow_hosts=allowed, limits=ServiceLimits(resolve_cache=0)) as running:
        # What looked it up before saw a public address.
        assert running.run(running.service.fetcher._guard.endpoints("rebind.example", forbidden.port))
        url = f"http://site.example:{target.port}/to-rebind"
        running.problem(421, "/website/domain-unreachable", url=url, **BODY)
    assert forbidden.connections == 0


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1.", "0", "0.0.0.0", "127.000.000.001", "0x7f.0.0.1", "017700000001", "[::ffff:7f00:1]", "[::]"),
        *("%31%32%37.0.0.1", "127%2e0%2e0%2e1", "①②⑦.0.0.1", "127。0。0。1", "１２７.0.0.1", "localhost.", "LOCALHOST"),
        *("user:pass@localhost", "example.com@127.0.0.1", "127.0.0.1\\@example.com", "[fe80::1%25lo]"),
    ],
)
def test_no_spelling_of_this_machine_is_reached_by_a_redirect(
    service: Service, target: Target, forbidden: Target, host: str
) -> None:
    at = f"{host.replace(chr(92), f':{forbidden.port}' + chr(92))}" if "\\" in host else f"{host}:{forbidden.port}"
    url = redirect(target, "/spelled", f"http://{at}/")
    answer = service.extract(url=url, **BODY)
    assert answer.status in (421, 521), answer.body
    assert forbidden.connections == 0


def test_a_body_without_end_costs_no_more_memory_than_the_limit(service: Service, target: Target) -> None:
    async def endless(call: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:  # a gigabyte, if it is let
            writer.write(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
            await writer.drain()

    url = target.handle("/gigabyte", endless)
    tracemalloc.start()
    try:
        service.problem(521, "/download/internal-error", url=url, **BODY)
        # Of all that this process holds, the site and its buffers included; the limit is 1 MiB.
        assert tracemalloc.get_traced_memory()[1] < 32 * 1024 * 1024
    finally:
        tracemalloc.stop()


# ── targets that fail ──


def test_a_host_that_does_not_exist_is_421(service: Service) -> None:
    async def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    with Service(resolve=nobody) as running:
        detail = running.problem(421, "/website/domain-unreachable", url="http://nope.example/", **BODY)
    assert "nope.example" in detail


def test_a_host_where_nobody_listens_is_421() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with Service(connect_to=(f"down.example:80=127.0.0.1:{port}",)) as running:
            detail = running.problem(421, "/website/domain-unreachable", url="http://down.example/", **BODY)
    assert "refused" in detail


def test_a_target_that_stops_in_the_middle_is_520_with_retry_after(service: Service, target: Target) -> None:
    url = target.raw("/cut", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", then_close=True)
    answer = service.extract(url=url, **BODY)
    assert (answer.status, answer.json["type"]) == (520, "/download/temporary-error")
    assert int(answer.headers["retry-after"]) >= 0


def test_a_target_that_never_answers_is_520(target: Target) -> None:
    async def silent(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    with Service(allow_hosts=(target.host,), limits=ServiceLimits(fetch=0.5)) as running:
        running.problem(520, "/download/temporary-error", url=target.handle("/silent", silent), **BODY)


def test_a_target_may_take_its_time_before_the_first_byte_and_between_the_others(target: Target) -> None:
    """It is the whole that has a limit: a report is made before its first byte is sent."""

    async def slow(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nrep")
        await writer.drain()
        await asyncio.sleep(2)
        writer.write(b"ort")

    with Service(allow_hosts=(target.host,), limits=ServiceLimits(fetch=20)) as running:
        assert body_of(running.result(url=target.handle("/slow", slow), **BODY)) == b"report"


def test_a_target_that_drips_for_ever_is_520(target: Target) -> None:
    async def drip(call: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.2)

    with Service(allow_hosts=(target.host,), limits=ServiceLimits(fetch=1)) as running:
        running.problem(520, "/download/temporary-error", url=target.handle("/drip", drip), **BODY)


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_without_end_is_521_at_the_limit(service: Service, target: Target, announced: bool) -> None:
    async def endless(call: Call, writer: asyncio.StreamWriter) -> None:
        length = b"Content-Length: 1000000000\r\n" if announced else b"Connection: close\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    detail = service.problem(521, "/download/internal-error", url=target.handle("/endless", endless), **BODY)
    assert "1 MiB" in detail


def test_a_compressed_bomb_is_521_at_the_limit(service: Service, target: Target) -> None:
    url = target.page("/bomb", gzip.compress(bytes(50 * 1024 * 1024)), Content_Encoding="gzip")
    service.problem(521, "/download/internal-error", url=url, **BODY)


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"],
)
def test_an_answer_that_is_not_http_is_521(service: Service, target: Target, answer: bytes) -> None:
    service.problem(521, "/download/internal-error", url=target.raw("/odd", answer, then_close=True), **BODY)


def test_a_body_that_does_not_decode_is_521(service: Service, target: Target) -> None:
    url = target.page("/lie", b"\xff\x00" * 100, Content_Encoding="deflate")
    service.problem(521, "/download/internal-error", url=url, **BODY)


def test_headers_alone_do_not_wait_for_the_body(service: Service, target: Target) -> None:
    async def headers_only(call: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\nX-A: 1\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(60)

    result = service.result(url=target.handle("/large", headers_only), httpResponseHeaders=True)
    assert {"name": "X-A", "value": "1"} in result["httpResponseHeaders"]


# ── TLS ──


@pytest.fixture(scope="module")
def tls_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    site = Target(ssl=self_signed(tmp_path_factory.mktemp("tls"))).start()
    site.page("/", "secure")
    yield site
    site.stop()


def test_a_certificate_that_nobody_signed_is_521(tls_target: Target) -> None:
    with Service(allow_hosts=(tls_target.host,)) as running:
        detail = running.problem(521, "/download/internal-error", url=tls_target.url(), **BODY)
    assert "certificate" in detail


def test_an_operator_may_switch_the_check_of_certificates_off(tls_target: Target) -> None:
    with Service(allow_hosts=(tls_target.host,), verify_tls=False) as running:
        assert body_of(running.result(url=tls_target.url(), **BODY)) == b"secure"


def test_https_to_a_server_that_speaks_http_is_521(service: Service, target: Target) -> None:
    service.problem(521, "/download/internal-error", url=f"https://{target.host}/", **BODY)
