"""Sessions of the pages: a cookie issued for a key, and the CSRF tokens of forms.

A session is a signed text in a cookie; no server stores it. It contains the name of a key, a proof of that key's
identity when the session began, and the time when it ends. Neither the key nor anything that helps to guess it is
included: the proof is an HMAC with a secret of the database, which all its servers share. Removing, suspending or
replacing a key ends its sessions on all servers. Logging out stores the session's ID in the database until the session
would have expired, so that copies of the cookie are refused too.

Browsers send the cookies of a host to all its ports, so the cookie's name depends on the database.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.server.auth.keyring import Grant, Keyring
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError

#: Seconds until a session expires.
LIFETIME: Final = 12 * 3600
#: Tolerated difference between the clocks of servers, in seconds.
_CLOCKS_DIFFER: Final = 300

_SECRET: Final = "page-sessions"  # noqa: S105 - the name of a secret
_decode: Final = msgspec.json.Decoder(tuple[str, str, int, str]).decode


class PageSession(NamedTuple):
    """An authenticated visitor: the rights of the key, and the CSRF token of the forms."""

    grant: Grant
    token: str


class Sessions:
    """The sessions of all servers on one database."""

    def __init__(self, store: Store, keys: Keyring) -> None:
        self._store = store
        self._keys = keys
        self._secret = b""

    async def _load(self) -> None:
        if not self._secret:
            self._secret = await self._store.keys.secret(_SECRET)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}\n{text}".encode(), sha256).hexdigest()

    async def cookie_name(self) -> str:
        await self._load()
        return f"scrapy_ext_{self._sign('name', '')[:8]}"

    async def begin(self, key: str) -> str | None:
        """Return a cookie for a key; None when the key has no access to the pages."""
        await self._load()
        grant = await self._keys.grant(key)
        standing = await self._keys.standing(grant.name) if grant else None
        if grant is None or standing is None:
            return None
        ends = self._store.clock() // 1000 + LIFETIME
        body = (grant.name, self._sign("key", standing.hash), ends, secrets.token_hex(8))
        text = urlsafe_b64encode(msgspec.json.encode(body)).decode()
        return f"{text}.{self._sign('session', text)}"

    async def end(self, value: str) -> None:
        """End the session of a cookie, if it has one."""
        if (read := await self._read(value)) is not None:
            await self._store.keys.end_session(read[-1], LIFETIME)

    async def _read(self, value: str) -> tuple[str, str, int, str] | None:
        """Return key name, proof, end and ID of a cookie's session; None when it is forged or has expired."""
        await self._load()
        text, _, signature = value.partition(".")
        if not hmac.compare_digest(self._sign("session", text).encode(), signature.encode()):
            return None
        read = _decode(urlsafe_b64decode(text))
        left = read[2] - self._store.clock() // 1000
        # A session longer than LIFETIME was begun by a server with a wrong clock.
        return read if 0 < left <= LIFETIME + _CLOCKS_DIFFER else None

    async def of_cookie(self, value: str) -> PageSession | None:
        """Return the session of a cookie; None when it is forged, has ended, or its key has no access any more."""
        read = await self._read(value)
        if read is None or await self._store.keys.has_ended(read[-1]):
            return None
        name, proof, _, _ = read
        text = value.partition(".")[0]
        standing = await self._keys.standing(name)
        if standing is None or not hmac.compare_digest(self._sign("key", standing.hash), proof):
            return None
        return PageSession(standing.grant, self._sign("form", text))

    async def of_key(self, key: str) -> PageSession | None:
        """Return the session of a request with the key itself, as tools send it."""
        grant = await self._keys.grant(key)
        if grant is None:
            return None
        try:
            await self._load()
        # The page reports the failure to this key; its forms cannot be submitted.
        except StoreAwayError:
            return PageSession(grant, secrets.token_hex(16))
        return PageSession(grant, self._sign("form of", grant.name))


def from_these_pages(headers: Mapping[str, str]) -> bool:
    """Return true unless the browser reports that a form was sent by another site.

    Browsers that report nothing pass; the token of the form is checked as well.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def local_path(address: str) -> str:
    """Return a path of this server, for a redirect; "/" for any other URL.

    Browsers read ``\\`` as ``/`` and drop tabs and line breaks, so none of them is allowed.
    """
    ok = address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()
    return address if ok and len(address) <= 2000 and address.isascii() else "/"
