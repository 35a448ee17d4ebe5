"""Ledger of a crawl on disk: the requests that it sent to the extraction service, and their answers. A crawl that is
stopped or killed continues without paying again for an answer that it has.

The life of an entry, by its key, which is the same for equal requests of every run:

========================  ============================================================================================
:meth:`Ledger.sent`       the request counts as spent, and as unanswered
:meth:`Ledger.failed`     it does not count as unanswered, and an amount that was not billed is refunded
:meth:`Ledger.answered`   its answer is stored
:meth:`Ledger.finished`   the answer is removed: the crawl does not need it again
========================  ============================================================================================

A later run calls :meth:`Ledger.stored` before it sends. Invariants:

- These calls are operations on dicts in memory. Changes are written once per flush interval, in one transaction and in
  a thread of its own. An answer is written only when it is older than the hold time: writing it costs more than
  receiving it, and most answers are finished before.
- A completed flush survives a kill of the process at any moment. The changes of one interval, and the answers of the
  hold time, may be lost: then those answers are paid for twice. Until an answer is written or finished, the file counts
  its request as unanswered.
- An answer is returned only if its checksum matches.
- The crawl is worth more than the ledger. When the file cannot be written, the ledger logs that once and only counts
  from then on. It is an error only if the file must not be touched: it is damaged, of another format, or in use.
- Everything is bounded: answers on disk by ``max_bytes``, the oldest are dropped first; answers in memory by
  :data:`BUFFER_BYTES` that are pending, and as many that are being written; further ones are not stored. They are
  written from :data:`WRITE_BYTES` on, so that more are pending only while the disk is slower than the answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import sqlite3
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from scrapy_ext.client.extraction.budget import Spent
from scrapy_ext.client.extraction.ledger_entries import LedgerEntries, Opened
from scrapy_ext.client.extraction.ledger_file import ROW_BYTES, LedgerError, LedgerFile

logger = logging.getLogger(__name__)

#: Bytes of pending answers that are written before the end of the interval, however young.
WRITE_BYTES: Final = 2 * 2**20
#: Limit of the bytes of pending answers.
BUFFER_BYTES: Final = 8 * 2**20

_encode: Final = msgspec.json.Encoder(order="deterministic").encode

__all__ = ["BUFFER_BYTES", "WRITE_BYTES", "Ledger", "LedgerError", "key_of"]


def key_of(fields: Mapping[str, Any]) -> bytes:
    """Return the key of a request: equal for equal fields, in every run. ``jobId`` does not count: a resumed crawl may
    be another job."""
    content = {name: value for name, value in fields.items() if name != "jobId"}
    return hashlib.blake2b(_encode(content), digest_size=16).digest()


class Ledger:
    """The ledger of one crawl, created by :meth:`open` and used in the thread of its event loop."""

    def __init__(self, path: Path, flush_interval: float, hold_time: float, max_bytes: int) -> None:
        self._flush_interval = flush_interval
        self._hold_time = hold_time
        self._file = LedgerFile(path, max_bytes)
        self._entries = LedgerEntries(Opened(Spent(), 0, set()))
        #: Requests of former runs that had no answer when these ended: they may have been billed.
        self.unanswered = 0
        #: Answers that were not stored for lack of room.
        self.dropped = 0
        #: The error that disabled the ledger; None: it is enabled.
        self.error: Exception | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="extract-ledger")
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[list[bytes]] | None = None

    @property
    def spent(self) -> Spent:
        """Spent by all runs with this file, this one included. The ledger updates it: copy it to count elsewhere."""
        return self._entries.spent

    @classmethod
    async def open(
        cls, path: Path, *, flush_interval: float = 0.25, hold_time: float = 0.0, max_bytes: int = 256 * 2**20
    ) -> Ledger:
        """Open or create the file; raises :class:`LedgerError`.

        ``flush_interval`` is in seconds, and so is ``hold_time``, the age from which an answer is written;
        ``max_bytes`` bounds the stored answers.
        """
        ledger = cls(path, flush_interval, hold_time, max_bytes)
        try:
            opened = await ledger._loop.run_in_executor(ledger._thread, ledger._file.open)
        except (sqlite3.Error, OSError) as error:
            ledger._fail(error)
        except LedgerError:
            ledger._thread.shutdown(wait=False)
            raise
        else:
            ledger._entries, ledger.unanswered = LedgerEntries(opened), opened.unanswered
        return ledger

    def __repr__(self) -> str:
        return f"<Ledger {self._file.path}>"

    def may_have(self, key: bytes) -> bool:
        """Return whether :meth:`stored` may have an answer."""
        return self._entries.is_former(key) and not self._is_off

    async def stored(self, key: bytes) -> bytes | None:
        """Return an unfinished answer of a former run. Each is returned once per run, and stays on disk until it is
        :meth:`finished`."""
        if not self.may_have(key):
            return None
        self._entries.take_former(key)
        try:
            answer = await self._loop.run_in_executor(self._thread, self._file.read, key)
        except (sqlite3.Error, OSError) as error:
            self._fail(error)
            return None
        self.dropped += answer is None
        return answer

    def sent(self, key: bytes, cost: float) -> None:
        self._entries.sent(key, cost)
        self._wait()

    def failed(self, key: bytes, refund: float = 0.0) -> None:
        """Record the failure of a request. ``refund``: the part of its cost that was not billed."""
        self._entries.failed(key, refund)
        self._wait()

    def answered(self, key: bytes, answer: bytes | bytearray) -> None:
        """Store the body of the 200 answer to a request, in place of a former one."""
        entries = self._entries
        entries.answered(key)
        if self._is_off:
            return
        is_full = self._writing is not None and entries.pending_bytes + len(answer) > BUFFER_BYTES
        if is_full or len(answer) + ROW_BYTES > self._file.max_bytes:
            self.dropped += 1
            self.finished(key)
            return
        entries.add(key, answer, self._loop.time() + self._hold_time)
        self._wait()
        if entries.pending_bytes >= WRITE_BYTES:
            self._flush(all_answers=True)

    def finished(self, key: bytes) -> None:
        """Remove the answer to a request: the crawl does not need it again."""
        self._entries.finished(key)
        self._wait()

    async def flush(self) -> None:
        """Write all changes now; returns when they are on disk, or the ledger is disabled."""
        await self._written_out()
        if self._entries.has_changed or self._entries.are_pending:
            self._flush(all_answers=True)
            await self._written_out()

    async def close(self, *, complete: bool) -> None:
        """Write all changes and close the file. ``complete``: the crawl is finished, and the file is deleted."""
        if self._closed:
            return
        await (self._written_out() if complete else self.flush())
        self._closed = True
        self._stop_timer()
        try:
            await self._loop.run_in_executor(self._thread, self._file.close, complete)
        except (sqlite3.Error, OSError) as error:
            self._fail(error)
        self._thread.shutdown(wait=False)

    @property
    def _is_off(self) -> bool:
        return self._closed or self.error is not None

    def _wait(self) -> None:
        """Flush after the interval, if there is something to write then or later."""
        entries = self._entries
        is_idle = self._timer is None and self._writing is None
        if is_idle and (entries.has_changed or entries.are_pending) and not self._is_off:
            self._timer = self._loop.call_later(self._flush_interval, self._flush)

    async def _written_out(self) -> None:
        while self._writing is not None:
            await asyncio.wait([self._writing])

    def _flush(self, *, all_answers: bool = False) -> None:
        self._stop_timer()
        if self._writing is not None or self._is_off:
            return
        changes = self._entries.take(math.inf if all_answers else self._loop.time())
        if changes is None:
            self._wait()
            return
        self._writing = self._loop.run_in_executor(self._thread, self._file.write, changes)
        self._writing.add_done_callback(self._written)

    def _written(self, writing: asyncio.Future[list[bytes]]) -> None:
        self._writing = None
        if writing.cancelled():
            return
        error = writing.exception()
        if error is not None:
            self._fail(error)
            return
        dropped = writing.result()
        self.dropped += len(dropped)
        self._entries.dropped(dropped)
        if self._entries.pending_bytes >= WRITE_BYTES:
            self._flush(all_answers=True)
        else:
            self._wait()

    def _fail(self, error: BaseException) -> None:
        if self.error is not None:
            return
        self.error = error if isinstance(error, Exception) else RuntimeError(str(error))
        self._stop_timer()
        self._entries.forget()
        logger.warning(
            "The ledger %s cannot be used (%s). The crawl goes on without it: when it is resumed, answers may "
            "be paid for twice. Free disk space and check the permissions; delete the file if it is damaged.",
            self._file.path,
            error,
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
