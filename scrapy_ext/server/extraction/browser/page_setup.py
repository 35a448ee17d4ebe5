"""Set up a page of the browser before it is navigated: its identity, ``requestHeaders`` and ``requestCookies``.

Identity: the browser reports to sites the same as the service's HTTP requests do. Playwright sets the language and
the User-Agent of a context. The rest is set here, for each page: the languages beside the first one (``de-AT,de``),
as browsers have them (requests for resources of the page have the first language alone), and the brands of client
hints (``Sec-CH-UA``), which else report a headless browser. With a User-Agent of the caller's there are no client
hints at all, since the right ones are unknown.

Headers go to the page itself, not to what it loads from others. They are added to each navigation of the page, its
redirects too, wherever it goes; credentials, and headers whose names indicate keys, tokens and the like, go to the
origin of the requested URL only. DevTools sends them: Playwright shows no redirects, and would have every request of
the page pass through this process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from playwright.async_api import CDPSession, Error
from yarl import URL

from scrapy_ext.api.extraction import Header
from scrapy_ext.api.extraction.forms import COOKIE_PREFIXES, is_private_header
from scrapy_ext.api.extraction.problems import unprocessable
from scrapy_ext.server.extraction.outgoing import Cookie, is_dropped, user_agent

#: The fake brand by which browsers keep sites from relying on the list.
_NO_BRAND: Final = {"brand": "Not:A-Brand", "version": "8"}


async def introduce(session: CDPSession, version: str, agent: str | None, language: str, device: str) -> None:
    """Set languages, brands and kind of ``device`` of a page that was not navigated yet; ``agent`` is the caller's
    User-Agent.

    They apply as long as the session of the page.
    """
    override: dict[str, Any] = {
        "userAgent": agent or user_agent(version, device),
        "acceptLanguage": ",".join(dict.fromkeys((language, language.partition("-")[0]))),
    }
    if agent is None:
        override["userAgentMetadata"] = _hints(version, mobile=device == "mobile")
    if device == "mobile":
        override["platform"] = "Linux armv81"
    await session.send("Emulation.setUserAgentOverride", override)


def _hints(version: str, *, mobile: bool) -> dict[str, Any]:
    major = version.partition(".")[0]
    return {
        "brands": [_NO_BRAND, {"brand": "Chromium", "version": major}],
        "fullVersionList": [
            {**_NO_BRAND, "version": f"{_NO_BRAND['version']}.0.0.0"},
            {"brand": "Chromium", "version": version},
        ],
        "platform": "Android" if mobile else "Linux",
        "platformVersion": "10" if mobile else "",
        "architecture": "" if mobile else "x86",
        "bitness": "" if mobile else "64",
        "model": "K" if mobile else "",
        "mobile": mobile,
        "wow64": False,
    }


#: Headers that Playwright sets when it opens the page and navigates.
_ELSEWHERE: Final = ("user-agent", "referer")


async def send_headers(session: CDPSession, headers: Iterable[Header], url: str) -> None:
    """Set the headers of a request for ``url`` on a page that was not navigated yet."""
    extra = {
        header.name.lower(): header.value
        for header in headers
        if not is_dropped(header.name) and header.name.lower() not in _ELSEWHERE
    }
    if not extra:
        return
    origin = URL(url, encoded=True).origin()
    frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]

    async def go_on(event: dict[str, Any]) -> None:
        going: dict[str, Any] = {"requestId": event["requestId"]}
        if event["frameId"] == frame:
            request = event["request"]
            sent = {name.lower(): value for name, value in request["headers"].items()} | extra
            if not _is_of(origin, request["url"]):
                sent = {name: value for name, value in sent.items() if not is_private_header(name)}
            going["headers"] = [{"name": name, "value": value} for name, value in sent.items()]
        # It fails where the page navigates elsewhere already, or was closed.
        with contextlib.suppress(Error):
            await session.send("Fetch.continueRequest", going)

    session.on("Fetch.requestPaused", go_on)
    await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})


def _is_of(origin: URL, url: str) -> bool:
    try:
        return URL(url, encoded=True).origin() == origin
    except ValueError:
        return False  # A URL without an origin.


#: Prefixes of names (RFC 6265bis, 4.1.3) with which a cookie is sent over https alone, hidden from scripts, or for one
#: host alone, which excludes a domain.
_HTTP_ONLY: Final = ("__http-", "__host-http-")
_OF_ONE_HOST: Final = "__host-"


async def set_cookies(session: CDPSession, cookies: Sequence[Cookie], url: str) -> None:
    """Set the cookies of a request for ``url``; raises :class:`ExtractionError` (422) for a refused one.

    DevTools sets them: Playwright takes no path for a cookie of one host alone.
    """
    first: dict[tuple[str, str | None, str], Cookie] = {}
    for cookie in cookies:
        first.setdefault(cookie.key, cookie)
    params = [_param(cookie, url) for cookie in first.values()]
    try:
        await session.send("Network.setCookies", {"cookies": params})
    except Error:
        # All or none of them were set, and the error does not name the wrong one.
        for cookie, param in zip(first.values(), params, strict=True):
            try:
                taken = (await session.send("Network.setCookie", param))["success"]
            except Error:
                taken = False
            if not taken:
                raise unprocessable(
                    f"requestCookies[{cookies.index(cookie)}] ({cookie.name[:60]}) is one that browsers refuse. "
                    "Check its length, its domain, expires (seconds since 1970), and the rules of names with __Host-."
                ) from None
        raise


def _param(cookie: Cookie, url: str) -> dict[str, Any]:
    """Return a cookie as DevTools takes it: for the host of a URL, or for a domain."""
    prefix = cookie.name.lower()
    param: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "path": cookie.path,
        "expires": cookie.expires,
        "httpOnly": cookie.http_only or prefix.startswith(_HTTP_ONLY),
        "secure": cookie.secure or prefix.startswith(COOKIE_PREFIXES),
        "sameSite": cookie.same_site,
    }
    if cookie.domain is None:
        page = URL(url, encoded=True).with_path("/").with_user(None)
        param["url"] = str(page.with_scheme("https") if param["secure"] else page)
    elif prefix.startswith(_OF_ONE_HOST):
        param["url"] = f"https://{cookie.domain.lstrip('.')}/"
    else:
        param["domain"] = cookie.domain
    return {name: value for name, value in param.items() if value is not None}
