"""Cookies of requests: as the server has set them, and in a time that grows with the length of the header alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

import scrapy_ext.server
from scrapy_ext.server.http.cookies import cookie_of, is_encrypted


def request(*cookies: str, scheme: str = "http", **headers: str) -> Request:
    sent = [("cookie", each) for each in cookies] + [(name.replace("_", "-"), each) for name, each in headers.items()]
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in sent]
    server = ("127.0.0.1", 8700)
    return Request({"type": "http", "scheme": scheme, "path": "/", "server": server, "headers": encoded})


@pytest.mark.parametrize("value", ["", "abc", "a,b c", 'say "no"', "a\\b", "a;b", "\t", "é", "%22", "'a'", '"'])
def test_a_cookie_comes_back_as_the_server_has_set_it(value: str) -> None:
    answer = Response()
    answer.set_cookie("chosen", value)
    assert (
        cookie_of(request(answer.headers["set-cookie"].partition("; Path")[0].partition("; path")[0]), "chosen")
        == value
    )


def test_one_of_several_cookies_is_read() -> None:
    several = request("a=1; session=first;b ; =x; session = last ; c=2", 'd="e"')
    assert cookie_of(several, "session") == "last"
    assert cookie_of(several, "d") == "e"
    assert cookie_of(several, "b") is None
    assert cookie_of(several, "none") is None
    assert cookie_of(request(), "session") is None


@pytest.mark.parametrize("piece", ["\\", '\\"', "\\07", ";", "session=", 'session="', " ", "="])
def test_a_hostile_header_takes_a_time_that_grows_with_its_length(piece: str) -> None:
    header = f'session="{piece * (2_000_000 // len(piece))}"'
    cookie_of(request(header), "session")


def test_nothing_of_the_server_reads_cookies_by_starlette() -> None:
    folder = Path(scrapy_ext.server.__file__).parent
    assert [path.name for path in folder.rglob("*.py") if "request.cookies" in path.read_text("utf-8")] == []


@pytest.mark.parametrize(
    ("scheme", "forwarded", "encrypted"),
    [
        ("http", "", False),
        ("https", "", True),
        ("http", "https", True),
        ("http", "HTTPS", True),
        ("http", "https, http", True),
        ("http", "http,https", False),
        ("http", "http", False),
        ("http", "httpsx", False),
    ],
)
def test_a_proxy_says_that_the_connection_is_encrypted(scheme: str, forwarded: str, *, encrypted: bool) -> None:
    headers = {"x_forwarded_proto": forwarded} if forwarded else {}
    assert is_encrypted(request(scheme=scheme, **headers)) == encrypted
