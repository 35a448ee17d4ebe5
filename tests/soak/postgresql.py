"""PostgreSQL with a streaming standby, reached by links that follow a failover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg

from tests.soak.database import Database, Sizes
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


class Replicated(Database):
    """A primary and its standby. What is acknowledged is on both (``synchronous_commit``, which is on by default, waits
    for the standby while ``synchronous_standby_names`` says so), so that a failover loses nothing."""

    def __init__(self) -> None:
        self.primary = Cluster(_SETTINGS, segment=_SEGMENT)
        self.standby: Cluster | None = None
        self.links: list[Link] = []
        self._logs: list[str] = []
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
        self._logs.append(old.log())
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
                self._logs.append(cluster.log())
                cluster.remove()

    async def query(self, sql: str) -> Sequence[Sequence[Any]]:
        """Rows of a query to the primary, without a link; raises what the driver raises."""
        connection = await asyncpg.connect(self.primary.url(self._name), timeout=10, command_timeout=20)
        try:
            rows: list[Any] = await connection.fetch(sql)
        except BaseException:
            connection.terminate()  # to close it in order would fail in another way, where the server has gone
            raise
        await connection.close(timeout=5)
        return rows

    async def tables(self) -> set[str]:
        return {name for (name,) in await self.query("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')")}

    async def sizes(self) -> Sizes:
        sql = "SELECT pg_database_size(current_database()), (SELECT sum(size) FROM pg_ls_waldir())::bigint"
        ((tables, log),) = await self.query(sql)
        return Sizes(tables, max(log - LOG_MIB * 2**20, 0), f"log-{self.failovers}")

    def longest_file(self) -> int:
        return self.primary.longest_file()

    def limit_files(self, limit: int | None) -> None:
        self.primary.limit_files(limit)

    def kept_logs(self) -> dict[str, str]:
        return {f"postgresql-{number}.log": text for number, text in enumerate(self._logs)}
