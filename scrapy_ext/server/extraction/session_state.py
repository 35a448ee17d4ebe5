"""State of a session between two requests: cookies, and the storage of its pages by origin.

HTTP requests and browser pages begin with the state and end with another one. Requests of a session may run at the same
time, so that each one's changes are merged into the state, not the whole state that it ended with: a cookie that one
request has set is not lost because another one did not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

#: Most cookies of a session: those of some hosts, by the limits of browsers.
MAX_COOKIES: Final = 1000
#: Most origins with storage: restoring one takes some hundredths of a second.
MAX_ORIGINS: Final = 20


class SessionState(msgspec.Struct, frozen=True):
    """``cookies``: objects with ``name``, ``value``, ``domain``, ``path``, ``httpOnly``, ``secure`` and optional
    ``expires`` and ``sameSite``; a domain that begins with a dot is also for hosts below it. ``origins``: objects with
    ``origin``, ``localStorage`` and ``indexedDB``, as Playwright writes them."""

    cookies: list[dict[str, Any]] = []
    origins: list[dict[str, Any]] = []

    def merged(self, before: SessionState, after: SessionState, most_bytes: int) -> SessionState:
        """Return this state with the changes of a request that began with ``before`` and ended with ``after``.

        Of a state of more than ``most_bytes`` of JSON, storage is left out, the oldest origin first, then cookies.
        """
        cookies = _merged(self.cookies, before.cookies, after.cookies, _cookie_key, _cookie_content)
        origins = _merged(
            self.origins, before.origins, after.origins, lambda entry: entry["origin"], lambda entry: entry
        )
        state = SessionState(cookies[-MAX_COOKIES:], origins[-MAX_ORIGINS:])
        while state.size > most_bytes and (state.origins or state.cookies):
            if state.origins:
                state = SessionState(state.cookies, state.origins[1:])
            else:
                state = SessionState(state.cookies[max(len(state.cookies) // 10, 1) :], [])
        return state

    @property
    def size(self) -> int:
        """Bytes of the state as JSON."""
        return len(msgspec.json.encode(self))


def _cookie_key(cookie: Mapping[str, Any]) -> tuple[str, str, str]:
    return cookie["name"], cookie["domain"], cookie["path"]


def _cookie_content(cookie: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of a cookie that a site changes. A browser rounds ``expires``, and states a ``sameSite``."""
    return cookie["value"], int(cookie.get("expires", -1)), cookie["httpOnly"], cookie["secure"]


def _merged(
    current: Iterable[dict[str, Any]],
    before: Iterable[dict[str, Any]],
    after: Iterable[dict[str, Any]],
    key: Callable[[dict[str, Any]], Any],
    content: Callable[[dict[str, Any]], Any],
) -> list[dict[str, Any]]:
    """Return current entries with what changed from ``before`` to ``after``: removed, added and changed ones; the
    changed ones last."""
    old, new = {key(entry): entry for entry in before}, {key(entry): entry for entry in after}
    merged = {key(entry): entry for entry in current}
    for name in old.keys() - new.keys():
        merged.pop(name, None)
    for name, entry in new.items():
        if name not in old or content(old[name]) != content(entry):
            merged.pop(name, None)
            merged[name] = entry
    return list(merged.values())
