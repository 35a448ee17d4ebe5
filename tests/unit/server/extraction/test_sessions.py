"""Names, limits and the end of sessions."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.auth.keyring import Caller
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.extraction.sessions import ExtractionSession, ExtractionSessions

ONE, TWO = Caller("one", "tests"), Caller("two", "tests")
ID = "0b5c2f43-3f68-4c3e-b7f8-2b7a4d5d8c11"


def context(*members: tuple[str, str]) -> dict[str, Any]:
    return {"session_context": [{"name": name, "value": value} for name, value in members]}


def opened(
    sessions: ExtractionSessions, caller: Caller = ONE, url: str = "https://a.example/", **fields: Any
) -> ExtractionSession:
    with sessions.of(ExtractRequest(url=url, **fields), caller) as session:
        assert session is not None
        return session


def test_a_session_is_of_a_name_a_site_and_a_key() -> None:
    sessions = ExtractionSessions(ServiceLimits())
    mine = opened(sessions, session={"id": ID})
    assert opened(sessions, session={"id": ID.upper()}, url="https://other.example/") is mine
    assert opened(sessions, TWO, session={"id": ID}) is not mine
    named = opened(sessions, **context(("a", "1"), ("b", "2")))
    assert opened(sessions, **context(("b", "2"), ("a", "1")), url="http://www.a.example/x") is named
    assert opened(sessions, **context(("a", "1"), ("b", "3"))) is not named
    assert opened(sessions, **context(("a", "1"), ("b", "2")), url="https://b.example/") is not named
    with sessions.of(ExtractRequest(url="https://a.example/"), ONE) as none:
        assert none is None


def test_a_session_in_use_does_not_expire() -> None:
    sessions = ExtractionSessions(ServiceLimits(session_idle=0.01))
    request = ExtractRequest(url="https://a.example/", session={"id": ID})
    with sessions.of(request, ONE) as session:
        time.sleep(0.02)
        assert opened(sessions, session={"id": ID}) is session
    time.sleep(0.02)
    with pytest.raises(ExtractionError) as refused, sessions.of(request, ONE):
        pass
    assert refused.value.problem.type == "/problem/session-expired"
    assert len(sessions) == 0


def test_all_states_together_are_bounded() -> None:
    sessions = ExtractionSessions(ServiceLimits(session_bytes=1000, sessions_bytes=1500))
    large = SessionState([], [{"origin": "https://a.example", "localStorage": [{"name": "k", "value": "x" * 700}]}])
    first, second = (opened(sessions, **context(("a", value))) for value in "12")
    for session in (first, second, first):
        sessions.update(session, session.state, large)
    assert (first.state, second.state) == (large, SessionState())
    sessions.update(first, large, SessionState())
    sessions.update(second, second.state, large)
    assert (first.state, second.state) == (SessionState(), large)
    assert msgspec.json.encode(second.state)
