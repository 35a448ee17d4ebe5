"""Who may do what: a key opens the projects that it may touch, a job's token the data of that job (platform-api.md,
Authentication).

A call is checked before its handler runs, wherever the address names its project. What names it elsewhere asks
:meth:`Call.need`; what is about several projects leaves out those for which :meth:`Call.may_read` is false. A key
that is limited to projects reaches no data (:attr:`Call.store`) before one of these was asked, so that a handler
that forgets to ask refuses instead of telling.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.auth.api_keys import basic_credentials
from scrapy_ext.server.auth.attempt_tokens import AttemptTokens
from scrapy_ext.server.auth.keyring import Grant
from scrapy_ext.server.auth.rates import RateLimits
from scrapy_ext.server.auth.wrong_keys import note_wrong_key, too_many
from scrapy_ext.server.http.answers import Host, Refusal
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.attempts import over

_SECRET: Final = "job-tokens"  # noqa: S105 - the name of a secret
#: What a job's token opens, when the path goes on with the job's key.
_JOB_RESOURCES: Final = ("items", "requests", "logs", "samples", "jobs")
#: What the process of an attempt may write to beside its job, in its project.
_ATTEMPT_RESOURCES: Final = ("collections", "hcf", "activity")

_REFUSALS: Final = {
    Host.STORAGE: Refusal(401, "Unauthorized"),
    Host.JOBQ: Refusal(401, "Unauthorized", {"WWW-Authenticate": 'Basic realm="apikey"'}),
    Host.APP: Refusal(401, "Authentication failed"),
}


def _wrong(call: Call, host: Host) -> Refusal:
    wait = note_wrong_key(call.request.scope)
    return Refusal(429, too_many(wait), {"Retry-After": str(wait)}) if wait else _REFUSALS[host]


class JobTokens:
    """Tokens are made from a secret that stays in the database, so that none has to be kept."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def token(self, key: JobKey) -> str:
        """The token of a job."""
        secret = await self._store.keys.secret(_SECRET)
        return hmac.new(secret, str(key).encode(), sha256).hexdigest()

    async def opens(self, key: JobKey, token: str) -> bool:
        """Whether this is the job's token, in time that does not depend on either, and the job was not deleted.

        The token of a finished job still opens it: what ends a job writes its last log lines and stats after it has
        said so, and a finished job may be resumed.
        """
        if not hmac.compare_digest((await self.token(key)).encode(), token.encode()):
            return False
        job = await self._store.jobs.get(key)
        return job is not None and job.state is not JobState.DELETED


class Access:
    """Lets a call in or refuses it; ``grant_of`` says what a presented key may do."""

    def __init__(
        self,
        grant_of: Callable[[str], Awaitable[Grant | None]],
        tokens: JobTokens,
        attempts: AttemptTokens,
        rates: RateLimits | None,
    ) -> None:
        self._grant_of = grant_of
        self._tokens = tokens
        self._attempts = attempts
        self._rates = rates

    async def check(self, call: Call, resource: str, host: Host) -> None:
        """Note whose call it is; raises :class:`Refusal`: 401 for who is not known, 403 for what he may not do, 429
        for who asks too often, or comes with one wrong key after the other."""
        name, password = basic_credentials(call.header(b"authorization") or "") or ("", "")
        key = name or call.query.get("apikey", "")
        if not key:
            raise _wrong(call, host) if call.header(b"authorization") else _REFUSALS[host]
        grant = await self._attempt(call, resource, key) or await self._grant_of(key)
        if grant is None and password:
            grant = await self._job(call, resource, name, password)
        if grant is None:
            raise _wrong(call, host)
        call.grant = grant
        call.exchange.who = grant.name
        if self._rates is not None and (wait := self._rates.take(grant.name)):
            raise Refusal(429, f"Too Many Requests. Try again in {wait} s.", {"Retry-After": str(wait)})
        if not grant.job:
            call.need_where_named(host)

    async def _attempt(self, call: Call, resource: str, token: str) -> Grant | None:
        """What the process of a job may do: all that its own data needs, and its project's frontiers and the like."""
        attempt = await self._attempts.attempt(token)
        if attempt is None:
            return None
        if not await self._attempts.is_current(attempt):
            raise Refusal(403, f"Forbidden. {over(attempt)}")
        own = [str(number) for number in attempt.key]
        if resource in _JOB_RESOURCES:
            allowed = call.path[:3] == own or (call.method == "GET" and call.path[:1] == own[:1])
            allowed = allowed and not (call.method == "DELETE" and len(call.path) == 3)
            allowed = allowed or await self._ends_commit(call, resource, attempt.key)
        elif resource == "jobq":
            allowed = call.path[:1] == own[:1] and (call.method == "GET" or call.path[1:] == ["update"])
        else:
            allowed = resource in _ATTEMPT_RESOURCES or call.method == "GET"
        if not allowed:
            raise Refusal(403, "Forbidden. The token of a job's process is for that job; use an API key.")
        return Grant(str(attempt.key), frozenset({attempt.key.project}), attempt=attempt)

    async def _ends_commit(self, call: Call, resource: str, key: JobKey) -> bool:
        """True for items of a finished job of the same project: of several workers of a frontier, the one that takes
        over from a dead one stores the items of the last commit of that, in the job of that."""
        if (resource, call.method, len(call.path)) != ("items", "POST", 3) or call.path[0] != str(key.project):
            return False
        return await self._attempts.is_finished(JobKey.parse("/".join(call.path)))

    async def _job(self, call: Call, resource: str, name: str, token: str) -> Grant | None:
        try:
            key = JobKey.parse(name)
        except ContractError:
            return None
        if resource not in _JOB_RESOURCES or call.path[:3] != name.split("/"):
            return None
        if not await self._tokens.opens(key, token):
            return None
        if resource == "jobs" and call.method == "DELETE" and len(call.path) == 3:
            raise Refusal(403, "Forbidden. The token of a job does not delete it; use an API key.")
        return Grant(name, job=True)
