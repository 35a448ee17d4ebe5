"""Signatures of deliveries by Standard Webhooks (https://www.standardwebhooks.com/).

The signature is an HMAC-SHA256 of ``<id>.<timestamp>.<body>`` with the Base64-decoded secret after its prefix.
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
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(secret: str, id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers that prove sender and time (seconds since 1970) of a body."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.digest(key, f"{id}.{seconds}.".encode() + body, sha256)
    signature = base64.b64encode(digest).decode()
    return {ID_HEADER: id, TIMESTAMP_HEADER: str(seconds), SIGNATURE_HEADER: f"v1,{signature}"}
