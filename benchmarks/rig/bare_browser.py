"""Pages by plain Playwright: a context per page, its load event, its HTML.

``python -m rig.bare_browser PROGRAM`` says that it is ready, and answers ``URL PAGES AT_ONCE`` with seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from playwright.async_api import Browser, async_playwright


async def main(program: str) -> None:
    loop = asyncio.get_running_loop()
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=program, chromium_sandbox=os.name == "posix" and os.geteuid() != 0
        )
        print("ready", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            url, pages, at_once = line.split()
            print(await _load(browser, url, int(pages), int(at_once)), flush=True)
        await browser.close()


async def _load(browser: Browser, url: str, pages: int, at_once: int) -> float:
    left = iter(range(pages))

    async def some() -> None:
        for number in left:
            context = await browser.new_context()
            try:
                page = await context.new_page()
                await page.goto(f"{url}?{number}")
                assert "end of the page" in await page.content()
            finally:
                await context.close()

    begun = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return time.perf_counter() - begun


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
