"""Nodes: the processes that run jobs, and whether they are there."""

from __future__ import annotations

import os
import secrets
import socket
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.server.store.engine.interface import Engine, Row, Transaction

_decode: Final = msgspec.json.Decoder(list[str]).decode


class Node(NamedTuple):
    """A process that runs jobs: up to ``units`` at once, those that need no other tags than its own.

    ``project`` is the one whose code it has without a deployed version. ``beat`` counts up while it lives.
    """

    name: str
    host: str
    units: int
    tags: frozenset[str]
    project: int | None
    beat: int
    started: int
    draining: bool
    #: Units that its jobs take.
    used: int = 0

    @property
    def free(self) -> int:
        """Units for further jobs."""
        return 0 if self.draining else max(self.units - self.used, 0)


def new_name() -> str:
    """A name for a node of this process, which no other has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def process_of(name: str) -> tuple[str, int] | None:
    """Host and process id of the node that :func:`new_name` gave this name."""
    parts = name.rsplit("-", 2)
    return (parts[0], int(parts[1])) if len(parts) == 3 and parts[1].isdecimal() else None


class NodeStore:
    """The nodes on this database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def join(self, node: Node) -> None:
        """Say that a node is there."""
        await self._engine.write(_join, node)

    async def beat(self, name: str, beat: int) -> bool:
        """Say that a node lives; False when it was taken for dead meanwhile, and its jobs are others'."""
        return await self._engine.write(_beat, name, beat)

    async def drain(self, name: str) -> None:
        """Give a node no more jobs."""
        await self._engine.write(_drain, name)

    async def leave(self, name: str) -> None:
        """Say that a node has ended, and left no job behind."""
        await self._engine.write(_leave, name)

    async def listed(self) -> list[Node]:
        """All nodes by their names."""
        return await self._engine.read(nodes)


async def nodes(tx: Transaction) -> list[Node]:
    """All nodes, with the units that their jobs take."""
    rows = await tx.fetch(
        """SELECT n.node, n.host, n.units, n.tags, n.project, n.beat, n.started, n.draining,
                  CAST(COALESCE((SELECT sum(a.units) FROM attempts a WHERE a.node = n.node), 0) AS BIGINT)
           FROM nodes n ORDER BY n.node"""
    )
    return [_node(row) for row in rows]


def _node(row: Row) -> Node:
    name, host, units, tags, project, beat, started, draining, used = row
    return Node(name, host, units, frozenset(_decode(tags)), project, beat, started, bool(draining), used)


async def _join(tx: Transaction, node: Node) -> None:
    await tx.execute(
        """INSERT INTO nodes (node, host, units, tags, project, beat, started, draining)
           VALUES ($1, $2, $3, $4, $5, $6, $7, 0)
           ON CONFLICT (node) DO UPDATE SET beat = excluded.beat, draining = 0""",
        node.name,
        node.host,
        node.units,
        tags_text(node.tags),
        node.project,
        node.beat,
        node.started,
    )


def tags_text(tags: frozenset[str]) -> str:
    """Tags as they are stored and compared."""
    return msgspec.json.encode(sorted(tags)).decode()


async def _beat(tx: Transaction, name: str, beat: int) -> bool:
    return await tx.execute("UPDATE nodes SET beat = $2 WHERE node = $1", name, beat) == 1


async def _drain(tx: Transaction, name: str) -> None:
    await tx.execute("UPDATE nodes SET draining = 1 WHERE node = $1", name)


async def _leave(tx: Transaction, name: str) -> None:
    await tx.execute(
        "DELETE FROM nodes WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.node = nodes.node)",
        name,
    )
