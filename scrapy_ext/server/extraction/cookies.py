"""``requestCookies`` in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from playwright.async_api import CDPSession, Error
from yarl import URL

from scrapy_ext.server.extraction.errors import unprocessable
from scrapy_ext.server.extraction.outgoing import Cookie

#: Names that begin like this are for one host alone, and must not be set with a domain (RFC 6265bis).
_OF_ONE_HOST: Final = "__Host-"


async def set_cookies(session: CDPSession, cookies: Sequence[Cookie], url: str) -> None:
    """Set the cookies of a request for ``url``; raises :class:`ExtractionError` (422) for one that is refused.

    By DevTools: Playwright takes no path for a cookie of one host alone.
    """
    params = [_param(cookie, url) for cookie in cookies]
    try:
        await session.send("Network.setCookies", {"cookies": params})
    except Error:
        # All or none of them were set, and it is not said which one was wrong.
        for index, param in enumerate(params):
            try:
                taken = (await session.send("Network.setCookie", param))["success"]
            except Error:
                taken = False
            if not taken:
                raise unprocessable(
                    f"requestCookies[{index}] ({param['name'][:60]}) is one that browsers refuse. Look at its length, "
                    "its domain, expires (seconds since 1970), and what a name with __Host- or __Secure- asks for."
                ) from None
        raise


def _param(cookie: Cookie, url: str) -> dict[str, Any]:
    """A cookie as DevTools takes it: for the host of a URL, or for a domain."""
    param: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "path": cookie.path,
        "expires": cookie.expires,
        "httpOnly": cookie.http_only,
        "secure": cookie.secure,
        "sameSite": cookie.same_site,
    }
    if cookie.domain is None:
        param["url"] = str(URL(url, encoded=True).with_path("/").with_user(None))
    elif cookie.name.startswith(_OF_ONE_HOST):
        param["url"] = f"https://{cookie.domain.lstrip('.')}/"
    else:
        param["domain"] = cookie.domain
    return {name: value for name, value in param.items() if value is not None}
