"""Creation, hashing and parsing of API keys (extraction-api.md and platform-api.md, Authentication)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from typing import NamedTuple


def new_key() -> str:
    """Return a random key of 128 bits as 32 hexadecimal digits, the form of hosted services."""
    return secrets.token_hex(16)


def key_hash(key: str) -> str:
    """Return the stored hash of a key. Keys are random, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


class Caller(NamedTuple):
    """A caller of the extraction service: the name of its key and its organisation, which share limits of a domain.

    ``refusal`` is the reason why the key has no access to the service, or "".
    """

    name: str
    organisation: str
    refusal: str = ""


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    """Return user name and password of an ``Authorization: Basic`` header; None when it is absent or malformed."""
    scheme, _, payload = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(payload.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, separator, password = decoded.partition(":")
    return (name, password) if separator else None
