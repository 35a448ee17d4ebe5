"""What a crawl sent to the extraction service and what it was answered, on disk, so that the crawl can be stopped or
killed and go on without paying twice for an answer it has.

The life of an entry, by its key, which is the same for equal requests of every run:

========================  ============================================================================================
:meth:`Ledger.sent`       the request counts as spent, and as unanswered
:meth:`Ledger.failed`     it is not unanswered any more, and what was not billed is given back
:meth:`Ledger.answered`   its answer is kept
:meth:`Ledger.finished`   the answer is dropped: nobody will ask for it
========================  ============================================================================================

A later run asks with :meth:`Ledger.stored` before it sends. Rules that hold:

- These calls are operations on dicts in memory. Each flush interval what has changed since is written, in one
  transaction and in a thread of its own. An answer that comes and is finished within one interval is never written.
- What a flush wrote is there after the process was killed at any moment. Up to one interval may be lost: then the
  answer is paid for twice, which is the worst that can happen.
- An answer that is given is what came: it is stored with a checksum, and one that does not match is not given.
- The crawl is worth more than the ledger. When the file cannot be written, the ledger says so once and does nothing
  from there on but count. Only a file that must not be touched is an error: one that is damaged, of something else,
  or in use.
- Everything is bounded: answers on disk by ``max_bytes``, of which the oldest go first; answers in memory by
  :data:`BUFFER_BYTES`, once waiting and once being written, beyond which an answer is not kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from scrapy_ext.client.extraction.budget import Spent
from scrapy_ext.client.extraction.ledger_file import ROW_BYTES, Batch, LedgerError, LedgerFile

logger = logging.getLogger(__name__)

#: Answers in memory that are written before their interval is over.
BUFFER_BYTES: Final = 8 * 2**20

_encode: Final = msgspec.json.Encoder(order="deterministic").encode

__all__ = ["BUFFER_BYTES", "Ledger", "LedgerError", "key_of"]


def key_of(fields: Mapping[str, Any]) -> bytes:
    """The key of a request: equal fields have the same, in every run. The job does not count: a crawl that goes on may
    do so as another one."""
    content = {name: value for name, value in fields.items() if name != "jobId"}
    return hashlib.blake2b(_encode(content), digest_size=16).digest()


class Ledger:
    """The ledger of one crawl; made by :meth:`open`, used from the thread of its event loop."""

    def __init__(self, path: Path, flush_interval: float, max_bytes: int) -> None:
        self._path = path
        self._flush_interval = flush_interval
        self._max_bytes = max_bytes
        #: What all runs with this file spent, this one included. Kept up to date; who counts too takes a copy.
        self.spent = Spent()
        #: Requests that former runs sent and that had no answer when they ended: they may have been billed.
        self.unanswered = 0
        #: Answers that were not kept, for want of room.
        self.dropped = 0
        #: Why the ledger is switched off; None: it is not.
        self.error: Exception | None = None
        self._closed = False
        self._file = LedgerFile(path, max_bytes)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="extract-ledger")
        self._loop = asyncio.get_running_loop()
        self._former: set[bytes] = set()
        #: Keys that have a row, or will when the batch that is being written is.
        self._rows: set[bytes] = set()
        self._in_flight: set[bytes] = set()
        self._changes: dict[bytes, bytes | None] = {}
        self._buffered = 0
        self._has_changed = False
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[list[bytes]] | None = None

    @classmethod
    async def open(cls, path: Path, *, flush_interval: float = 0.25, max_bytes: int = 256 * 2**20) -> Ledger:
        """Open or create the file; raises :class:`LedgerError`.

        ``flush_interval`` is in seconds; ``max_bytes`` bounds the stored answers.
        """
        ledger = cls(path, flush_interval, max_bytes)
        try:
            opened = await ledger._loop.run_in_executor(ledger._thread, ledger._file.open)
        except (sqlite3.Error, OSError) as error:
            ledger._fail(error)
        except LedgerError:
            ledger._thread.shutdown(wait=False)
            raise
        else:
            ledger.spent, ledger.unanswered = opened.spent, opened.unanswered
            ledger._former, ledger._rows = opened.keys, set(opened.keys)
        return ledger

    def __repr__(self) -> str:
        return f"<Ledger {self._path}>"

    def may_have(self, key: bytes) -> bool:
        """Return whether :meth:`stored` may have an answer."""
        return key in self._former and not self._is_off

    async def stored(self, key: bytes) -> bytes | None:
        """The answer that a former run paid for and did not finish with. Each is given once in a run, and stays on
        disk until it is :meth:`finished`."""
        if not self.may_have(key):
            return None
        self._former.discard(key)
        try:
            answer = await self._loop.run_in_executor(self._thread, self._file.read, key)
        except sqlite3.Error as error:
            self._fail(error)
            return None
        self.dropped += answer is None
        return answer

    def sent(self, key: bytes, cost: float) -> None:
        """A request goes out."""
        self.spent.requests += 1
        self.spent.cost += cost
        self._in_flight.add(key)
        self._changed()

    def failed(self, key: bytes, refund: float = 0.0) -> None:
        """A request that was sent has failed: no answer will come. ``refund`` is what of its cost was not billed."""
        self.spent.cost -= refund
        self._in_flight.discard(key)
        self._changed()

    def answered(self, key: bytes, answer: bytes) -> None:
        """The body of the 200 answer to a request, as it came. It replaces one that the key has already."""
        self._in_flight.discard(key)
        self._former.discard(key)
        if self._is_off:
            return
        is_full = self._writing is not None and self._buffered + len(answer) > BUFFER_BYTES
        if is_full or len(answer) + ROW_BYTES > self._max_bytes:
            self.dropped += 1
            self.finished(key)
            return
        self._buffered += len(answer) - len(self._changes.get(key) or b"")
        self._changes[key] = answer
        self._changed()
        if self._buffered >= BUFFER_BYTES:
            self._flush()

    def finished(self, key: bytes) -> None:
        """The crawl needs the answer to this request no more."""
        buffered = self._changes.pop(key, None)
        if buffered is not None:
            self._buffered -= len(buffered)
        if key in self._rows:
            self._rows.discard(key)
            self._former.discard(key)
            self._changes[key] = None
            self._changed()

    async def flush(self) -> None:
        """Write now what has changed; returns when that is on disk, or the ledger is off."""
        await self._written_out()
        if self._has_changed:
            self._flush()
            await self._written_out()

    async def close(self, *, complete: bool) -> None:
        """Write what there is and close the file. ``complete`` says that the crawl is over: then the file goes."""
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

    def _changed(self) -> None:
        self._has_changed = True
        if self._timer is None and self._writing is None and not self._is_off:
            self._timer = self._loop.call_later(self._flush_interval, self._flush)

    async def _written_out(self) -> None:
        while self._writing is not None:
            await asyncio.wait([self._writing])

    def _flush(self) -> None:
        self._stop_timer()
        if self._writing is not None or self._is_off:
            return
        batch = Batch(self._changes, self.spent.requests, self.spent.cost, len(self._in_flight))
        self._rows.update(key for key, answer in self._changes.items() if answer is not None)
        self._changes, self._buffered, self._has_changed = {}, 0, False
        self._writing = self._loop.run_in_executor(self._thread, self._file.write, batch)
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
        self._rows.difference_update(dropped)
        self._former.difference_update(dropped)
        if self._buffered >= BUFFER_BYTES:
            self._flush()
        elif self._has_changed:
            self._changed()

    def _fail(self, error: BaseException) -> None:
        if self.error is not None:
            return
        self.error = error if isinstance(error, Exception) else RuntimeError(str(error))
        self._stop_timer()
        self._former, self._rows, self._changes, self._buffered = set(), set(), {}, 0
        logger.warning(
            "The ledger %s cannot be used (%s). The crawl goes on without it: when it is resumed, answers may "
            "be paid for twice. Make room on the disk and check the permissions; delete the file if it is damaged.",
            self._path,
            error,
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
