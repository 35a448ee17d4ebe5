"""Requests to the extraction service: their body, cookies, headers, actions and attributes."""

from __future__ import annotations

import msgspec

from scrapy_ext.api.extraction import check, parse
from scrapy_ext.api.extraction.fields import MAX_CAPTURE_FILTERS
from scrapy_ext.api.extraction.rules import InvalidJsonError
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.extraction.browser.navigation import _param
from scrapy_ext.server.extraction.outgoing import cookie_pair, read_cookies
from scrapy_ext.server.extraction.plan import PagePlan, first_page, plan
from scrapy_ext.server.net.pool import ProxyPool
from tests.fuzz.target import target

_NO_PROXIES = ProxyPool()


@target(
    "extract-request",
    [
        b'{"url":"https://a.example/\xc3\xa4?b c","httpResponseBody":true,"httpResponseHeaders":true}',
        b'{"url":"http://a.example","browserHtml":true,"actions":[{"action":"click","selector":{"type":"css","value":"a"}}]}',
        b'{"url":"http://a.example","product":true,"customAttributes":{"a":{"type":"string"}},"geolocation":"US"}',
        b'{"url":"http://a.example","httpResponseBody":true,"requestHeaders":{"userAgent":"x"},"echoData":1.50}',
        b'{"url":"http://a.example","httpResponseBody":true,"httpRequestMethod":"POST","httpRequestText":"x",'
        b'"requestCookies":[{"name":"a","value":"b","domain":".a.example","path":"/"}]}',
        b'{"url":"http://[::1","screenshot":true,"viewport":{"width":1e400}}',
        b'{"url":"http://a.example","screenshot":true,"screenshotOptions":{"format":"png"},"jobId":"x"}',
        b'{"url":"http://a.example","browserHtml":true,"device":"mobile","javascript":false,"networkCapture":'
        b'[{"filterType":"url","matchType":"startsWith","value":"http","httpResponseBody":true}]}',
        b'{"url":"http://a.example","httpResponseBody":true,"session":{"id":"0b5c2f43-3f68-4c3e-b7f8-2b7a4d5d8c11"}}',
        b'{"url":"http://a.example","product":true,"sessionContext":[{"name":"a","value":"b"}],'
        b'"sessionContextParameters":{"actions":[{"action":"click","selector":{"value":"a"}}]}}',
        b'{"url":"http://a.example","httpResponseBody":true,"experimental":{"responseCookies":true,'
        b'"requestCookies":[{"name":"a","value":"b","domain":""}]}}',
        b"\xef\xbb\xbf{}",
        b"[" * 600,
        b'{"url":"\\ud800","httpResponseBody":true}',
    ],
    refuses=(ContractError, InvalidJsonError),
    calls=(50_000, 200),
)
def extract_request(data: bytes) -> None:
    """A request that is taken has a plan, or what is wrong with it is said."""
    request = parse(data)
    planned = plan(request, _NO_PROXIES)
    assert planned.url.lower().startswith(("http://", "https://"))
    assert set(planned.url).isdisjoint("\r\n\t")  # one line of a request, whatever its host is
    assert check(msgspec.json.decode(data)) == []
    begun = first_page(request, planned)
    assert begun is None or begun.url == planned.url
    if isinstance(planned, PagePlan):
        assert len(planned.captures) <= MAX_CAPTURE_FILTERS
        assert all(isinstance(each.matches(planned.url, "document"), bool) for each in planned.captures)


@target(
    "request-cookies",
    [
        b'[{"name":"a","value":"b"}]',
        b'[{"name":"__Host-a","value":"","domain":".a.example","secure":true,"expires":1e9}]',
        b'[{"name":"","value":"x"},{"name":"a=b","value":";"},{"name":1}]',
        b'[{"name":"a","value":"b","path":"//x","sameSite":"Lax","httpOnly":true}]',
    ],
)
def request_cookies(data: bytes) -> None:
    """A cookie that is taken is one pair in a header, and can be set in a browser."""
    try:
        given = msgspec.json.decode(data, type=list[dict[str, object]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    cookies, faults = read_cookies(given)
    assert len(cookies) + len(faults) >= min(len(given), 1)
    for cookie in cookies:
        pair = cookie_pair(cookie.name, cookie.value)
        assert pair
        assert ";" not in pair
        assert not any(character < " " or character == "\x7f" for character in pair)
        param = _param(cookie, "http://user@a.example:80/x?y")
        assert ("url" in param) != ("domain" in param)
        msgspec.json.encode(param)
