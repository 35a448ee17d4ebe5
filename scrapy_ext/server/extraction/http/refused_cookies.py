"""Cookies that aiohttp refuses: a warning for each site, in place of those of aiohttp.

aiohttp logs the name of each such cookie, which may be all of a malformed one with its value, and no site. The log gets
one warning for a host instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

logger = logging.getLogger(__name__)

#: The logger of aiohttp's parser, and the beginning of its message (aiohttp/_cookie_helpers.py).
_LOGGER: Final = "aiohttp.internal"
_MESSAGE: Final = "Can not load cookies"
#: Hosts that were named. Beyond it, further ones are not.
_MOST: Final = 1000

_HOST: ContextVar[str | None] = ContextVar("host", default=None)


class _Refusals(logging.Filter):
    """Filter that replaces aiohttp's warnings by one for each host."""

    def __init__(self) -> None:
        super().__init__()
        self._named: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        host = _HOST.get()
        if host is None or not str(record.msg).startswith(_MESSAGE):
            return True
        if host not in self._named and len(self._named) < _MOST:
            self._named.add(host)
            logger.warning(
                "%s sets cookies whose names have characters that names of cookies may not have. They are not kept. If "
                "pages need them, request browserHtml",
                host,
            )
        return False


def use_own_warnings() -> None:
    """Replace aiohttp's warnings about cookies in this process."""
    for each in list(logging.getLogger(_LOGGER).filters):
        if isinstance(each, _Refusals):
            return
    logging.getLogger(_LOGGER).addFilter(_Refusals())


@contextmanager
def cookies_of(host: str) -> Iterator[None]:
    """Name ``host`` in warnings about the cookies of the responses that are read in this context."""
    token = _HOST.set(host)
    try:
        yield
    finally:
        _HOST.reset(token)
