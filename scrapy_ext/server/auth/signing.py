"""HMACs with a secret of the database, which all its servers share; each purpose has signatures of its own."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Any

import msgspec

from scrapy_ext.server.store import Store


class Signer:
    """Signatures with the secret of a name, which is read from the database first."""

    def __init__(self, store: Store, secret: str) -> None:
        self._store = store
        self._name = secret
        self._secret = b""

    async def load(self) -> None:
        """Read the secret; called before the other methods. Raises ``StoreError``."""
        if not self._secret:
            self._secret = await self._store.keys.secret(self._name)

    def sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}\n{text}".encode(), sha256).hexdigest()

    def sealed(self, purpose: str, value: Any) -> str:
        """Return a value as a signed text, which is not encrypted."""
        text = urlsafe_b64encode(msgspec.json.encode(value)).decode()
        return f"{text}.{self.sign(purpose, text)}"

    def opened(self, purpose: str, sealed: str) -> bytes | None:
        """Return the JSON of a signed text; None when it is forged."""
        text, _, signature = sealed.partition(".")
        if not hmac.compare_digest(self.sign(purpose, text).encode(), signature.encode()):
            return None
        return urlsafe_b64decode(text)
