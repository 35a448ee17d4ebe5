"""Tokens of jobs: each opens the data of its job."""

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
    """Tokens are made from a secret that stays in the database, so that none has to be kept."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, key: JobKey) -> str:
        """The token of a job."""
        secret = await self._store.keys.get(_SECRET) or await self._store.keys.keep(_SECRET, secrets.token_hex(32))
        return hmac.new(secret.encode(), str(key).encode(), sha256).hexdigest()

    async def opens(self, key: JobKey, token: str) -> bool:
        """Whether this is the job's token, in time that does not depend on either, and the job was not deleted.

        The token of a finished job still opens it: what ends a job writes its last log lines and stats after it has
        said so, and a finished job may be resumed.
        """
        if not hmac.compare_digest((await self.token(key)).encode(), token.encode()):
            return False
        job = await self._store.jobs.get(key)
        return job is not None and job.state is not JobState.DELETED
