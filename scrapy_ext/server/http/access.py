"""Access checks: an API key gives access to projects, a job's token to the data of that job (platform-api.md,
Authentication).

A call is checked before its handler runs, as its route declares (:class:`Access`), wherever the address names its
project. A handler that finds the project elsewhere calls :meth:`Call.need`; one that answers for several projects omits
those for which :meth:`Call.may_read` is false. A key that is limited to projects has no access to data
(:attr:`Call.store`) before one of the two was called, so that a handler without a check refuses.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Final

from scrapy_ext.api.platform.keys import Host, JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.auth.credentials import Caller, basic_credentials, key_in
from scrapy_ext.server.auth.rates import RateLimits, note_wrong_key, too_many
from scrapy_ext.server.auth.tokens import AttemptTokens, JobTokens
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.origins import FOREIGN, is_of_another_site
from scrapy_ext.server.http.routes import Access, Router, host_of
from scrapy_ext.server.store import StoreError
from scrapy_ext.server.store.engine.errors import StoreAwayError
from scrapy_ext.server.store.fencing import over

#: Seconds within which the database must find the key of a call for the metrics.
_KEY_TIME: Final = 5.0
_RETRY_AFTER: Final = "1"
#: Remembered headers of the server's own key, which may have any password.
_HOLDERS: Final = 16
_REFUSALS: Final = {
    Host.STORAGE: Refusal(401, "Unauthorized"),
    Host.JOBQ: Refusal(401, "Unauthorized", {"WWW-Authenticate": 'Basic realm="apikey"'}),
    Host.APP: Refusal(401, "Authentication failed"),
}
_NO_AGENT_KEY: Final = Refusal(
    401,
    "Unauthorized. Send a key of the platform or of the extraction service: Authorization: Bearer KEY.",
    {"WWW-Authenticate": 'Basic realm="API key"'},
)
_NO_SERVER_KEY: Final = Refusal(
    401,
    "Unauthorized. Send a platform API key that opens all projects as the user name.",
    {"WWW-Authenticate": 'Basic realm="platform API key"'},
)

GrantOf = Callable[[str], Awaitable[Grant | None]]
CallerOf = Callable[[str], Awaitable[Caller | None]]
#: Raises :class:`Refusal` for a caller without access to the route of a call.
CallerCheck = Callable[[Call], Awaitable[None]]


class Unknown(enum.Enum):
    """The reason why a key has no rights."""

    WRONG = enum.auto()
    #: The database cannot be read now.
    AWAY = enum.auto()


async def presented(call: Call, grant_of: GrantOf) -> Grant | Unknown:
    """Return the rights of the key of a call.

    A wrong key, and one that cannot be looked up while the database is away, must be counted: the server's own key
    needs no database, so that guesses at it would show otherwise.
    """
    name, _ = basic_credentials(call.header(b"authorization") or "") or ("", "")
    try:
        async with timeout_after(_KEY_TIME):
            return (await grant_of(name) if name else None) or Unknown.WRONG
    except (StoreError, *TIMEOUT_ERRORS):
        return Unknown.AWAY


def refuse_guesses(call: Call) -> None:
    """Count the wrong key of a call, if it has one; raises :class:`Refusal` (429) after many."""
    if call.header(b"authorization") and (refusal := _guessed(call)):
        raise refusal


def _guessed(call: Call) -> Refusal | None:
    wait = note_wrong_key(call.request.scope)
    return Refusal(429, too_many(wait), {"Retry-After": str(wait)}) if wait else None


class AccessCheck:
    """The check of callers; ``grant_of`` returns the rights of a presented key on the platform, and ``caller_of`` those
    at the extraction service, if the server has it."""

    def __init__(
        self,
        grant_of: GrantOf,
        tokens: JobTokens,
        attempts: AttemptTokens,
        rates: RateLimits | None,
        caller_of: CallerOf | None = None,
    ) -> None:
        self._grant_of = grant_of
        self._tokens = tokens
        self._attempts = attempts
        self._rates = rates
        self._caller_of = caller_of
        self._secret = secrets.token_bytes(32)
        self._holders: dict[bytes, Grant] = {}

    async def __call__(self, call: Call) -> None:
        """Set the rights of a call. Raises :class:`Refusal`: 401 for an unknown caller, 403 for one without access, 429
        after too many requests or wrong keys."""
        access = call.route.access if call.route is not None else Access.KEY
        if access is Access.ANYONE:
            return
        _refuse_other_sites(call)
        if access is Access.SERVER:
            call.grant = await self._of_server(call)
            call.need_where_named()
            return
        if access is Access.AGENT:
            # The calls of the tools are checked as such.
            self._admit(call, await self._of_agent(call))
            return
        header = call.header(b"authorization") or ""
        holder = self._holders.get(self._blinded(header))
        if holder is not None:
            self._accept(call, holder)
            return
        name, password = basic_credentials(header) or ("", "")
        key = name or call.query.get("apikey", "")
        if not key:
            refuse_guesses(call)
            raise _unauthorized(call)
        grant = await self._attempt(call, access, key) or await self._grant_of(key)
        if grant is None and password:
            grant = await self._job(call, name, password)
        if grant is None:
            raise _guessed(call) or _unauthorized(call)
        if name and grant.may_manage_keys:
            self._keep_holder(header, grant)
        self._accept(call, grant)

    def _accept(self, call: Call, grant: Grant) -> None:
        self._admit(call, grant)
        if not grant.job:
            call.need_where_named()

    def _admit(self, call: Call, grant: Grant) -> None:
        call.grant = grant
        call.context.who = grant.name
        if self._rates is not None and (wait := self._rates.take(grant.name)):
            raise Refusal(429, f"Too Many Requests. Try again in {wait} s.", {"Retry-After": str(wait)})

    def _blinded(self, header: str) -> bytes:
        return blake2b(header.encode(), key=self._secret, digest_size=32).digest()

    def _keep_holder(self, header: str, grant: Grant) -> None:
        """Remember the credentials of the server's own key, whose rights never change, by a keyed hash."""
        if len(self._holders) >= _HOLDERS:
            self._holders.clear()
        self._holders[self._blinded(header)] = grant

    async def _of_server(self, call: Call) -> Grant:
        grant = await presented(call, self._grant_of)
        if isinstance(grant, Grant):
            if grant.all_projects:
                return grant
            reason = f"The key {grant.name} is limited to projects, and this is about all of them. Use another key."
            raise Refusal(403, f"Forbidden. {reason}")
        refuse_guesses(call)
        if grant is Unknown.AWAY:
            raise Refusal(503, StoreAwayError.public, {"Retry-After": _RETRY_AFTER}, as_text=True)
        raise _NO_SERVER_KEY

    async def _of_agent(self, call: Call) -> Grant:
        """Return the rights of an agent. One with a key of the extraction service alone has no project."""
        key = key_in(call.header(b"authorization") or "")
        if key and (grant := await self._grant_of(key)) is not None:
            return grant
        caller = await self._caller_of(key) if key and self._caller_of is not None else None
        if caller is None:
            refuse_guesses(call)
            raise _NO_AGENT_KEY
        if caller.refusal:
            raise Refusal(403, f"Forbidden. {caller.refusal}")
        return Grant(caller.name, frozenset())

    async def _attempt(self, call: Call, access: Access, token: str) -> Grant | None:
        """Return the rights of a job's process: those to its own data, and to its project's frontiers and the like."""
        attempt = await self._attempts.attempt(token)
        if attempt is None:
            return None
        if not await self._attempts.is_current(attempt):
            raise Refusal(403, f"Forbidden. {over(attempt)}")
        own = [str(number) for number in attempt.key]
        if access is Access.JOB:
            allowed = call.path[:3] == own or (call.method == "GET" and call.path[:1] == own[:1])
            allowed = allowed or await self._ends_commit(call, attempt.key)
        else:
            allowed = access is Access.PROCESS or call.method == "GET"
        if not allowed:
            raise Refusal(403, "Forbidden. The token of a job's process is for that job. Use an API key.")
        return Grant(str(attempt.key), frozenset({attempt.key.project}), attempt=attempt)

    async def _ends_commit(self, call: Call, key: JobKey) -> bool:
        """Return true for items of a finished job of the same project: a worker of a frontier that takes over from a
        dead one stores the items of its last commit in the job of the dead one."""
        if (call.parts[0], call.method, len(call.path)) != ("items", "POST", 3) or call.path[0] != str(key.project):
            return False
        return await self._attempts.is_finished(JobKey.parse("/".join(call.path)))

    async def _job(self, call: Call, name: str, token: str) -> Grant | None:
        try:
            key = JobKey.parse(name)
        except ContractError:
            return None
        resource = call.service(Router).resource(call.parts[0])
        if resource is None or resource.access is not Access.JOB or call.path[:3] != name.split("/"):
            return None
        if not await self._tokens.opens(key, token):
            return None
        if call.route is not None and call.route.access is not Access.JOB:
            raise Refusal(403, "Forbidden. The token of a job does not delete it. Use an API key.")
        return Grant(name, job=True)


def _refuse_other_sites(call: Call) -> None:
    """Refuse a change that a page of another site makes the browser of somebody with access send. A page without
    cookies that brings a key in its address is a program of its own."""
    reports = call.header(b"origin") is not None and call.header(b"authorization") is not None
    if reports and call.method != "GET" and is_of_another_site(call.request.headers):
        raise Refusal(403, FOREIGN)


def _unauthorized(call: Call) -> Refusal:
    return _REFUSALS[host_of(call.parts[0])]
