"""Notifiers: messages upon which a node polls at once.

A node reads its jobs from ``attempts``, which it polls every second. A message that is late, repeated or lost affects
only the time until a job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from scrapy_ext.server.store.jobs.placing import Notify


class Notifier(Protocol):
    """Receiver of one node's messages, and sender of messages to others."""

    @property
    def notify(self) -> Notify | None:
        """Function that sends a message to a node in the transaction that places the job; None: no messages."""

    async def listen(self, node: str, on_message: Callable[[], None]) -> None:
        """Call ``on_message`` for each message of this node, instead of an earlier one's."""

    async def sweep(self, nodes: Collection[str]) -> None:
        """Remove the messages of all other nodes; raise :class:`StoreError`."""

    async def stop(self) -> None:
        """Stop listening within a second."""


class LocalNotifier:
    """Notifier without messages, for a process with a database of its own, which polls by itself."""

    notify = None

    async def listen(self, node: str, on_message: Callable[[], None]) -> None:
        """See :class:`Notifier`."""

    async def sweep(self, nodes: Collection[str]) -> None:
        """See :class:`Notifier`."""

    async def stop(self) -> None:
        """See :class:`Notifier`."""
