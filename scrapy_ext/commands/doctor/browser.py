"""Check of the browser of a server on this machine, which is started and ended."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import Final

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.commands.doctor.checking import Check, Finding, ok, problem, warning
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction import (
    ENVIRONMENT_VARIABLE,
    HOW_TO_GET_ONE,
    BrowserNotFoundError,
    Launcher,
)

_SUBJECT: Final = "browser"
#: Seconds to start a browser, and to end it. A busy machine needs many.
_START: Final = 40.0
_CHECK: Final = 60.0
#: Parts of Playwright's report of a browser that does not start.
_PROGRAM: Final = re.compile(r"^<launching> (.+?) --", re.MULTILINE)
_WROTE: Final = re.compile(r"^\[pid=\d+\]\[err\] (.+)", re.MULTILINE)
_EXITED: Final = re.compile(r"<process did exit: exitCode=(\d+)")
#: Messages of the loaders of Linux and macOS, and of Playwright.
_LIBRARIES: Final = re.compile(r"error while loading shared libraries|Library not loaded|missing dependencies")


def check(path: str | None) -> Check:
    """Return the check. ``path``: a configured browser."""
    return Check(_SUBJECT, lambda: _browser(path), _CHECK)


async def _browser(path: str | None) -> list[Finding]:
    log = _Records()
    logger = logging.getLogger(Launcher.__module__)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(log)
    starting = Launcher(ServiceLimits(launch=_START), path)
    try:
        instance = await starting.launch(images=False)
        version = instance.chromium.version
        await instance.end()
    except BrowserNotFoundError as error:
        return [problem(_SUBJECT, str(error.problem.detail).removesuffix(HOW_TO_GET_ONE).strip(), HOW_TO_GET_ONE)]
    except ExtractionError:
        report = next((text for level, text in log.records if level >= logging.ERROR), "the browser does not start")
        return [failure(report, path, os.environ)]
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
        await starting.stop()
    found = [ok(_SUBJECT, f"Chromium {version} starts")]
    if any("sandbox" in text for level, text in log.records if level == logging.WARNING):
        remedy = (
            "Run the server as another user."
            if os.geteuid() == 0
            else "sysctl kernel.unprivileged_userns_clone=1, as root"
        )
        found.append(warning(_SUBJECT, "it runs without its sandbox", remedy))
    return found


def failure(report: str, configured: str | None, environ: Mapping[str, str]) -> Finding:
    """Return the finding about a browser that does not start, from the launcher's log message, which has the output of
    the browser below its first line."""
    launched = _PROGRAM.search(report)
    program = launched[1] if launched is not None else "the browser"
    wrote, exited = _WROTE.search(report), _EXITED.search(report)
    if wrote is not None:
        text = f"{program} does not start: {wrote[1]}"
    elif exited is not None:
        text = f"{program} does not start: it ends at once, with exit code {exited[1]}"
    else:
        text = report.partition("\n")[0]
    if _LIBRARIES.search(report):
        return problem(
            _SUBJECT, text, "playwright install-deps chromium, as root, installs the libraries that it needs."
        )
    source = "--browser" if configured else ENVIRONMENT_VARIABLE if environ.get(ENVIRONMENT_VARIABLE) else ""
    if source:
        remedy = f"Name Chromium or Chrome with {source}, or leave {source} out: the server then looks for one itself."
    else:
        remedy = "playwright install --force chromium --only-shell installs a browser anew."
    return problem(_SUBJECT, text, remedy)


class _Records(logging.Handler):
    """Collects levels and messages."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append((record.levelno, record.getMessage()))
