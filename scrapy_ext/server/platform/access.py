"""Who may do what: the platform key opens everything, a job's token the data of that job (platform-api.md,
Authentication)."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.auth import basic_credentials
from scrapy_ext.server.platform.answers import Host, Refusal
from scrapy_ext.server.platform.calls import Call
from scrapy_ext.server.store import Store

_SECRET: Final = "job-tokens"  # noqa: S105 - the name of a secret
#: What a job's token opens, when the path goes on with the job's key.
_JOB_RESOURCES: Final = ("items", "requests", "logs", "samples", "jobs")

_REFUSALS: Final = {
    Host.STORAGE: Refusal(401, "Unauthorized"),
    Host.JOBQ: Refusal(401, "Unauthorized", {"WWW-Authenticate": 'Basic realm="apikey"'}),
    Host.APP: Refusal(401, "Authentication failed"),
}


class JobTokens:
    """Tokens are made from a secret that stays in the database, so that none has to be kept."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, key: JobKey) -> str:
        """The token of a job."""
        secret = await self._store.keys.get(_SECRET) or await self._store.keys.keep(_SECRET, secrets.token_hex(32))
        return hmac.new(secret.encode(), str(key).encode(), sha256).hexdigest()

    async def matches(self, key: JobKey, token: str) -> bool:
        """Whether this is the job's token, in time that does not depend on either."""
        return hmac.compare_digest((await self.token(key)).encode(), token.encode())


class Access:
    """Lets a call in or refuses it."""

    def __init__(self, accepts_key: Callable[[str], bool], tokens: JobTokens) -> None:
        self._accepts_key = accepts_key
        self._tokens = tokens

    async def check(self, call: Call, resource: str, host: Host) -> None:
        """Raises :class:`Refusal` (401) unless the call may do what it wants; notes who it is."""
        name, password = basic_credentials(call.request.headers.get("authorization", "")) or ("", "")
        if self._accepts_key(name or call.query.get("apikey", "")):
            return
        if password and await self._is_job(call, resource, name, password):
            call.who = name
            return
        raise _REFUSALS[host]

    async def _is_job(self, call: Call, resource: str, name: str, token: str) -> bool:
        try:
            key = JobKey.parse(name)
        except ContractError:
            return False
        own = resource in _JOB_RESOURCES and call.path[:3] == name.split("/")
        return own and await self._tokens.matches(key, token)
