"""Secrets that the database keeps: hashes of API keys, and the secret that job tokens are made with."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ext.server.store.engine import Engine, Transaction


class KeyStore:
    """Named secrets; each is written once."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    async def get(self, name: str) -> str | None:
        """A stored secret."""
        return await self._engine.read(_get, name)

    async def keep(self, name: str, value: str) -> str:
        """Store a secret unless there is one of this name; returns the one that is stored."""
        return await self._engine.write(_keep, name, value, self._clock())


async def _get(tx: Transaction, name: str) -> str | None:
    row = await tx.fetchrow("SELECT value FROM access_keys WHERE name = $1", name)
    return row[0] if row else None


async def _keep(tx: Transaction, name: str, value: str, now: int) -> str:
    await tx.execute(
        "INSERT INTO access_keys (name, value, created) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
        name,
        value,
        now,
    )
    return await _get(tx, name) or value
