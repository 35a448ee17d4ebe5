"""Start of Playwright's driver, a Node.js program that comes with Playwright, and the reason why it does not start."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Final

from playwright._impl._driver import compute_driver_executable  # as `python -m playwright` does
from playwright.async_api import Error, Playwright, async_playwright

from scrapy_ext.server.extraction.browser.executable import BrowserNotFoundError, clean_environment

_PROBE_SECONDS: Final = 30.0
#: The message of Linux's loader. Playwright's Node.js needs libatomic.so.1, which small images do not have.
_LIBRARY: Final = re.compile(r"error while loading shared libraries: (\S+): (.*)")


async def start_driver() -> Playwright:
    """Start the driver; raises :class:`BrowserNotFoundError` if its program cannot run on this machine."""
    try:
        return await async_playwright().start()
    except Exception as error:  # Playwright raises several classes here, and Exception itself
        fault = await asyncio.to_thread(driver_fault, driver_program())
        if fault is None:
            raise
        raise BrowserNotFoundError(fault) from error


def driver_program() -> Path | None:
    try:
        program = Path(compute_driver_executable()[0])
    except Error:
        return None
    return program if program.exists() else None


def driver_fault(program: Path | None) -> str | None:
    """Return the reason why the driver's program does not run, with the remedy; None if it runs."""
    if program is None:  # images without a browser have none, since it is large
        return (
            "This server has no browser, and Playwright's driver has no Node.js. Use an image with Chromium, or "
            "reinstall Playwright."
        )
    try:
        done = subprocess.run(  # noqa: S603 - the program of an installed package
            [program, "--version"],
            env=clean_environment(os.environ),
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"The driver of the browser does not start: {error}. Reinstall Playwright for this system."
    if missing := _LIBRARY.search(done.stderr):
        remedy = "Install it"
        if missing[1].startswith("libatomic"):
            remedy = "Install it: on Debian and Ubuntu, apt install libatomic1"
        return f"The driver of the browser needs the library {missing[1]}. {remedy}."
    return None
