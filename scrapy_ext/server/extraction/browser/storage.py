"""State of a session in the browser: it is given to a new context, and taken from it at the end of its page.

Playwright restores cookies, ``localStorage`` and IndexedDB. Session storage ends with its page, and the cache with its
context, as do service workers, which contexts here do not have.
"""

from __future__ import annotations

import logging
import time
from typing import Any, cast

from playwright.async_api import BrowserContext, Error, StorageState

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.extraction.outgoing import cookie_received
from scrapy_ext.server.extraction.session_state import SessionState

_log = logging.getLogger(__name__)


def storage_of(state: SessionState | None) -> StorageState | None:
    """Return a state as Playwright takes it."""
    if state is None:
        return None
    now = time.time()
    cookies = [
        {"expires": -1, "sameSite": "Lax", **cookie}
        for cookie in state.cookies
        if cookie["name"] and cookie.get("expires", now + 1) > now
    ]
    return cast(StorageState, {"cookies": cookies, "origins": state.origins})


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
