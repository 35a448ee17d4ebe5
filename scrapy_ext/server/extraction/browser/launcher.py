"""Start of Chromium through Playwright's driver, and the end of that driver.

* All traffic goes through :mod:`~scrapy_ext.server.net.proxy`; Chromium itself cannot resolve names.
* Chromium's sandbox is on, except as root, where Chromium refuses it, and where the system does not allow it; either is
  logged once. The environment of Chromium has none of the server's keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import subprocess
from pathlib import Path
from typing import Final

from playwright._impl._driver import compute_driver_executable
from playwright.async_api import Browser as Chromium
from playwright.async_api import Error, Playwright, async_playwright

from scrapy_ext.api.extraction.problems import ExtractionError, internal
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.computing.environment import clean_environment
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.browser import BrowserNotFoundError, find_browser
from scrapy_ext.server.extraction.browser.instance import BrowserInstance, ProcessGroup, kill, parent_of

# Start of Playwright's driver, a Node.js program that comes with Playwright, and the reason why it does not start.


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


_log = logging.getLogger(__name__)

#: No server listens there: requests outside of contexts (Chromium's own) fail.
_NOWHERE: Final = "http://127.0.0.1:1"
_ARGUMENTS: Final = (
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--mute-audio",
    # The proxies resolve names; this rule keeps Chromium from the system's resolver.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
#: Messages of Chromium when it cannot start its sandbox. Containers often allow user namespaces, and no chroot in them.
_SANDBOX: Final = re.compile(r"sandbox|sys_chroot|zygote", re.IGNORECASE)
#: Chromium detects the encoding of a page that declares none, but not UTF-8, which it reads as windows-1252 by default.
DEFAULT_ENCODING: Final = "--blink-settings=defaultTextEncodingName=UTF-8"
#: Not by interception, which costs each page more processor time than the images of a small one.
_NO_IMAGES: Final = ",imagesEnabled=false,downloadableBinaryFontsEnabled=false"
_NO_AUTOPLAY: Final = "--autoplay-policy=document-user-activation-required"


class Launcher:
    """Starts browsers; ``launches`` counts them. End it with :meth:`stop`, when they are ended."""

    def __init__(self, limits: ServiceLimits, path: str | None) -> None:
        self._limits = limits
        self._path = path
        self._driver: Playwright | None = None
        self._driver_pid: int | None = None
        self._sandbox = os.name != "posix" or os.geteuid() != 0
        #: Whether the lack of a browser was logged.
        self._failed = False
        self.launches = 0

    async def launch(self, *, images: bool) -> BrowserInstance:
        """Start a browser that loads images and fonts, or neither; raises 500 ``/server/internal``."""
        failure = ""
        if not self._sandbox and not self.launches:
            _log.warning("Chromium runs without its sandbox, because this server runs as root. Use another user.")
        # A second driver in case the first one died; a second browser where the sandbox is not allowed.
        for _ in range(3):
            try:
                async with timeout_after(self._limits.launch):
                    driver = await self._running_driver()
                    path = find_browser(self._path, os.environ, Path(driver.chromium.executable_path))
                    chromium = await self._start(driver, path, images)
                    instance = await self._instance(chromium)
            except (Error, *TIMEOUT_ERRORS, OSError) as error:
                failure = str(error)
                if self._sandbox and _SANDBOX.search(failure):
                    _log.warning(
                        "Chromium runs without its sandbox, which this system does not allow: %s. Allow user "
                        "namespaces to have it.",
                        _first(failure),
                    )
                    self._sandbox = False
                else:
                    await self.stop()
                continue
            except ExtractionError as error:
                if not self._failed:
                    _log.error("%s", error)
                self._failed = True
                raise
            self.launches += 1
            sandbox = "with its sandbox" if self._sandbox else "without its sandbox"
            _log.info("Started %s, version %s, %s", path.name, chromium.version, sandbox)
            return instance
        _log.error("The browser does not start: %s. Run scrapy platform doctor.", failure)
        raise internal("The browser of the server does not start.")

    async def stop(self) -> None:
        """End the driver, and all that it still runs."""
        driver, self._driver = self._driver, None
        pid, self._driver_pid = self._driver_pid, None
        if driver is None:
            return
        # A driver that died does not report its end, and one that hangs does not stop.
        with contextlib.suppress(Exception):
            async with timeout_after(self._limits.close):
                await driver.stop()
        if pid is not None and parent_of(pid) == os.getpid():
            kill(pid)

    async def _start(self, driver: Playwright, path: Path, images: bool) -> Chromium:
        heap = f"--js-flags=--max-old-space-size={self._limits.page_heap_mib}"
        settings = [DEFAULT_ENCODING] if images else [DEFAULT_ENCODING + _NO_IMAGES, _NO_AUTOPLAY]
        return await driver.chromium.launch(
            executable_path=path,
            args=[*_ARGUMENTS, heap, *settings],
            chromium_sandbox=self._sandbox,
            proxy={"server": _NOWHERE},
            env={**clean_environment(os.environ)},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=1000 * self._limits.launch,
        )

    async def _instance(self, chromium: Chromium) -> BrowserInstance:
        session = await chromium.new_browser_cdp_session()
        processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
        group = ProcessGroup(next(process["id"] for process in processes if process["type"] == "browser"))
        if group.leader:
            self._driver_pid = parent_of(group.leader)
        return BrowserInstance(chromium, session, group, self._limits)

    async def _running_driver(self) -> Playwright:
        if self._driver is None:
            logging.getLogger("asyncio").addFilter(_is_not_the_drivers_end)
            self._driver = await start_driver()
        return self._driver


def _is_not_the_drivers_end(record: logging.LogRecord) -> bool:
    """Filter asyncio's report of a future of Playwright's that nobody reads.

    It reports the end of the driver, which is normal when a signal reaches the whole process group, and is otherwise
    logged elsewhere.
    """
    return "Connection closed while reading from the driver" not in record.getMessage()


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if _SANDBOX.search(line)), text.partition("\n")[0])[:200]
