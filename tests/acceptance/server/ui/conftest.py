"""The pages in a real Chromium, with a server of their own that has jobs to look at.

Whatever a test does, it fails when a page's script fails, when the content security policy stops something, or when
the console has an error.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from scrapy_ext.server.extraction.browser import find_browser
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer

SCREENSHOTS = Path(__file__).parent / "screenshots"
_AXE = resources.files("axe_playwright_python").joinpath("axe.min.js")

#: Target of deliveries, a folder that does not exist.
ARCHIVE = "file:///nowhere/archive"

OpenPage = Callable[..., Awaitable[Page]]

#: Not the numbers that modules of these tests count themselves.
_projects = itertools.count(10_001)


@pytest.fixture(autouse=True)
def _every_context_is_closed() -> None:
    """There is no extraction service here, whose pages the fixture of this name waits for elsewhere."""


@pytest.fixture(scope="session")
def ui_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server for the tests of pages, each of which uses a project of its own."""
    with ForkedServer(tmp_path_factory.mktemp("ui") / "data", options=("--archive-target", ARCHIVE)) as server:
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
        path = find_browser(None, os.environ, Path(playwright.chromium.executable_path))
        browser = await playwright.chromium.launch(executable_path=str(path))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def logged_in(chromium: Browser, ui_server: RunningServer) -> Any:
    """The cookies of somebody who has logged in."""
    context = await chromium.new_context()
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
        context = await chromium.new_context(
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
    """Keep a picture of a page, for people to look at."""
    SCREENSHOTS.mkdir(exist_ok=True)
    await page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
