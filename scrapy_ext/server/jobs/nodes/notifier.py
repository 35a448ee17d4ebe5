"""Notifiers: messages that make a node poll at once.

A node finds its jobs in ``attempts``, which it polls every second. A message that is late, sent twice or lost changes
nothing but the time until a job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from scrapy_ext.server.store.jobs.placing import Notify


class Notifier(Protocol):
    """Receives the messages of one node, and sends those of others."""

    @property
    def notify(self) -> Notify | None:
        """Sends a node a message of its job, in the transaction that places the job there."""

    async def listen(self, node: str, on_message: Callable[[], None]) -> None:
        """From now on call ``on_message`` for each message of this node, and of no node before it."""

    async def sweep(self, nodes: Collection[str]) -> None:
        """Remove the messages of all nodes but these. Raises :class:`StoreError`."""

    async def stop(self) -> None:
        """End within a second."""


class LocalNotifier:
    """No messages, for one process with a database of its own: it polls after it has placed, and when it adds jobs."""

    notify = None

    async def listen(self, node: str, on_message: Callable[[], None]) -> None:
        """See :class:`Notifier`."""

    async def sweep(self, nodes: Collection[str]) -> None:
        """See :class:`Notifier`."""

    async def stop(self) -> None:
        """See :class:`Notifier`."""
