"""Pages that are rendered in Chromium.

Here: the search for the Chromium to drive.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.problems import ExtractionError

ENVIRONMENT_VARIABLE: Final = "SCRAPY_EXT_BROWSER"
#: Searched on PATH, in this order. The headless shell renders two to four times as many pages as the whole browser on
#: the same machine.
COMMANDS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
HOW_TO_GET_ONE: Final = (
    "Get one with `playwright install chromium --only-shell`, or `apt install chromium-headless-shell`, "
    f"or name one with --browser PATH or {ENVIRONMENT_VARIABLE}=PATH."
)


class BrowserNotFoundError(ExtractionError):
    """No browser can be started (422). The message says how to get one."""

    def __init__(self, detail: str) -> None:
        super().__init__("/request/unprocessable", detail, cause=Cause.NO_BROWSER)


def find_browser(configured: str | None, environ: Mapping[str, str], own: Path) -> Path:
    """Return the browser to drive; raises :class:`BrowserNotFoundError`.

    The order is: the configured one, that of the environment variable, the download of Playwright (``own`` is its path
    of the whole browser), one on PATH. It is an error if the configured one does not exist.
    """
    for source, named in (("--browser", configured), (ENVIRONMENT_VARIABLE, environ.get(ENVIRONMENT_VARIABLE))):
        if named:
            path = Path(named).expanduser()
            if not os.access(path, os.X_OK) or path.is_dir():
                raise BrowserNotFoundError(f"{source} names {named}, which is not a program. {HOW_TO_GET_ONE}")
            return path
    for path in _of_playwright(own):
        if os.access(path, os.X_OK):
            return path
    for command in COMMANDS:
        found = shutil.which(command, path=environ.get("PATH"))
        if found:
            return Path(found)
    raise BrowserNotFoundError(f"This server has no browser. {HOW_TO_GET_ONE}")


def _of_playwright(own: Path) -> Iterable[Path]:
    """Yield Playwright's headless shell of the same revision, then its whole browser."""
    for folder in own.parents:
        revision = re.fullmatch(r"chromium-(\w+)", folder.name)
        if revision:
            shells = folder.parent / f"chromium_headless_shell-{revision[1]}"
            yield from sorted(path for path in shells.glob("*/*headless*shell*") if path.suffix in ("", ".exe"))
    yield own
