"""Domains that the operator lets nobody extract from: a file with one a line, read again when it changes.

A domain stands for itself and for all below it. ``#`` begins a comment. The file is looked at when something is asked
for, at most every :data:`LOOK_SECONDS`, and in a thread, for it may lie on a disk that is far away. What cannot be read
keeps the server from starting; later, what was read before stays in force, and the log tells it once for each change.

The guard asks for each connection, so that the list holds for redirects, for navigation and for all that a page loads.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from scrapy_ext.server.config.config import ConfigError

_log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_DOMAINS: Final = 1_000_000
_DOMAIN: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")

#: When a file was written, and how long it is.
_Stamp = tuple[int, int]


class BlockListError(ConfigError):
    """A file that cannot be read; the message names the line, the rule and what to write instead."""


class BlockList:
    """The domains of a file, or none. Raises :class:`BlockListError`."""

    def __init__(self, path: Path | None = None, *, look: float = LOOK_SECONDS) -> None:
        self._path = path
        self._look = look
        self._looked = 0.0
        self._looking = asyncio.Lock()
        self._domains: frozenset[str] = frozenset()
        self._stamp: _Stamp | None = None
        if path is not None:
            self._stamp, self._domains = _read(path)

    async def blocked(self, host: str) -> str | None:
        """The domain of the list that a host (in lower case) belongs to."""
        if self._path is None:
            return None
        if asyncio.get_running_loop().time() - self._looked >= self._look:
            await self._look_again(self._path)
        if not self._domains:
            return None
        while host not in self._domains:
            _, dot, host = host.partition(".")
            if not dot:
                return None
        return host

    async def _look_again(self, path: Path) -> None:
        async with self._looking:
            now = asyncio.get_running_loop().time()
            if now - self._looked < self._look:
                return  # Another request did it meanwhile.
            self._looked = now
            stamp = await asyncio.to_thread(_stamp, path)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self._stamp, self._domains = await asyncio.to_thread(_read, path)
            except BlockListError as error:
                _log.error("%s What was read before stays in force.", error)
            else:
                _log.info("The block list has %d domains now.", len(self._domains))


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _read(path: Path) -> tuple[_Stamp | None, frozenset[str]]:
    # Before it is read: a change in between is then one more reason to read it again.
    stamp = _stamp(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BlockListError(f"block-list {path} cannot be read: {error.strerror}. Name a file.") from None
    if len(data) > MAX_BYTES:
        raise BlockListError(f"block-list {path} must be at most {MAX_BYTES} bytes. Remove domains.")
    domains = frozenset(_domains(path, data))
    if len(domains) > MAX_DOMAINS:
        raise BlockListError(f"block-list {path} must have at most {MAX_DOMAINS} domains. Remove some.")
    return stamp, domains


def _domains(path: Path, data: bytes) -> Iterator[str]:
    for number, line in enumerate(data.splitlines(), start=1):
        text = line.partition(b"#")[0].strip().rstrip(b".").lower()
        if not text:
            continue
        try:
            domain = text.decode("ascii") if text.isascii() else text.decode().encode("idna").decode()
        except UnicodeError:
            domain = ""
        if not _DOMAIN.fullmatch(domain):
            shown = text.decode("utf-8", "replace")[:60]
            raise BlockListError(
                f"block-list {path}, line {number}: {shown!r} is not a domain. Write one a line, such as example.com; "
                "those below it are included."
            )
        yield domain
