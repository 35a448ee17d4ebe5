"""Changes of requests that run at the same time in one session."""

from __future__ import annotations

from typing import Any

from scrapy_ext.server.extraction.session_state import MAX_COOKIES, SessionState

ROOM = 100_000


def cookie(name: str, value: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "domain": "a.example",
        "path": "/",
        "httpOnly": False,
        "secure": False,
        **more,
    }


def origin(name: str, size: int = 1) -> dict[str, Any]:
    return {"origin": f"https://{name}.example", "localStorage": [{"name": "k", "value": "x" * size}]}


def names(state: SessionState) -> list[str]:
    return [entry["name"] for entry in state.cookies]


def test_a_request_changes_only_what_it_has_changed() -> None:
    begun = SessionState([cookie("a"), cookie("b"), cookie("c")])
    # One request deletes a and changes b; meanwhile the other one, which began with the same state, sets d.
    one = begun.merged(begun, SessionState([cookie("b", "2"), cookie("c")]), ROOM)
    both = one.merged(begun, SessionState([*begun.cookies, cookie("d")]), ROOM)
    assert {entry["name"]: entry["value"] for entry in both.cookies} == {"b": "2", "c": "1", "d": "1"}


def test_what_a_browser_adds_to_a_cookie_is_no_change() -> None:
    begun = SessionState([cookie("a", expires=1000.25)])
    changed = begun.merged(begun, SessionState([cookie("a", "2", expires=1000.25)]), ROOM)
    unchanged = SessionState([cookie("a", expires=1000.249999, sameSite="Lax")])
    assert changed.merged(begun, unchanged, ROOM).cookies[0]["value"] == "2"


def test_storage_is_by_origin() -> None:
    begun = SessionState([], [origin("a"), origin("b")])
    after = SessionState([], [origin("a", 5), origin("b")])
    merged = SessionState([], [origin("b", 7), origin("a")]).merged(begun, after, ROOM)
    assert merged.origins == [origin("b", 7), origin("a", 5)]


def test_the_oldest_storage_goes_first_then_the_oldest_cookies() -> None:
    full = SessionState([cookie("a"), cookie("b")], [origin("a", 400), origin("b", 400)])
    assert [entry["origin"] for entry in SessionState().merged(SessionState(), full, 900).origins] == [
        "https://b.example"
    ]
    alone = SessionState().merged(SessionState(), full, 250)
    assert (names(alone), alone.origins) == (["a", "b"], [])
    assert names(SessionState().merged(SessionState(), full, 150)) == ["b"]
    assert SessionState().merged(SessionState(), full, 0).cookies == []
    many = SessionState([cookie(str(number)) for number in range(MAX_COOKIES + 1)])
    assert names(SessionState().merged(SessionState(), many, 10**9))[0] == "1"
