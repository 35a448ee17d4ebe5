"""Tokens of jobs, each of which gives access to the data of its job.

A token is an HMAC with a secret of the database, so tokens are not stored.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import Final

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store

_SECRET: Final = "job-tokens"  # noqa: S105 - the name of a secret


class JobTokens:
    """Creator and verifier of tokens."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, key: JobKey) -> str:
        """Return the token of a job."""
        secret = await self._store.keys.get(_SECRET) or await self._store.keys.keep(_SECRET, secrets.token_hex(32))
        return hmac.new(secret.encode(), str(key).encode(), sha256).hexdigest()

    async def opens(self, key: JobKey, token: str) -> bool:
        """Return true for the token of a job that was not deleted, in constant time.

        The token of a finished job is valid: the last log lines and stats follow its end, and a job may be resumed.
        """
        if not hmac.compare_digest((await self.token(key)).encode(), token.encode()):
            return False
        job = await self._store.jobs.get(key)
        return job is not None and job.state is not JobState.DELETED
