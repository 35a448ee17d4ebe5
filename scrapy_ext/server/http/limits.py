"""Limits of every request, in seconds and bytes unless noted.

Those of bodies are in ``server/http/bodies.py`` and ``json_bodies.py``, those of the extraction service in
``server/config/extraction_limits.py``. The maximum pause of a client is an option (``--client-timeout``).
:class:`Limited` is the time limit of work that usually ends without waiting.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

from scrapy_ext.compatibility.python import timeout_after

KIB: Final = 1024
MIB: Final = 1024 * KIB

#: The address with its query, as sent; more gives 414.
TARGET: Final = 64 * KIB
#: Number of query parameters; more give 400.
PARAMETERS: Final = 4000
#: All headers, and their number; more give 431.
HEADERS: Final = 64 * KIB
HEADER_COUNT: Final = 100
#: From the headers of a request to the platform to the beginning of its answer, its body included; then 503.
REQUEST: Final = 900.0
#: The minimum of the default bound of ``--memory``, for bodies, their decoded values, and answers together. A request
#: that alone exceeds the bound gets 413, one without room at the moment 503.
MEMORY: Final = 512 * MIB
#: Buffered bytes of a connection from which they count for that bound.
UNCOUNTED: Final = 16 * KIB
#: Buffered bytes of an answer that the client has not read, in the process and in the system, beside one piece.
SEND_BUFFER: Final = 64 * KIB
#: Bytes of an answer that are written to the connection at once.
SEND_PIECE: Final = 256 * KIB
#: Minimum average rate of a client, in bytes per second, at which it sends a body or reads an answer, pauses excluded.
SLOWEST: Final = 1 * KIB
#: The rest of an unread body is read and discarded up to these limits, so that its sender can read the answer; then
#: the connection is closed.
LINGER_TIME: Final = 5.0
LINGER: Final = 256 * MIB
#: A shorter body is read to its end instead, and the connection stays open.
SHORT_BODY: Final = 64 * KIB
#: Default of ``--connections``, if the process may open enough files.
CONNECTIONS: Final = 4096
#: Pipelined requests before the first answer; the connection is closed after these.
PIPELINE: Final = 16
#: From the start of a connection to the headers of its first request; at most ``--client-timeout``.
FIRST_REQUEST: Final = 20.0
#: From the stop of the server to the cancellation of requests under way.
GRACE: Final = 10.0


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

    async def _timed(self, waited: object) -> T:
        async with timeout_after(self._seconds):
            return await _Rest(self._coroutine, waited)


class _Rest(Generic[T]):
    """Awaitable rest of a coroutine that has run up to its first wait."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], waited: object) -> None:
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
