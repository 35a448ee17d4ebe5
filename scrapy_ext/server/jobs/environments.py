"""Where the code of a job is, and which Python runs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

from scrapy_ext.server.store import Store

#: The version of a project that is not deployed, but a folder on this machine.
LOCAL: Final = "local"


class NoVersionError(Exception):
    """A project has no code here."""


class BuildError(Exception):
    """A version could not be made ready; the message is for the job's log."""


class LocalProject(NamedTuple):
    """A Scrapy project in a folder of this machine."""

    project: int
    directory: Path


class Prepared(NamedTuple):
    """What a job is run with: a Python, the folder to run it in, and the version that this is."""

    python: str
    directory: Path
    version: str
    scripts: Path | None = None


class Environments:
    """The environments of a node."""

    def __init__(self, store: Store, cache: Path, local: LocalProject | None) -> None:
        self._store = store
        self._cache = cache
        self._local = local

    async def prepare(self, project: int, version: str | None) -> Prepared:
        """Make a version of a project ready to run; raises :class:`NoVersionError` and :class:`BuildError`."""
        if self._local is None or self._local.project != project:
            raise NoVersionError(f"Project {project} has no deployed version. Deploy one: scrapy platform deploy")
        return Prepared(sys.executable, self._local.directory, LOCAL, self._local.directory)
