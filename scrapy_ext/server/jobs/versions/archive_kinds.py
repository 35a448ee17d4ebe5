"""Kinds of project archives, and the error of one that cannot be used. ``archives`` reads them, in other processes."""

from __future__ import annotations

from typing import Final, NamedTuple

WHEEL: Final = "wheel"
EGG: Final = "egg"
SDIST: Final = "sdist"
#: A packed folder with ``scrapy.cfg``.
FOLDER: Final = "folder"

#: Maximum bytes of address space of a process that reads an archive. The interpreter needs a quarter of it.
MAX_MEMORY: Final = 256 * 1024 * 1024


class ArchiveError(Exception):
    """The archive cannot be used; the message has the reason."""


class Contents(NamedTuple):
    """The kind of an archive, and the file name that pip requires."""

    format: str
    filename: str
