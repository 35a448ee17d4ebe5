"""Pool of processes for automatic extraction, off the event loop.

Extraction is computing: tens of milliseconds for a page, and minutes for one that is made to be slow. A process of its
own delays no other request, and one that takes too long, or crashes, is ended and replaced. Messages are JSON, and a
hostile page that takes over the process gains nothing: its environment has no keys.
"""

from __future__ import annotations

import logging
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.problems import ExtractionError, internal, permanent, timed_out, unprocessable
from scrapy_ext.api.masking import without_user
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.computing.fair_semaphore import FairSemaphore
from scrapy_ext.server.computing.processes import BrokenProcessError, Processes
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.auto_worker import ExtractionOutcome, ExtractionTask

_log = logging.getLogger(__name__)
_MODULE: Final = "scrapy_ext.server.extraction.auto_worker"


class Extractors:
    """The pool; processes start with the first pages. End it with :meth:`stop`.

    ``processes`` is their greatest number, ``module`` the module that they run; tests replace it.
    """

    def __init__(self, limits: ServiceLimits, processes: int, *, module: str = _MODULE) -> None:
        self._limits = limits
        self._processes = Processes(module, processes)
        # Nothing is refused here: waiting requests have permits of the server already, and a time limit.
        self._permits = FairSemaphore("extraction", processes, limits.requests, limits.request, reserve=True)

    async def extract(self, kind: str, html: str, url: str, *, styles: bool = False) -> dict[str, Any]:
        """Return the item of a page, in the schema of zyte-common-items; raises :class:`ExtractionError` (422, 500)."""
        item: dict[str, Any] = (await self.work(ExtractionTask(kind, url, html, styles))).item
        return item

    async def work(self, todo: ExtractionTask, *, domain: str | None = None, key: str = "") -> ExtractionOutcome:
        """Do a task and return its outcome; raises :class:`ExtractionError` (422, 500).

        Processes are shared fairly by the caller's ``key`` and by the requested ``domain``: by default the page's.
        """
        kind, url = todo.output, todo.url
        task = msgspec.json.encode(todo)
        async with self._permits.permit((urlsplit(url).hostname or "") if domain is None else domain, key):
            try:
                answer = await self._processes.run(task, self._limits.extract)
            except BrokenProcessError:
                raise _not_extracted(todo, "it ended its reader") from None
            except TIMEOUT_ERRORS:
                raise _too_slow(todo, f"{self._limits.extract:g} seconds") from None
        outcome = _decoded(answer)
        if outcome.unreadable:
            raise permanent(f"{url} is a PDF that {outcome.error}.")
        if outcome.unsupported:
            raise unprocessable(outcome.error or f"{kind} is not a kind that this server extracts.")
        if outcome.error is not None:
            _log.error(
                "Extracting %s from %s failed. Report it with its trace:\n%s", kind, without_user(url), outcome.error
            )
            raise internal(f"Extracting {kind} from this page failed.")
        return outcome

    async def stop(self) -> None:
        """End the processes."""
        await self._processes.stop()


def _not_extracted(todo: ExtractionTask, reason: str) -> ExtractionError:
    if todo.pdf is not None:
        return permanent(f"{todo.url} is a PDF that cannot be read: {reason}.")
    return internal(f"Extracting {todo.output} from this page failed.")


def _too_slow(todo: ExtractionTask, seconds: str) -> ExtractionError:
    # A page may be as slow as the machine is at that moment. A PDF that takes so long is made to do so.
    if todo.pdf is not None:
        return permanent(f"{todo.url} is a PDF that cannot be read in {seconds}.", Cause.TOO_LARGE)
    return timed_out(f"Extraction took longer than {seconds}.")


def _decoded(answer: bytes) -> ExtractionOutcome:
    try:
        return msgspec.json.decode(answer, type=ExtractionOutcome)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ExtractionOutcome(error="its reader gave an answer that is not valid")
