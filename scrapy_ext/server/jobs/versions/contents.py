"""Contents of archives: their kinds, and the error of one that cannot be used."""

from __future__ import annotations

from typing import Final, NamedTuple

WHEEL: Final = "wheel"
EGG: Final = "egg"
SDIST: Final = "sdist"
#: A packed folder with ``scrapy.cfg``.
FOLDER: Final = "folder"


class ArchiveError(Exception):
    """The archive cannot be used; the message has the reason."""


class Contents(NamedTuple):
    """The kind of an archive, and the file name that pip requires."""

    format: str
    filename: str
