"""Removal of uploads of versions that were given up: their server was killed, or their client was cut off."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.store.counters import hold
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.expiry.steps import Steps
from scrapy_ext.server.store.versions.rows import UPLOADING
from scrapy_ext.server.store.versions.versions import remove_version

#: Time (ms) from the beginning of an upload, much longer than any takes.
GIVEN_UP: Final = 24 * 3600 * 1000
_AT_ONCE: Final = 100


async def remove_uploads(engine: Engine, before: int) -> Steps:
    """Remove versions whose upload has begun at ``before`` (ms) or earlier, and has not ended."""
    for project, deploy in await engine.read(_find, before):
        yield await engine.write(_remove, project, deploy)


async def _find(tx: Transaction, before: int) -> list[tuple[int, int]]:
    rows = await tx.fetch(
        "SELECT project, deploy FROM versions WHERE state = $1 AND touched <= $2 ORDER BY project, deploy LIMIT $3",
        UPLOADING,
        before,
        _AT_ONCE,
    )
    return [(project, deploy) for project, deploy in rows]


async def _remove(tx: Transaction, project: int, deploy: int) -> int:
    await hold(tx, project, "deploy")
    row = await tx.fetchrow(
        "SELECT 1 FROM versions WHERE project = $1 AND deploy = $2 AND state = $3 FOR UPDATE",
        project,
        deploy,
        UPLOADING,
    )
    if row is None:  # it is complete
        return 0
    await remove_version(tx, project, deploy)
    return 1
