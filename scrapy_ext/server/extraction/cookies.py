"""``requestCookies`` in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from playwright.async_api import BrowserContext, Error
from yarl import URL

from scrapy_ext.server.extraction.errors import unprocessable
from scrapy_ext.server.extraction.outgoing import Cookie

#: Names that begin like this are for one host alone, and must not be set with a domain (RFC 6265bis).
_OF_ONE_HOST: Final = "__Host-"


async def set_cookies(context: BrowserContext, cookies: Sequence[Cookie], url: str) -> None:
    """Set the cookies of a request for ``url``; raises :class:`ExtractionError` (422) for one that is refused."""
    params: list[Any] = [_param(cookie, url) for cookie in cookies]
    try:
        await context.add_cookies(params)
    except Error:
        # All or none of them were set, and it is not said which one was wrong.
        for index, (cookie, param) in enumerate(zip(cookies, params, strict=True)):
            try:
                await context.add_cookies([param])
            except Error:
                raise unprocessable(
                    f"requestCookies[{index}] ({cookie.name[:60]}) is one that browsers refuse. Look at its length, "
                    "its domain, expires (seconds since 1970), and what a name with __Host- or __Secure- asks for."
                ) from None
        raise


def _param(cookie: Cookie, url: str) -> dict[str, Any]:
    """A cookie as Playwright takes it: for the host of a URL, or for a domain and a path."""
    param: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "expires": cookie.expires,
        "httpOnly": cookie.http_only,
        "secure": cookie.secure,
        "sameSite": cookie.same_site,
    }
    if cookie.domain is None:
        param["url"] = str(URL(url, encoded=True).with_path(cookie.path).with_user(None))
    elif cookie.name.startswith(_OF_ONE_HOST):
        param["url"] = f"https://{cookie.domain.lstrip('.')}{cookie.path}"
    else:
        param["domain"] = cookie.domain
        param["path"] = cookie.path
    return {name: value for name, value in param.items() if value is not None}
