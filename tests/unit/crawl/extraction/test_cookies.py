"""Cookies that a service returns, in the jar of Scrapy's middleware."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware

from scrapy_ext.crawl.extraction.cookies import CrawlCookies, cookie_field, for_service
from scrapy_ext.crawl.extraction.response import to_response
from tests.support.crawlers import get_crawler

URL = "https://www.a.example/x"


class Jar:
    """A crawl's middleware for cookies, and what of ours fills it."""

    def __init__(self) -> None:
        self.middleware = CookiesMiddleware.from_crawler(get_crawler())
        crawler: Any = SimpleNamespace(get_downloader_middleware=lambda _kind: self.middleware)
        self.cookies = CrawlCookies(crawler)
        self.accepted: tuple[str, ...] = ("responseCookies", "followRedirect")

    def store(self, *returned: Any, url: str = URL, sent: Any = (), meta: Any = None, **result: Any) -> None:
        request = Request(URL, meta=meta)
        response = to_response(request, {"url": url, "browserHtml": "", "responseCookies": list(returned), **result})
        self.cookies.store(request, response, {"requestCookies": list(sent)}, self.accepted)

    def header(self, url: str = URL, **meta: Any) -> str:
        request = Request(url, meta=meta)
        self.middleware.process_request(request)
        return (request.headers.get("Cookie") or b"").decode()


def cookie(name: str, value: str = "1", domain: str = "www.a.example", **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "domain": domain, "path": "/", **more}


@pytest.fixture
def jar() -> Jar:
    return Jar()


def test_a_cookie_is_for_its_hosts_alone(jar: Jar) -> None:
    jar.store(cookie("host"), cookie("wide", domain=".a.example"), cookie("path", path="/x"), cookie("s", secure=True))
    assert set(jar.header().split("; ")) == {"host=1", "wide=1", "path=1", "s=1"}
    assert jar.header("https://m.a.example/x") == "wide=1"
    assert set(jar.header("http://www.a.example/").split("; ")) == {"host=1", "wide=1"}


def test_cookies_of_redirects_are_kept_and_those_of_strangers_are_not(jar: Jar) -> None:
    hop = {"url": "https://login.b.example/", "statusCode": 302}
    jar.store(
        cookie("first"),
        cookie("hop", domain="login.b.example"),
        cookie("wide", domain=".b.example"),
        cookie("last", domain="c.example"),
        cookie("stranger", domain="d.example"),
        cookie("public", domain=".example"),
        url="https://c.example/end",
        redirects=[hop],
    )
    assert jar.header() == "first=1"
    assert set(jar.header("https://login.b.example/").split("; ")) == {"hop=1", "wide=1"}
    assert jar.header("https://c.example/") == "last=1"
    assert jar.header("https://d.example/") == ""


def test_an_expired_cookie_is_deleted_and_one_that_expires_later_is_kept(jar: Jar) -> None:
    jar.store(cookie("old", expires=4e9), cookie("new", expires=1e300))
    assert jar.header() == "old=1; new=1"
    jar.store(cookie("old", expires=1.0), cookie("new"))
    assert jar.header() == "new=1"


def test_a_cookie_that_comes_back_as_it_was_sent_does_not_replace_the_one_in_the_jar(jar: Jar) -> None:
    jar.store(cookie("a", path="/x", expires=4e9))
    sent = [{"name": "a", "value": "1", "domain": "www.a.example", "path": "/x"}]
    jar.store(cookie("a", path="/x"), sent=sent)
    (kept,) = jar.middleware.jars[None].jar
    assert (kept.path, kept.expires) == ("/x", 4e9)
    jar.store(cookie("a", "2", path="/x"), sent=sent)
    assert jar.header() == "a=2"


def test_a_cookie_that_does_not_come_back_was_deleted(jar: Jar) -> None:
    sent = [
        {"name": "a", "value": "1", "domain": "www.a.example", "path": "/x"},
        {"name": "w", "value": "1", "domain": ".a.example"},
    ]
    jar.store(cookie("a", path="/x"), cookie("w", domain=".a.example"), cookie("kept"))
    jar.store(cookie("other"), sent=sent)
    assert jar.header() == "kept=1; other=1"
    # A page elsewhere, or a service that may return some only, does not show that.
    jar.store(url="https://c.example/", sent=[{"name": "kept", "value": "1", "domain": "www.a.example"}])
    jar.accepted = ()
    jar.store(sent=[{"name": "kept", "value": "1", "domain": "www.a.example"}])
    assert jar.header() == "kept=1; other=1"


def test_jars_are_apart_and_may_be_left_alone(jar: Jar) -> None:
    jar.store(cookie("a"), meta={"cookiejar": 7})
    jar.store(cookie("b"), meta={"dont_merge_cookies": True})
    assert (jar.header(), jar.header(cookiejar=7)) == ("", "a=1")


def test_a_cookie_is_sent_with_its_domain_and_its_path(jar: Jar) -> None:
    jar.store(
        cookie("host"),
        cookie("wide", domain=".a.example"),
        cookie("a", "1", path="/x"),
        cookie("a", "1"),
        cookie("a", "2", path="/x/"),
        cookie("b", path="/"),
        cookie("b", "1", path="/other"),
    )
    url = "https://www.a.example/x/y"

    def sent() -> list[tuple[str, ...]]:
        request = Request(url)
        jar.middleware.process_request(request)
        found = cookie_field(request, own=False, own_alone=False, known=jar.cookies.places)
        return [tuple(each.values()) for each in for_service(found["requestCookies"], jar.accepted)]

    here = "www.a.example"
    assert sorted(sent()) == [
        ("a", "1", here),
        ("a", "1", here, "/x"),
        ("a", "2", here, "/x/"),
        ("b", "1", here),
        ("host", "1", here),
        ("wide", "1", ".a.example"),
    ]
    # The contract has no paths: of another service, they are unknown.
    jar.accepted = ()
    assert {each[3:] for each in sent()} == {()}
