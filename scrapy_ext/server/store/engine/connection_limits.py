"""Limits of the connections to a PostgreSQL server.

Clients of a server may wait for long and take long. The heartbeats of a node may not, so that a process has several
connection pools to one PostgreSQL database.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ConnectionLimits(NamedTuple):
    """Limits of the connections to a PostgreSQL server; times in seconds."""

    #: Maximum connections for writes and for reads; they are opened when needed.
    writers: int
    readers: int
    #: Time for which calls are retried while the database is unavailable; None: the default of the engine.
    retry: float | None = None
    #: Maximum time of one statement, and of its wait for a lock.
    statement: float = 60.0
    lock: float = 30.0
    #: Those of the readers that are used in the loop of the callers, for short reads.
    inline: int = 0
    #: Outages are not logged: another pool of the process logs them.
    quiet: bool = False


#: For the clients of a server, and for those of a worker: its own jobs.
SERVER: Final = ConnectionLimits(writers=8, readers=7, inline=3)
WORKER: Final = ConnectionLimits(writers=4, readers=2)
#: For placing, starting and ending the jobs of a node. Rows that a dead node has locked must not delay it for long.
NODE: Final = ConnectionLimits(writers=2, readers=1, retry=3.0, statement=6.0, lock=3.0, quiet=True)
#: For the heartbeats of a node: each ends in time for the next one.
HEARTBEATS: Final = ConnectionLimits(writers=1, readers=1, retry=1.0, statement=3.0, lock=2.0, quiet=True)
