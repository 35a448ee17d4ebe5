"""Names, limits and the end of sessions."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.auth.api_keys import Caller
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
    for session in (first, second):
        sessions.update(session, session.state, large)
    assert (first.state, second.state) == (SessionState(), large)
    opened(sessions, **context(("a", "1")))
    sessions.update(first, first.state, large)
    assert (first.state, second.state) == (large, SessionState())
    assert figures(sessions) == (2, first.state.size + second.state.size)


def figures(sessions: ExtractionSessions) -> tuple[float, ...]:
    return tuple(sample[-1] for family in sessions.metrics() for sample in family.samples)


def cookies(count: int, size: int = 1) -> SessionState:
    part = {"value": "x" * size, "domain": "a.example", "path": "/", "httpOnly": False, "secure": False}
    return SessionState([{"name": str(number), **part} for number in range(count)])


def test_no_key_takes_the_bytes_of_others_and_storage_goes_before_cookies() -> None:
    sessions = ExtractionSessions(ServiceLimits(session_bytes=10_000, sessions_bytes=20_000))
    storage = [{"origin": "https://a.example", "localStorage": [{"name": "k", "value": "x" * 4000}]}]
    mine = opened(sessions, TWO, session={"id": ID})
    sessions.update(mine, SessionState(), SessionState([], storage))
    theirs = [opened(sessions, **context(("a", str(number)))) for number in range(20)]
    for session in theirs:
        sessions.update(session, session.state, SessionState(cookies(2).cookies, storage))
    # Storage of the key with the most, the oldest first; all cookies, and what other keys have, stay.
    assert mine.state.origins == storage
    kept = [bool(session.state.origins) for session in theirs]
    assert kept == sorted(kept)
    assert 0 < sum(kept) < 5
    assert all(len(session.state.cookies) == 2 for session in theirs)
    new = opened(sessions, TWO, **context(("a", "1")))
    sessions.update(new, SessionState(), cookies(1, 3000))
    assert len(new.state.cookies) == 1
    # Where cookies alone are too many, sessions of the key with the most end, and a caller gets to know.
    for session in theirs:
        sessions.update(session, session.state, cookies(2, 1000))
    assert figures(sessions)[1] <= 20_000
    assert (mine.state.origins, len(new.state.cookies)) == ([], 1)
    assert opened(sessions, TWO, session={"id": ID}) is mine
    assert len(sessions) < 22


def test_a_key_with_few_sessions_gets_room_of_one_with_many() -> None:
    three = Caller("three", "tests")
    sessions = ExtractionSessions(ServiceLimits(sessions=10, sessions_of_key=5))
    first = {"id": str(UUID(int=1))}
    for caller in (ONE, TWO):
        for number in range(1, 5):
            opened(sessions, caller, session={"id": str(UUID(int=number))})
    opened(sessions, ONE, **context(("a", "1")))
    opened(sessions, TWO, session={"id": str(UUID(int=5))})
    # First those that begin again by themselves.
    opened(sessions, three, session=first)
    assert opened(sessions, ONE, session=first) is not None
    for number in range(2, 4):
        opened(sessions, three, session={"id": str(UUID(int=number))})
    assert len(sessions) == 10
    # The owner of one that a caller began gets to know of it.
    with pytest.raises(ExtractionError, match="needed room"):
        opened(sessions, TWO, session=first)
    # All have an equal share now.
    with pytest.raises(ExtractionError, match="this server has 10 open sessions"):
        opened(sessions, three, session={"id": str(UUID(int=4))})


def test_a_session_in_use_keeps_none_of_the_others_from_expiring() -> None:
    sessions = ExtractionSessions(ServiceLimits(session_idle=0.01))
    with sessions.of(ExtractRequest(url="https://a.example/", session={"id": ID}), ONE):
        for number in range(3):
            opened(sessions, session={"id": str(UUID(int=number))})
        time.sleep(0.02)
        opened(sessions, **context(("a", "1")))
        assert len(sessions) == 2


def test_two_keys_have_their_own_proxies_for_the_same_name() -> None:
    sessions = ExtractionSessions(ServiceLimits())
    names = {opened(sessions, caller, **context(("a", "1"))).name for caller in (ONE, TWO)}
    assert len(names) == 2


async def test_requests_that_wait_for_a_session_share_its_failure() -> None:
    session = opened(ExtractionSessions(ServiceLimits()), **context(("a", "1")))
    tries = 0

    async def load() -> None:
        nonlocal tries
        tries += 1
        await asyncio.sleep(0.01)
        if tries < 3:
            raise ExtractionError("/problem/session-creation-error", f"try {tries}")

    for number in (1, 2):
        results = await asyncio.gather(*(session.begin(load) for _ in range(5)), return_exceptions=True)
        assert [str(result) for result in results] == [f"try {number}"] * 5
    # One that is cancelled has no failure: another one tries.
    tries = 1
    tasks = [asyncio.ensure_future(session.begin(load)) for _ in range(3)]
    await asyncio.sleep(0)
    tries = 2
    tasks[0].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError, type(None), type(None)]
    assert (tries, session.is_begun) == (3, True)
