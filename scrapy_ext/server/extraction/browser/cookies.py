"""``requestCookies`` in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from playwright.async_api import CDPSession, Error
from yarl import URL

from scrapy_ext.api.extraction.errors import unprocessable
from scrapy_ext.api.extraction.forms import COOKIE_PREFIXES
from scrapy_ext.server.extraction.outgoing import Cookie

#: What the beginning of a name promises of a cookie (RFC 6265bis, 4.1.3): to be sent over https alone, hidden from
_HTTP_ONLY: Final = ("__http-", "__host-http-")
_OF_ONE_HOST: Final = "__host-"


async def set_cookies(session: CDPSession, cookies: Sequence[Cookie], url: str) -> None:
    """Set the cookies of a request for ``url``; raises :class:`ExtractionError` (422) for one that is refused.

    By DevTools: Playwright takes no path for a cookie of one host alone.
    """
    first: dict[tuple[str, str | None, str], Cookie] = {}
    for cookie in cookies:
        first.setdefault(cookie.key, cookie)
    params = [_param(cookie, url) for cookie in first.values()]
    try:
        await session.send("Network.setCookies", {"cookies": params})
    except Error:
        # All or none of them were set, and it is not said which one was wrong.
        for cookie, param in zip(first.values(), params, strict=True):
            try:
                taken = (await session.send("Network.setCookie", param))["success"]
            except Error:
                taken = False
            if not taken:
                raise unprocessable(
                    f"requestCookies[{cookies.index(cookie)}] ({cookie.name[:60]}) is one that browsers refuse. Look "
                    "at its length, its domain, expires (seconds since 1970), and what a name with __Host- asks for."
                ) from None
        raise


def _param(cookie: Cookie, url: str) -> dict[str, Any]:
    """A cookie as DevTools takes it: for the host of a URL, or for a domain."""
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
