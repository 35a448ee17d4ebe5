"""API keys: made, hashed, and compared in constant time (extraction-api.md and platform-api.md, Authentication)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from typing import NamedTuple


def new_key() -> str:
    """A random key of 128 bits, as 32 hexadecimal digits, the form in which hosted services issue theirs."""
    return secrets.token_hex(16)


def key_hash(key: str) -> str:
    """What is stored of a key. Keys are random, so that one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


class Caller(NamedTuple):
    """Who asks the extraction service: the name of the key, and that of the organisation whose requests for one domain
    are counted together. ``refusal`` says why the key does not open the service, if it does not."""

    name: str
    organisation: str
    refusal: str = ""


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    """User name and password of an ``Authorization: Basic`` header; None when it is absent or malformed."""
    scheme, _, payload = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(payload.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, separator, password = decoded.partition(":")
    return (name, password) if separator else None
