"""Logging in: who gets in, how long, what a session may do, and that no other site can act in its name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import quote

import aiohttp
import lxml.html
import pytest

from scrapy_ext.server.auth.api_keys import Keyring, add_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.ui.sessions import LIFETIME, Sessions, local_path
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

HTML = {"Accept": "text/html,*/*;q=0.8"}


class Browser:
    """As much of a browser as keeps cookies and sends forms, and says where they come from."""

    def __init__(self, url: str, address: str = "127.0.0.1") -> None:
        self.url = url
        connector = aiohttp.TCPConnector(local_addr=(address, 0))
        jar = aiohttp.CookieJar(unsafe=True)
        self.session = aiohttp.ClientSession(cookie_jar=jar, headers=HTML, connector=connector)

    async def get(self, path: str, *, follow: bool = True) -> aiohttp.ClientResponse:
        answer = await self.session.get(self.url + path, allow_redirects=follow)
        await answer.read()
        return answer

    async def post(self, path: str, fields: dict[str, str], *, follow: bool = False, **headers: str):
        named = {"Origin": self.url, **{name.replace("_", "-"): value for name, value in headers.items()}}
        answer = await self.session.post(self.url + path, data=fields, headers=named, allow_redirects=follow)
        await answer.read()
        return answer

    async def log_in(self, key: str) -> aiohttp.ClientResponse:
        return await self.post("/login", {"key": key})

    async def token(self, path: str = "/") -> str:
        document = lxml.html.document_fromstring(await (await self.get(path)).text())
        return document.xpath("//input[@name='token']/@value")[0]


async def known(server: RunningServer, key: str) -> str:
    """The key, once the server knows it."""
    async with Http(server.url, key) as http:
        await eventually_async(lambda: http.get("/"), lambda answer: answer.status == 200)
    return key


@pytest.fixture
async def browser(server: RunningServer) -> AsyncIterator[Browser]:
    browser = Browser(server.url)
    yield browser
    await browser.session.close()


async def test_a_person_is_led_to_the_login_and_from_there_to_the_page(server: RunningServer, browser: Browser) -> None:
    asked = await browser.get("/ui/1/jobs?state=running", follow=False)
    assert asked.status == 303
    assert asked.headers["Location"] == "/login?next=" + quote("/ui/1/jobs?state=running", safe="")
    form = lxml.html.document_fromstring(await (await browser.get("/ui/1/jobs?state=running")).text())
    fields = {"next": form.xpath("//input[@name='next']/@value")[0], "key": server.platform_key}
    answer = await browser.post("/login", fields)
    assert (answer.status, answer.headers["Location"]) == (303, "/ui/1/jobs?state=running")
    page = await browser.get("/ui/1/jobs?state=running")
    assert page.status == 200
    assert "Log out" in await page.text()


async def test_the_cookie_is_for_the_server_only_and_does_not_have_the_key(
    server: RunningServer, browser: Browser
) -> None:
    answer = await browser.log_in(server.platform_key)
    (cookie,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    assert cookie["httponly"]
    assert cookie["samesite"] == "strict"
    assert 0 < int(cookie["max-age"]) <= 24 * 3600
    assert server.platform_key not in answer.headers["Set-Cookie"]
    behind_tls = await browser.post("/login", {"key": server.platform_key}, X_Forwarded_Proto="https")
    assert "Secure" in behind_tls.headers["Set-Cookie"]


async def test_tools_bring_the_key_themselves(server: RunningServer) -> None:
    async with Http(server.url, None) as http:
        answer = await http.get("/")
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")
        assert "user name" in answer.text
        assert (await http.get("/ui/static/style.css")).status == 200
        assert (await http.get("/ui/static/none.css")).status == 404
    async with Http(server.url, server.platform_key) as http:
        assert (await http.get("/")).status == 200
    async with Http(server.url, "wrong") as http:
        assert (await http.get("/", Accept="text/html")).status == 401


async def test_a_wrong_key_is_refused_and_may_not_be_tried_without_end(server: RunningServer, browser: Browser) -> None:
    # From an address of its own, which other tests do not come from.
    guesser = Browser(server.url, "127.0.0.9")
    answer = await guesser.log_in("wrong")
    assert answer.status == 403
    assert "This key has no access here" in await answer.text()
    assert "Set-Cookie" not in answer.headers
    refused = [await guesser.log_in("wrong") for _ in range(20)][-1]
    assert refused.status == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 2
    await guesser.session.close()
    assert (await browser.log_in(server.platform_key)).status == 303


async def test_a_changed_or_foreign_cookie_opens_nothing(server: RunningServer, browser: Browser) -> None:
    answer = await browser.log_in(server.platform_key)
    (cookie,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    browser.session.cookie_jar.clear()
    text, _, signature = cookie.value.partition(".")
    for value in (
        "",
        ".",
        "x",
        f"{text}.",
        f"{text[:-2]}AA.{signature}",
        f"{text}.{signature[:-1]}",
        "é.é",
        f".{signature}",
    ):
        headers = {"Cookie": f"{cookie.key}={value}".encode().decode("latin-1")}
        async with browser.session.get(browser.url + "/", headers=headers, allow_redirects=False) as refused:
            assert refused.headers["Location"] == "/login"
    headers = {"Cookie": f"{cookie.key}={cookie.value}"}
    async with browser.session.get(browser.url + "/", headers=headers) as let_in:
        assert "Log out" in await let_in.text()


async def test_a_form_needs_its_token_and_must_come_from_a_page_of_the_server(
    server: RunningServer, browser: Browser
) -> None:
    await browser.log_in(server.platform_key)
    token = await browser.token()
    path = "/logout"
    for fields, headers in (
        ({}, {}),
        ({"token": "0" * 64}, {}),
        ({"token": token}, {"Origin": "http://evil.example"}),
        ({"token": token}, {"Origin": "null"}),
        ({"token": token}, {"Sec_Fetch_Site": "cross-site"}),
        ({"token": token}, {"Sec_Fetch_Site": "same-site"}),
    ):
        assert (await browser.post(path, fields, **headers)).status == 403
    assert (await browser.post("/login", {"key": server.platform_key}, Origin="http://evil.example")).status == 403
    assert re.fullmatch("/ui/[0-9]+", (await browser.get("/", follow=False)).headers["Location"])
    ended = await browser.post(path, {"token": token}, Sec_Fetch_Site="same-origin")
    assert ended.headers["Location"] == "/login"
    assert (await browser.get("/", follow=False)).headers["Location"] == "/login"


@pytest.mark.long
async def test_a_session_ends_with_its_key_and_is_good_on_every_server_of_the_database(
    server: RunningServer, browser: Browser, project: int
) -> None:
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"person-{project}", frozenset({project}), may_write=True)
        await browser.log_in(await known(server, key))
        with ForkedServer(server.data, database=server.database) as other:
            async with browser.session.get(other.url + f"/ui/{project}/jobs") as page:
                assert "Log out" in await page.text()
        for change in (store.keys.suspend(f"person-{project}", True), store.keys.remove(f"person-{project}")):
            await change
            await eventually_async(
                lambda: browser.get("/", follow=False), lambda answer: answer.headers["Location"] == "/login"
            )
            await store.keys.suspend(f"person-{project}", False)
        await known(server, await add_key(store, f"person-{project}", None, may_write=True))
        assert (await browser.get("/", follow=False)).headers["Location"] == "/login"
    finally:
        await store.close()


async def test_a_key_sees_its_projects_only_and_one_that_may_read_is_offered_nothing_else(
    server: RunningServer, browser: Browser, http: Http, project: int
) -> None:
    await http.post(f"/jobq/{project}/push", [{"spider": "books"}])
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"reader-{project}", frozenset({project}), may_write=False)
    finally:
        await store.close()
    await browser.log_in(await known(server, key))
    page = await browser.get("/")
    assert page.url.path == f"/ui/{project}"
    forms = lxml.html.document_fromstring(await page.text()).xpath("//form[@method='post']/@action")
    assert forms == ["/logout"]
    assert (await browser.get(f"/ui/{project + 100000}/jobs")).status == 404
    token = await browser.token()
    for path in (f"/ui/{project}/jobs",):
        refused = await browser.post(path, {"token": token})
        assert refused.status in (403, 405)


@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("/ui/1/jobs?a=b", "/ui/1/jobs?a=b"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
        ("/" + "a" * 3000, "/"),
    ],
    ids=range(8),
)
def test_nobody_is_led_to_another_site(address: str, where: str) -> None:
    assert local_path(address) == where


def cookie_of(answer: aiohttp.ClientResponse) -> tuple[str, str]:
    (cookie,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    return cookie.key, cookie.value


async def opens(server: RunningServer, name: str, value: str) -> bool:
    """Return True if a cookie opens a page in a browser that never logged in."""
    other = Browser(server.url)
    async with (
        other.session,
        other.session.get(
            f"{other.url}/ui/activity", headers={"Cookie": f"{name}={value}"}, allow_redirects=False
        ) as answer,
    ):
        return answer.status == 200


async def test_a_cookie_that_was_planted_before_the_login_is_never_that_of_the_session(
    server: RunningServer, browser: Browser
) -> None:
    name, first = cookie_of(await browser.log_in(server.platform_key))
    planted = Browser(server.url)
    planted.session.cookie_jar.update_cookies({name: first})
    own = cookie_of(await planted.log_in(server.platform_key))
    again = cookie_of(await planted.log_in(server.platform_key))
    assert len({first, own[1], again[1]}) == 3
    for value in ("planted", f"{first}x", "a.b"):
        planted.session.cookie_jar.clear()
        planted.session.cookie_jar.update_cookies({name: value})
        assert cookie_of(await planted.log_in(server.platform_key))[1] != value
    await planted.session.close()


async def test_logging_out_ends_the_session_for_every_copy_of_its_cookie_and_on_every_server(
    server: RunningServer, browser: Browser
) -> None:
    other = Browser(server.url)
    theirs = cookie_of(await other.log_in(server.platform_key))
    name, value = cookie_of(await browser.log_in(server.platform_key))
    assert await opens(server, name, value)
    await browser.post("/logout", {"token": await browser.token()})
    assert not await opens(server, name, value)
    with ForkedServer(server.data, database=server.database) as beside:
        assert not await opens(beside, name, value)
        assert await opens(server, *theirs)
    await other.session.close()


async def test_a_login_ends_the_session_that_it_replaces(server: RunningServer, browser: Browser) -> None:
    older = cookie_of(await browser.log_in(server.platform_key))
    assert (await browser.log_in("a wrong key")).status == 403
    assert await opens(server, *older)
    newer = cookie_of(await browser.log_in(server.platform_key))
    assert [await opens(server, *cookie) for cookie in (older, newer)] == [False, True]


async def test_a_cookie_opens_nothing_in_any_browser_once_its_key_is_gone(
    server: RunningServer, browser: Browser, project: int
) -> None:
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"gone-{project}", None, may_write=True)
        name, value = cookie_of(await browser.log_in(await known(server, key)))
        assert await opens(server, name, value)
        await store.keys.remove(f"gone-{project}")
        await eventually_async(lambda: opens(server, name, value), lambda value: not value)
    finally:
        await store.close()


async def test_ended_sessions_are_kept_until_they_would_have_ended(tmp_path: Path) -> None:
    now = 1_000_000
    store = await Store.open(tmp_path, lambda: now)
    await store.keys.end_session("one", 60)
    now += 61_000
    assert await store.keys.has_ended("one")
    await store.keys.end_session("two", 60)
    assert [await store.keys.has_ended(name) for name in ("one", "two", "three")] == [False, True, False]
    await store.close()


async def test_a_session_that_was_begun_by_a_clock_that_was_wrong_does_not_last_longer(tmp_path: Path) -> None:
    now = 1_700_000_000_000
    store = await Store.open(tmp_path, lambda: now)
    keys = Keyring()
    await keys.load(store, "extract-key", "platform-key")
    sessions = Sessions(store, keys)
    now += 365 * 24 * 3_600_000
    wrong = await sessions.begin("platform-key")
    now -= 365 * 24 * 3_600_000
    right = await sessions.begin("platform-key")
    assert wrong is not None
    assert right is not None
    assert await sessions.of_cookie(wrong) is None
    now -= 60_000  # as much as clocks of two servers differ
    assert await sessions.of_cookie(right) is not None
    now += LIFETIME * 1000 + 60_000
    assert await sessions.of_cookie(right) is None
    await store.close()
