"""Sessions of the pages: a cookie issued for a key or a user, and the CSRF tokens of forms.

A session is a signed text in a cookie; no server stores it. It contains the name of a key, a proof of that key's
identity when the session began, and the time when it ends. Neither the key nor anything that helps to guess it is
included: the proof is an HMAC with a secret of the database, which all its servers share. Removing, suspending or
replacing a key ends its sessions on all servers. Logging out, and another login in the same browser, store the
session's ID in the database until the session would have expired, so that copies of the cookie are refused too.

The session of a user has ``user <number>`` in place of a key's name, which has no space, and a proof of the user's
epoch. The user is read for each page, so that another role, or its end, has effect at once.

Browsers send the cookies of a host to all its ports, so the cookie's name depends on the database.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final, Literal, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from scrapy_ext.server.auth.api_keys import Grant, Keyring
from scrapy_ext.server.auth.tokens import Signer
from scrapy_ext.server.auth.users import UserRules
from scrapy_ext.server.http.cookies import is_encrypted
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError
from scrapy_ext.server.store.users import StoredUser

#: Seconds until a session expires.
LIFETIME: Final = 12 * 3600
#: Tolerated difference between the clocks of servers, in seconds.
_CLOCKS_DIFFER: Final = 300

_SECRET: Final = "page-sessions"  # noqa: S105 - the name of a secret
#: Beginning of the name of a user's session.
_USER: Final = "user "
_NO_USERS: Final = UserRules()
_decode: Final = msgspec.json.Decoder(tuple[str, str, int, str]).decode


class PageSession(NamedTuple):
    """An authenticated visitor: the rights of the key or the user, and the CSRF token of the forms."""

    grant: Grant
    token: str


class Sessions:
    """The sessions of all servers on one database."""

    def __init__(self, store: Store, keys: Keyring, users: UserRules = _NO_USERS) -> None:
        self._store = store
        self._keys = keys
        self._users = users
        self._signer = Signer(store, _SECRET)

    def _sign(self, purpose: str, text: str) -> str:
        return self._signer.sign(purpose, text)

    async def cookie_name(self) -> str:
        await self._signer.load()
        return f"scrapy_ext_{self._sign('name', '')[:8]}"

    async def begin(self, key: str) -> str | None:
        """Return a cookie for a key; None when the key has no access to the pages."""
        grant = await self._keys.grant(key)
        standing = await self._keys.standing(grant.name) if grant else None
        if grant is None or standing is None:
            return None
        await self._signer.load()
        return self._begun(grant.name, self._sign("key", standing.hash))

    async def begin_of_user(self, user: StoredUser) -> str:
        """Return a cookie for a user who has logged in."""
        await self._signer.load()
        return self._begun(f"{_USER}{user.number}", self._proof(user))

    def _begun(self, name: str, proof: str) -> str:
        ends = self._store.clock() // 1000 + LIFETIME
        return self._signer.sealed("session", (name, proof, ends, secrets.token_hex(8)))

    def _proof(self, user: StoredUser) -> str:
        return self._sign("user", f"{user.number} {user.epoch}")

    async def id_of(self, value: str) -> str:
        """Return the ID of a cookie's session; "" without one."""
        read = await self._read(value)
        return "" if read is None else read[-1]

    async def end(self, session: str) -> None:
        """End a session by its ID, if there is one."""
        if session:
            await self._store.keys.end_session(session, LIFETIME)

    async def _read(self, value: str) -> tuple[str, str, int, str] | None:
        """Return key name, proof, end and ID of a cookie's session; None when it is forged or has expired."""
        await self._signer.load()
        opened = self._signer.opened("session", value)
        if opened is None:
            return None
        read = _decode(opened)
        left = read[2] - self._store.clock() // 1000
        # A session longer than LIFETIME was begun by a server with a wrong clock.
        return read if 0 < left <= LIFETIME + _CLOCKS_DIFFER else None

    async def of_cookie(self, value: str) -> PageSession | None:
        """Return the session of a cookie; None when it is forged, has ended, or its key has no access any more."""
        read = await self._read(value)
        if read is None or await self._store.keys.has_ended(read[-1]):
            return None
        name, proof, _, _ = read
        grant = await (self._user(name, proof) if name.startswith(_USER) else self._key(name, proof))
        return None if grant is None else PageSession(grant, self._sign("form", value.partition(".")[0]))

    async def _key(self, name: str, proof: str) -> Grant | None:
        standing = await self._keys.standing(name)
        if standing is None or not hmac.compare_digest(self._sign("key", standing.hash), proof):
            return None
        return standing.grant

    async def _user(self, name: str, proof: str) -> Grant | None:
        user = await self._store.users.get(int(name.removeprefix(_USER)))
        if user is None or not hmac.compare_digest(self._proof(user), proof):
            return None
        return self._users.grant(user)

    async def of_key(self, key: str) -> PageSession | None:
        """Return the session of a request with the key itself, as tools send it."""
        grant = await self._keys.grant(key)
        if grant is None:
            return None
        try:
            await self._signer.load()
        # The page reports the failure to this key; its forms cannot be submitted.
        except StoreAwayError:
            return PageSession(grant, secrets.token_hex(16))
        return PageSession(grant, self._sign("form of", grant.name))


def set_cookie(
    answer: Response, request: Request, name: str, value: str, seconds: int, *, secure: bool = False, lax: bool = False
) -> None:
    """Set a cookie that no script reads. ``secure``: for encrypted connections only, as if this one was. ``lax``: also
    sent when another site leads here."""
    same_site: Literal["lax", "strict"] = "lax" if lax else "strict"
    answer.set_cookie(
        name, value, max_age=seconds, secure=secure or is_encrypted(request), httponly=True, samesite=same_site
    )


def local_path(address: str) -> str:
    """Return a path of this server, for a redirect; "/" for any other URL.

    Browsers read ``\\`` as ``/`` and drop tabs and line breaks, so none of them is allowed.
    """
    ok = address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()
    return address if ok and len(address) <= 2000 and address.isascii() else "/"
