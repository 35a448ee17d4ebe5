"""The API keys of a server and their rights.

Each of the two services has a key of its own; that of the platform has all rights there. Named keys give access to the
platform, the extraction service or both. On the platform they may be limited to projects and to reading; at the
extraction service their requests are limited by key and by organisation.

Named keys are stored in the database, where commands change them while servers run: a server reads them again after
:data:`REFRESH_SECONDS`, and at once for a key that it does not know, so that a new key works when its owner has it. A
suspended key has no access. The extraction service answers a known key without access with 403; the platform answers
401, as for an unknown key.

A key is looked up by a keyed hash with a secret per process, so the time of a lookup reveals nothing about stored keys.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from scrapy_ext.api.platform.users import LEAST, Action, Role
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.keys import StoredKey

# ── creation, hashing and parsing of API keys ──


def new_key() -> str:
    """Return a random key of 128 bits as 32 hexadecimal digits, the form of hosted services."""
    return secrets.token_hex(16)


def key_hash(key: str) -> str:
    """Return the stored hash of a key. Keys are random, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


#: The user name recorded for actions with the platform's own key.
KEY_HOLDER: Final = "api"
#: Maximum seconds until a changed key takes effect.
REFRESH_SECONDS: Final = 2.0
#: Minimum seconds between two reads for unknown keys: callers that guess keys must not load the database.
_UNKNOWN_SECONDS: Final = 0.1
#: Maximum named keys of a database.
MAX_KEYS: Final = 1000

#: Keys with fewer characters are probably guessable.
_SHORT: Final = 16
_EXTRACT: Final = "extract-key"
_PLATFORM: Final = "platform-key"
_PURPOSES: Final = {
    _EXTRACT: "EXTRACT_API_KEY, the key of the extraction service",
    _PLATFORM: "PLATFORM_API_KEY, the key of the platform and of its pages",
}
_NAME: Final = re.compile(r"[\w.\-]{1,64}", re.ASCII)


_NO_ROLES: Final[Mapping[int, Role]] = MappingProxyType({})


class Grant(NamedTuple):
    """Rights of a caller: ``role`` in ``projects``, None for all; ``job`` limits it to the data of one job."""

    name: str
    projects: frozenset[int] | None = None
    role: Role = Role.MANAGE
    job: bool = False
    #: The attempt of a job process's token.
    attempt: Attempt | None = None
    #: Roles in single projects, of which the higher one counts.
    roles: Mapping[int, Role] = _NO_ROLES
    #: The number of a user of the pages; None for a key.
    user: int | None = None

    def may_read(self, project: int) -> bool:
        return self.may(Action.READ, project)

    def may(self, action: Action, project: int) -> bool:
        """Return true when the caller may do this in a project (:data:`LEAST`)."""
        if self.job:
            return False
        is_within = self.projects is None or project in self.projects
        if is_within and self.role is Role.MANAGE:  # most keys, without the look-up in the table
            return True
        least, own = LEAST[action], self.roles.get(project)
        return (is_within and self.role >= least) or (own is not None and own >= least)

    def may_everywhere(self, action: Action) -> bool:
        """Return true when the caller may do this in all projects."""
        return self.all_projects and self.role >= LEAST[action]

    def may_somewhere(self, action: Action) -> bool:
        """Return true when the caller may do this in a project at least."""
        if self.job:
            return False
        is_anywhere = self.projects is None or bool(self.projects)
        if is_anywhere and self.role is Role.MANAGE:
            return True
        least = LEAST[action]
        return (is_anywhere and self.role >= least) or any(role >= least for role in self.roles.values())

    @property
    def named_projects(self) -> frozenset[int]:
        """Return the projects that the rights name one by one; these need no data to be known."""
        return (self.projects or frozenset()) | self.roles.keys()

    @property
    def all_projects(self) -> bool:
        """Return true when the whole platform may be read."""
        return self.projects is None and not self.job

    @property
    def may_manage_keys(self) -> bool:
        """Return true for the server's own key only: keys created with another one would outlive its removal."""
        return self.name == KEY_HOLDER and self.user is None and self.may_everywhere(Action.MANAGE)

    @property
    def may_manage_users(self) -> bool:
        """Return true for the server's own key, and for users who manage all projects: their changes have their
        name."""
        return self.may_manage_keys or (self.user is not None and self.may_everywhere(Action.MANAGE))


#: The rights of the server's own keys.
_HOLDER: Final = Grant(KEY_HOLDER)
_EXTRACTOR: Final = Caller(KEY_HOLDER, KEY_HOLDER)
_NO_EXTRACTION: Final = (
    "This API key has no access to extraction: it is a key of the platform. Create one that has it: scrapy platform "
    "keys add NAME --opens extraction."
)
_PLATFORM_KEY: Final = (
    "This API key has no access to extraction: it is the key of this server's platform service (PLATFORM_API_KEY). "
    "Send that of its extraction service (EXTRACT_API_KEY)."
)
_NO_EXTRACTION_ROLE: Final = "Your role does not allow extraction."
_SUSPENDED: Final = "This API key is suspended. The operator of the server can resume it."


class Standing(NamedTuple):
    """The rights of a named key on the platform, and its hash, which identifies the key."""

    grant: Grant
    hash: str


class _Known(NamedTuple):
    """A named key: its rights on the platform, if any, and its caller at the extraction service."""

    grant: Grant | None
    caller: Caller


class Keyring:
    """The keys of a running server; empty before :meth:`load`."""

    _store: Store

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}
        self._secret = secrets.token_bytes(32)
        self._named: dict[bytes, _Known] = {}
        #: Keys with access to the platform, by name.
        self._standings: dict[str, Standing] = {}
        self._read_at = -REFRESH_SECONDS
        self._reading: asyncio.Task[None] | None = None

    async def load(self, store: Store, extract_key: str | None, platform_key: str | None) -> None:
        """Load the keys. A service key that is neither given nor stored is created, shown once, and its hash stored."""
        self._store = store
        for purpose, given in ((_EXTRACT, extract_key), (_PLATFORM, platform_key)):
            self._hashes[purpose] = (
                key_hash(given) if given else await store.keys.get(purpose) or await _made(store, purpose)
            )
        await self._refresh()

    async def caller(self, key: str) -> Caller | None:
        """Return the caller of the extraction service with a key; None for an unknown key.

        The server's own key needs no database. Raises ``StoreError`` while others cannot be read.
        """
        digest = key_hash(key)
        if hmac.compare_digest(digest, self._hashes[_EXTRACT]):
            return _EXTRACTOR
        if hmac.compare_digest(digest, self._hashes[_PLATFORM]):
            return Caller(KEY_HOLDER, KEY_HOLDER, _PLATFORM_KEY)
        known = await self._look_up(digest)
        return known and known.caller

    async def grant(self, key: str) -> Grant | None:
        """Return the rights of a key on the platform; None for an unknown key.

        The server's own key needs no database, so that its holder receives the database's error.
        """
        digest = key_hash(key)
        if hmac.compare_digest(digest, self._hashes[_PLATFORM]):
            return _HOLDER
        known = await self._look_up(digest)
        return known and known.grant

    async def caller_of(self, grant: Grant) -> Caller | None:
        """Return the caller of the extraction service for a visitor of the platform; None when the key was removed.

        The platform's own key may create keys for the service, so it has access itself. Raises ``StoreError`` while
        keys cannot be read.
        """
        if grant.may_manage_keys:
            return _EXTRACTOR
        if grant.job:
            return Caller(grant.name, grant.name, _NO_EXTRACTION)
        if grant.user is not None:
            refusal = "" if grant.may_somewhere(Action.EXTRACT) else _NO_EXTRACTION_ROLE
            return Caller(grant.name, f"user {grant.user}", refusal)
        await self._be_fresh()
        return next((known.caller for known in self._named.values() if known.caller.name == grant.name), None)

    async def standing(self, name: str) -> Standing | None:
        """Return the current rights of a named key on the platform; None when it has none."""
        if name == KEY_HOLDER:
            return Standing(_HOLDER, self._hashes[_PLATFORM])
        await self._be_fresh()
        return self._standings.get(name)

    async def _look_up(self, digest: str) -> _Known | None:
        await self._be_fresh()
        blinded = self._blinded(digest)
        if blinded not in self._named:
            await self._be_fresh(_UNKNOWN_SECONDS)
        return self._named.get(blinded)

    async def _be_fresh(self, seconds: float = REFRESH_SECONDS) -> None:
        if time.monotonic() - self._read_at >= seconds:
            await self._refresh()

    def _blinded(self, digest: str) -> bytes:
        return hashlib.blake2b(digest.encode(), key=self._secret, digest_size=32).digest()

    async def _refresh(self) -> None:
        """Read the keys; concurrent callers share one read, so none waits for another while the database is away."""
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
    """Return a warning about keys that are easy to guess or shared by both services; "" for good ones."""
    given = (("EXTRACT_API_KEY", extract_key), ("PLATFORM_API_KEY", platform_key))
    faults = [f"{name} is shorter than {_SHORT} characters" for name, key in given if key and len(key) < _SHORT]
    if extract_key and extract_key == platform_key:
        faults.append("EXTRACT_API_KEY and PLATFORM_API_KEY are the same, so a caller of extraction has all rights")
    return f"{'; '.join(faults)}. Use two long random keys, or let the server create them." if faults else ""


def _known(key: StoredKey) -> _Known:
    nothing = key.suspended or key.projects == frozenset()
    refusal = _SUSPENDED if key.suspended else "" if key.extraction else _NO_EXTRACTION
    # A name cannot have a space, so no organisation equals the name of a key.
    caller = Caller(key.name, key.organisation or f"key {key.name}", refusal)
    return _Known(None if nothing else Grant(key.name, key.projects, key.role), caller)


def _noticed(reading: asyncio.Task[None]) -> None:
    """Retrieve the error of a read that nobody awaits any more, so that asyncio does not log it."""
    if not reading.cancelled():
        reading.exception()


async def add_key(
    store: Store,
    name: str,
    projects: frozenset[int] | None,
    *,
    may_write: bool,
    may_run: bool = False,
    extraction: bool = False,
    organisation: str = "",
) -> str:
    """Create a named key (fields: ``StoredKey``) and return it, the only time it is readable. Raises
    ``ContractError``."""
    for field, given in (("name", name), *([("organisation", organisation)] if organisation else [])):
        if not _NAME.fullmatch(given) or given == KEY_HOLDER:
            rule = f"must be 1 to 64 letters, digits, '_', '-' or '.', and not {KEY_HOLDER!r}, got {given[:80]!r}"
            raise ContractError([Violation(field, rule, "Choose another name.")])
    if len(await store.keys.named()) >= MAX_KEYS:
        raise ContractError([Violation("name", f"would be key number {MAX_KEYS + 1}", "Remove keys that nobody uses.")])
    key = new_key()
    stored = StoredKey(name, key_hash(key), projects, may_write, 0, extraction, organisation, may_run=may_run)
    if not await store.keys.add(stored):
        raise ContractError([Violation("name", f"{name} is taken", "Choose another name, or remove that key first.")])
    return key


async def _made(store: Store, purpose: str) -> str:
    key = new_key()
    wanted = key_hash(key)
    stored = await store.keys.keep(purpose, wanted)
    # A different stored hash is that of another process, which has shown its key.
    if stored == wanted:
        message = f"{_PURPOSES[purpose]}: {key} (shown this once; only its hash is stored)"
        print(message, file=sys.stderr, flush=True)  # noqa: T201
    return stored
