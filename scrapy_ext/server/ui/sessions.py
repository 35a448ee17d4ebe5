"""Who looks at the pages: a cookie that a key was exchanged for, and the tokens that forms carry.

A session is a signed text in a cookie, which no server has to keep. It holds the name of a key, a proof of which key
had this name when it began, and when it ends. The key itself is not in it, nor anything that the key could be guessed
from: the proof is made with a secret of the database, which all servers on it share. A key that is removed, suspended
or made anew ends its sessions, wherever they were begun, as soon as it stops opening anything. Logging out ends the
session on all servers of the database, copies of its cookie included: it is noted there until its time is up.

Cookies of one host are sent to all of its ports, so that the cookie's name differs from one database to the next.
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

#: Seconds after which one has to log in again.
LIFETIME: Final = 12 * 3600
#: Seconds by which the clocks of servers may differ.
_CLOCKS_DIFFER: Final = 300

_SECRET: Final = "page-sessions"  # noqa: S105 - the name of a secret
_decode: Final = msgspec.json.Decoder(tuple[str, str, int, str]).decode


class Session(NamedTuple):
    """Somebody who may look: what the key opens, and the token that each of his forms has to bring."""

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
        """What the cookie is called."""
        await self._load()
        return f"scrapy_ext_{self._sign('name', '')[:8]}"

    async def begin(self, key: str) -> str | None:
        """The cookie's value for who has this key; None when it opens nothing here."""
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
        """End the session of a cookie; nothing happens where it has none."""
        if (read := await self._read(value)) is not None:
            await self._store.keys.end_session(read[-1], LIFETIME)

    async def _read(self, value: str) -> tuple[str, str, int, str] | None:
        """Return the name of a cookie's key, the proof of it, the end of the session, and its ID; None where it was
        not made here, or its time is up."""
        await self._load()
        text, _, signature = value.partition(".")
        if not hmac.compare_digest(self._sign("session", text).encode(), signature.encode()):
            return None
        read = _decode(urlsafe_b64decode(text))
        left = read[2] - self._store.clock() // 1000
        # One that lasts longer than any was begun by a clock that was wrong.
        return read if 0 < left <= LIFETIME + _CLOCKS_DIFFER else None

    async def of_cookie(self, value: str) -> Session | None:
        """The session of a cookie; None when it was not made here, has ended, or its key opens nothing any more."""
        read = await self._read(value)
        if read is None or await self._store.keys.has_ended(read[-1]):
            return None
        name, proof, _, _ = read
        text = value.partition(".")[0]
        standing = await self._keys.standing(name)
        if standing is None or not hmac.compare_digest(self._sign("key", standing.hash), proof):
            return None
        return Session(standing.grant, self._sign("form", text))

    async def of_key(self, key: str) -> Session | None:
        """The session of a request that brings the key itself, as tools do."""
        grant = await self._keys.grant(key)
        if grant is None:
            return None
        try:
            await self._load()
        except StoreAwayError:  # the page will say so, to this key as much as it may know; no form can be sent
            return Session(grant, secrets.token_hex(16))
        return Session(grant, self._sign("form of", grant.name))


def from_these_pages(headers: Mapping[str, str]) -> bool:
    """Whether a form was sent by one of these pages, as far as the browser says where it comes from.

    Browsers that tell nothing are let through: what they send still has to bring its token.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def local_path(address: str) -> str:
    """An address to go on to, if it is one of this server's; else that of the first page.

    Browsers read ``\\`` as ``/`` and leave out tabs and line breaks, so that none may be in it.
    """
    ok = address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()
    return address if ok and len(address) <= 2000 and address.isascii() else "/"
