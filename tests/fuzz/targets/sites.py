"""Bytes that sites, proxies and pages send to the extraction service."""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import brotli
from aiohttp._cookie_helpers import parse_set_cookie_headers
from yarl import URL

from scrapy_ext.server.extraction.bans.detection import Outline, Received, ban_of
from scrapy_ext.server.extraction.encodings import text_of
from scrapy_ext.server.extraction.http.bodies import CodingError, undo
from scrapy_ext.server.extraction.http.cookie_jar import FetchCookies
from scrapy_ext.server.extraction.http.lenient_answers import LenientResponse
from scrapy_ext.server.extraction.outgoing import is_of_host
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.net import proxy
from scrapy_ext.server.net.upstream import ProxyRuleError, Upstream
from tests.fuzz.calls import run
from tests.fuzz.target import target

_TEXT = b"<html><title>t</title>" + b"text " * 40
_CODINGS = ("gzip", "deflate", "br", "zstd", "gzip, br", "x-gzip,identity", "zstd,zstd", "other, gzip", "a,b,c,d,e")


@target(
    "codings",
    [
        b"\x00" + gzip.compress(_TEXT),
        b"\x00" + gzip.compress(_TEXT) + gzip.compress(b"more") + b"rest",
        b"\x01" + zlib.compress(_TEXT),
        b"\x01" + zlib.compress(_TEXT)[2:-4],
        b"\x02" + brotli.compress(_TEXT),
        b"\x04" + brotli.compress(gzip.compress(_TEXT)),
        b"\x00" + gzip.compress(b"\0" * 100_000),
        b"\x03\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00a\xb6\x31\x64\xc4",
    ],
    refuses=(CodingError,),
)
def codings(data: bytes) -> None:
    """A body never becomes more than its limit."""
    if data:
        limit = 20_000
        assert len(undo(data[1:], _CODINGS[data[0] % len(_CODINGS)], limit)) <= limit


_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nno colon\r\nA: b\r\n c\r\n\r\nhello, too much"


@target(
    "lenient-answer",
    [
        b"\x05" + _ANSWER,
        b"\x01HTTP/1.1 100 Continue\r\n\r\n" + _ANSWER,
        b"\x07HTTP/1.1 204 No\nA: b\n\nx",
        b"\x09HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        b"\x03junk",
        b"\x03HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\nContent-Length: \xb2\r\n\r\n",
    ],
)
def lenient_answer(data: bytes) -> None:
    """The output does not depend on the pieces of the input, is never longer, and has one Content-Length at most."""
    if not data:
        return
    step, sent = max(data[0], 1), data[1:]
    whole, pieces = LenientResponse(), LenientResponse()
    at_once = whole.feed(sent) + whole.rest()
    in_pieces = b"".join(pieces.feed(sent[at : at + step]) for at in range(0, len(sent), step)) + pieces.rest()
    assert at_once == in_pieces
    assert whole.is_overrun == pieces.is_overrun
    assert len(at_once) <= len(sent)


@target(
    "proxy-head",
    [
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\nConnection: x\r\nA: b\r\n\r\n",
        b"POST http://[::1]:8080/ HTTP/1.0\r\nContent-Length: 5\r\n\r\n",
        b"GET http://u@example.com/ HTTP/1.1\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nContent-Length : 5\r\ncontent-length: 6\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://a/\xb2 HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n",
        b"GET http://a:99999/ HTTP/1.1\r\n\r\n",
    ],
    refuses=(proxy._Refused,),
)
def proxy_head(data: bytes) -> None:
    """The proxy forwards one head, to one host, with one body of known length."""
    raw = data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    head = proxy._read_head(raw)
    assert head.host
    assert 0 <= head.port <= 65535
    assert head.body >= 0
    if head.tunnel:
        return
    start, *lines = head.forward.removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert head.forward.endswith(b"\r\n\r\n")
    assert head.forward.count(b"\r\n\r\n") == 1
    assert start.endswith(b" HTTP/1.1")
    names = [line.partition(b":")[0].strip().lower() for line in lines]
    assert b"transfer-encoding" not in names
    assert names.count(b"content-length") == (head.body > 0 or b"content-length" in names)
    assert names.count(b"connection") == 1


@target(
    "proxy-answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nA: b\r\n\r\nbody",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 \xb2\r\n\r\n",
    ],
    refuses=(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError),
)
def proxy_answer(data: bytes) -> None:
    """The browser gets one head, which closes the connection."""

    async def read() -> bytes:
        there = asyncio.StreamReader(limit=4096)
        there.feed_data(data)
        there.feed_eof()
        return await proxy._answer_head(there)

    head = run(read())
    assert head.startswith(b"HTTP/1.")
    assert head.count(b"\r\n\r\n") == 1
    assert head.endswith(b"\r\nConnection: close\r\n\r\n")


#: What messages show of the form of a rule.
#: Words of the messages, which a password may be, too.
_EXAMPLE = "COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT US:residential=http://proxy.example:3128 weight verify name"


@target(
    "proxy-rule",
    [
        b"US:residential=http://user:pass%20word@proxy.example:3128",
        b"*:*=http://[::1]:1",
        b"us:datacenter=http://a",
        b"DE=http://secret@host:99999",
        b"*:*=http://h:1/#x",
        b"*:*=socks5://user:pass%20word@h:1?weight=3&name=one",
        b"*:*=https://user:pass%20word@h:1?verify=no",
        b"*:*=socks5://user:@h:1?weight=%31",
    ],
    longest=200,
)
def proxy_rule(data: bytes) -> None:
    """Neither the name of a rule nor what is wrong with it shows a password."""
    text = data.decode("utf-8", "replace")
    shown = ""
    try:
        upstream = Upstream(text)
        shown = f"{upstream.name} {upstream!r}"
    except ProxyRuleError as error:
        shown = str(error)
    named, _, address = text.partition("=")
    secret = re.search(r"//[^/?#@]*:([^/?#@]{6,})@", address)
    assert secret is None or secret[1] not in shown or secret[1] in named + _EXAMPLE


@target(
    "proxy-connect",
    [
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        b"HTTP/1.1 407 No\r\nA: b\r\n\r\n",
        b"HTTP/1.0 099 x\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
    ],
    refuses=(asyncio.IncompleteReadError, asyncio.LimitOverrunError),
)
def proxy_connect(data: bytes) -> None:
    """The answer of the operator's proxy has a status or none."""
    upstream = Upstream("*:*=http://user:password@127.0.0.1:1")

    async def ask() -> int:
        reader = asyncio.StreamReader(limit=4096)
        reader.feed_data(data)
        reader.feed_eof()
        endpoint: Any = SimpleNamespace(address="::1", port=80)
        return await upstream._ask((reader, _Sink()), endpoint)  # type: ignore[arg-type]

    assert 0 <= run(ask()) <= 999


class _Sink:
    """A writer that writes nowhere."""

    def write(self, data: bytes) -> None:
        assert data.count(b"\r\n\r\n") == 1

    async def drain(self) -> None:
        return


@target(
    "charset",
    [
        b"text/html; charset=utf-8\n<p>\xc3\xa4",
        b"\n<meta charset=iso-8859-1>\xe4",
        b"\n\xff\xfe<\0p\0",
        b"text/html; charset=punycode\nabc-",
        b"\n<meta http-equiv=content-type content='text/html; charset=utf-7'>+ADw-",
        b"text/html; charset=\xff\n<?xml version='1.0' encoding='hz'?>~{",
    ],
)
def charset(data: bytes) -> None:
    """Every page is text, and not much longer than it was."""
    kind, _, body = data.partition(b"\n")
    assert len(text_of(kind.decode("latin-1") or None, body)) <= 2 * len(body) + 2


@target(
    "set-cookie",
    [
        b"a=1; Path=/; Domain=.a.example; Max-Age=10\nb=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Secure; HttpOnly",
        b"a=1\na=2; Path=/x\na=; Max-Age=0\na=3; Max-Age=-9999999999999999999999",
        b"=x\n;\na=b; Domain=other.example\nc=d; Domain=a.example.; SameSite=none",
        b"\xff=\xfe; Path=\xfd; Expires=Wed, 99 Xxx 9999 99:99:99 GMT",
        b"__Host-a=1; Domain=a.example; Path=//; Domain=..",
    ],
)
def set_cookie(data: bytes) -> None:
    """Cookies of a site are sent to it alone, and come out of a session as they went in."""

    async def keep() -> None:
        """aiohttp makes a jar only where a loop runs."""
        _keep(data)

    run(keep())


def _keep(data: bytes) -> None:
    place = URL("http://www.a.example/x/y")
    kept = FetchCookies((), (), place)
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        kept.keep(parse_set_cookie_headers([line]), place)
    stored = kept.stored()
    assert all(is_of_host(cookie["domain"], "www.a.example") for cookie in stored)
    again = FetchCookies((), stored, place)
    key = itemgetter("name", "value", "domain", "path")
    assert sorted(map(key, again.stored())) == sorted(map(key, stored))
    for url in (place, URL("http://a.example/"), URL("http://www.other.example/")):
        assert again.header(url, first=True) == kept.header(url, first=True)
    merged = SessionState().merged(SessionState(), SessionState(stored), 10_000)
    assert merged.size <= 10_000


@target(
    "ban-page",
    [
        b"\x00\x00<title>Just a moment...</title><script>window._cf_chl_opt={}</script>",
        b"\x01\x01<form><div class=g-recaptcha></div>are you a robot<input type=password></form>",
        b"\x02\x02<!-- <script> --><title><textarea style='display: none'>",
        b"\x03\x00<svg/><iframe",
        b"\x00\x01</script></title><a",
        b'\x01\x00{"appId":1,"blockScript":2,"jsClientSrc":3}',
    ],
)
def ban_page(data: bytes) -> None:
    """Every page has a verdict, the same for bytes and text, and no more is seen of it than it has."""
    if len(data) < 2:
        return
    status = (200, 403, 429, 503)[data[0] % 4]
    kind = ("text/html", "application/json", "")[data[1] % 3]
    page = data[2:]
    headers = {"content-type": kind, "cf-mitigated": page[:9].decode("latin-1")}
    urls = ("https://a.example/", "https://a.example/" + page[-20:].decode("latin-1"))
    by_bytes = ban_of(Received(*urls, status, headers, page))
    assert by_bytes == ban_of(Received(*urls, status, headers, page.decode("latin-1")))
    assert len(Outline(page.decode("latin-1")).text) <= 2 * len(page)
