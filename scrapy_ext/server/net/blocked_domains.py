"""Domains that the operator blocks from extraction: a file with one per line, reread when it changes.

A domain includes its subdomains. ``#`` begins a comment. A request checks the file for changes, at most every
:data:`POLL_SECONDS`, in a thread, since it may lie on a slow disk. An unreadable file prevents the start; later, the
previous list stays in force, and each change is logged once.

The guard applies the list to each connection, so it holds for redirects, navigation and the resources of a page.
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

POLL_SECONDS: Final = 2.0
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_DOMAINS: Final = 1_000_000
_DOMAIN: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")

#: Modification time and size of the file.
_Stamp = tuple[int, int]


class BlockListError(ConfigError):
    """The file cannot be read; the message names the line, the rule and the correction."""


class BlockList:
    """The domains of a file, or none. Raises :class:`BlockListError`."""

    def __init__(self, path: Path | None = None, *, poll_interval: float = POLL_SECONDS) -> None:
        self._path = path
        self._poll_interval = poll_interval
        self._polled = 0.0
        self._polling = asyncio.Lock()
        self._domains: frozenset[str] = frozenset()
        self._stamp: _Stamp | None = None
        if path is not None:
            self._stamp, self._domains = _read(path)

    async def blocked(self, host: str) -> str | None:
        """Return the listed domain that a host (in lower case) belongs to."""
        if self._path is None:
            return None
        if asyncio.get_running_loop().time() - self._polled >= self._poll_interval:
            await self._poll(self._path)
        if not self._domains:
            return None
        while host not in self._domains:
            _, dot, host = host.partition(".")
            if not dot:
                return None
        return host

    async def _poll(self, path: Path) -> None:
        async with self._polling:
            now = asyncio.get_running_loop().time()
            if now - self._polled < self._poll_interval:
                return  # Another request has polled meanwhile.
            self._polled = now
            stamp = await asyncio.to_thread(_stamp, path)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self._stamp, self._domains = await asyncio.to_thread(_read, path)
            except BlockListError as error:
                _log.error("%s The previous list stays in force.", error)
            else:
                _log.info("The block list has %d domains now.", len(self._domains))


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _read(path: Path) -> tuple[_Stamp | None, frozenset[str]]:
    # The stamp is read first: a change in between causes another read.
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
                f"block-list {path}, line {number}: {shown!r} is not a domain. Write one per line, as example.com, "
                "which includes its subdomains."
            )
        yield domain
