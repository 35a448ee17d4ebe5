"""Pages by plain Playwright: a context per page, its load event or half a second without requests, its HTML.

``python -m rig.bare_browser PROGRAM`` says that it is ready, and answers ``URL PAGES AT_ONCE UNTIL`` with seconds.
``UNTIL`` is ``load``, with images, or ``networkidle``, without them, as the service loads pages for their HTML.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any, Final

from playwright.async_api import Browser, async_playwright

#: Options of Chromium by the state that is waited for.
_ARGUMENTS: Final = {"load": [], "networkidle": ["--blink-settings=imagesEnabled=false"]}


async def main(program: str) -> None:
    loop = asyncio.get_running_loop()
    async with async_playwright() as driver:
        sandbox = os.name == "posix" and os.geteuid() != 0
        browsers = {
            until: await driver.chromium.launch(executable_path=program, args=arguments, chromium_sandbox=sandbox)
            for until, arguments in _ARGUMENTS.items()
        }
        print("ready", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            url, pages, at_once, until = line.split()
            print(await _load(browsers[until], url, int(pages), int(at_once), until), flush=True)
        for browser in browsers.values():
            await browser.close()


async def _load(browser: Browser, url: str, pages: int, at_once: int, until: Any) -> float:
    left = iter(range(pages))

    async def some() -> None:
        for number in left:
            context = await browser.new_context()
            try:
                page = await context.new_page()
                await page.goto(f"{url}?{number}", wait_until=until)
                assert "end of the page" in await page.content()
            finally:
                await context.close()

    begun = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return time.perf_counter() - begun


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
