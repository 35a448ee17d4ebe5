"""The primary among the servers of a database: found, followed after a failover, and never mistaken for an old one.

A standby has the data and takes no writes. When it is promoted, its log begins a new timeline, with a higher number.
So of two servers that take writes, the one with the higher timeline is the primary. The other is one that lives on
after its standby took its place: what it returns is old, and what it stores is lost.

- A connection to a standby is refused, also for reads, which may not miss what this process has just written.
- Once a timeline was seen, this process uses none below it. It is compared within one database cluster only
  (``system_identifier``), so that a database that was moved to a new cluster is none that is too old.
- All connection pools of a process share this knowledge (:func:`primary_of`). ``epoch`` counts changes of the primary;
  connections of earlier epochs are not used again. A lost connection casts doubt on all that were idle then, and on
  the server they led to: then all servers are tried at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import asyncpg

from scrapy_ext.server.store.engine.address import DatabaseServer, DatabaseUrl
from scrapy_ext.server.store.engine.postgresql.errors import (
    DATABASE_ERRORS,
    Failure,
    NoPrimaryError,
    StandbyError,
    failure_of,
    text_of,
)

#: Seconds for which the others are awaited after one server has answered: they may have a higher timeline.
_OTHERS: Final = 1.0
#: Seconds for which the last known primary is tried alone.
_ALONE: Final = 3.0

#: No connection is left.
_FULL: Final = "53300"
#: Row of a server: whether it is a standby, its cluster, and the timeline of its log. PostgreSQL evaluates only the
#: branch of a CASE that is needed: the log of a standby has no name.
_IDENTIFY: Final = """SELECT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
    CASE WHEN pg_is_in_recovery() THEN '0' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"""


class Connection(asyncpg.Connection):  # type: ignore[misc] # the driver has no types
    """Connection that knows the epoch of its primary, and the last warning of the server."""

    __slots__ = ("epoch", "warning")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.epoch = 0
        self.warning: str | None = None
        self.add_log_listener(_note_warning)


def _note_warning(connection: asyncpg.Connection, message: asyncpg.PostgresLogMessage) -> None:
    """The driver calls this before the statement returns that was warned of."""
    if isinstance(message, asyncpg.PostgresWarning):
        connection.warning = str(message)


class Identity(NamedTuple):
    """A server that takes writes. ``timeline`` is 0 where the database does not report it."""

    system: int
    timeline: int


_Trial = asyncio.Future[tuple[Any, Identity]]
#: Opens a connection to one server; None: the one that the driver finds.
Open = Callable[[DatabaseServer | None], Awaitable[Any]]


class Primary:
    """The primary of a database, as far as this process knows. Threads may share it: each change is one assignment."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url
        #: One server is left to the driver, which also knows what a name stands for.
        self._servers: Sequence[DatabaseServer | None] = url.servers if len(url.servers) > 1 else (None,)
        self._at: DatabaseServer | None = None
        self._identity: Identity | None = None
        self._timelines: dict[int, int] = {}
        self._in_doubt = True
        self._looked = 0.0
        self.epoch = 0
        #: Time (monotonic) of the last lost connection.
        self.lost_at = 0.0

    @property
    def has_standbys(self) -> bool:
        """True if the address has several servers."""
        return len(self._servers) > 1

    @property
    def server(self) -> DatabaseServer | None:
        """The server of the last connection, if the address has several."""
        return self._at

    def lost(self) -> None:
        """Record a connection that was lost: the primary may have gone."""
        self.lost_at = time.monotonic()
        self._in_doubt = True

    async def connect(self, open_: Open) -> Any:
        """Open a connection to the primary; raise the driver's errors, and those of a server that is none."""
        if self._at is not None and not self._in_doubt:
            with contextlib.suppress(*DATABASE_ERRORS):
                return self._adopt(self._at, *await asyncio.wait_for(self._opened(open_, self._at), _ALONE))
        return self._adopt(*await self._found(open_))

    async def look(self, open_: Open, seconds: float) -> None:
        """Find out whether another server became the primary, unless that was done in the last ``seconds``."""
        now = time.monotonic()
        if now - self._looked < seconds:
            return
        self._looked = now
        with contextlib.suppress(*DATABASE_ERRORS):
            self._adopt(*await self._found(open_)).terminate()

    def _adopt(self, server: DatabaseServer | None, connection: asyncpg.Connection, identity: Identity) -> Any:
        """Take a server for the primary; return its connection."""
        if identity != self._identity:
            self._identity = identity
            self._timelines[identity.system] = identity.timeline
            self.epoch += 1
        self._at = server
        self._in_doubt = False
        connection.epoch = self.epoch
        return connection

    async def _found(self, open_: Open) -> tuple[DatabaseServer | None, Any, Identity]:
        """Connect to all servers at once; return the primary with the highest timeline."""
        if not self.has_standbys:
            return (None, *await self._opened(open_, None))
        trials = {asyncio.ensure_future(self._opened(open_, server)): server for server in self._servers}
        best = None
        try:
            await _first_and_others(trials)
            opened = [trial for trial in trials if trial.done() and trial.exception() is None]
            # Of equal ones the first in the address.
            best = max(opened, key=lambda trial: trial.result()[1].timeline, default=None)
        finally:
            for trial in trials:
                if trial is not best:
                    _drop(trial)
        if best is None:
            raise _reason(self._url, {str(server): trial.exception() for trial, server in trials.items()})
        return (trials[best], *best.result())

    async def _opened(self, open_: Open, server: DatabaseServer | None) -> tuple[Any, Identity]:
        connection = await open_(server)
        try:
            identity = await self._identified(connection, server)
        except BaseException:
            connection.terminate()
            raise
        return connection, identity

    async def _identified(self, connection: asyncpg.Connection, server: DatabaseServer | None) -> Identity:
        """Return the identity of a server; raise :class:`StandbyError` if it is not the primary."""
        name = str(server or self._url)
        try:
            is_standby, system, timeline = await connection.fetchrow(_IDENTIFY)
        except asyncpg.PostgresError as error:
            if failure_of(error) is Failure.LOST:
                raise
            # A database that only implements PostgreSQL's protocol may have none of these functions.
            return Identity(0, 0)
        if is_standby:
            raise StandbyError(f"{name} is a standby, which takes no writes")
        identity = Identity(system, int(timeline, 16))
        if identity.timeline < (newest := self._timelines.get(system, 0)):
            raise StandbyError(
                f"{name} is an old primary: its log has timeline {identity.timeline}, and a standby was promoted "
                f"to timeline {newest}"
            )
        return identity


@cache
def primary_of(url: DatabaseUrl) -> Primary:
    """Return what this process knows about the primary of a database."""
    return Primary(url)


async def _first_and_others(trials: Collection[_Trial]) -> None:
    """Wait until one trial has succeeded, and a little longer for the others, or until all have ended."""
    pending = set(trials)
    until: float | None = None
    while pending:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return
        ended, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if until is None and any(trial.exception() is None for trial in ended):
            until = time.monotonic() + _OTHERS


def _drop(trial: _Trial) -> None:
    """End a trial whose connection is not needed."""

    def close(ended: _Trial) -> None:
        if not ended.cancelled() and ended.exception() is None:
            ended.result()[0].terminate()

    trial.cancel()
    trial.add_done_callback(close)


def is_current(connection: asyncpg.Connection, url: DatabaseUrl) -> bool:
    """Return false if another server has become the primary since the connection was opened."""
    return bool(connection.epoch == primary_of(url).epoch)


def _reason(url: DatabaseUrl, errors: dict[str, BaseException | None]) -> BaseException:
    """Return the error of an address none of whose servers can be used."""
    given = [error for error in errors.values() if error is not None]
    full = [error for error in given if getattr(error, "sqlstate", None) == _FULL]
    if full or all(failure_of(error) is not Failure.LOST for error in given):
        return [*full, *given][0]
    return NoPrimaryError(
        "; ".join(
            str(error) if isinstance(error, StandbyError) else f"{name}: {text_of(error, url)}"
            for name, error in errors.items()
            if error is not None
        )
    )
