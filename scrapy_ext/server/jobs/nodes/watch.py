"""Looks at the running jobs of a node once a second: their memory, and whether a sample of them is due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final, Protocol

from scrapy_ext.jobprocess.proc import Process, below, kernel_kills, table

_EVERY: Final = 1.0

logger = logging.getLogger(__name__)


class Watched(Protocol):
    """A running job."""

    @property
    def pid(self) -> int | None:
        """Its first process, while it has one."""

    async def look(self, tree: list[Process], kills: int | None) -> None:
        """What its processes are now, and how many processes the kernel has killed so far for want of memory."""


async def watch(jobs: Callable[[], Collection[Watched]]) -> None:
    """Look at jobs until this is cancelled."""
    while True:
        await asyncio.sleep(_EVERY)
        running = {job.pid: job for job in jobs() if job.pid is not None}
        if not running:
            continue
        try:
            trees, kills = await asyncio.to_thread(_measure, list(running))
            await asyncio.gather(*(job.look(trees[pid], kills) for pid, job in running.items() if pid is not None))
        except Exception:
            logger.exception("The jobs of this node could not be measured")


def _measure(roots: list[int]) -> tuple[dict[int, list[Process]], int | None]:
    return below(roots, table()), kernel_kills()
