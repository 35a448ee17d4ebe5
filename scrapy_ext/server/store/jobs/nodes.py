"""Nodes: the processes that run jobs, their heartbeats, and on PostgreSQL their notifications.

Notifications report pending jobs, and jobs that are placed on a node. They are sent with the commit of what they
report, or not at all, and contain no state: without them, the same jobs run. A trigger on ``jobs`` notifies all nodes
of pending jobs, whatever program adds them, and of places without a worker.
"""

from __future__ import annotations

import os
import secrets
import socket
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Row, Transaction

_decode: Final = msgspec.json.Decoder(list[str]).decode

#: The channel on which nodes listen for pending jobs.
PENDING: Final = "scrapy_ext_jobs_pending"

_CHANNEL: Final = "scrapy_ext_node."
#: Bytes of a node's name in the name of its channel, which has at most 63. The end of the name is random.
_LONGEST: Final = 63 - len(_CHANNEL)
_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION scrapy_ext_notify_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('{PENDING}', '');
    RETURN NULL;
END;
$$;
"""
#: Triggers by name. An existing one is never replaced: a change of one needs another name.
_TRIGGERS: Final = {
    "scrapy_ext_notify_pending": """
CREATE TRIGGER scrapy_ext_notify_pending AFTER INSERT OR UPDATE OF state ON jobs
    FOR EACH ROW WHEN (NEW.state = 'pending') EXECUTE FUNCTION scrapy_ext_notify_pending();
""",
    "scrapy_ext_notify_vacant": """
CREATE TRIGGER scrapy_ext_notify_vacant AFTER UPDATE OF vacant ON jobs
    FOR EACH ROW WHEN (NEW.vacant > OLD.vacant) EXECUTE FUNCTION scrapy_ext_notify_pending();
""",
}


class StoredNode(NamedTuple):
    """A process that runs jobs of up to ``units`` units at once whose tags are among its own.

    ``project``: the project whose code it has without a deployed version. ``heartbeat``: number of its last heartbeat.
    ``used``: units of its jobs.
    """

    name: str
    host: str
    units: int
    tags: frozenset[str]
    project: int | None
    heartbeat: int
    started: int
    draining: bool
    used: int = 0

    @property
    def free(self) -> int:
        """Units for further jobs."""
        return 0 if self.draining else max(self.units - self.used, 0)


def new_name() -> str:
    """Return a unique name for a node of this process."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def process_of(name: str) -> tuple[str, int] | None:
    """Return host and process ID in a name of :func:`new_name`."""
    parts = name.rsplit("-", 2)
    return (parts[0], int(parts[1])) if len(parts) == 3 and parts[1].isdecimal() else None


async def nodes(tx: Transaction) -> list[StoredNode]:
    """Return all nodes with the units of their jobs."""
    rows = await tx.fetch(
        """SELECT n.node, n.host, n.units, n.tags, n.project, n.heartbeat, n.started, n.draining,
                  CAST(COALESCE((SELECT sum(a.units) FROM attempts a WHERE a.node = n.node), 0) AS BIGINT)
           FROM nodes n ORDER BY n.node"""
    )
    return [_node(row) for row in rows]


def _node(row: Row) -> StoredNode:
    name, host, units, tags, project, heartbeat, started, draining, used = row
    return StoredNode(name, host, units, frozenset(_decode(tags)), project, heartbeat, started, bool(draining), used)


async def join(tx: Transaction, node: StoredNode) -> None:
    await tx.execute(
        """INSERT INTO nodes (node, host, units, tags, project, heartbeat, started, draining)
           VALUES ($1, $2, $3, $4, $5, $6, $7, 0)
           ON CONFLICT (node) DO UPDATE SET heartbeat = excluded.heartbeat, draining = 0""",
        node.name,
        node.host,
        node.units,
        tags_text(node.tags),
        node.project,
        node.heartbeat,
        node.started,
    )


def tags_text(tags: frozenset[str]) -> str:
    """Encode tags for the database, where they are compared as text."""
    return msgspec.json.encode(sorted(tags)).decode()


async def _heartbeat(tx: Transaction, name: str, number: int) -> bool:
    """Store a heartbeat; return false when the node was removed as dead, and its jobs were released."""
    return await tx.execute("UPDATE nodes SET heartbeat = $2 WHERE node = $1", name, number) == 1


async def drain(tx: Transaction, name: str) -> None:
    """Place no more jobs on a node."""
    await tx.execute("UPDATE nodes SET draining = 1 WHERE node = $1", name)


async def leave(tx: Transaction, name: str) -> None:
    """Remove a node, unless it has jobs."""
    await tx.execute(
        "DELETE FROM nodes WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.node = nodes.node)",
        name,
    )


def channel_of(node: str) -> str:
    """Return the channel on which a node listens."""
    return _CHANNEL + node.encode()[-_LONGEST:].decode(errors="ignore")


async def notify_node(tx: Transaction, node: str, _key: JobKey, _attempt: int) -> None:
    """Notify a node with the commit of the transaction that places a job there."""
    await tx.fetchrow("SELECT pg_notify($1, '')", channel_of(node))


async def prepare_notifications(tx: Transaction) -> None:
    """Create the triggers that do not exist."""
    # Other processes that start at the same time wait here.
    await tx.fetchrow("SELECT version FROM schema_version WHERE version = 0 FOR UPDATE")
    for name, trigger in _TRIGGERS.items():
        row = await tx.fetchrow("SELECT 1 FROM pg_trigger WHERE tgname = $1 AND tgrelid = 'jobs'::regclass", name)
        if row is None:
            await tx.script(_FUNCTION + trigger)


class NodeStore(EngineStore):
    """The nodes on this database."""

    join = Method("write", join)
    heartbeat = Method("write", _heartbeat)
    drain = Method("write", drain)
    leave = Method("write", leave)
    listed = Method("read", nodes)
    prepare_notifications = Method("write", prepare_notifications)
