"""A server that stores in SQLite, or in a PostgreSQL of its own."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rig.load import children_cpu_seconds
from rig.services import Platform, platform
from tests.support.postgresql import Cluster


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


#: Settings of PostgreSQL for large collections, as ``docs/howto/operate-store.rst`` has them; less room for the log.
_LARGE: Final = {
    "shared_buffers": "4GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "wal_compression": "on",
}


@contextmanager
def stored_in(store: str, data: str) -> Generator[Stored]:
    """Run a server on ``sqlite``, in a folder if one is given, or on ``postgresql``; ``postgresql-large``, with the
    settings for large collections."""
    if store.startswith("postgresql"):
        with ExitStack() as stack:
            database = Cluster(_LARGE if store == "postgresql-large" else None)
            stack.callback(database.remove)
            yield Stored(stack.enter_context(platform(database=database.database())), database)
        return
    with platform(Path(data) if data else None) as server:
        yield Stored(server)
