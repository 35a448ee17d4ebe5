"""Tokens of jobs, and of the attempts of their processes, and signed texts: HMACs with secrets of the database, which
all its servers share. It stores no token.

The token of a job gives access to the job's data. The token of an attempt gives access, until the attempt is over, to
the job's data, to its project's collections, frontiers and activity, and to the extraction service.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

import msgspec

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt, over

_JOB_SECRET: Final = "job-tokens"  # noqa: S105 - the name of a secret
_ATTEMPT_SECRET: Final = "attempt-tokens"  # noqa: S105 - the name of a secret
_TOKEN: Final = re.compile(r"(\d{1,18})-(\d{1,18})-(\d{1,18})-(\d{1,9})-([0-9a-f]{64})", re.ASCII)


class JobTokens:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, key: JobKey) -> str:
        secret = await self._store.keys.secret(_JOB_SECRET)
        return hmac.new(secret, str(key).encode(), sha256).hexdigest()

    async def opens(self, key: JobKey, token: str) -> bool:
        """Return true for the token of a job that was not deleted, in constant time.

        The token of a finished job is valid: the last log lines and stats follow its end, and a job may be resumed.
        """
        if not hmac.compare_digest((await self.token(key)).encode(), token.encode()):
            return False
        job = await self._store.jobs.get(key)
        return job is not None and job.state is not JobState.DELETED


class AttemptTokens:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, attempt: Attempt) -> str:
        named = "-".join(map(str, (*attempt.key, attempt.number)))
        return f"{named}-{await self._digest(named)}"

    async def attempt(self, token: str) -> Attempt | None:
        """Return the attempt of a token, which may be over; None for a token of another database."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        *numbers, digest = match.groups()
        if not hmac.compare_digest(await self._digest("-".join(numbers)), digest):
            return None
        project, spider, job, number = map(int, numbers)
        return Attempt(JobKey(project, spider, job), number)

    async def is_current(self, attempt: Attempt) -> bool:
        return await self._store.attempts.is_current(attempt)

    async def is_finished(self, key: JobKey) -> bool:
        job = await self._store.jobs.get(key)
        return job is not None and job.state is JobState.FINISHED

    async def caller(self, token: str) -> Caller | None:
        """Return the caller of the extraction service with a token; None for another text."""
        attempt = await self.attempt(token)
        if attempt is None:
            return None
        refusal = "" if await self.is_current(attempt) else str(over(attempt))
        return Caller(str(attempt.key), f"project {attempt.key.project}", refusal)

    async def _digest(self, named: str) -> str:
        secret = await self._store.keys.secret(_ATTEMPT_SECRET)
        return hmac.new(secret, f"attempt {named}".encode(), sha256).hexdigest()


class Signer:
    """Signatures with the secret of a name, which is read from the database first; each purpose has its own."""

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

    def sealed(self, purpose: str, value: object) -> str:
        """Return a value as a signed text, which is not encrypted."""
        text = urlsafe_b64encode(msgspec.json.encode(value)).decode()
        return f"{text}.{self.sign(purpose, text)}"

    def opened(self, purpose: str, sealed: str) -> bytes | None:
        """Return the JSON of a signed text; None when it is forged."""
        text, _, signature = sealed.partition(".")
        if not hmac.compare_digest(self.sign(purpose, text).encode(), signature.encode()):
            return None
        return urlsafe_b64decode(text)
