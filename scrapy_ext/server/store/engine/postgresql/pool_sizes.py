"""How much of a PostgreSQL server a process asks for: connections, and how long it waits for an answer.

A process has several lines to its database. What its clients ask for may take long and wait for long; what keeps a
node among the living may not, and stands in no queue behind the rest.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Line(NamedTuple):
    """Connections are made when they are needed, up to ``writers`` and ``readers``. Times are seconds.

    ``patience``: how long a database that is away is tried, None for the store's own. ``statement``: how long one
    statement may take; ``lock``: how long it may wait for a lock. One that is ``quiet`` leaves it to others of its
    process to say that the database is away.
    """

    writers: int
    readers: int
    patience: float | None = None
    statement: float = 60.0
    lock: float = 30.0
    quiet: bool = False


#: For clients: of a server, and of a worker, whose clients are its own jobs.
SERVER: Final = Line(writers=8, readers=4)
WORKER: Final = Line(writers=4, readers=2)
#: For a node: what it places, takes and ends. Who reaps must not wait long for what a dead node had locked.
RUNNER: Final = Line(writers=2, readers=1, patience=3.0, statement=6.0, lock=3.0, quiet=True)
#: For a node's beats alone: they give up in time for the next one.
BEATS: Final = Line(writers=1, readers=1, patience=1.0, statement=3.0, lock=2.0, quiet=True)
