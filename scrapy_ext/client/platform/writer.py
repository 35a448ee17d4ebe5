"""Sending records in batches, without losing one.

Records are numbered as they are added and sent in that order, one send at a time. A batch is sent when enough records
or bytes are pending, or when the oldest has been pending long enough. Invariants:

- A record leaves the buffer only when the send that contained it has returned, so that every record before ``durable``
  is stored.
- A failed send is repeated with the same records at the same index, so that a server that stores by index has each
  record once, also when the answer to a successful send was lost.
- :meth:`BatchWriter.add` neither waits nor drops. The caller must wait at :meth:`~BatchWriter.wait_below_high_water`,
  which bounds the buffer.

A send that cannot succeed (a wrong key, a record that the server refuses), or that fails for longer than
``retry_time``, ends the writer: ``failed`` is set, everything that waits raises it, and the records stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Final

from scrapy_ext.client.platform.errors import JOB_ENDED, PlatformError, TooLarge
from scrapy_ext.client.retry import Backoff, Outage, Retry
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

logger = logging.getLogger(__name__)

#: Seconds until the next attempt, also when the server requests a longer wait.
_LONGEST_WAIT: Final = 3600.0


class RecordsNotStored(PlatformError):  # noqa: N818 - named as its siblings
    """A writer was closed before ``count`` of its records were stored."""

    def __init__(self, name: str, count: int, reason: str) -> None:
        super().__init__(f"{count} {name} were not stored: {reason}")
        self.count = count


class BatchWriter:
    """Collects records (JSON objects as bytes, without a newline) and passes batches to ``send(body, index)``.

    ``body`` is JSON lines, ``index`` the number of its first record. A send should make one attempt (``attempts=1``),
    since the writer repeats it. Writers that share an ``outage`` report failures together. Use it in one running event
    loop.

    - ``start``: number of the first record.
    - ``name``: the records in log messages and errors ("items").
    - ``on_failed``: called with the error when the writer gives up.
    - ``full``: contains the writer while it has more than ``high_water_bytes``.
    """

    def __init__(
        self,
        send: Callable[[bytes, int], Awaitable[object]],
        *,
        start: int = 0,
        max_records: int = 1000,
        max_bytes: int = 1024 * 1024,
        flush_interval: float = 2.0,
        high_water_bytes: int = 16 * 1024 * 1024,
        retry_time: float = 0.0,
        name: str = "records",
        backoff: Backoff | None = None,
        on_failed: Callable[[Exception], None] | None = None,
        full: set[BatchWriter] | None = None,
        outage: Outage | None = None,
    ) -> None:
        self._send = send
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._flush_interval = flush_interval
        self._high_water = high_water_bytes
        self._name = name
        self._retry = Retry(retry_time, backoff or Backoff(0.5, 10.0), outage, _LONGEST_WAIT)
        self._on_failed = on_failed
        self._full = full
        self._records: deque[bytes] = deque()
        #: Bytes of the records that are not stored yet.
        self.pending_bytes = 0
        #: Index before which all records are stored.
        self.durable = start
        #: Records before this index are sent without waiting for more.
        self._due = start
        self._timer: asyncio.TimerHandle | None = None
        self._sender: asyncio.Task[None] | None = None
        self._progress: asyncio.Future[None] | None = None
        self._closed = False
        #: The error that ended the writer; None: it has not ended.
        self.failed: Exception | None = None

    def __repr__(self) -> str:
        return f"<BatchWriter of {self._name}: {self.pending} pending, stored before {self.durable}>"

    @property
    def next_index(self) -> int:
        return self.durable + len(self._records)

    @property
    def pending(self) -> int:
        """Number of records that are not stored yet."""
        return len(self._records)

    def add(self, record: bytes) -> int:
        """Add a record; returns its index. Never waits, never drops, and does not raise for a slow or unreachable
        server."""
        if self._closed:
            raise RuntimeError(f"the writer of {self._name} is closed")
        index = self.next_index
        self._records.append(record)
        self.pending_bytes += len(record) + 1
        if self._full is not None and self.pending_bytes > self._high_water:
            self._full.add(self)
        if self._sender is None and self._is_full():
            self._start()
        elif self._timer is None and self.failed is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_interval, self._on_timer)
        return index

    async def wait_below_high_water(self) -> None:
        """Wait until the buffer has room; raises ``failed`` when the writer gave up."""
        while self.pending_bytes > self._high_water or self.failed is not None:
            self._start()
            await self._next_progress()

    async def wait_durable(self, mark: int) -> None:
        """Wait until every record before ``mark`` is stored; raises ``failed`` when the writer gave up."""
        if mark > self.next_index:
            raise ValueError(f"no record before {mark} can be waited for: the next index is {self.next_index}")
        while self.durable < mark:
            await self._next_progress()

    async def flush(self) -> None:
        """Send all pending records, and wait until they are stored."""
        self._start()
        await self.wait_durable(self.next_index)

    async def close(self, timeout: float | None = None) -> None:
        """Store the pending records and end the writer. Raises :class:`RecordsNotStored` when that fails, or takes
        longer than ``timeout`` seconds."""
        self._closed = True
        reason: str | None = None
        try:
            async with timeout_after(timeout):
                await self.flush()
        except TIMEOUT_ERRORS:
            reason = f"no success within {timeout:g} seconds"
        except Exception as error:
            reason = str(error)
        finally:
            await self._stop()
        if reason is not None:
            self.failed = RecordsNotStored(self._name, self.pending, reason)
            self._wake()
            raise self.failed

    async def abandon(self) -> None:
        """End the writer without sending the pending records: another process writes at their indices now."""
        self._closed = True
        await self._stop()

    def _is_full(self) -> bool:
        return len(self._records) >= self._max_records or self.pending_bytes >= self._max_bytes

    def _on_timer(self) -> None:
        self._timer = None
        self._start()

    def _start(self) -> None:
        """Send all records that are pending now."""
        self._due = self.next_index
        self._cancel_timer()
        if self._sender is None and self._records and self.failed is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_due())

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _stop(self) -> None:
        self._cancel_timer()
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])

    async def _send_due(self) -> None:
        try:
            while self.durable < self._due or self._is_full():
                await self._send_batch()
        except Exception as error:
            self.failed = error
            # The end of a job ends all its writers: who is notified reports it once.
            if self._on_failed is None or not isinstance(error, JOB_ENDED):
                logger.error("Gave up storing %s, %d of them are not stored: %s", self._name, self.pending, error)
            if self._on_failed is not None:
                self._on_failed(error)
        finally:
            self._sender = None
            self._wake()

    async def _send_batch(self) -> None:
        count, size = self._batch()
        body = b"\n".join(islice(self._records, count)) + b"\n"
        try:
            await self._retry.until_done(lambda: self._send(body, self.durable), f"store {self._name}")
        except TooLarge:
            # Some proxies accept smaller bodies than the platform; one record that is too large ends the writer.
            if count == 1:
                raise
            self._max_records = count // 2
            return
        for _ in range(count):
            self._records.popleft()
        self.pending_bytes -= size
        self.durable += count
        if self._full is not None and self.pending_bytes <= self._high_water:
            self._full.discard(self)
        self._wake()

    def _batch(self) -> tuple[int, int]:
        """Return the number of records of the next send, and their bytes."""
        count = size = 0
        for record in islice(self._records, self._max_records):
            grown = size + len(record) + 1
            if count and grown > self._max_bytes:
                break
            count, size = count + 1, grown
        return count, size

    async def _next_progress(self) -> None:
        if self.failed is not None:
            raise self.failed
        if self._progress is None:
            self._progress = asyncio.get_running_loop().create_future()
        # Shielded, since all waiting tasks share it, and one of them may be cancelled.
        await asyncio.shield(self._progress)

    def _wake(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None and not progress.done():
            progress.set_result(None)
