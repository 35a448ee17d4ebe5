from __future__ import annotations

import asyncio
import base64
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from lxml import html as lxml_html

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Call, Target, self_signed


def picture(result: dict[str, str]) -> tuple[str, int, int]:
    """Format, width and height of a screenshot, from its own header."""
    data = base64.b64decode(result["screenshot"])
    if data.startswith(b"\x89PNG"):
        return ("PNG", *struct.unpack(">II", data[16:24]))
    assert data.startswith(b"\xff\xd8\xff")
    place = 2
    while data[place + 1] not in (0xC0, 0xC2):  # to the frame's header, over the segments before it
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    height, width = struct.unpack(">HH", data[place + 5 : place + 9])
    return "JPEG", width, height


def test_browser_html_is_the_page_after_its_scripts(service: Service, site: Target) -> None:
    url = site.page("/js", "<p id=a>before</p><script>document.getElementById('a').textContent='after'</script>")
    result = service.result(url=url, browserHtml=True)
    assert set(result) == {"url", "statusCode", "browserHtml"}
    assert (result["url"], result["statusCode"]) == (url, 200)
    assert "after" in result["browserHtml"]


def test_markdown_is_that_of_the_page_after_its_scripts(service: Service, site: Target) -> None:
    script = "document.getElementById('a').innerHTML = 'after <a href=/b>the script</a>'"
    url = site.page("/js-markdown", f"<h1>Knots</h1><p id=a>before</p><script>{script}</script>")
    options = {"content": "all", "images": False}
    result = service.result(url=url, markdown=True, markdownOptions=options, product=True, productOptions={})
    link = url.replace("/js-markdown", "/b")
    assert result["markdown"] == f"# Knots\n\nafter [the script]({link})\n"
    assert result["product"]["name"] == "Knots"


def test_what_a_page_loads_after_its_load_event_is_waited_for(service: Service, site: Target) -> None:
    site.page("/data", '{"price": "12.50"}')
    script = """addEventListener('load', () => setTimeout(async () => {
        const data = await (await fetch('/data')).json();
        document.body.append('costs ' + data.price);
    }, 100))"""
    url = site.page("/late", f"<body><script>{script}</script>")
    assert "costs 12.50" in service.result(url=url, browserHtml=True)["browserHtml"]


def test_what_a_page_asks_for_after_a_long_computation_is_waited_for(service: Service, site: Target) -> None:
    site.page("/data", "12.50")
    script = """addEventListener('load', () => setTimeout(async () => {
        for (const ends = Date.now() + 800; Date.now() < ends;);
        document.body.append('costs ' + await (await fetch('/data')).text());
    }))"""
    url = site.page("/busy", f"<body><script>{script}</script>")
    assert "costs 12.50" in service.result(url=url, browserHtml=True)["browserHtml"]


def test_a_page_whose_streams_never_end_is_settled_all_the_same(service: Service, site: Target) -> None:
    async def stream(call: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await writer.drain()
        await asyncio.sleep(30)

    site.handle("/stream", stream)
    url = site.page("/streams", "<h1>live</h1><script>new EventSource('/stream')</script>")
    assert "live" in service.result(url=url, browserHtml=True)["browserHtml"]


@pytest.mark.parametrize("status", [404, 500, 403])
def test_a_status_of_the_target_is_a_result(service: Service, site: Target, status: int) -> None:
    result = service.result(url=site.page(f"/page/{status}", "<h1>sorry</h1>", status), browserHtml=True)
    assert result["statusCode"] == status
    assert "sorry" in result["browserHtml"]


def test_status_and_url_are_those_of_the_last_page_after_redirects_of_either_kind(
    service: Service, site: Target
) -> None:
    site.page("/final", "<h1>end</h1>", 404, X_Page="final")
    site.page("/script", "<script>location.href = '/final'</script>")
    url = site.page("/moved", "", 302, Location="/script")
    result = service.result(url=url, browserHtml=True, httpResponseHeaders=True)
    assert (result["url"], result["statusCode"]) == (site.url("/final"), 404)
    assert result["redirects"] == [{"url": url, "statusCode": 302}]
    assert {"name": "X-Page", "value": "final"} in result["httpResponseHeaders"]
    assert "end" in result["browserHtml"]


def test_response_headers_keep_duplicates(service: Service, site: Target) -> None:
    url = site.raw(
        "/double",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
        b"Content-Length: 2\r\n\r\nok",
    )
    headers = service.result(url=url, browserHtml=True, httpResponseHeaders=True)["httpResponseHeaders"]
    values = [header["value"] for header in headers if header["name"].lower() == "set-cookie"]
    assert values == ["a=1", "b=2"]
    assert "connection" not in {header["name"].lower() for header in headers}


def test_a_screenshot_is_a_jpeg_of_the_window(service: Service, site: Target) -> None:
    url = site.page("/tall", "<body style='margin:0;background:#00f'><div style='height:5000px'>tall</div>")
    assert picture(service.result(url=url, screenshot=True)) == ("JPEG", 1280, 720)


def test_a_full_page_screenshot_is_as_high_as_the_page(service: Service, site: Target) -> None:
    url = site.page("/tall", "<body style='margin:0;background:#00f'><div style='height:5000px'>tall</div>")
    options = {"fullPage": True, "format": "png"}
    assert picture(service.result(url=url, screenshot=True, screenshotOptions=options)) == ("PNG", 1280, 5000)


def test_a_page_higher_than_a_picture_can_be_is_cut(service: Service, site: Target) -> None:
    url = site.page("/endless", "<body style='margin:0'><div style='height:2000000px'>tall</div>")
    assert picture(service.result(url=url, screenshot=True, screenshotOptions={"fullPage": True})) == (
        "JPEG",
        1280,
        16384,
    )


@pytest.mark.parametrize("options", [{"format": "gif"}, {"format": "PNG"}, {"fullpage": True}])
def test_screenshot_options_that_do_not_exist_are_400(service: Service, options: dict[str, object]) -> None:
    detail = service.problem(
        400, "/request/invalid", url="http://shop.example/", screenshot=True, screenshotOptions=options
    )
    assert "screenshotOptions" in detail


def test_html_screenshot_and_headers_can_be_asked_for_together(service: Service, site: Target) -> None:
    result = service.result(
        url=site.page("/all", "<h1>all</h1>"), browserHtml=True, screenshot=True, httpResponseHeaders=True
    )
    assert {"browserHtml", "screenshot", "httpResponseHeaders", "statusCode", "url"} == set(result)


# ── what is sent ──


def test_the_browser_says_nothing_of_being_headless(service: Service, site: Target) -> None:
    service.result(url=site.page("/ua", "<h1>ua</h1>"), browserHtml=True)
    call = site.calls_of("/ua")[-1]
    assert "Chrome/" in (call.header("user-agent") or "")
    assert "Chromium" in (call.header("sec-ch-ua") or "")
    assert "Headless" not in str(call.headers)


def test_the_browser_sends_the_languages_of_http_requests_on_every_page_of_the_way(
    service: Service, site: Target
) -> None:
    site.page("/there", "<h1>there</h1>")
    script = "location.href = 'http://shop.example/there'"
    url = site.page("/languages", f"<script>document.title = navigator.languages; {script}</script>")
    service.result(url=url, httpResponseBody=True)
    service.result(url=url, browserHtml=True)
    languages = {call.header("accept-language") for path in ("/languages", "/there") for call in site.calls_of(path)}
    assert languages == {"en-US,en;q=0.9"}


def test_a_callers_user_agent_goes_without_hints_of_another_browser(service: Service, site: Target) -> None:
    url = site.page("/agent", "<script>document.write(navigator.userAgent)</script>")
    result = service.result(url=url, browserHtml=True, requestHeaders={"User-Agent": "Own/1"})
    assert "Own/1" in result["browserHtml"]
    call = site.calls_of("/agent")[-1]
    assert (call.header("user-agent"), call.header("sec-ch-ua")) == ("Own/1", None)


def test_request_headers_go_to_the_page_and_not_to_what_it_loads(service: Service, site: Target) -> None:
    site.page("/pixel", "x")
    url = site.page("/with-headers", "<script src=/pixel></script><script src='http://other.example/pixel'></script>")
    headers = {"referer": "http://search.example/", "userAgent": "mine/2", "X-Token": "secret"}
    service.result(url=url, browserHtml=True, requestHeaders=headers)
    call = site.calls_of("/with-headers")[-1]
    assert (call.header("referer"), call.header("user-agent")) == ("http://search.example/", "mine/2")
    assert call.header("x-token") == "secret"
    loaded = site.calls_of("/pixel")[-2:]
    assert [call.header("x-token") for call in loaded] == [None, None]


def test_request_cookies_are_sent_to_their_host(service: Service, site: Target) -> None:
    site.page("/cookie-page", "<h1>cookies</h1>")
    cookies = [
        {"name": "host", "value": "1"},
        {"name": "domain", "value": "2", "domain": ".shop.example"},
        {"name": "foreign", "value": "3", "domain": "other.example"},
        {"name": "path", "value": "4", "path": "/cookie-page"},
        {"name": "elsewhere", "value": "5", "path": "/elsewhere"},
    ]
    service.result(url="http://shop.example/cookie-page", browserHtml=True, requestCookies=cookies)
    sent = site.calls_of("/cookie-page")[-1].header("cookie") or ""
    assert sorted(sent.split("; ")) == ["domain=2", "host=1", "path=4"]


def test_a_browser_sends_oddly_named_cookies(service: Service, site: Target) -> None:
    odd = {
        "cart[0]": "1",
        "a b": '"q"',
        "\xe9": "\xfc",
        "{x}": "a,b c=d",
        "": "alone",
        "__Secure-x": "1",
        "__host-y": "2",
    }
    cookies = [{"name": name, "value": value, "domain": "localhost"} for name, value in odd.items()]
    service.result(url=site.page("/odd", "<h1>odd</h1>"), browserHtml=True, requestCookies=[*cookies, *cookies])
    sent = (site.calls_of("/odd")[-1].header("cookie") or "").encode("latin-1").decode()
    assert sorted(sent.split("; ")) == sorted(f"{name}={value}".lstrip("=") for name, value in odd.items())


@pytest.mark.parametrize(
    "cookie",
    [
        {"name": "__Host-a", "value": "1", "domain": "shop.example", "path": "/elsewhere"},
        {"name": "a", "value": "1", "domain": ".."},
        {"name": "a", "value": "1" * 5000},
    ],
)
def test_a_cookie_that_browsers_refuse_is_422_by_its_place(
    service: Service, site: Target, cookie: dict[str, Any]
) -> None:
    cookies = [{"name": "good", "value": "1"}, cookie]
    url = site.page("/refused", "refused")
    message = service.problem(422, "/request/unprocessable", url=url, browserHtml=True, requestCookies=cookies)
    assert f"requestCookies[1] ({cookie['name']})" in message


def test_a_cookie_of_one_host_comes_back_as_it_was_set(service: Service, site: Target) -> None:
    site.page("/set-host", "x", Set_Cookie="__Host-id=7; Secure; Path=/")
    fields = {"browserHtml": True, "responseCookies": True}
    # Chromium takes localhost for as good as https.
    cookies = service.result(url=site.url("/set-host"), **fields)["responseCookies"]
    assert [cookie["name"] for cookie in cookies] == ["__Host-id"]
    service.result(url=site.page("/get-host", "x"), requestCookies=cookies, **fields)
    assert site.calls_of("/get-host")[-1].header("cookie") == "__Host-id=7"


def test_credentials_in_the_url_open_the_page_and_are_not_returned(service: Service, site: Target) -> None:
    async def door(call: Call, writer: asyncio.StreamWriter) -> None:
        opened = call.header("authorization") == "Basic dXNlcjpwYXNz"
        status, extra = ("200 OK", "") if opened else ("401 No", 'WWW-Authenticate: Basic realm="x"\r\n')
        body = "<script>document.write('in' + 'side')</script>" if opened else "closed"
        writer.write(f"HTTP/1.1 {status}\r\n{extra}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    url = site.handle("/door", door).replace("://", "://user:pass@")
    result = service.result(url=url, browserHtml=True)
    assert result["url"] == site.url("/door")
    assert "inside" in result["browserHtml"]
    site.raw("/broken", b"", then_close=True)
    broken = url.replace("/door", "/broken")
    message = service.problem(520, "/download/temporary-error", url=broken, browserHtml=True)
    assert "/broken" in message
    assert "pass" not in message


def test_cookies_storage_and_cache_of_one_request_are_not_there_for_the_next(service: Service, site: Target) -> None:
    site.page("/cached.js", "document.title = 'cached'", Cache_Control="max-age=3600")
    script = "document.body.append('seen:' + localStorage.length); localStorage.x = 1; document.cookie = 'x=1'"
    url = site.page("/state", f"<body><script src=/cached.js></script><script>{script}</script>")
    before = len(site.calls_of("/cached.js"))
    for _ in range(2):
        assert "seen:0" in service.result(url=url, browserHtml=True)["browserHtml"]
        assert site.calls_of("/state")[-1].header("cookie") is None
    assert len(site.calls_of("/cached.js")) == before + 2


# ── iframes ──


def test_iframes_are_empty_unless_asked_for(service: Service, site: Target) -> None:
    site.page("/inner", "<p>inner text</p>")
    url = site.page("/outer", "<iframe src=/inner></iframe>")
    assert "inner text" not in service.result(url=url, browserHtml=True)["browserHtml"]


def test_included_iframes_stand_in_srcdoc_also_across_sites_and_nested(service: Service, site: Target) -> None:
    site.page("/deep", '<p title="a&b">deepest</p>')
    site.page("/nested", "<p>middle</p><iframe src=/deep></iframe>")
    url = site.page(
        "/frames",
        "<h1>top</h1><iframe src='http://frame.example/nested'></iframe><iframe srcdoc='<b>own</b>'></iframe>",
    )
    html = service.result(url=url, browserHtml=True, includeIframes=True)["browserHtml"]
    outer = lxml_html.fromstring(html)
    first, second = (lxml_html.fromstring(frame) for frame in outer.xpath("//iframe/@srcdoc"))
    assert first.xpath("//p/text()") == ["middle"]
    assert lxml_html.fromstring(first.xpath("//iframe/@srcdoc")[0]).xpath("//p/@title") == ["a&b"]
    assert second.xpath("//b/text()") == ["own"]


# ── targets that are no pages ──


def test_a_download_is_521_and_says_what_to_ask_for(service: Service, site: Target) -> None:
    url = site.page("/file.bin", "data", Content_Type="application/octet-stream", Content_Disposition="attachment")
    assert "httpResponseBody" in service.problem(521, "/download/internal-error", url=url, browserHtml=True)


def test_an_answer_without_a_document_is_521(service: Service, site: Target) -> None:
    url = site.raw("/none", b"HTTP/1.1 204 No Content\r\n\r\n")
    service.problem(521, "/download/internal-error", url=url, browserHtml=True)


def test_a_page_that_starts_a_download_is_still_a_page(service: Service, site: Target) -> None:
    site.page("/auto.zip", "zip", Content_Type="application/zip", Content_Disposition="attachment")
    url = site.page("/thanks", "<h1>thanks</h1><script>location.href='/auto.zip'</script>")
    result = service.result(url=url, browserHtml=True)
    assert (result["url"], result["statusCode"]) == (url, 200)
    assert "thanks" in result["browserHtml"]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 302 X\r\nLocation: /around\r\nContent-Length: 0\r\n\r\n"])
def test_endless_redirects_are_521(service: Service, site: Target, answer: bytes) -> None:
    detail = service.problem(521, "/download/internal-error", url=site.raw("/around", answer), browserHtml=True)
    assert "redirects" in detail


def test_a_target_that_closes_without_an_answer_is_520(service: Service, site: Target) -> None:
    url = site.raw("/nothing", b"", then_close=True)
    service.problem(520, "/download/temporary-error", url=url, browserHtml=True)


def test_a_host_where_nobody_listens_is_421(service: Service) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        rule = f"down.example:80=127.0.0.1:{unused.getsockname()[1]}"
        with Service(connect_to=(rule,)) as running:
            detail = running.problem(421, "/website/domain-unreachable", url="http://down.example/", browserHtml=True)
    assert "refused" in detail


# ── TLS ──


@pytest.fixture(scope="module")
def tls_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    target = Target(ssl=self_signed(tmp_path_factory.mktemp("tls"))).start()
    target.page("/", "<h1>secure</h1><script src='https://cdn.example/x.js'></script>")
    target.page("/x.js", "document.body.append('script of another host')")
    yield target
    target.stop()


def test_a_certificate_that_nobody_signed_is_521(tls_site: Target) -> None:
    with Service(allow_hosts=(tls_site.host,)) as running:
        detail = running.problem(521, "/download/internal-error", url=tls_site.url(), browserHtml=True)
    assert "certificate" in detail


@pytest.mark.long
def test_one_rule_of_the_operator_can_stand_in_for_the_whole_web(tls_site: Target) -> None:
    with Service(connect_to=(f"*:443=127.0.0.1:{tls_site.port}",), verify_tls=False) as running:
        result = running.result(url="https://www.shop.example/", browserHtml=True)
    assert (result["url"], result["statusCode"]) == ("https://www.shop.example/", 200)
    assert "script of another host" in result["browserHtml"]


# ── automatic extraction ──


def test_automatic_extraction_sees_the_page_as_the_browser_has_it(service: Service, site: Target) -> None:
    data = (
        '{"@context": "https://schema.org", "@type": "Product", "name": "Made by script", "offers": {"price": "7.00"}}'
    )
    script = f"""const s = document.createElement('script'); s.type = 'application/ld+json';
        s.textContent = `{data}`; document.head.append(s)"""
    url = site.page("/product", f"<head></head><body><h1>Made by script</h1><script>{script}</script>")
    result = service.result(url=url, product=True, screenshot=True)
    assert set(result) == {"url", "statusCode", "product", "screenshot"}
    assert (result["product"]["name"], result["product"]["price"]) == ("Made by script", "7.00")


# ── how the browser is set up ──


def test_the_window_is_as_large_as_asked_for(service: Service, site: Target) -> None:
    url = site.page("/window", "<body><script>document.body.append(innerWidth + 'x' + innerHeight)</script>")
    window = {"width": 390, "height": 844}
    result = service.result(url=url, browserHtml=True, screenshot=True, viewport=window)
    assert "390x844" in result["browserHtml"]
    assert picture(result) == ("JPEG", 390, 844)
    assert "1280x844" in service.result(url=url, browserHtml=True, viewport={"height": 844})["browserHtml"]


@pytest.mark.parametrize(
    ("viewport", "named"),
    [
        ({"width": 99}, "viewport.width"),
        ({"height": 4097}, "viewport.height"),
        ({"width": "390"}, "viewport.width: must be an integer, got a string. Its members are width, height."),
        ({"size": 1}, "viewport"),
    ],
)
def test_a_window_that_cannot_be_is_400(service: Service, viewport: dict[str, object], named: str) -> None:
    assert named in service.problem(
        400, "/request/invalid", url="http://shop.example/", browserHtml=True, viewport=viewport
    )


@pytest.mark.long
def test_a_wide_and_high_page_is_cut_to_what_a_picture_may_have(service: Service, site: Target) -> None:
    url = site.page("/wide", "<body style='margin:0'><div style='width:10000px;height:12000px'>wide</div>")
    shot = service.result(url=url, screenshot=True, screenshotOptions={"fullPage": True})
    assert picture(shot) == ("JPEG", 10000, 2100)


COOKIES = b"Set-Cookie: a=1; Path=/; HttpOnly; SameSite=Lax\r\nSet-Cookie: b=2; Domain=shop.example\r\n"


@pytest.mark.parametrize("output", ["browserHtml", "httpResponseBody"])
def test_cookies_of_the_site_are_returned_in_the_form_of_request_cookies(
    service: Service, site: Target, output: str
) -> None:
    site.raw("/sets", b"HTTP/1.1 302 X\r\nLocation: /arrived\r\n" + COOKIES + b"Content-Length: 0\r\n\r\n")
    site.page("/arrived", "<img src='http://other.example/tracks'>")
    site.raw("/tracks", b"HTTP/1.1 200 OK\r\nSet-Cookie: foreign=3\r\nContent-Length: 1\r\n\r\nx")
    url = "http://shop.example/sets"
    result = service.result(url=url, responseCookies=True, **{output: True})
    cookies = {cookie["name"]: cookie for cookie in result["responseCookies"]}
    assert cookies.keys() == {"a", "b"}
    assert cookies["a"]["httpOnly"]
    assert (cookies["a"]["domain"], cookies["a"]["value"], cookies["a"]["sameSite"]) == ("shop.example", "1", "Lax")
    assert cookies["b"]["domain"].lstrip(".") == "shop.example"
    # What came back can be sent again as it is.
    site.page("/again", "x")
    service.result(url="http://shop.example/again", requestCookies=result["responseCookies"], **{output: True})
    assert sorted((site.calls_of("/again")[-1].header("cookie") or "").split("; ")) == ["a=1", "b=2"]


@pytest.mark.long
def test_more_frames_than_are_included_leave_the_page_whole(service: Service, site: Target) -> None:
    site.page("/one", "<p>framed</p>")
    url = site.page("/many", "<h1>top</h1>" + "<iframe src=/one></iframe>" * 8)
    html = service.result(url=url, browserHtml=True, includeIframes=True)["browserHtml"]
    assert "top" in html
    assert html.count("&lt;p&gt;framed") <= 4
    assert html.count("<iframe") == 8


@pytest.mark.parametrize("way", ["redirect", "script", "goto"])
def test_credentials_in_headers_stay_on_the_origin_that_they_were_given_for(
    service: Service, site: Target, way: str
) -> None:
    there = site.page("/credentials-there", "<h1>there</h1>").replace(site.host, "other.example")
    if way == "redirect":
        head = f"HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n"
        site.raw("/credentials", head.encode())
    else:
        site.page("/credentials", f"<script>location.href = '{there}'</script>" if way == "script" else "<h1>here</h1>")
    headers = {"Authorization": "Bearer secret", "X-Api-Key": "secret", "X-Plain": "plain"}
    actions = [{"action": "goto", "url": there}] if way == "goto" else []
    url = "http://shop.example/credentials"
    result = service.result(url=url, browserHtml=True, requestHeaders=headers, actions=actions)
    assert result["url"] == there
    here, arrived = site.calls_of("/credentials")[-1], site.calls_of("/credentials-there")[-1]
    assert (here.header("authorization"), here.header("x-plain")) == ("Bearer secret", "plain")
    assert (arrived.header("authorization"), arrived.header("x-plain")) == (None, "plain")
    assert (here.header("x-api-key"), arrived.header("x-api-key")) == ("secret", None)
