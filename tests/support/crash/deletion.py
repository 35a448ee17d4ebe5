"""Deletes a job and removes its rows, in small steps, and kills itself at one of them.

Each transaction has two places: before its commit, when all its statements were executed, and after it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store, removals
from scrapy_ext.server.store.engine.address import DatabaseUrl

#: Share of a whole step of a removal: a row or two.
_SHARE = 0.0003


class KilledEngine:
    """Engine whose process is killed at a place."""

    def __init__(self, engine: Any, place: int) -> None:
        self._engine = engine
        self._left = place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _pass(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    async def write(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        async def passed(tx: Any) -> Any:
            result = await operation(tx, *args, **kwargs)
            self._pass()
            return result

        result = await self._engine.write(passed)
        self._pass()
        return result


async def main(where: str, key: str, place: int) -> None:
    store = await Store.open(DatabaseUrl(where) if "://" in where else Path(where))
    engine: Any = KilledEngine(store._engine, place)
    store.jobs._engine = engine
    job = JobKey.parse(key)
    await store.jobs.delete(job.project, [job], "someone")
    purge = removals.Purge(engine)
    purge._share = _SHARE
    await purge.run(pause=False)
    await store.close()


if __name__ == "__main__":
    removals._STEP_SECONDS = (0, 100)  # type: ignore[misc]  # one owner in each step
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
