"""State of a session in the browser: it is given to a new context, and taken from it at the end of its page.

Playwright restores ``localStorage`` and IndexedDB; DevTools sets the cookies, since Playwright sets all of them or
none, and a session may have cookies from HTTP that browsers refuse. Session storage ends with its page, and the cache
with its context, as do service workers, which contexts here do not have.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any, Final, cast
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, CDPSession, Error, Frame, Page, Route, StorageState

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.outgoing import cookie_received
from scrapy_ext.server.extraction.session_state import SessionState

_log = logging.getLogger(__name__)

#: Origins that are visited for their storage, those of frames last; the storage of others is not kept.
_MOST_VISITS: Final = 50
#: The storage of a page is not read if it has more origins, with those of its frames.
_MOST_ORIGINS: Final = 200
_SIZE_OF_LOCAL_STORAGE: Final = """() => {
  try {
    return Object.entries(localStorage).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  } catch { return 0; }
}"""
#: The characters of names, keys and values, until they are more than there is room for: one record at a time is read.
_SIZE_OF_DATABASES: Final = """async (room) => {
  const done = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = request.onblocked = () => reject(request.error);
  });
  const sizeOf = (record) => {
    const seen = new Set(), left = [record];
    let size = 32;
    while (left.length && size <= room) {
      const value = left.pop();
      size += 8;
      if (typeof value === 'string') size += value.length;
      else if (typeof value === 'bigint') size += value.toString(16).length;
      else if (value && typeof value === 'object' && !seen.has(value)) {
        seen.add(value);
        if (value.byteLength !== undefined) size += value.byteLength;
        else if (value instanceof Map || value instanceof Set) left.push(...value);
        else for (const name in value) { size += name.length; left.push(value[name]); }
      }
    }
    return size;
  };
  let size = 0;
  for (const { name } of await indexedDB.databases()) {
    const database = await done(indexedDB.open(name));
    for (const store of database.objectStoreNames) {
      size += 32 + name.length + store.length;
      const reading = database.transaction(store).objectStore(store).openCursor();
      for (let cursor = await done(reading); cursor && size <= room; cursor = await done(reading)) {
        size += sizeOf([cursor.key, cursor.value]);
        cursor.continue();
      }
      if (size > room) break;
    }
    database.close();
    if (size > room) break;
  }
  return size;
}"""


def storage_of(state: SessionState | None) -> StorageState | None:
    """Return the storage of a state as Playwright takes it."""
    if state is None or not state.origins:
        return None
    return cast(StorageState, {"cookies": [], "origins": state.origins})


def _param(cookie: dict[str, Any]) -> dict[str, Any]:
    """Return a cookie as DevTools takes it: for a host, by a URL, or for a domain with the hosts below it."""
    param = {name: value for name, value in cookie.items() if name != "domain"}
    domain = cookie["domain"]
    if domain.startswith("."):
        return {**param, "domain": domain}
    return {**param, "url": f"{'https' if cookie['secure'] else 'http'}://{domain}/"}


class SessionStorage:
    """Storage of the origins of one page. Create it before the page is navigated, so that it sees all origins.

    A page can store hundreds of megabytes. So the size of each store is measured in the browser first, and a store
    beyond what a session can have is deleted there: it never comes into this process. The browser visits each origin
    with an empty document for that, which ends the page and its scripts, so nothing grows after it was measured. The
    usage that the browser reports is no measure, since databases are compressed, to a hundredth and less.
    """

    def __init__(self, page: Page, devtools: CDPSession, before: SessionState, limits: ServiceLimits) -> None:
        self._page = page
        self._devtools = devtools
        self._before = before
        self._limits = limits
        #: Origins in the order of visits to read their storage: of the session, of the page, of its frames.
        self._known = dict.fromkeys(entry["origin"] for entry in before.origins)
        self._of_frames: dict[str, None] = {}
        #: Cookies of the session that the browser does not take, and that HTTP requests send nevertheless.
        self._refused: list[dict[str, Any]] = []
        page.on("framenavigated", self._navigated)
        page.context.on("page", self._opened)

    async def restore_cookies(self) -> None:
        """Set the cookies of the session, without those that browsers refuse."""
        now = time.time()
        cookies = [cookie for cookie in self._before.cookies if cookie.get("expires", now + 1) > now]
        params = [_param(cookie) for cookie in cookies if cookie["name"]]
        if not cookies:
            return
        try:
            await self._devtools.send("Network.setCookies", {"cookies": params})
        except Error:
            # All or none of them were set.
            for param in params:
                with contextlib.suppress(Error):
                    await self._devtools.send("Network.setCookie", param)
        taken = {_key(cookie) for cookie in await cookies_of(self._page.context)}
        self._refused = [cookie for cookie in cookies if _key(cookie) not in taken]

    async def read(self) -> SessionState:
        """Return the state at the end of the page, which is left.

        The storage of a page that does not answer in time stays as it was before.
        """
        context = self._page.context
        try:
            async with timeout_after(self._limits.read_page):
                await self._delete_large_stores()
                state: Any = await context.storage_state(indexed_db=True)
            origins = state["origins"]
        except (Error, *TIMEOUT_ERRORS) as error:
            _log.warning(
                "The storage of a session's page was not read: %s. The session goes on with its cookies alone.",
                str(error).partition("\n")[0],
            )
            state, origins = {"cookies": await context.cookies()}, self._before.origins
        cookies = [_cookie(cookie) for cookie in state["cookies"]]
        received = {_key(cookie) for cookie in cookies}
        refused = [cookie for cookie in self._refused if _key(cookie) not in received]
        return SessionState([*refused, *cookies], origins)

    def _opened(self, other: Page) -> None:
        """Follow a page that the page opened, which is closed at once."""
        for frame in other.frames:
            self._navigated(frame)
        other.on("framenavigated", self._navigated)

    def _navigated(self, frame: Frame) -> None:
        if (origin := _origin_of(frame.url)) is not None:
            known = self._known if frame.parent_frame is None else self._of_frames
            if len(self._known) + len(self._of_frames) <= _MOST_ORIGINS:
                known.setdefault(origin)

    async def _delete_large_stores(self) -> None:
        origins = [*dict.fromkeys((*self._known, *self._of_frames))]
        if len(origins) > _MOST_ORIGINS:
            raise Error(f"it has more than {_MOST_ORIGINS} origins")
        await self._page.route("**/*", _answer_with_nothing)
        room = self._limits.session_bytes
        for number, origin in enumerate(origins):
            if number >= _MOST_VISITS:
                await self._delete(origin, "all")
            else:
                room -= await self._measure(origin, room)

    async def _measure(self, origin: str, room: int) -> int:
        """Return the bytes that an origin stores, after the deletion of stores beyond the room."""
        try:
            await self._page.goto(f"{origin}/", wait_until="commit")
            local = int(await self._page.evaluate(_SIZE_OF_LOCAL_STORAGE))
            indexed = int(await self._page.evaluate(_SIZE_OF_DATABASES, room))
        except Error:
            await self._delete(origin, "all")
            return 0
        if local > room:
            await self._page.evaluate("localStorage.clear()")
            local = 0
        if local + indexed > room:
            await self._delete(origin, "indexeddb")
            indexed = 0
        return local + indexed

    async def _delete(self, origin: str, stores: str) -> None:
        _log.info("The storage of %s is too large for a session, and is not kept.", origin)
        await self._devtools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": stores})


def _origin_of(url: str) -> str | None:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.scheme in ("http", "https") else None


async def _answer_with_nothing(route: Route) -> None:
    with contextlib.suppress(Error):
        await route.fulfill(body="<html></html>", content_type="text/html")


def _key(cookie: dict[str, Any]) -> tuple[str, str, str]:
    return cookie["name"], cookie["domain"].lower(), cookie["path"]


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
