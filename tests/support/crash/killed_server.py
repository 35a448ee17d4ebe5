"""The real server, which kills itself at a step, and removes rows in small steps.

A step is a transaction of a named operation of the stores, or the write of an object of a delivery. Each has two
places: before its commit, when all its statements were executed, and after it.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from scrapy_ext.server import __main__ as server
from scrapy_ext.server import launch
from scrapy_ext.server.delivery.targets import Target
from scrapy_ext.server.store import removals, retention, store
from scrapy_ext.server.store.engine.postgresql.postgresql import PostgresqlEngine
from scrapy_ext.server.store.engine.sqlite.sqlite import SqliteEngine

#: Share of a whole step of a removal: a few rows.
_SHARE = 0.002


class KillAt(NamedTuple):
    """Place to kill a server at: the number of places before it, in steps of these operations."""

    place: int
    steps: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        return {"KILL_AT": str(self.place), "KILL_IN": ",".join(self.steps)}


def _kill_at(place: int, steps: set[str]) -> None:
    """Let this process kill itself at a place."""
    places = itertools.count()

    def reached() -> None:
        if next(places) == place:
            os.kill(os.getpid(), signal.SIGKILL)

    def write_of(engine: Any) -> Callable[..., Awaitable[Any]]:
        original = engine.write

        async def write(self: Any, operation: Any, *args: Any, **kwargs: Any) -> Any:
            if operation.__name__ not in steps:
                return await original(self, operation, *args, **kwargs)

            async def passed(tx: Any) -> Any:
                result = await operation(tx, *args, **kwargs)
                reached()
                return result

            result = await original(self, passed)
            reached()
            return result

        return write

    def put_of(name: str) -> Callable[..., Awaitable[Any]]:
        original = getattr(Target, name)

        async def put(self: Any, *args: Any) -> Any:
            reached()
            result = await original(self, *args)
            reached()
            return result

        return put

    for engine in (SqliteEngine, PostgresqlEngine):
        setattr(engine, "write", write_of(engine))  # noqa: B010 - a method of either class
    for name in steps & {"put", "create"}:
        setattr(Target, name, put_of(name))


class _SmallSteps(removals.Purge):
    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self._share = _SHARE


def _main() -> None:
    _kill_at(int(os.environ["KILL_AT"]), set(os.environ["KILL_IN"].split(",")))
    removals._STEP_SECONDS = (0, 100)  # type: ignore[misc]
    removals.PAUSE = 0  # type: ignore[misc]
    store.Purge = _SmallSteps  # type: ignore[misc]
    retention.JOBS_AT_ONCE = 2  # type: ignore[misc]
    # The program would be executed anew, without its keys in the environment.
    launch._execute_anew = lambda *_: None
    server.main()


if __name__ == "__main__":
    _main()
