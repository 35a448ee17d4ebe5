"""The keys that open the services, and what each of them may do.

Each of the two services has one key of its own: that of the platform may do everything there. Beside them there is
any number of keys with names, for the platform, the extraction service or both. On the platform they may be limited to
projects and to reading. At the extraction service their requests are limited by key and by organisation.

Keys with names are in the database, where commands change them while servers run: each server reads them again when
what it knows is older than :data:`REFRESH_SECONDS`. One that is suspended opens nothing. The holder of a key that does
not open the extraction service is told so there (403). The platform has no such answer: there it is 401, as for a key
that nobody knows.

A presented key is looked up by a keyed hash whose secret is made anew in each process. How long a lookup takes tells
nothing about any stored key, however many there are.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import sys
import time
from typing import Final, NamedTuple

from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.auth.api_keys import Caller, key_hash, new_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.attempts import Attempt
from scrapy_ext.server.store.keys import StoredKey

#: Who did something, where the platform's own key was used.
KEY_HOLDER: Final = "api"
#: A key that is added or removed has its effect within this time.
REFRESH_SECONDS: Final = 2.0
#: Named keys of one database.
MAX_KEYS: Final = 1000

#: Characters of a key below which it is one that people think of.
_SHORT: Final = 16
_EXTRACT: Final = "extract-key"
_PLATFORM: Final = "platform-key"
_PURPOSES: Final = {
    _EXTRACT: "EXTRACT_API_KEY, the key of the extraction service",
    _PLATFORM: "PLATFORM_API_KEY, the key of the platform and of its pages",
}
_NAME: Final = re.compile(r"[\w.\-]{1,64}", re.ASCII)


class Grant(NamedTuple):
    """What a caller may do: ``projects`` None means all of them, ``job`` is set where it is one job's data only."""

    name: str
    projects: frozenset[int] | None = None
    write: bool = True
    job: bool = False
    #: Set where it is what the process of an attempt may do.
    attempt: Attempt | None = None

    def may_read(self, project: int) -> bool:
        """Whether the project may be looked at."""
        return not self.job and (self.projects is None or project in self.projects)

    def may_write(self, project: int) -> bool:
        """Whether the project may be changed."""
        return self.write and self.may_read(project)

    @property
    def all_projects(self) -> bool:
        """Whether nothing of the platform is out of its sight."""
        return self.projects is None and not self.job

    @property
    def may_manage_keys(self) -> bool:
        """Whether keys may be made and removed: with the server's own key only, since a key that made others would
        live on in them when it is removed."""
        return self.name == KEY_HOLDER and self.write and self.all_projects


#: What the server's own keys may do: everything.
_HOLDER: Final = Grant(KEY_HOLDER)
_EXTRACTOR: Final = Caller(KEY_HOLDER, KEY_HOLDER)
_NO_EXTRACTION: Final = "This API key is one of this server's, but not for extraction."
_SUSPENDED: Final = "This API key is suspended. Its holder's operator can let it go on."


class Standing(NamedTuple):
    """What the key of a name opens on the platform, and the hash by which it is known to be still the same key."""

    grant: Grant
    hash: str


class _Known(NamedTuple):
    """A key with a name: what it may do on the platform, if anything, and who it is at the extraction service."""

    grant: Grant | None
    caller: Caller


class Keyring:
    """The keys of a server that runs; it knows none before :meth:`load`."""

    _store: Store

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}
        self._secret = secrets.token_bytes(32)
        self._named: dict[bytes, _Known] = {}
        #: The same by their names, those that open anything of the platform.
        self._standings: dict[str, Standing] = {}
        self._read_at = -REFRESH_SECONDS
        self._reading: asyncio.Task[None] | None = None

    async def load(self, store: Store, extract_key: str | None, platform_key: str | None) -> None:
        """Know the keys; one that is neither given nor stored is made, shown once, and its hash stored."""
        self._store = store
        for purpose, given in ((_EXTRACT, extract_key), (_PLATFORM, platform_key)):
            self._hashes[purpose] = (
                key_hash(given) if given else await store.keys.get(purpose) or await _made(store, purpose)
            )
        await self._refresh()

    async def caller(self, key: str) -> Caller | None:
        """Who asks the extraction service with a key; None for one that is not known.

        The server's own key needs no look into the database. Raises ``StoreError`` while others cannot be looked up.
        """
        digest = key_hash(key)
        if hmac.compare_digest(digest, self._hashes[_EXTRACT]):
            return _EXTRACTOR
        if hmac.compare_digest(digest, self._hashes[_PLATFORM]):
            return Caller(KEY_HOLDER, KEY_HOLDER, _NO_EXTRACTION)
        known = await self._look_up(digest)
        return known and known.caller

    async def grant(self, key: str) -> Grant | None:
        """What a key may do on the platform; None for one that is not known.

        The server's own key needs no look into the database, so that its holder is told what is wrong with that.
        """
        digest = key_hash(key)
        if hmac.compare_digest(digest, self._hashes[_PLATFORM]):
            return _HOLDER
        known = await self._look_up(digest)
        return known and known.grant

    async def caller_of(self, grant: Grant) -> Caller | None:
        """Who asks the extraction service, where somebody who is on the platform asks it there; None when the key is
        gone.

        The platform's own key may make keys that open the service, so that it need not make one first.
        Raises ``StoreError`` while keys cannot be looked up.
        """
        if grant.may_manage_keys:
            return _EXTRACTOR
        if grant.job:
            return Caller(grant.name, grant.name, _NO_EXTRACTION)
        await self._be_fresh()
        return next((known.caller for known in self._named.values() if known.caller.name == grant.name), None)

    async def standing(self, name: str) -> Standing | None:
        """What the key of this name opens on the platform now; None when there is none, or it opens nothing."""
        if name == KEY_HOLDER:
            return Standing(_HOLDER, self._hashes[_PLATFORM])
        await self._be_fresh()
        return self._standings.get(name)

    async def _look_up(self, digest: str) -> _Known | None:
        await self._be_fresh()
        return self._named.get(self._blinded(digest))

    async def _be_fresh(self) -> None:
        if time.monotonic() - self._read_at >= REFRESH_SECONDS:
            await self._refresh()

    def _blinded(self, digest: str) -> bytes:
        return hashlib.blake2b(digest.encode(), key=self._secret, digest_size=32).digest()

    async def _refresh(self) -> None:
        """Those who need it at the same time share one look: while the database is away, none waits for the others."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
            self._reading.add_done_callback(_noticed)
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        began = time.monotonic()
        keys = [(key, _known(key)) for key in await self._store.keys.named()]
        self._named = {self._blinded(key.hash): known for key, known in keys}
        self._standings = {key.name: Standing(known.grant, key.hash) for key, known in keys if known.grant is not None}
        self._read_at = began


def weak_keys(extract_key: str | None, platform_key: str | None) -> str:
    """Return the sentence about keys that are too easy to guess, or open more than they should; empty for good ones."""
    given = (("EXTRACT_API_KEY", extract_key), ("PLATFORM_API_KEY", platform_key))
    faults = [f"{name} is shorter than {_SHORT} characters" for name, key in given if key and len(key) < _SHORT]
    if extract_key and extract_key == platform_key:
        faults.append("EXTRACT_API_KEY and PLATFORM_API_KEY are the same, so who may extract may do anything")
    return f"{'; '.join(faults)}. Use two long random keys, or leave them out: the server makes them." if faults else ""


def _known(key: StoredKey) -> _Known:
    nothing = key.suspended or key.projects == frozenset()
    refusal = _SUSPENDED if key.suspended else "" if key.extraction else _NO_EXTRACTION
    # A name cannot have a space, so that no organisation is mistaken for a key.
    caller = Caller(key.name, key.organisation or f"key {key.name}", refusal)
    return _Known(None if nothing else Grant(key.name, key.projects, key.may_write), caller)


def _noticed(reading: asyncio.Task[None]) -> None:
    """An error that nobody waits for any more is none of the log's."""
    if not reading.cancelled():
        reading.exception()


async def add_key(
    store: Store,
    name: str,
    projects: frozenset[int] | None,
    *,
    may_write: bool,
    extraction: bool = False,
    organisation: str = "",
) -> str:
    """Make a key with a name (its fields: ``StoredKey``); returns it, for the only time. Raises ``ContractError``."""
    for field, given in (("name", name), *([("organisation", organisation)] if organisation else [])):
        if not _NAME.fullmatch(given) or given == KEY_HOLDER:
            rule = f"must be 1 to 64 letters, digits, '_', '-' or '.', and not {KEY_HOLDER!r}, got {given[:80]!r}"
            raise ContractError([Violation(field, rule, "Choose another name.")])
    if len(await store.keys.named()) >= MAX_KEYS:
        raise ContractError([Violation("name", f"would be key number {MAX_KEYS + 1}", "Remove keys that nobody uses.")])
    key = new_key()
    if not await store.keys.add(StoredKey(name, key_hash(key), projects, may_write, 0, extraction, organisation)):
        raise ContractError([Violation("name", f"{name} is taken", "Choose another name, or remove that key first.")])
    return key


async def _made(store: Store, purpose: str) -> str:
    key = new_key()
    wanted = key_hash(key)
    stored = await store.keys.keep(purpose, wanted)
    if stored == wanted:  # else another process made one at the same time, and has shown it
        told = f"{_PURPOSES[purpose]}: {key} (shown this once; only its hash is stored)"
        print(told, file=sys.stderr, flush=True)  # noqa: T201
    return stored
