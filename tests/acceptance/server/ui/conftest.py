"""The pages in a real Chromium, with a server of their own that has jobs to look at.

Whatever a test does, it fails when a page's script fails, when the content security policy stops something, or when
the console has an error.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, async_playwright, expect
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.extraction.browser import find_browser
from tests.support.eventually import TIMEOUT
from tests.support.handwritten_site import Target
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

SCREENSHOTS = Path(__file__).parent / "screenshots"
_AXE = resources.files("axe_playwright_python").joinpath("axe.min.js")

#: Target of deliveries, a folder that does not exist.
ARCHIVE = "file:///nowhere/archive"

OpenPage = Callable[..., Awaitable[Page]]

#: Seconds that a picture may take. It takes less than two beside twice as many processes as a machine has room for.
_PICTURE = 20.0

# Waits for what must happen are safety nets: Playwright's five seconds are less than a loaded machine needs at times.
expect.set_options(timeout=1000 * TIMEOUT)

#: Not the numbers that modules of these tests count themselves.
_projects = itertools.count(10_001)


@pytest.fixture(autouse=True)
def _every_context_is_closed() -> None:
    """There is no extraction service here, whose pages the fixture of this name waits for elsewhere."""


@pytest.fixture(scope="session")
def site() -> Iterator[Target]:
    """A site that the server may fetch."""
    target = Target().start()
    yield target
    target.stop()


@pytest.fixture(scope="session")
def ui_server(tmp_path_factory: pytest.TempPathFactory, site: Target) -> Iterator[RunningServer]:
    """A server for the tests of pages, each of which uses a project of its own."""
    data = tmp_path_factory.mktemp("ui") / "data"
    with ForkedServer(data, allow_hosts=[site.host], options=("--archive-target", ARCHIVE)) as server:
        yield server


@pytest.fixture
def project() -> int:
    """A project that no other test uses."""
    return next(_projects)


@pytest_asyncio.fixture(loop_scope="session")
async def http(ui_server: RunningServer) -> AsyncIterator[Http]:
    """A client with the platform's key."""
    async with Http(ui_server.url, ui_server.platform_key) as http:
        yield http


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for the run."""
    async with async_playwright() as playwright:
        browser = await launched(playwright)
        yield browser
        await browser.close()


async def launched(playwright: Playwright) -> Browser:
    path = find_browser(None, os.environ, Path(playwright.chromium.executable_path))
    return await playwright.chromium.launch(executable_path=str(path), timeout=1000 * TIMEOUT)


async def context_of(browser: Browser, **options: Any) -> BrowserContext:
    """A context whose clicks and navigations wait as long as :func:`eventually` does."""
    context = await browser.new_context(**options)
    context.set_default_timeout(1000 * TIMEOUT)
    return context


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def logged_in(chromium: Browser, ui_server: RunningServer) -> Any:
    """The cookies of somebody who has logged in."""
    context = await context_of(chromium)
    page = await context.new_page()
    await page.goto(ui_server.url)
    await page.get_by_label("API key").fill(ui_server.platform_key)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_role("button", name="Log out").wait_for()
    state = await context.storage_state()
    await context.close()
    return state


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(chromium: Browser, ui_server: RunningServer, logged_in: Any) -> AsyncIterator[OpenPage]:
    """Opens a path of the server: ``scheme`` light or dark, ``width`` in pixels, ``scripts`` on or off, ``stranger``
    for who has not logged in, ``zone`` the time zone of the browser, ``interrupted`` where the server fails."""
    contexts, faults = [], []

    async def open_path(
        path: str,
        *,
        scheme: Any = "light",
        width: int = 1280,
        scripts: bool = True,
        stranger: bool = False,
        zone: str = "UTC",
        interrupted: bool = False,
    ) -> Page:
        context = await context_of(
            chromium,
            base_url=ui_server.url,
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            java_script_enabled=scripts,
            storage_state=None if stranger else logged_in,
            reduced_motion="reduce",
            timezone_id=zone,
        )
        contexts.append(context)
        page = await context.new_page()

        def report(message: ConsoleMessage) -> None:
            # Chromium also logs the status over 400 of a page that refuses a form.
            refused = "the server responded with a status of 4" in message.text and "/static/" not in message.text
            failed = interrupted and ("net::ERR_" in message.text or "a status of 503" in message.text)
            if message.type in ("error", "warning") and not refused and not failed:
                faults.append(message.text)

        page.on("console", report)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
        await page.goto(path)
        return page

    yield open_path
    for context in contexts:
        await context.close()
    assert faults == []


async def violations(page: Page) -> list[str]:
    """Violations that axe finds on a page, with their elements."""
    await page.evaluate(_AXE.read_text())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {node['html'][:160]}" for each in found["violations"] for node in each["nodes"]]


async def keep(page: Page, name: str) -> None:
    """Keep a picture of a page, for people to look at; where the browser draws none in time, warn.

    Chromium answers once it has drawn a frame, and on a loaded machine it was seen to draw none for half a minute, on a
    page that had just passed its checks. No check is made with a picture, so none may fail for the lack of one.
    """
    SCREENSHOTS.mkdir(exist_ok=True)
    file = SCREENSHOTS / f"{name}.png"
    file.unlink(missing_ok=True)  # not that of an earlier run
    for _ in range(2):
        try:
            await page.screenshot(path=file, full_page=True, timeout=1000 * _PICTURE)
        except PlaywrightTimeoutError:
            await _resize(page)
        else:
            return
    warnings.warn(f"no picture {file.name}: the browser has drawn no frame within {_PICTURE:g} s, twice", stacklevel=2)


async def _resize(page: Page) -> None:
    """Make the browser draw, and undo the height that it gives the window for a picture of a whole page."""
    size = page.viewport_size
    assert size is not None
    with contextlib.suppress(*TIMEOUT_ERRORS):
        async with timeout_after(_PICTURE):
            await page.set_viewport_size({"width": size["width"], "height": size["height"] + 1})
            await page.set_viewport_size(size)
