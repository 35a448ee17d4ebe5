"""Detection of dead nodes, by heartbeats, and on one machine by file locks.

Rules:

- A process measures by its own clock for how long a heartbeat is unchanged, and only while it polls the nodes without a
  gap and its own heartbeats are stored. Otherwise an outage of the database would look like the death of all nodes.
- The process that detects a dead node releases its jobs, each in a transaction of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scrapy_ext.compatibility.python import elapsing
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError

#: Seconds with an unchanged heartbeat after which a node is dead.
DEAD_AFTER: Final = 8.0
#: Maximum seconds between two polls; after a longer gap the count starts anew.
_GAP: Final = 3.0

#: Folder of locks in the data folder.
_FOLDER: Final = "nodes"

logger = logging.getLogger(__name__)


class Detection:
    """Detector of dead nodes, which releases their jobs."""

    def __init__(self, store: Store, most_losses: int) -> None:
        self._store = store
        self._most = most_losses
        self._heartbeats: dict[str, tuple[int, float]] = {}
        self._polled = -_GAP

    def forget(self) -> None:
        """Start the count anew."""
        self._heartbeats.clear()

    async def poll(self) -> None:
        """Read the nodes once, and release the jobs of dead ones; raise :class:`StoreError`."""
        nodes = await self._store.nodes.listed()
        now = elapsing()
        if now - self._polled > _GAP:
            self.forget()
        self._polled = now
        known = self._heartbeats
        self._heartbeats = {}
        for node in nodes:
            heartbeat, since = known.get(node.name, (None, now))
            self._heartbeats[node.name] = (node.heartbeat, since if heartbeat == node.heartbeat else now)
        for name, (heartbeat, since) in list(self._heartbeats.items()):
            if now - since >= DEAD_AFTER:
                await self._release_jobs(name, heartbeat)
        for name in await self._store.attempts.orphaned():
            await self._release_jobs(name, 0)

    async def _release_jobs(self, name: str, heartbeat: int) -> None:
        """Release a node's jobs. A job that a stopped process has locked is released by a later poll."""
        try:
            released = await self._store.attempts.release_jobs(name, heartbeat, self._most)
        except StoreAwayError:
            raise
        except StoreBusyError as error:
            logger.warning("Jobs of the lost node %s cannot be placed again yet: %s", name, error)
            return
        for attempt in released:
            logger.warning("Node %s is lost; its job is placed again: %s", name, attempt)


class NodeLocks:
    """File locks of the nodes of one data folder, held until their process ends.

    A restarted server detects by them at once that its earlier nodes are dead. ``data`` None: heartbeats alone count.
    """

    def __init__(self, data: Path | None) -> None:
        self._folder = None if data is None else data / _FOLDER
        self._held: dict[str, int] = {}

    def hold(self, name: str) -> None:
        """Lock the file of a node until this process ends. On failure, heartbeats alone count."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)
            self._held[name] = file
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self, name: str) -> None:
        """Release the lock of a node that has stopped."""
        file = self._held.pop(name, None)
        if file is not None and self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
            os.close(file)

    def ended(self, names: Iterable[str]) -> list[str]:
        """Return the nodes whose process has ended."""
        return [name for name in names if name not in self._held and self._has_ended(name)]

    def _has_ended(self, name: str) -> bool:
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
