"""Identical work that is under way is done once, and its outcome shared.

Who comes first does the work itself; who comes while it does waits for the outcome. When the first is cancelled, the
next does the work in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Flights(Generic[K, T]):
    """Work under way, by what makes it identical. ``waiting()`` is entered by who waits for another's work."""

    def __init__(self, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._waiting = waiting
        #: Who waits for each. No future is made for work that nobody else waits for.
        self._followers: dict[K, list[asyncio.Future[T]]] = {}

    async def share(self, key: K, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The outcome of the work, and whether somebody else did it. Raises what the work raises."""
        while (followers := self._followers.get(key)) is not None:
            outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            followers.append(outcome)
            try:
                with self._waiting():
                    return await outcome, True
            except _LeaderGone:
                continue
        return await self._lead(key, work), False

    async def _lead(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        followers = self._followers[key] = []
        failure: Exception = _LeaderGone()
        try:
            result = await work()
        except Exception as error:
            failure = error
            raise
        else:
            for follower in _still_waiting(followers):
                follower.set_result(result)
            return result
        finally:
            del self._followers[key]
            for follower in _still_waiting(followers):
                follower.set_exception(failure)


class _LeaderGone(Exception):  # noqa: N818  # nobody outside sees it
    """Who did the work was cancelled."""


def _still_waiting(followers: list[asyncio.Future[T]]) -> Iterator[asyncio.Future[T]]:
    return (follower for follower in followers if not follower.done())
