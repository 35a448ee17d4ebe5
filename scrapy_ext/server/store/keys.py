"""Hashes of API keys, secrets, and ended sessions in the database."""

from __future__ import annotations

import secrets
from typing import Final, NamedTuple

from scrapy_ext.api.platform.users import Role
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Row, Transaction

_ALL: Final = "*"
#: Prefix of the names of ended sessions among the secrets.
_ENDED: Final = "ended session "


class StoredKey(NamedTuple):
    """A named key; ``created`` in milliseconds.

    ``projects``: None for the whole platform, empty for none of it. ``extraction``: access to the extraction service,
    under the limits of ``organisation`` ("": its own).
    """

    name: str
    hash: str
    projects: frozenset[int] | None
    may_write: bool
    created: int = 0
    extraction: bool = False
    organisation: str = ""
    suspended: bool = False
    #: May run and stop jobs, and write nothing else.
    may_run: bool = False

    @property
    def role(self) -> Role:
        """The role of the key in its projects."""
        return Role.MANAGE if self.may_write else Role.RUN if self.may_run else Role.VIEW


async def get(tx: Transaction, name: str) -> str | None:
    row = await tx.fetchrow("SELECT value FROM access_keys WHERE name = $1", name)
    return row[0] if row else None


async def _keep(tx: Transaction, name: str, value: str, now: int) -> str:
    await tx.execute(
        "INSERT INTO access_keys (name, value, created) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
        name,
        value,
        now,
    )
    return await get(tx, name) or value


async def _end_session(tx: Transaction, name: str, now: int, past: int) -> None:
    await tx.execute("DELETE FROM access_keys WHERE name LIKE $1 AND created < $2", f"{_ENDED}%", past)
    await _keep(tx, name, "ended", now)


async def _add(tx: Transaction, key: StoredKey) -> bool:
    projects = _ALL if key.projects is None else ",".join(map(str, sorted(key.projects)))
    changed = await tx.execute(
        """INSERT INTO api_keys (name, hash, projects, may_write, created, extraction, organisation, suspended, may_run)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (name) DO NOTHING""",
        key.name,
        key.hash,
        projects,
        int(key.may_write),
        key.created,
        int(key.extraction),
        key.organisation,
        int(key.suspended),
        int(key.may_run),
    )
    return changed == 1


async def remove(tx: Transaction, name: str) -> bool:
    """Remove a key; return False when there is none of this name."""
    return await tx.execute("DELETE FROM api_keys WHERE name = $1", name) == 1


async def _suspend(tx: Transaction, name: str, suspended: int) -> bool:
    return await tx.execute("UPDATE api_keys SET suspended = $2 WHERE name = $1", name, suspended) == 1


async def named(tx: Transaction) -> list[StoredKey]:
    rows = await tx.fetch(
        """SELECT name, hash, projects, may_write, created, extraction, organisation, suspended, may_run
           FROM api_keys ORDER BY name"""
    )
    return [_stored(row) for row in rows]


def _stored(row: Row) -> StoredKey:
    name, digest, projects, may_write, created, extraction, organisation, suspended, may_run = row
    numbers = None if projects == _ALL else frozenset(map(int, filter(None, projects.split(","))))
    flags = map(bool, (suspended, may_run))
    return StoredKey(name, digest, numbers, bool(may_write), created, bool(extraction), organisation, *flags)


class KeyStore(EngineStore):
    """Secrets by purpose, each written once, and API keys by name."""

    get = Method("read_inline", get)

    async def keep(self, name: str, value: str) -> str:
        """Store a secret unless one of this name exists; return the stored one."""
        return await self._engine.write(_keep, name, value, self._clock())

    async def secret(self, name: str) -> bytes:
        """Return the random secret of this name, which is made when it is needed first."""
        return (await self.get(name) or await self.keep(name, secrets.token_hex(32))).encode()

    async def end_session(self, session: str, lasts: int) -> None:
        """Record for ``lasts`` seconds, the maximum of a session, that a session has ended early."""
        now = self._clock()
        await self._engine.write(_end_session, _ENDED + session, now, now - lasts * 1000)

    async def has_ended(self, session: str) -> bool:
        """Return true when a session was ended early."""
        return await self.get(_ENDED + session) is not None

    async def add(self, key: StoredKey) -> bool:
        """Store a key; return False when the name is taken."""
        return await self._engine.write(_add, key._replace(created=self._clock()))

    remove = Method("write", remove)

    async def suspend(self, name: str, suspended: bool) -> bool:
        """Suspend or resume a key; return False when there is none of this name."""
        return await self._engine.write(_suspend, name, int(suspended))

    named = Method("read", named)
