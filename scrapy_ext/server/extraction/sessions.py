"""Sessions: requests with the same proxy, cookies and browser storage (``session`` and ``sessionContext``).

* A ``session`` begins with the first request that names its identifier. A ``sessionContext`` names a session that the
  service begins by itself, one for each site: with ``sessionContextParameters.actions`` in a page of its own, before
  the first request. Either is of one API key: another key with the same names has another session.
* Sessions are in memory, of one server process. Their number and the bytes of their states are bounded, and a session
  that is not used for ``limits.session_idle`` seconds expires. Its identifier is refused afterwards
  (``/problem/session-expired``), so that no caller takes a new session for the one that it began; a session of the
  service begins again.
* Only the state is kept between requests, no page: a session costs kilobytes, and survives the browser.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.auth.keyring import Caller
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.observability.metrics import gauge
from scrapy_ext.telemetry.families import Family

#: Identifiers of expired sessions that are remembered.
_EXPIRED_KEPT: Final = 10_000
_Key = tuple[str, bytes]
P = TypeVar("P", bound=HttpPlan | PagePlan)


class ExtractionSession:
    """``is_begun``: the page that begins a session of the service was loaded. ``beginning`` is held meanwhile."""

    def __init__(self, key: _Key, *, is_of_caller: bool) -> None:
        self.key = key
        self.is_of_caller = is_of_caller
        self.state = SessionState()
        self.is_begun = False
        self.beginning = asyncio.Lock()
        self.requests = 0
        self.used = 0.0
        self.size = 0

    @property
    def name(self) -> str:
        """A name for the choice of a proxy: the same one for all requests of the session."""
        return self.key[1].hex()

    def apply(self, todo: P) -> P:
        """Return a plan with the name of the session, by which a proxy is chosen, and with its state."""
        return msgspec.structs.replace(todo, session=self.name, state=self.state)


class ExtractionSessions:
    """All sessions of a server process, the one that was used last at the end."""

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._open: OrderedDict[_Key, ExtractionSession] = OrderedDict()
        self._of_key: Counter[str] = Counter()
        #: When the identifiers of expired sessions are forgotten.
        self._expired: OrderedDict[_Key, float] = OrderedDict()
        self._bytes = 0

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
        room = min(self._limits.session_bytes, self._limits.sessions_bytes - self._bytes + session.size)
        session.state = session.state.merged(before, after, max(room, 0))
        size = session.state.size
        self._bytes += size - session.size
        session.size = size

    def _new(self, key: _Key, *, is_of_caller: bool) -> ExtractionSession:
        if key in self._expired:
            idle = self._limits.session_idle
            raise ExtractionError(
                "/problem/session-expired",
                f"session.id: the session was not used for {idle:g} seconds and has ended. Use a new UUID.",
            )
        owner, limits = key[0], self._limits
        if self._of_key[owner] >= limits.sessions_of_key:
            self._make_room(owner, limits.sessions_of_key, "this API key")
        if len(self._open) >= limits.sessions:
            self._make_room(owner, limits.sessions, "this server")
        session = self._open[key] = ExtractionSession(key, is_of_caller=is_of_caller)
        self._of_key[owner] += 1
        return session

    def _make_room(self, owner: str, limit: int, whose: str) -> None:
        """End the oldest idle session of the service for a key, which begins again when it is needed."""
        for session in self._open.values():
            if session.key[0] == owner and not session.is_of_caller and not session.requests:
                self._drop(session)
                return
        raise ExtractionError(
            "/problem/over-session-limit",
            f"session: {whose} has {limit} open sessions, the most there may be. Use one of them again, or wait: a "
            f"session ends {self._limits.session_idle:g} seconds after its last request.",
        )

    def _drop(self, session: ExtractionSession) -> None:
        del self._open[session.key]
        self._of_key[session.key[0]] -= 1
        self._bytes -= session.size

    def _expire(self) -> None:
        now = time.monotonic()
        ended = now - self._limits.session_idle
        while self._open:
            session = next(iter(self._open.values()))
            if session.requests or session.used > ended:
                break
            self._drop(session)
            if session.is_of_caller:
                self._expired[session.key] = now + self._limits.session_idle
        while self._expired and (len(self._expired) > _EXPIRED_KEPT or next(iter(self._expired.values())) <= now):
            self._expired.popitem(last=False)


def _key_of(request: ExtractRequest, caller: Caller) -> _Key | None:
    if request.session:
        text = ["session", request.session["id"].lower()]
    elif request.session_context:
        host = (urlsplit(request.url).hostname or "").removeprefix("www.")
        context = sorted((member["name"], member["value"]) for member in request.session_context)
        text = ["context", host, *(part for member in context for part in member)]
    else:
        return None
    # A digest, because a context may be tens of kilobytes.
    return caller.name, hashlib.sha256(msgspec.json.encode(text)).digest()
