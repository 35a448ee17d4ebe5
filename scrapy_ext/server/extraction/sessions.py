"""Sessions: requests with the same proxy, cookies and browser storage (``session`` and ``sessionContext``).

* A ``session`` begins with the first request that names its identifier. A ``sessionContext`` names a session that the
  service begins by itself, one for each site: with ``sessionContextParameters.actions`` in a page of its own, before
  the first request. Either is of one API key: another key with the same names has another session.
* Sessions are in memory, of one server process. Their number and the bytes of their states are bounded
  (:class:`ExtractionSessions`), and a session that is not used for ``limits.session_idle`` seconds expires. Its
  identifier is refused afterwards (``/problem/session-expired``), so that no caller takes a new session for the one
  that it began; a session of the service begins again.
* Only the state is kept between requests, no page: a session costs kilobytes, and survives the browser.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.metrics import gauge
from scrapy_ext.telemetry.families import Family

#: Identifiers of expired sessions that are remembered.
_EXPIRED_KEPT: Final = 10_000
_Key = tuple[str, bytes]
P = TypeVar("P", bound=HttpPlan | PagePlan)


class ExtractionSession:
    """``is_begun``: the page that begins a session of the service was loaded."""

    def __init__(self, key: _Key, *, is_of_caller: bool) -> None:
        self.key = key
        self.is_of_caller = is_of_caller
        self.state = SessionState()
        self.is_begun = False
        self.requests = 0
        self.used = 0.0
        #: Bytes of the state, and those of its storage.
        self.size = self.storage = 0
        self._beginning: asyncio.Future[Exception | None] | None = None

    @property
    def name(self) -> str:
        """A name for the choice of a proxy: the same one for all requests of the session."""
        return self.key[1].hex()

    async def begin(self, load: Callable[[], Awaitable[None]]) -> None:
        """Begin a session of the service by a page, once. Requests that wait meanwhile share its failure; the next
        request tries again."""
        while not self.is_begun:
            if self._beginning is None:
                await self._try(load)
            elif (error := await asyncio.shield(self._beginning)) is not None:
                raise error

    async def _try(self, load: Callable[[], Awaitable[None]]) -> None:
        self._beginning = asyncio.get_running_loop().create_future()
        failure: Exception | None = None
        try:
            await load()
            self.is_begun = True
        except Exception as error:
            failure = error
            raise
        finally:
            # Of a request that was cancelled there is no failure to share: one of those that wait tries.
            self._beginning.set_result(failure)
            self._beginning = None

    def apply(self, todo: P) -> P:
        """Return a plan with the name of the session, by which a proxy is chosen, and with its state."""
        return msgspec.structs.replace(todo, session=self.name, state=self.state)


class ExtractionSessions:
    """All sessions of a server process, the one that was used last at the end.

    No key takes the room of others. A new session of a key that has fewer than any other is given room by the key with
    the most: its idle sessions of the service end, then its idle ones of callers. Of all states together, storage goes
    first, that of the key with the most bytes, its oldest session first; cookies never go while there is any, and then
    only with their session. One that a caller began is refused afterwards, as if it had expired.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._open: OrderedDict[_Key, ExtractionSession] = OrderedDict()
        self._of_key: Counter[str] = Counter()
        #: When the identifiers of expired sessions are forgotten.
        self._expired: OrderedDict[_Key, float] = OrderedDict()
        #: Bytes of all states, and those of states and of storage by key.
        self._bytes = 0
        self._bytes_of: Counter[str] = Counter()
        self._storage_of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def of(self, request: ExtractRequest, caller: Caller) -> Iterator[ExtractionSession | None]:
        """Open the session of a request, None without one. Raises :class:`ExtractionError` (422)."""
        key = _key_of(request, caller)
        if key is None:
            yield None
            return
        self._expire()
        session = self._open.get(key) or self._new(key, is_of_caller=bool(request.session))
        session.requests += 1
        try:
            yield session
        finally:
            session.requests -= 1
            session.used = time.monotonic()
            if key in self._open:
                self._open.move_to_end(key)

    def metrics(self) -> Iterator[Family]:
        yield from gauge("extraction_sessions_open", "Sessions that have not expired.", len(self._open))
        yield from gauge("extraction_session_bytes", "Bytes of their cookies and storage.", self._bytes)

    def update(self, session: ExtractionSession, before: SessionState, after: SessionState | None) -> None:
        """Keep what a request has changed in its session."""
        if after is None or session.key not in self._open:
            return
        self._set(session, session.state.merged(before, after, self._limits.session_bytes))
        while self._bytes > self._limits.sessions_bytes and self._free_bytes():
            pass

    def _set(self, session: ExtractionSession, state: SessionState) -> None:
        owner, size = session.key[0], state.size
        storage = size - SessionState(state.cookies).size
        self._bytes += size - session.size
        self._bytes_of[owner] += size - session.size
        self._storage_of[owner] += storage - session.storage
        session.state, session.size, session.storage = state, size, storage

    def _free_bytes(self) -> bool:
        """Free the bytes of one session; return false if there is none to free."""
        owner, storage = _most(self._storage_of)
        if storage:
            session = next(each for each in self._open.values() if each.key[0] == owner and each.storage)
            self._set(session, SessionState(session.state.cookies))
            return True
        share = self._limits.sessions_bytes / len(self._bytes_of)
        return any(self._end_idle(owner) for owner, size in self._bytes_of.most_common() if size > share)

    def _new(self, key: _Key, *, is_of_caller: bool) -> ExtractionSession:
        if key in self._expired:
            idle = self._limits.session_idle
            raise ExtractionError(
                "/problem/session-expired",
                f"session.id: the session has ended. It was not used for {idle:g} seconds, or this server needed room "
                "for the sessions of other API keys. Use a new UUID.",
            )
        owner, limits = key[0], self._limits
        if self._of_key[owner] >= limits.sessions_of_key and not self._end_idle(owner, of_callers=False):
            raise self._refusal(limits.sessions_of_key, "this API key")
        if len(self._open) >= limits.sessions and not self._end_idle_for(owner):
            raise self._refusal(limits.sessions, "this server")
        session = self._open[key] = ExtractionSession(key, is_of_caller=is_of_caller)
        self._of_key[owner] += 1
        return session

    def _refusal(self, limit: int, whose: str) -> ExtractionError:
        return ExtractionError(
            "/problem/over-session-limit",
            f"The session cannot be begun: {whose} has {limit} open sessions, the most there may be. Use one of them "
            "again, or wait: a "
            f"session ends {self._limits.session_idle:g} seconds after its last request.",
        )

    def _end_idle_for(self, owner: str) -> bool:
        """End an idle session for a new one of a key: one of a key with more sessions than it then has, or one of the
        service of its own."""
        mine = self._of_key[owner]
        larger = [other for other, count in self._of_key.most_common() if count > mine + 1]
        return (
            any(self._end_idle(other, of_callers=False) for other in larger)
            or any(self._end_idle(other) for other in larger)
            or self._end_idle(owner, of_callers=False)
        )

    def _end_idle(self, owner: str, *, of_callers: bool = True) -> bool:
        """End the oldest idle session of a key: one of the service, which begins again when it is needed, or else one
        of a caller. Return false if there is none."""
        idle = [each for each in self._open.values() if each.key[0] == owner and not each.requests]
        chosen = next((each for each in idle if not each.is_of_caller), idle[0] if idle and of_callers else None)
        if chosen is not None:
            self._end(chosen)
        return chosen is not None

    def _end(self, session: ExtractionSession) -> None:
        owner = session.key[0]
        self._set(session, SessionState())
        del self._open[session.key]
        self._bytes -= session.size
        self._bytes_of[owner] -= session.size
        self._of_key[owner] -= 1
        if not self._of_key[owner]:
            for counts in (self._of_key, self._bytes_of, self._storage_of):
                del counts[owner]
        if session.is_of_caller:
            self._expired[session.key] = time.monotonic() + self._limits.session_idle

    def _expire(self) -> None:
        now = time.monotonic()
        ended = []
        for session in self._open.values():
            # One that is used keeps the place of its last end.
            if not session.requests and session.used > now - self._limits.session_idle:
                break
            if not session.requests:
                ended.append(session)
        for session in ended:
            self._end(session)
        while self._expired and (len(self._expired) > _EXPIRED_KEPT or next(iter(self._expired.values())) <= now):
            self._expired.popitem(last=False)


def _most(counts: Counter[str]) -> tuple[str, int]:
    return max(counts.items(), key=lambda each: each[1], default=("", 0))


def _key_of(request: ExtractRequest, caller: Caller) -> _Key | None:
    if request.session:
        text = [caller.name, "session", request.session["id"].lower()]
    elif request.session_context:
        host = (urlsplit(request.url).hostname or "").removeprefix("www.")
        context = sorted((member["name"], member["value"]) for member in request.session_context)
        text = [caller.name, "context", host, *(part for member in context for part in member)]
    else:
        return None
    # A digest, because a context may be tens of kilobytes. The key is part of it, because it names the session for the
    # choice of a proxy.
    return caller.name, hashlib.sha256(msgspec.json.encode(text)).digest()
