"""Retries of what fails while the database is unavailable, or rolls a transaction back."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.postgresql.errors import (
    DATABASE_ERRORS,
    Availability,
    Failure,
    failure_of,
    translated,
)

T = TypeVar("T")

#: Seconds of retries.
RETRY_SECONDS: Final = 15.0
_LONGEST_PAUSE: Final = 0.5


async def retried(
    url: DatabaseUrl,
    attempt: Callable[[], Coroutine[Any, Any, T]],
    seconds: float | None = None,
    availability: Availability | None = None,
) -> T:
    """Return the result of an attempt, retried for errors that may pass; raise :class:`StoreError`."""
    deadline = time.monotonic() + (RETRY_SECONDS if seconds is None else seconds)
    for number in itertools.count():
        began = time.monotonic()
        try:
            result = await attempt()
        except DATABASE_ERRORS as error:
            if availability is not None:
                availability.failed(error)
            if failure_of(error) is Failure.FINAL or time.monotonic() > deadline:
                raise translated(error, url) from error
        else:
            if availability is not None and availability.cause is not None:
                availability.worked(began)
            return result
        await asyncio.sleep(random.uniform(0, min(0.005 * 2**number, _LONGEST_PAUSE)))
    raise AssertionError
