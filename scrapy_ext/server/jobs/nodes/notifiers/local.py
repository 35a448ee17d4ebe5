"""No way at all: the node that places jobs is the one that they are placed on."""

from __future__ import annotations

from collections.abc import Callable, Collection


class LocalCarrier:
    """For one process with a database of its own."""

    carry = None

    async def serve(self, node: str, hear: Callable[[], None]) -> None:
        """See :class:`Carrier`: a node looks after it has placed, and is woken in its process by what adds jobs."""

    async def sweep(self, nodes: Collection[str]) -> None:
        """See :class:`Carrier`."""

    async def stop(self) -> None:
        """See :class:`Carrier`."""
