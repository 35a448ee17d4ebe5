"""One page in the browser: navigate, settle, act, read.

A page is settled (``browserHtml``, ``screenshot`` and automatic extraction are of that moment) when its ``load`` event
has come, or its loading was stopped (:mod:`.navigation`), and then its network was quiet for ``limits.quiet`` (0.5 s).
The waits end after ``limits.load`` (15 s) and ``limits.settle`` (5 s); the page is read as it is then. Streams
(WebSocket, EventSource, media) do not count. After actions the network must be quiet once more. A page whose scripts
were too busy to send requests, and did so afterwards, gets that time once more. So a page that polls or loads without
end is read after 20 s at most, and timers longer than 0.5 s are not waited for. A page that shows a challenge which its
scripts pass is read when that has led to the page, after ``limits.challenge`` (20 s) more at most.

``statusCode`` and ``httpResponseHeaders`` are those of the last navigation of the page itself, so that a page which
moves on by script reports where it arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import Error, Page, Request, Response
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from scrapy_ext.api.extraction import Cause, Header, Redirect
from scrapy_ext.api.extraction.problems import ExtractionError, permanent, temporary
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import MIB, ServiceLimits
from scrapy_ext.server.extraction.actions.context import ActionContext, Traffic
from scrapy_ext.server.extraction.actions.handlers import run_actions
from scrapy_ext.server.extraction.bans.detection import Received, ban_of
from scrapy_ext.server.extraction.browser.capture import NetworkCapture
from scrapy_ext.server.extraction.browser.instance import run_unless
from scrapy_ext.server.extraction.browser.navigation import Settling, send_headers, set_cookies
from scrapy_ext.server.extraction.browser.open_page import OpenPage
from scrapy_ext.server.extraction.browser.page_html import (
    content_of,
    content_of_page,
    content_with_frames,
    html_for_reading,
)
from scrapy_ext.server.extraction.browser.page_result import BusyPageError, PageResult, navigation_problem
from scrapy_ext.server.extraction.browser.storage import SessionStorage, cookies_of
from scrapy_ext.server.extraction.documents import UnshownFileError, media_problem, viewed_kind
from scrapy_ext.server.extraction.encodings import text_of
from scrapy_ext.server.extraction.outgoing import is_of_host
from scrapy_ext.server.extraction.plan import PagePlan, ScreenshotOptions
from scrapy_ext.server.net.guard import without_credentials

T = TypeVar("T")

#: Greatest height of a texture of Chromium; everything below would be blank.
_MAX_SCREENSHOT_HEIGHT: Final = 16_384
#: Seconds between looks for the end of a challenge, and looks until the page is read again.
_POLL: Final = 0.25
_POLLS: Final = 4
#: Seconds between readings of a page that moves on meanwhile.
_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
#: Most pixels of a screenshot of a whole page; each takes four bytes in the browser, and again in its codec.
_MAX_PIXELS: Final = 21_000_000


class PageCrashedError(ExtractionError):
    """The process of the page ended while it was loaded (520)."""

    def __init__(self, url: str) -> None:
        super().__init__(
            "/download/temporary-error",
            f"{url} made its page crash: it may need too much memory. Send the request again, or use httpResponseBody.",
        )


async def load_page(
    opened: OpenPage, plan: PagePlan, limits: ServiceLimits, when_loaded: Callable[[], object]
) -> PageResult:
    """Load an open page; raises :class:`ExtractionError`, or Playwright's error when it was closed.

    ``when_loaded`` is called once, before the wait for a quiet network.
    """
    page, context, proxy = opened.page, opened.context, opened.proxy
    crash = PageCrashedError(without_credentials(plan.url))
    # Other pages that a page opens are closed.
    context.on("page", lambda other: None if other is page else asyncio.ensure_future(_close_quietly(other)))
    try:
        # A session of DevTools does not report that its page crashed.
        return await run_unless(opened.crashed, crash, _Loading(opened, plan, limits).run(when_loaded))
    except (PlaywrightTimeoutError, *TIMEOUT_ERRORS):
        if proxy.is_over_limit:
            raise proxy.too_large() from None
        raise BusyPageError(without_credentials(plan.url)) from None
    except Error as error:
        if "crashed" in error.message:
            raise crash from None
        raise


class _Loading:
    def __init__(self, opened: OpenPage, plan: PagePlan, limits: ServiceLimits) -> None:
        self._page = page = opened.page
        self._devtools = devtools = opened.devtools
        self._frame = opened.frame
        self._proxy = opened.proxy
        self._plan = plan
        #: The page in error messages.
        self._name = without_credentials(plan.url)
        self._limits = limits
        self._traffic = Traffic(page)
        self._settling = Settling(opened, self._traffic, limits)
        #: The answer to the requested navigation.
        self._first: Response | None = None
        self._redirects: list[Redirect] | None = None
        self._passed_challenge = False
        self._capture = NetworkCapture(page, plan.captures, limits) if plan.captures else None
        self._storage = SessionStorage(page, devtools, plan.state, limits) if plan.state is not None else None
        self._action_context: ActionContext | None = None
        if plan.actions:
            self._action_context = ActionContext(page, devtools, self._traffic, limits.quiet, self._response)

    async def run(self, when_loaded: Callable[[], object]) -> PageResult:
        plan = self._plan
        await self._within(self._prepare())
        await self._navigate()
        await self._settling.wait(when_loaded)
        if self._action_context and plan.challenge:
            await self._pass_challenge(await self._content())
        acted = await self._act(self._action_context) if self._action_context else None
        arrived = self._traffic.arrived
        response = await self._response()
        styles, html = await self._read()
        if self._traffic.is_disturbed:
            await self._traffic.quiet(self._limits.quiet, self._limits.settle)
            styles, html = await self._read()
        if plan.challenge and await self._has_moved(arrived, styles or html or ""):
            response = await self._response()
            styles, html = await self._read()
        viewed, html = await self._viewed(response, styles or html or "", html)
        return PageResult(
            url=self._final_url(),
            status=response.status if response else None,
            redirects=self._redirects,
            headers=await self._headers(response) if plan.response_headers and response else None,
            html=html,
            styles=styles,
            viewed=viewed,
            screenshot=await self._screenshot(plan.screenshot) if plan.screenshot else None,
            captured=await self._capture.results() if self._capture else None,
            actions=acted,
            cookies=await self._cookies() if plan.response_cookies else None,
            document=await self._document(response) if plan.document and response else None,
            retry_after=response.headers.get("retry-after", "") if response else "",
            passed_challenge=self._passed_challenge,
            has_moved=self._traffic.documents > 1,
            # Last, because it leaves the page.
            state=await self._storage.read() if self._storage else None,
        )

    async def _has_moved(self, before: Request | None, html: str) -> bool:
        """Return whether the page moved on while it was read, or does so when its challenge has passed."""
        if self._traffic.arrived is before:
            return await self._pass_challenge(html)
        await self._settling.wait()
        return True

    async def _pass_challenge(self, html: str) -> bool:
        """Wait until a challenge that the page's scripts pass has led to the page; return whether it did."""
        if not await self._is_challenge(html):
            return False
        ends = asyncio.get_running_loop().time() + self._plan.challenge * self._limits.challenge
        while asyncio.get_running_loop().time() < ends:
            challenge = self._traffic.arrived
            for _ in range(_POLLS):
                await asyncio.sleep(_POLL)
                if self._traffic.arrived is not challenge:
                    await self._settling.wait()
                    break
            if not await self._is_challenge(await self._within(self._content())):
                self._passed_challenge = True
                return True
        return False

    async def _is_challenge(self, html: str) -> bool:
        received = Received(self._plan.url, self._page.url, 403, {}, html, rendered=True)
        # What is none with this status is none with any, and its own status is only known to the browser.
        if (ban := ban_of(received)) is None or not ban.scripted:
            return False
        response = await self._response()
        ban = ban_of(received._replace(status=response.status if response else 200))
        return ban is not None and ban.scripted

    async def _document(self, response: Response) -> bytes | None:
        try:
            body = await self._within(response.body())
        except Error:
            return None  # The browser has dropped it.
        if len(body) > self._limits.body_bytes:
            raise permanent(f"{self._name} is a page of more than {self._limits.body_bytes} bytes.", Cause.TOO_LARGE)
        return body

    async def _viewed(self, response: Response | None, shown: str, html: str | None) -> tuple[str, str | None]:
        """Return the kind of a file in a viewer, or "", and the HTML or the text of the file in its place."""
        content_type = response.headers.get("content-type") if response is not None else None
        viewed = viewed_kind(content_type, shown)
        if response is None or not viewed or not self._plan.html:
            return viewed, html
        source = await self._document(response)
        return viewed, html if source is None else text_of(content_type, source)

    async def _prepare(self) -> None:
        plan = self._plan
        if self._storage is not None:
            await self._storage.restore_cookies()
        if plan.cookies:
            await set_cookies(self._devtools, plan.cookies, plan.url)
        if self._capture:
            await self._capture.start(self._devtools)
        await send_headers(self._devtools, self._frame, plan.headers, plan.url)

    async def _read(self) -> tuple[str | None, str | None]:
        """Return the HTML for extraction, and the HTML alone: each where it is wanted, or one for the other."""
        plan = self._plan
        styles = await self._styled() if plan.styles else None
        html = await self._html() if plan.html or (plan.styles and styles is None) else None
        return styles, html

    async def _styled(self) -> str | None:
        plan = self._plan
        boxes = plan.boxes and plan.screenshot is not None
        full_page = plan.screenshot is not None and plan.screenshot.full_page
        return await html_for_reading(
            self._devtools,
            self._frame,
            self._limits,
            looks=plan.looks,
            boxes=boxes,
            of_full_page=full_page,
        )

    async def _act(self, context: ActionContext) -> list[dict[str, Any]]:
        await self._response()  # Raises for a document that is not a page.
        acted = await run_actions(context, self._plan.actions, self._limits.actions)
        await self._settling.wait()
        nowhere = await context.back_from_nowhere()
        if nowhere:
            # The last action began a navigation whose end was known only afterwards.
            last = max(index for index, entry in enumerate(acted) if entry["status"] != "skipped")
            acted[last] = {**acted[last], "status": "returned", "error": nowhere}
            await self._settling.wait()
        return acted

    async def _navigate(self) -> None:
        referer = next((header.value for header in self._plan.headers if header.name.lower() == "referer"), None)
        try:
            response = await self._page.goto(
                self._plan.url, wait_until="commit", timeout=1000 * self._limits.navigate, referer=referer
            )
        except PlaywrightTimeoutError:
            detail = f"{self._name} did not begin to answer in {self._limits.navigate:g} seconds."
            raise temporary(detail, Cause.TIMEOUT) from None
        except Error as error:
            if "net::" not in error.message and "Download is starting" not in error.message:
                raise
            declared = await self._declared_type() if _is_download(error.message) else None
            raise self._navigation_problem(error.message, declared) from None
        self._first = response
        if response is not None:
            await self._refuse_file(response)
        if response is not None and response.request.redirected_from is not None:
            self._redirects = await self._within(_redirects_to(response.request))

    async def _refuse_file(self, response: Response) -> None:
        """Raise for a file without a text in the browser."""
        plan = self._plan
        has_text = plan.styles or (plan.html and not plan.html_is_optional)
        if plan.document or (plan.screenshot is not None and not has_text):
            return
        content_type = response.headers.get("content-type")
        if not content_type:
            content_type = await self._within(self._page.evaluate("document.contentType"))
        name = without_credentials(response.url)
        shown = UnshownFileError(name, content_type)
        # A screenshot shows an image or the viewer of a PDF; no text is in that viewer.
        problem = shown if shown.is_pdf else None if plan.screenshot is not None else media_problem(name, content_type)
        if problem is not None:
            raise problem

    async def _declared_type(self) -> str | None:
        """Return the type of the answer to the last navigation; None where the browser does not report it."""
        begun = self._traffic.navigation
        try:
            response = await self._within(begun.response()) if begun else None
        except Error:
            return None
        return response.headers.get("content-type") if response else None

    def _navigation_problem(self, message: str, content_type: str | None = None) -> ExtractionError:
        begun = self._traffic.navigation
        url = without_credentials(begun.url) if begun else self._name
        if self._proxy.is_over_limit:
            return self._proxy.too_large()
        if _is_download(message):
            return UnshownFileError(url, content_type)
        failure = self._proxy.failure(url)
        if failure is not None:
            return failure
        return navigation_problem(url, message)

    async def _response(self) -> Response | None:
        """Return the answer of the current document; raises when the page moved on to a URL that failed.

        A navigation that ended in a download, or in an answer without a document, leaves the page as it was.
        """
        begun, arrived = self._traffic.navigation, self._traffic.arrived
        if begun is not None and begun is not arrived and "ERR_ABORTED" not in (begun.failure or "ERR_ABORTED"):
            raise self._navigation_problem(begun.failure or "")
        if begun is not None and self._page.url.startswith("chrome-error:"):
            raise self._navigation_problem(begun.failure or "")
        if self._first is not None and self._first.request is arrived:
            response: Response | None = self._first
        else:
            response = await self._within(arrived.response()) if arrived else None
        if response is not None and self._proxy.is_own_answer(response.headers):
            raise self._proxy.failure(response.url) or temporary(f"{response.url} could not be loaded.")
        if arrived is not None and "ERR_ABORTED" not in (arrived.failure or "ERR_ABORTED"):
            raise self._navigation_problem(arrived.failure or "")
        if response is not None and self._traffic.documents > 1:
            await self._refuse_file(response)
        return response

    def _final_url(self) -> str:
        url = self._page.url
        if not url.startswith(("http://", "https://")):
            raise permanent(f"{self._name} led to {url[:60]}, which is not a web page.")
        return without_credentials(url)

    async def _headers(self, response: Response) -> list[Header]:
        entries = await self._within(response.headers_array())
        # Connection is a header between the page's proxy and the browser.
        return [Header(entry["name"], entry["value"]) for entry in entries if entry["name"].lower() != "connection"]

    async def _cookies(self) -> list[dict[str, Any]]:
        places = (self._plan.url, self._page.url, *(hop.url for hop in self._redirects or ()))
        hosts = {urlsplit(url).hostname or "" for url in places}
        cookies = await self._within(cookies_of(self._page.context))
        return [cookie for cookie in cookies if any(is_of_host(cookie["domain"], host) for host in hosts)]

    async def _html(self) -> str | None:
        plan, page = self._plan, self._page
        with_roots = plan.shadow_roots
        if plan.iframes:
            html = await self._within(content_with_frames(page, self._limits, shadow_roots=with_roots))
        else:
            html = await self._within(self._content(shadow_roots=with_roots))
        if len(html) > self._limits.html_bytes:
            if self._plan.html_is_optional:
                return None
            detail = f"{self._name} is a page of more than {self._limits.html_bytes // MIB} MiB."
            raise permanent(detail, Cause.TOO_LARGE)
        return html

    async def _content(self, *, shadow_roots: bool = False) -> str:
        for pause in _PAUSES:
            if self._settling.is_endless:
                break
            try:
                content = await content_of_page(self._devtools, self._frame, shadow_roots=shadow_roots)
                if content is None:
                    content = await content_of(self._page.main_frame, shadow_roots=shadow_roots)
                return content
            except Error as error:
                # Of DevTools: the document, or its process, is another one.
                if "navigating" not in error.message and "Protocol error" not in error.message:
                    raise
            # The page moves on at this moment: read it when it has arrived. The load state may be that of the old one.
            await asyncio.sleep(pause)
            await self._page.wait_for_load_state("domcontentloaded", timeout=1000 * self._limits.load)
        raise temporary(f"{self._name} never stops navigating.")

    async def _screenshot(self, options: ScreenshotOptions) -> bytes:
        clip: Any = None
        if options.full_page:
            clip = await self._within(self._tall_page())
        try:
            return await self._picture(options, clip)
        except PlaywrightTimeoutError:
            # Chromium answers with the next frame that it draws, and on a busy machine it was seen to draw none.
            if not await self._redraw():
                raise
        return await self._picture(options, clip)

    async def _picture(self, options: ScreenshotOptions, clip: Any) -> bytes:
        kind: Any = options.format
        return await self._page.screenshot(
            type=kind, full_page=options.full_page, clip=clip, timeout=1000 * self._limits.read_page
        )

    async def _redraw(self) -> bool:
        """Make the browser draw the page, by a change of its window; return whether its scripts leave time for that."""
        size = self._page.viewport_size
        try:
            async with timeout_after(self._limits.read_page / 4):
                await self._page.evaluate("0")
                if size is not None:
                    await self._page.set_viewport_size({"width": size["width"], "height": size["height"] + 1})
                    await self._page.set_viewport_size(size)
        except TIMEOUT_ERRORS:
            return False
        return True

    async def _tall_page(self) -> dict[str, float] | None:
        """Return the part to show of a page that is higher than an image can be; None for one that is not."""
        size = (await self._devtools.send("Page.getLayoutMetrics"))["cssContentSize"]
        width = min(size["width"], _MAX_SCREENSHOT_HEIGHT)
        height = min(size["height"], _MAX_SCREENSHOT_HEIGHT, _MAX_PIXELS // max(width, 1))
        if (width, height) == (size["width"], size["height"]):
            return None
        return {"x": 0, "y": 0, "width": width, "height": height}

    async def _within(self, reading: Awaitable[T]) -> T:
        """Await a reading of the page with a time limit: Playwright's own have none, and a busy page never answers."""
        async with timeout_after(self._limits.read_page):
            return await reading


def _is_download(message: str) -> bool:
    return "Download is starting" in message or "ERR_ABORTED" in message


async def _redirects_to(request: Request) -> list[Redirect]:
    redirects: list[Redirect] = []
    before = request.redirected_from
    while before is not None:
        answer = await before.response()
        redirects.insert(0, Redirect(without_credentials(before.url), answer.status if answer else 302))
        before = before.redirected_from
    return redirects


async def _close_quietly(page: Page) -> None:
    try:
        async with timeout_after(5):
            await page.close()
    except (Error, *TIMEOUT_ERRORS):
        pass  # It is closed with its context.
