"""Time limit of work that usually ends without waiting.

A timer takes as long as a look-up in the database, so it is set when the work first waits.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from scrapy_ext.compatibility.python import timeout_after

T = TypeVar("T")


class Limited(Generic[T]):
    """Awaitable result of a coroutine that may wait for ``seconds`` in all; raises ``TimeoutError``."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], seconds: float) -> None:
        self._coroutine = coroutine
        self._seconds = seconds

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            waited = self._coroutine.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        return (yield from self._timed(waited).__await__())

    async def _timed(self, waited: Any) -> T:
        async with timeout_after(self._seconds):
            return await _Rest(self._coroutine, waited)


class _Rest(Generic[T]):
    """Awaitable rest of a coroutine that has run up to its first wait."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], waited: Any) -> None:
        self._coroutine = coroutine
        self._waited = waited

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, waited = self._coroutine, self._waited
        try:
            while True:
                try:
                    value = yield waited
                except GeneratorExit:
                    coroutine.close()
                    raise
                except BaseException as error:
                    waited = coroutine.throw(error)
                else:
                    waited = coroutine.send(value)
        except StopIteration as end:
            result: T = end.value
            return result
