"""A server that stores in SQLite, or in a PostgreSQL of its own."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rig.load import children_cpu_seconds
from rig.services import Platform, platform
from tests.support.postgresql import Cluster, cluster


@dataclass(frozen=True)
class Stored:
    """A server, and its database if that is PostgreSQL."""

    server: Platform
    database: Cluster | None = None

    def database_seconds(self) -> float:
        """Return the processor time of PostgreSQL's processes."""
        if self.database is None or self.database.process is None:
            return 0.0
        return children_cpu_seconds(self.database.process.pid)

    def disk(self) -> int:
        """Return the bytes of its data."""
        if self.database is None:
            return self.server.disk()
        return sum(file.stat().st_size for file in (self.database.data / "base").rglob("*") if file.is_file())


@contextmanager
def stored_in(store: str, data: str) -> Generator[Stored]:
    """Run a server on ``sqlite``, in a folder if one is given, or on ``postgresql``."""
    if store == "postgresql":
        with cluster() as database, platform(database=database.database()) as server:
            yield Stored(server, database)
        return
    with platform(Path(data) if data else None) as server:
        yield Stored(server)
