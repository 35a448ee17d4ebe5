"""Sessions over HTTP and in a real browser, and the fields of hosted services: devices, scripts, captured responses."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import time
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from playwright.async_api import Response

from tests.acceptance.server.extraction.browser.conftest import SHORT_LIMITS, serving
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Call, Target
from tests.support.upstream_proxy import Upstream

STORE = """<script>
localStorage.setItem('cart', '3');
const opening = indexedDB.open('shop');
opening.onupgradeneeded = () => opening.result.createObjectStore('items', {keyPath: 'id'}).put({id: 'kettle'});
document.cookie = 'script=1';
</script>"""
READ = """<p id=cart></p><script>document.querySelector('p').textContent =
localStorage.getItem('cart') + ' ' + document.cookie</script>"""


def session() -> dict[str, Any]:
    return {"session": {"id": str(uuid4())}}


@pytest.fixture
def echo(site: Target) -> str:
    """URL of a page that shows its request."""

    async def handler(call: Call, writer: asyncio.StreamWriter) -> None:
        page = f"<pre>{json.dumps(dict(call.headers))}</pre>".encode()
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page) + page)
        await writer.drain()

    return site.handle("/echo", handler)


def sent(service: Service, url: str, **fields: Any) -> dict[str, str]:
    """Headers of an HTTP request that the page at ``url`` shows, by their names in lower case."""
    body = service.result(url=url, httpResponseBody=True, **fields)["httpResponseBody"]
    shown: dict[str, str] = json.loads(base64.b64decode(body).decode()[5:-6])
    return {name.lower(): value for name, value in shown.items()}


def test_a_session_has_the_same_cookies_and_storage_over_http_and_in_the_browser(
    service: Service, site: Target, echo: str
) -> None:
    mine = session()
    service.result(
        url=site.page("/in", "<p>in", Set_Cookie="sid=1; HttpOnly; Max-Age=900"), httpResponseBody=True, **mine
    )
    service.result(url=site.page("/store", STORE), browserHtml=True, **mine)
    assert sent(service, echo, **mine)["cookie"].split("; ") == ["sid=1", "script=1"]
    assert "3 script=1" in service.result(url=site.page("/read", READ), browserHtml=True, **mine)["browserHtml"]
    # Neither a request without it nor another session knows of it.
    assert "cookie" not in sent(service, echo)
    assert "cookie" not in sent(service, echo, **session())
    assert "null " in service.result(url=site.url("/read"), browserHtml=True)["browserHtml"]
    # Another key with the same identifier has a session of its own.
    answer = service.extract(key="second", url=echo, httpResponseBody=True, **mine)
    assert b"sid=1" not in base64.b64decode(answer.json["httpResponseBody"])
    # What the site deletes is gone.
    service.result(url=site.page("/out", "<p>out", Set_Cookie="sid=; Max-Age=0"), browserHtml=True, **mine)
    assert sent(service, echo, **mine)["cookie"] == "script=1"


def test_cookies_that_browsers_refuse_do_not_harm_the_others(service: Service, site: Target, echo: str) -> None:
    mine = session()
    odd = b"".join(
        b"Set-Cookie: %b\r\n" % line
        for line in (b"__Host-a=1", b"b=%b" % (b"x" * 5000), b"c=3; SameSite=None", b"good=1", b"d=4; Expires=never")
    )
    service.result(
        url=site.raw("/odd", b"HTTP/1.1 200 X\r\n%bContent-Length: 2\r\n\r\nok" % odd), httpResponseBody=True, **mine
    )
    assert "good=1" in service.result(url=echo, browserHtml=True, **mine)["browserHtml"]
    # The browser's request changed none of those that HTTP has.
    assert {"good=1", "c=3", "__Host-a=1"} <= set(sent(service, echo, **mine)["cookie"].split("; "))


def test_cookies_of_a_session_are_for_their_hosts_alone(service: Service, site: Target, echo: str) -> None:
    mine = session()
    site.raw(
        "/two",
        b"HTTP/1.1 200 X\r\nSet-Cookie: host=1\r\nSet-Cookie: wide=1; Domain=shop.example\r\n"
        b"Content-Type: text/html\r\nContent-Length: 2\r\n\r\nok",
    )
    for output in ("httpResponseBody", "browserHtml"):
        service.result(url="http://shop.example/two", **{output: True}, **mine)
        for url, cookies in (("http://shop.example/echo", ["host=1", "wide=1"]), ("http://other.example/echo", [])):
            assert sorted(filter(None, sent(service, url, **mine).get("cookie", "").split("; "))) == cookies
            html = service.result(url=url, browserHtml=True, **mine)["browserHtml"]
            assert [name for name in ("host=1", "wide=1") if name in html] == cookies


def test_requests_of_a_session_at_the_same_time_keep_each_others_cookies(service: Service, site: Target) -> None:
    mine = session()
    arrived = 0

    def cookie_page(name: str) -> str:
        async def handler(call: Call, writer: asyncio.StreamWriter) -> None:
            nonlocal arrived
            arrived += 1
            while arrived < 3:  # All of them have begun with the same state.
                await asyncio.sleep(0.01)
            writer.write(f"HTTP/1.1 200 X\r\nSet-Cookie: {name}=1\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()

        return site.handle(f"/{name}", handler)

    urls = [cookie_page(name) for name in "abc"]

    async def all_at_once() -> None:
        await asyncio.gather(
            *(asyncio.to_thread(service.result, url=url, httpResponseHeaders=True, **mine) for url in urls)
        )

    asyncio.run(all_at_once())
    url = site.page("/now", "<p>now")
    cookies = service.result(url=url, httpResponseBody=True, responseCookies=True, **mine)["responseCookies"]
    assert {cookie["name"] for cookie in cookies} == {"a", "b", "c"}


def test_a_context_is_begun_once_by_its_actions_and_is_of_a_site_and_a_name(
    service: Service, site: Target, echo: str
) -> None:
    set_cookie = {"action": "evaluate", "source": "document.cookie = 'user=me'"}
    context = {"sessionContext": [{"name": "user", "value": str(uuid4())}]}
    begun = {**context, "sessionContextParameters": {"actions": [set_cookie]}}
    site.calls.clear()
    assert [sent(service, echo, **begun)["cookie"] for _ in range(3)] == ["user=me"] * 3
    assert len(site.calls_of("/echo")) == 4
    # Without the parameters, the context is the same one.
    assert sent(service, echo, **context)["cookie"] == "user=me"
    other = {"sessionContext": [{"name": "user", "value": "another"}]}
    assert "cookie" not in sent(service, echo, **other)


def test_a_context_whose_actions_fail_is_not_begun(service: Service, site: Target, echo: str) -> None:
    click = {"action": "click", "selector": {"value": "#nothing"}, "timeout": 0.5}
    context = {
        "sessionContext": [{"name": "user", "value": str(uuid4())}],
        "sessionContextParameters": {"actions": [click]},
    }
    detail = service.problem(503, "/problem/session-creation-error", url=echo, httpResponseBody=True, **context)
    assert "sessionContextParameters.actions: click failed" in detail
    wrong = {**context, "sessionContextParameters": {"actions": [{"action": "jump"}]}}
    detail = service.problem(400, "/request/invalid", url=echo, httpResponseBody=True, **wrong)
    assert "sessionContextParameters.actions[0].action" in detail


def test_sessions_of_a_key_and_of_all_are_counted(site: Target) -> None:
    with serving(site, msgspec.structs.replace(SHORT_LIMITS, sessions=4, sessions_of_key=3)) as service:
        fields = {"url": site.page("/one", "<p>one", Set_Cookie="a=1"), "httpResponseBody": True}
        mine = session()
        service.result(**fields, **mine)
        # Those that the service began make room for new ones; those of callers do not.
        for name in "123":
            service.result(**fields, sessionContext=[{"name": "user", "value": name}])
        service.result(**fields, **session())
        service.result(**fields, **session())
        detail = service.problem(422, "/problem/over-session-limit", **fields, **session())
        assert "this API key has 3 open sessions" in detail
        assert service.result(**fields, **mine)["statusCode"] == 200
        # Another key gets a share, of the key with the most sessions.
        for _ in range(2):
            assert service.extract(key="second", **fields, **session()).status == 200
        answer = service.extract(key="second", **fields, **session())
        assert (answer.status, "this server has 4 open sessions" in answer.json["detail"]) == (422, True)
        assert service.result(**fields, **mine)["statusCode"] == 200


def test_a_session_that_is_not_used_expires_and_is_not_another_one_afterwards(site: Target) -> None:
    with serving(site, msgspec.structs.replace(SHORT_LIMITS, session_idle=0.5)) as service:
        fields = {"url": site.page("/one", "<p>one", Set_Cookie="a=1"), "httpResponseBody": True}
        mine, context = session(), {"sessionContext": [{"name": "user", "value": "1"}]}
        service.result(**fields, **mine)
        service.result(**fields, **context)
        time.sleep(0.6)
        assert "Use a new UUID" in service.problem(422, "/problem/session-expired", **fields, **mine)
        # One of the service begins again.
        site.calls.clear()
        service.result(**fields, **context)
        assert site.calls_of("/one")[0].header("cookie") is None


@pytest.mark.long
def test_storage_beyond_the_limit_of_bytes_is_not_kept(site: Target) -> None:
    with serving(site, msgspec.structs.replace(SHORT_LIMITS, session_bytes=3000)) as service:
        mine = session()
        large = "<script>localStorage.setItem('cart', 'x'.repeat(3000)); document.cookie = 'small=1'</script>"
        service.result(url=site.page("/large", large), browserHtml=True, **mine)
        assert "null small=1" in service.result(url=site.page("/read", READ), browserHtml=True, **mine)["browserHtml"]


def test_a_session_sends_through_the_proxy_that_it_began_with(site: Target) -> None:
    with Upstream() as one, Upstream() as two:
        proxies = tuple(f"*:*={proxy.address}" for proxy in (one, two))
        with Service(allow_hosts=(site.host,), proxies=proxies, limits=SHORT_LIMITS) as service:
            url = site.page("/", "<p>here")
            for _ in range(3):
                mine = session()
                one.asked.clear()
                two.asked.clear()
                for _ in range(4):
                    service.result(url=url, httpResponseHeaders=True, **mine)
                assert min(len(one.asked), len(two.asked)) == 0


# ── the other fields ──


def test_a_mobile_device_is_one_to_the_site(service: Service, site: Target, echo: str) -> None:
    assert "Mobile Safari" in sent(service, echo, device="mobile")["user-agent"]
    page = (
        "<meta name=viewport content='width=device-width'><script>document.write(innerWidth, ' ', "
        "'ontouchstart' in window, ' ', navigator.userAgent, navigator.userAgentData?.mobile)</script>"
    )
    html = service.result(url=site.page("/device", page), browserHtml=True, device="mobile")["browserHtml"]
    assert "412 true Mozilla/5.0 (Linux; Android 10; K)" in html
    assert "Safari/537.36true" in html
    wide = service.result(url=site.url("/device"), browserHtml=True, device="mobile", viewport={"width": 600})
    assert "600 true" in wide["browserHtml"]
    assert "1280 false Mozilla/5.0 (X11" in service.result(url=site.url("/device"), browserHtml=True)["browserHtml"]


def test_scripts_do_not_run_without_javascript(service: Service, site: Target) -> None:
    url = site.page("/scripts", "<h1>before</h1><script>document.querySelector('h1').textContent = 'after'</script>")
    assert "<h1>before" in service.result(url=url, browserHtml=True, javascript=False)["browserHtml"]
    assert "<h1>after" in service.result(url=url, browserHtml=True, javascript=True)["browserHtml"]


def test_responses_that_filters_match_are_captured(service: Service, site: Target) -> None:
    site.page("/api/items", '{"items": [1]}', Content_Type="application/json", X_Page="2")
    site.page("/api/more", "", 302, Location="/api/items")
    site.page("/style.css", "p {}", Content_Type="text/css")
    url = site.page(
        "/app",
        "<link rel=stylesheet href=/style.css><script>"
        "fetch('/api/items?page=2').then(() => fetch('/api/more')).then(() => document.body.append('done'))</script>",
    )
    filters = [{"filterType": "url", "value": "/api/", "matchType": "contains", "httpResponseBody": True}]
    found = service.result(url=url, browserHtml=True, networkCapture=filters)["networkCapture"]
    assert [(entry["url"], entry["statusCode"]) for entry in found] == [
        (site.url("/api/items?page=2"), 200),
        (site.url("/api/more"), 302),
        (site.url("/api/items"), 200),
    ]
    assert json.loads(base64.b64decode(found[0]["httpResponseBody"])) == {"items": [1]}
    assert found[0]["headers"]["x-page"] == "2"
    assert "httpResponseBody" not in found[1]
    filters = [{"filterType": "resourceType", "value": "stylesheet"}]
    (entry,) = service.result(url=url, browserHtml=True, networkCapture=filters)["networkCapture"]
    assert (entry["url"], "httpResponseBody" in entry) == (site.url("/style.css"), False)
    none = [{"filterType": "url", "value": "/nothing"}]
    assert service.result(url=url, browserHtml=True, networkCapture=none)["networkCapture"] == []


@pytest.mark.long
def test_captured_bodies_are_bounded(site: Target) -> None:
    with serving(site, msgspec.structs.replace(SHORT_LIMITS, capture_bytes=1000)) as service:
        site.page("/api/1", "x" * 600, Content_Type="text/plain")
        url = site.page("/two", "<script>fetch('/api/1').then(() => fetch('/api/1?again'))</script>")
        filters = [{"filterType": "url", "value": "/api/", "matchType": "contains", "httpResponseBody": True}]
        found = service.result(url=url, browserHtml=True, networkCapture=filters)["networkCapture"]
        assert ["httpResponseBody" in entry for entry in found] == [True, False]


def test_cookies_under_their_older_name(service: Service, site: Target, echo: str) -> None:
    cookies = {"requestCookies": [{"name": "a", "value": "1", "domain": ""}], "responseCookies": True}
    result = service.result(url=echo, httpResponseBody=True, experimental=cookies)
    assert b'"a=1"' in base64.b64decode(result["httpResponseBody"])
    assert [cookie["name"] for cookie in result["experimental"]["responseCookies"]] == ["a"]
    assert "responseCookies" not in result


# ── bounds ──

FILL = """<p>filling<script>
document.cookie = 'small=1';
localStorage.setItem('cart', '3');
const opening = indexedDB.open('shop');
opening.onupgradeneeded = () => opening.result.createObjectStore('items');
opening.onsuccess = () => {
  const writing = opening.result.transaction('items', 'readwrite');
  for (let i = 0; i < 12; i++) writing.objectStore('items').put('x'.repeat(2 ** 20) + i, i);
  writing.oncomplete = () => document.body.insertAdjacentHTML('beforeend', '<p class=full>full');
};
</script>"""
FULL = [{"action": "waitForSelector", "selector": {"value": ".full"}}]
SIZE = """<p>counting<script>
const opening = indexedDB.open('shop');
const show = (text) => document.body.insertAdjacentHTML('beforeend', `<p class=full>${text}</p>`);
opening.onupgradeneeded = () => opening.result.createObjectStore('items');
opening.onsuccess = () => {
  const counting = opening.result.transaction('items').objectStore('items').count();
  counting.onsuccess = () => show(counting.result + ' items, cart ' + localStorage.getItem('cart'));
};
</script>"""


@pytest.mark.long
def test_a_large_database_of_a_page_is_not_kept_and_the_rest_of_its_storage_is(service: Service, site: Target) -> None:
    mine = session()
    service.result(url=site.page("/fill", FILL), browserHtml=True, actions=FULL, **mine)
    result = service.result(url=site.page("/size", SIZE), browserHtml=True, actions=FULL, responseCookies=True, **mine)
    assert "0 items, cart 3" in result["browserHtml"]
    assert [cookie["name"] for cookie in result["responseCookies"]] == ["small"]


@pytest.mark.long
def test_a_small_database_is_kept(service: Service, site: Target) -> None:
    mine = session()
    small = FILL.replace("2 ** 20", "2 ** 10")
    service.result(url=site.page("/fill", small), browserHtml=True, actions=FULL, **mine)
    html = service.result(url=site.page("/size", SIZE), browserHtml=True, actions=FULL, **mine)["browserHtml"]
    assert "12 items, cart 3" in html


@pytest.mark.long
def test_the_large_storage_of_a_frame_leaves_that_of_the_page(service: Service, site: Target) -> None:
    mine = session()
    site.page("/frame", "<script>localStorage.setItem('cart', 'x'.repeat(4_000_000))</script>")
    page = "<iframe src='http://other.example/frame'></iframe><script>localStorage.setItem('cart', '3')</script>"
    site.page("/large", page)
    service.result(url="http://shop.example/large", browserHtml=True, **mine)
    site.page("/read", READ)
    for host, cart in (("shop", "3"), ("other", "null")):
        html = service.result(url=f"http://{host}.example/read", browserHtml=True, **mine)["browserHtml"]
        assert f'<p id="cart">{cart} </p>' in html


BODIES = [{"filterType": "url", "value": "/api/", "matchType": "contains", "httpResponseBody": True}]


def compressed(site: Target, path: str, mebibytes: int) -> None:
    body = gzip.compress(bytes(mebibytes * 2**20))
    head = (
        f"HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    site.raw(path, head.encode() + body)


@pytest.mark.long
def test_a_captured_body_is_not_read_if_it_has_no_room_after_decompression(
    site: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = Response.body

    async def noted(response: Response) -> bytes:
        body = await original(response)
        read.append(len(body))
        return body

    monkeypatch.setattr(Response, "body", noted)
    fetching = """<script>
    const all = [...Array(8).keys()].map((i) => fetch('/api/large?' + i).then((it) => it.text()))
    Promise.allSettled(all).then(() => document.body.append('all are read'))
    </script>"""
    until_read = [{"action": "waitForSelector", "selector": {"type": "text", "value": "all are read"}, "timeout": 30}]
    with serving(site, msgspec.structs.replace(SHORT_LIMITS, capture_bytes=4 * 2**20, actions=60)) as service:
        compressed(site, "/api/large", 5)
        url = site.page("/eight", f"<p>here{fetching}")
        result = service.result(url=url, browserHtml=True, networkCapture=BODIES)
        assert "<p>here" in result["browserHtml"]
        assert ["httpResponseBody" in entry for entry in result["networkCapture"]] == [False] * 8
        assert read == []
        compressed(site, "/api/large", 1)
        found = service.result(url=url, browserHtml=True, networkCapture=BODIES, actions=until_read)["networkCapture"]
        assert sum("httpResponseBody" in entry for entry in found) == 3
        assert read == [2**20] * 3


def test_a_compressed_body_of_a_frame_of_another_site_is_captured(service: Service, site: Target) -> None:
    compressed(site, "/api/small", 1)
    site.page("/frame", "<script>fetch('/api/small').then((it) => it.text())</script>")
    site.page("/framing", "<iframe src='http://other.example/frame'></iframe>")
    result = service.result(url="http://shop.example/framing", browserHtml=True, networkCapture=BODIES)
    (found,) = result["networkCapture"]
    assert len(base64.b64decode(found["httpResponseBody"])) == 2**20


@pytest.mark.long
def test_captured_headers_count(site: Target) -> None:
    with serving(site, msgspec.structs.replace(SHORT_LIMITS, capture_bytes=2000)) as service:
        site.page("/api/1", "x", X_Long="x" * 1500)
        url = site.page("/two", "<script>fetch('/api/1').then(() => fetch('/api/1?again'))</script>")
        (found,) = service.result(url=url, browserHtml=True, networkCapture=BODIES)["networkCapture"]
        assert base64.b64decode(found["httpResponseBody"]) == b"x"


@pytest.mark.long
def test_requests_that_wait_for_a_context_share_its_failure_and_hold_no_permit(site: Target) -> None:
    click = {"action": "click", "selector": {"value": "#nothing"}, "timeout": 2}
    context = {
        "sessionContext": [{"name": "user", "value": "1"}],
        "sessionContextParameters": {"actions": [click]},
    }
    with serving(site, msgspec.structs.replace(SHORT_LIMITS, requests=2)) as service:
        url, beside = site.page("/first", "<p>first"), site.page("/beside", "<p>beside")

        async def all_at_once() -> list[Any]:
            fields = {"url": url, "httpResponseHeaders": True, **context}
            failing = [asyncio.to_thread(service.extract, **fields) for _ in range(4)]
            return await asyncio.gather(*failing, asyncio.to_thread(service.extract, url=beside, httpResponseBody=True))

        *failed, other = asyncio.run(all_at_once())
        assert [answer.json["type"] for answer in failed] == ["/problem/session-creation-error"] * 4
        assert other.status == 200
        # The page was loaded once for all of them.
        assert len(site.calls_of("/first")) == 1
        service.problem(503, "/problem/session-creation-error", url=url, httpResponseHeaders=True, **context)
        assert len(site.calls_of("/first")) == 2
