"""Context of an import: both platforms, its options, and its report."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.platform.imports import COMMENTS, RECORD_KINDS
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import BadRequest, Forbidden, Gone, NotFound, PlatformError, TooLarge

JOBS: Final = "jobs"
COLLECTIONS: Final = "collections"
PERIODIC: Final = "periodic"
SPIDERS: Final = "spiders"
SETTINGS: Final = "settings"
#: Parts of a project that can be chosen.
PARTS: Final = (JOBS, *RECORD_KINDS, COMMENTS, COLLECTIONS, PERIODIC, SPIDERS, SETTINGS)
#: Parts that belong to jobs.
OF_JOBS: Final = frozenset({*RECORD_KINDS, COMMENTS})
#: Answers of a platform that does not have a call, or does not have the data any more.
ABSENT: Final = (NotFound, BadRequest, Forbidden)
#: Answers about one job or collection that would be the same again: the others are copied.
REFUSED: Final = (NotFound, BadRequest, Gone, TooLarge)
#: Prefix of the project settings that hold the progress of imports.
PROGRESS: Final = "import "


def refusal(error: PlatformError) -> str:
    """Return the reason of one of :data:`REFUSED`. Raises a 404 of the calls that all targets have."""
    if error.path.startswith("/imports"):
        if isinstance(error, NotFound):
            raise error
        return f"the target refuses it: {error.message}"
    return f"the source refuses it: {error.message}"


class Pace:
    """A maximum rate of calls, awaited before each of them."""

    def __init__(self, rate: float) -> None:
        self._interval = 1 / rate
        self._next = 0.0

    async def __call__(self) -> None:
        now = time.monotonic()
        at = max(self._next, now)
        self._next = at + self._interval
        await asyncio.sleep(at - now)


@dataclass
class Row:
    """A line of the report: a part of a project in numbers, or something that was not copied with the reason.

    ``target`` is the project there. ``copied_before`` counts what earlier runs have copied, ``would_copy`` what a run
    without ``--dry-run`` would copy. ``bytes`` are those that this run has copied, or that the source stores.
    ``verified`` is None where nothing is compared.
    """

    project: int
    target: int
    part: str
    copied_before: int = 0
    copied: int = 0
    would_copy: int = 0
    bytes: int = 0
    verified: bool | None = None
    not_copied: int = 0
    reason: str | None = None
    #: True when the import has failed to copy or to verify it.
    failed: bool = field(default=False, repr=False)

    def compare(self, *, equal: bool) -> None:
        self.verified = equal and self.verified is not False


class Display(Protocol):
    """Display of the progress of a project."""

    def show(self, project: int, rows: Sequence[Row]) -> None: ...

    def jobs(self, project: int, number: int, total: int | None) -> None: ...


class CollectionProgress(msgspec.Struct, omit_defaults=True):
    """Progress of a collection: the beginning of the present pass and of the last complete one (ms, by the source's
    clock), and the last key of the present pass that was stored."""

    began: int | None = None
    after: str | None = None
    done: int | None = None


class Progress(msgspec.Struct):
    """Progress of what has no metadata of its own: collections by type and name, and the periodic jobs here by their
    numbers in the source."""

    collections: dict[str, CollectionProgress] = {}
    periodic: dict[str, int] = {}


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import. ``since`` is a time in milliseconds; ``reserve`` the number of job numbers that stay free
    for the source."""

    parts: frozenset[str]
    since: int | None
    reserve: int
    resume_periodic: bool
    dry_run: bool


class ProjectImport:
    """The import of one project, shared by the parts that copy."""

    def __init__(
        self,
        source: PlatformClient,
        target: PlatformClient,
        projects: tuple[int, int],
        options: ImportOptions,
        display: Display,
    ) -> None:
        self.source = source
        self.target = target
        #: Numbers of the project in both.
        self.old, self.new = projects
        self.options = options
        self.rows: dict[str, Row] = {}
        #: What was not copied.
        self.notes: list[Row] = []
        self._display = display
        self._absent: set[str] = set()

    @property
    def name(self) -> str:
        """The project of the source, with its host."""
        return f"{urlsplit(self.source.urls.storage).netloc}/{self.old}"

    def wants(self, part: str) -> bool:
        return part in self.options.parts and part not in self._absent

    def row(self, part: str) -> Row:
        return self.rows.setdefault(part, Row(self.old, self.new, part))

    def note(self, part: str, reason: str, *, failed: bool = False, number: int = 1) -> None:
        """Report something that was not copied."""
        self.notes.append(Row(self.old, self.new, part, not_copied=number, reason=reason, failed=failed))

    def absent(self, part: str) -> None:
        """Report that the source does not offer a part, and leave it out from now on."""
        if part not in self._absent:
            self._absent.add(part)
            self.note(part, "the source does not offer them by its API", number=0)

    def progressed(self) -> None:
        """Show the numbers so far."""
        self._display.show(self.old, [row for row in self.rows.values() if row.copied])

    def jobs_done(self, number: int, total: int | None = None) -> None:
        """Show the number of jobs that are done."""
        self._display.jobs(self.old, number, total)

    async def progress(self) -> Progress:
        """Return the progress of earlier runs."""
        settings = await self.target.projects.settings(self.new)
        return msgspec.convert(settings.get(f"{PROGRESS}{self.name}", {}), Progress)

    async def save(self, progress: Progress) -> None:
        await self.target.projects.update_settings(self.new, {f"{PROGRESS}{self.name}": msgspec.to_builtins(progress)})
