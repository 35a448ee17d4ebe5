"""Detection of dead nodes: by a heartbeat that stands still, and on one machine by a lock that was released.

Rules that hold here:

- This process measures by its own clock how long a heartbeat stands still, and only while it reads the nodes without a
  gap and its own heartbeats are stored. Else an outage of the database would look like the death of all nodes.
- The jobs of a dead node are taken back by whoever detects it, each in a transaction of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scrapy_ext.server.jobs.clock import elapsing
from scrapy_ext.server.jobs.nodes.notifier import Notifier
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError

#: Seconds that a heartbeat stands still before its node counts as dead.
DEAD_AFTER: Final = 8.0
#: Seconds between two polls of the nodes, beyond which the count begins anew.
_GAP: Final = 3.0
#: Seconds between two removals of messages to nodes that are gone.
_SWEEP: Final = 60.0

#: Folder of locks in the data folder.
_FOLDER: Final = "nodes"

logger = logging.getLogger(__name__)


class Detection:
    """Detects dead nodes, and takes their jobs back."""

    def __init__(self, store: Store, notifier: Notifier, most_losses: int) -> None:
        self._store = store
        self._notifier = notifier
        self._most = most_losses
        self._heartbeats: dict[str, tuple[int, float]] = {}
        self._polled = -_GAP
        self._swept = -_SWEEP

    def forget(self) -> None:
        """Begin the count anew."""
        self._heartbeats.clear()

    async def poll(self) -> None:
        """Read the nodes once; raises :class:`StoreError`."""
        nodes = await self._store.nodes.listed()
        now = elapsing()
        if now - self._polled > _GAP:
            self.forget()
        self._polled = now
        known = self._heartbeats
        self._heartbeats = {}
        for node in nodes:
            beat, since = known.get(node.name, (None, now))
            self._heartbeats[node.name] = (node.beat, since if beat == node.beat else now)
        for name, (beat, since) in list(self._heartbeats.items()):
            if now - since >= DEAD_AFTER:
                await self._reap(name, beat)
        for name in await self._store.attempts.orphaned():
            await self._reap(name, 0)
        if now - self._swept >= _SWEEP:
            self._swept = now
            await self._notifier.sweep([node.name for node in await self._store.nodes.listed()])

    async def _reap(self, name: str, beat: int) -> None:
        """Take a node's jobs back. A job that a stopped process has locked is taken back by a later poll."""
        try:
            reaped = await self._store.attempts.reap(name, beat, self._most)
        except StoreAwayError:
            raise
        except StoreBusyError as error:
            logger.warning("Jobs of the lost node %s cannot be taken back yet: %s", name, error)
            return
        self._swept = -_SWEEP  # its queue has no reader any more
        for attempt in reaped:
            logger.warning("Node %s is lost; its job is placed again: %s", name, attempt)


class NodeLocks:
    """Locks of the nodes of one data folder, each held until its process ends: nodes of a server that was killed are
    known to be dead at once when it is started again. ``data`` None: no locks, and heartbeats alone count."""

    def __init__(self, data: Path | None) -> None:
        self._folder = None if data is None else data / _FOLDER
        self._held: dict[str, int] = {}

    def hold(self, name: str) -> None:
        """Hold the lock of a node until this process ends. Where that fails, heartbeats alone count."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)
            self._held[name] = file
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self, name: str) -> None:
        """Release the lock of a node that has left."""
        file = self._held.pop(name, None)
        if file is not None and self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
            os.close(file)

    def gone(self, names: Iterable[str]) -> list[str]:
        """Return those of these nodes whose process has ended."""
        return [name for name in names if name not in self._held and self._is_gone(name)]

    def _is_gone(self, name: str) -> bool:
        if self._folder is None or "/" in name:
            return False
        try:
            file = os.open(self._folder / name, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self._folder / name).unlink()
        except OSError:
            return False
        finally:
            os.close(file)
        return True
