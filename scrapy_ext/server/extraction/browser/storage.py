"""State of a session in the browser: it is given to a new context, and taken from it at the end of its page.

Playwright restores ``localStorage`` and IndexedDB; DevTools sets the cookies, since Playwright sets all of them or
none, and a session may have cookies from HTTP that browsers refuse. Session storage ends with its page, and the cache
with its context, as do service workers, which contexts here do not have.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any, cast

from playwright.async_api import BrowserContext, CDPSession, Error, StorageState

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.extraction.outgoing import cookie_received
from scrapy_ext.server.extraction.session_state import SessionState

_log = logging.getLogger(__name__)


def storage_of(state: SessionState | None) -> StorageState | None:
    """Return the storage of a state as Playwright takes it."""
    if state is None or not state.origins:
        return None
    return cast(StorageState, {"cookies": [], "origins": state.origins})


async def restore_cookies(devtools: CDPSession, state: SessionState) -> None:
    """Set the cookies of a session, without those that browsers refuse."""
    now = time.time()
    params = [_param(cookie) for cookie in state.cookies if cookie["name"] and cookie.get("expires", now + 1) > now]
    if not params:
        return
    try:
        await devtools.send("Network.setCookies", {"cookies": params})
    except Error:
        # All or none of them were set.
        for param in params:
            with contextlib.suppress(Error):
                await devtools.send("Network.setCookie", param)


def _param(cookie: dict[str, Any]) -> dict[str, Any]:
    """Return a cookie as DevTools takes it: for a host, by a URL, or for a domain with the hosts below it."""
    param = {name: value for name, value in cookie.items() if name != "domain"}
    domain = cookie["domain"]
    if domain.startswith("."):
        return {**param, "domain": domain}
    return {**param, "url": f"{'https' if cookie['secure'] else 'http'}://{domain}/"}


async def state_of(context: BrowserContext, before: SessionState, time_limit: float) -> SessionState:
    """Return the state of a context whose page is loaded.

    The storage of a page that does not answer in time stays as it was ``before``.
    """
    try:
        async with timeout_after(time_limit):
            state: Any = await context.storage_state(indexed_db=True)
        origins = state["origins"]
    except (Error, *TIMEOUT_ERRORS) as error:
        _log.warning("The storage of a session's page was not read: %s", str(error).partition("\n")[0])
        state, origins = {"cookies": await context.cookies()}, before.origins
    return SessionState([_cookie(cookie) for cookie in state["cookies"]], origins)


def _cookie(cookie: dict[str, Any]) -> dict[str, Any]:
    return cookie_received(
        cookie.get("name", ""),
        cookie.get("value", ""),
        cookie.get("domain", ""),
        cookie.get("path", "/"),
        cookie.get("expires"),
        http_only=cookie.get("httpOnly", False),
        secure=cookie.get("secure", False),
        same_site=cookie.get("sameSite", ""),
    )


async def cookies_of(context: BrowserContext) -> list[dict[str, Any]]:
    """Return all cookies of a context, as results have them."""
    return [_cookie(cast(dict[str, Any], cookie)) for cookie in await context.cookies()]
