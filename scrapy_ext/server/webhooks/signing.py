"""Signatures of deliveries, as Standard Webhooks has them (https://www.standardwebhooks.com/).

What is signed is ``<id>.<timestamp>.<body>``, with HMAC-SHA256 and the bytes that the secret has in Base64 after its
prefix.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from hashlib import sha256
from typing import Final

from scrapy_ext.api.platform.webhooks import ID_HEADER, SECRET_PREFIX, SIGNATURE_HEADER, TIMESTAMP_HEADER

_SECRET_BYTES: Final = 32


def new_secret() -> str:
    """A secret that nobody has."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(secret: str, id: str, seconds: int, body: bytes) -> dict[str, str]:
    """The headers with which a receiver knows who has sent a body, and when (seconds since 1970)."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.digest(key, f"{id}.{seconds}.".encode() + body, sha256)
    signature = base64.b64encode(digest).decode()
    return {ID_HEADER: id, TIMESTAMP_HEADER: str(seconds), SIGNATURE_HEADER: f"v1,{signature}"}
