"""Coalescing of identical work that is under way: it is done once, and its outcome shared.

The first caller does the work; the others wait for the outcome. When the first is cancelled, the next one does the
work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Coalescing(Generic[K, T]):
    """Work under way, by a key that is equal for identical work. ``waiting()`` is the context of a wait for the outcome
    of another caller."""

    def __init__(self, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._waiting = waiting
        #: Waiting callers by key. Work of a single caller needs no future.
        self._followers: dict[K, list[asyncio.Future[T]]] = {}

    async def share(self, key: K, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the outcome of the work, and whether another caller did it. Raises the errors of the work."""
        while (followers := self._followers.get(key)) is not None:
            outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            followers.append(outcome)
            try:
                with self._waiting():
                    return await outcome, True
            except _LeaderCancelled:
                continue
        return await self._lead(key, work), False

    async def _lead(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        followers = self._followers[key] = []
        failure: Exception = _LeaderCancelled()
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


class _LeaderCancelled(Exception):  # noqa: N818  # it does not leave this module
    """The caller that did the work was cancelled."""


def _still_waiting(followers: list[asyncio.Future[T]]) -> Iterator[asyncio.Future[T]]:
    return (follower for follower in followers if not follower.done())
