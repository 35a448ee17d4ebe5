"""PostgreSQL with a streaming standby, reached by links that follow a failover."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from tests.soak.links import Link
from tests.support.postgresql import Cluster
from tests.support.replication import cover, states, until

#: MiB of the log from which PostgreSQL writes it back; below, it is as large as its last lives made it.
LOG_MIB = 48
#: A small log, and vacuums that keep up, so that what grows shows within minutes.
_SETTINGS = {
    "max_wal_size": f"{LOG_MIB}MB",
    "min_wal_size": "16MB",
    "checkpoint_timeout": "60s",
    "autovacuum_naptime": "5s",
    "autovacuum_vacuum_cost_delay": "0",
    "wal_retrieve_retry_interval": "500ms",
    "shared_buffers": "32MB",
    "deadlock_timeout": "1s",
}
_SEGMENT = 1


class Database:
    """A primary and its standby. What is acknowledged is on both (``synchronous_commit``, which is on by default, waits
    for the standby while ``synchronous_standby_names`` says so), so that a failover loses nothing."""

    def __init__(self) -> None:
        self.primary = Cluster(_SETTINGS, segment=_SEGMENT)
        self.standby: Cluster | None = None
        self.links: list[Link] = []
        #: Number of times that the standby took the place of the primary.
        self.failovers = 0
        self.logs: list[str] = []
        try:
            self._name = self.primary.database().rpartition("/")[2]
            self.add_standby()
        except BaseException:
            self.remove()
            raise

    def url(self, link: Link) -> str:
        """The address by a link."""
        return self.primary.url(self._name).replace(f":{self.primary.port}/", f":{link.port}/")

    def add_standby(self) -> None:
        """Start a standby of the primary, and let commits wait for it from then on. It is copied before that, so that
        it waits for nobody when it is promoted itself."""
        self.standby = self.primary.standby()
        until(lambda: states(self.primary) == ["async"], "the standby streams")
        cover(self.primary)

    @property
    def is_covered(self) -> bool:
        """True while a commit is on the standby before it is acknowledged."""
        return states(self.primary) == ["sync"]

    def fail_over(self) -> None:
        """Kill the primary, make one of the standby, lead all links there, and start another standby."""
        old, new = self.primary, self.standby
        assert new is not None
        old.kill()
        new.promote()
        self.primary, self.standby = new, None
        self.failovers += 1
        for link in self.links:
            link.move(new.port)
        self.logs.append(old.log())
        old.remove()
        self.add_standby()

    def start_again(self) -> None:
        """Start whichever of the two is not running."""
        for cluster in (self.primary, self.standby):
            if cluster is not None and (cluster.process is None or cluster.process.poll() is not None):
                cluster.start()

    def remove(self) -> None:
        for cluster in (self.standby, self.primary):
            if cluster is not None:
                self.logs.append(cluster.log())
                cluster.remove()

    async def query(self, sql: str, *arguments: Any) -> list[Any]:
        """Rows of a query to the primary, without a link; raises what the driver raises."""
        connection = await asyncpg.connect(self.primary.url(self._name), timeout=10, command_timeout=20)
        try:
            rows: list[Any] = await connection.fetch(sql, *arguments)
        except BaseException:
            connection.terminate()  # to close it in order would fail in another way, where the server has gone
            raise
        await connection.close(timeout=5)
        return rows

    async def count(self, table: str) -> int:
        """The rows of a table."""
        return int((await self.query(f"SELECT count(*) FROM {table}"))[0][0])


#: Errors of a query while the database is away. asyncpg raises its own error when a connection is lost as it is closed.
AWAY = (
    OSError,
    TimeoutError,
    asyncio.TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
