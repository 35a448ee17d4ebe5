"""The tokens that processes of jobs have instead of a key: each opens what one attempt of one job needs.

A token is made from a secret that stays in the database. It opens the job's data and its project's collections,
frontiers and activity, and the extraction service, until the attempt is over.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from typing import Final

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.auth.api_keys import Caller
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.attempts import Attempt, over

_SECRET: Final = "attempt-tokens"  # noqa: S105 - the name of a secret
_TOKEN: Final = re.compile(r"(\d{1,18})-(\d{1,18})-(\d{1,18})-(\d{1,9})-([0-9a-f]{64})", re.ASCII)


class AttemptTokens:
    """Makes and reads tokens."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, attempt: Attempt) -> str:
        """The token of an attempt."""
        named = "-".join(map(str, (*attempt.key, attempt.number)))
        return f"{named}-{await self._digest(named)}"

    async def attempt(self, token: str) -> Attempt | None:
        """Whose token this is; None for what is no token of this database's. The attempt may be over."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        *numbers, digest = match.groups()
        if not hmac.compare_digest(await self._digest("-".join(numbers)), digest):
            return None
        project, spider, job, number = map(int, numbers)
        return Attempt(JobKey(project, spider, job), number)

    async def is_current(self, attempt: Attempt) -> bool:
        """Whether a job is in this attempt."""
        return await self._store.attempts.current(attempt.key) == attempt.number

    async def is_finished(self, key: JobKey) -> bool:
        """Return whether a job has ended."""
        job = await self._store.jobs.get(key)
        return job is not None and job.state is JobState.FINISHED

    async def caller(self, token: str) -> Caller | None:
        """Who asks the extraction service with a token; None for what is no token."""
        attempt = await self.attempt(token)
        if attempt is None:
            return None
        refusal = "" if await self.is_current(attempt) else str(over(attempt))
        return Caller(str(attempt.key), f"project {attempt.key.project}", refusal)

    async def _digest(self, named: str) -> str:
        secret = await self._store.keys.secret(_SECRET)
        return hmac.new(secret, f"attempt {named}".encode(), sha256).hexdigest()
