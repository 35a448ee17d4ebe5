"""Check of the browser of a server on this machine, which is started and ended."""

from __future__ import annotations

import logging
import os
from typing import Final

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.commands.doctor.checking import Check, Finding, ok, problem, warning
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.browser import launcher
from scrapy_ext.server.extraction.browser.executable import HOW_TO_GET_ONE, BrowserNotFoundError

_SUBJECT: Final = "browser"
#: Seconds to start a browser, and to end it. A busy machine needs many.
_START: Final = 40.0
_CHECK: Final = 60.0


def check(path: str | None) -> Check:
    """Return the check. ``path``: a configured browser."""
    return Check(_SUBJECT, lambda: _browser(path), _CHECK)


async def _browser(path: str | None) -> list[Finding]:
    log = _Records()
    logger = logging.getLogger(launcher.__name__)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(log)
    starting = launcher.Launcher(ServiceLimits(launch=_START), path)
    try:
        instance = await starting.launch(images=False)
        version = instance.chromium.version
        await instance.end()
    except BrowserNotFoundError as error:
        return [problem(_SUBJECT, str(error.problem.detail).removesuffix(HOW_TO_GET_ONE).strip(), HOW_TO_GET_ONE)]
    except ExtractionError:
        reason = next((text for level, text in log.records if level >= logging.ERROR), "the browser does not start")
        return [
            problem(
                _SUBJECT,
                reason.partition("\n")[0],
                "playwright install-deps chromium, as root, installs the libraries that it needs",
            )
        ]
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


class _Records(logging.Handler):
    """Collects levels and messages."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append((record.levelno, record.getMessage()))
