"""Copies of the records of jobs, kind by kind. A kind that cannot be copied is reported, and the others are copied."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from scrapy_ext.api.platform.imports import BegunImport
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import Stats
from scrapy_ext.client.platform.errors import BadRequest, Forbidden, Gone, NotFound, TooLarge
from scrapy_ext.client.platform.records import JobRecords
from scrapy_ext.commands.importing.batches import TimedLine, batches
from scrapy_ext.commands.importing.context import ABSENT, ProjectImport, refusal

#: Readings of a kind whose number of records has grown meanwhile.
_ROUNDS: Final = 3
#: Kinds whose calls the document of the API does not describe, and the answers of a source that does not have them.
_OPTIONAL: Final = ("logs", "samples")
_NOT_OFFERED: Final = (400, 403, 404, 405)
#: Jobs whose records of an optional kind are refused, and none read, until the source counts as not having the kind.
_TRIALS: Final = 3


class JobMove(NamedTuple):
    """A job that is copied: its keys in the source and in the target, the name of its source, and the time (ms) of its
    end, which records get whose times the source does not report."""

    key: JobKey
    own: JobKey
    source: str
    finished: int = 0


class NotCopied(Exception):  # noqa: N818 - it is an outcome
    """A job, or one kind of its records, was not copied; the message is the reason.

    ``failed`` False: a later run copies it, or the source does not have it any more.
    """

    def __init__(self, reason: str, *, failed: bool = True) -> None:
        super().__init__(reason)
        self.failed = failed


class NotOffered(NotCopied):
    """The source refuses to read records of a kind that it may not have at all."""


class Removed(NotCopied):
    """The source does not have the records any more; the message says since when, and where they are."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the source does not have them any more: {reason}", failed=False)


@contextlib.contextmanager
def reading(kind: str) -> Iterator[None]:
    """Raise :class:`NotCopied` if the source refuses to read a kind of a job."""
    try:
        yield
    except Gone as error:
        raise Removed(error.message) from None
    except (NotFound, BadRequest, TooLarge) as error:
        refused = NotOffered if kind in _OPTIONAL and error.status in _NOT_OFFERED else NotCopied
        raise refused(refusal(error)) from None
    except Forbidden as error:
        if kind in _OPTIONAL:
            raise NotOffered(f"the source refuses it: {error.message}") from None
        raise


@contextlib.contextmanager
def storing() -> Iterator[None]:
    """Raise :class:`NotCopied` if the target refuses a write."""
    try:
        yield
    except (BadRequest, Gone, TooLarge) as error:
        raise NotCopied(refusal(error)) from None


class RecordsImport:
    """The records of the jobs of one project."""

    def __init__(self, project: ProjectImport) -> None:
        self._project = project
        #: Kinds of which records were read, and refusals of others: the source may not have the kind at all.
        self._offered: set[str] = set()
        self._doubtful: dict[str, list[tuple[JobKey, NotOffered]]] = {}

    def note(self, kind: str, key: JobKey, reason: NotCopied) -> None:
        """Report a kind of a job that was not copied."""
        if isinstance(reason, NotOffered) and kind not in self._offered:
            self._doubt(kind, key, reason)
        else:
            self._project.note(f"{kind} of job {key}", str(reason), failed=reason.failed)

    def end(self) -> None:
        """Report the kinds that the source does not have at all."""
        for kind in self._doubtful:
            self._project.absent(kind)

    def _doubt(self, kind: str, key: JobKey, reason: NotOffered) -> None:
        """Keep a refusal until it is known whether the source has the kind."""
        refused = self._doubtful.setdefault(kind, [])
        refused.append((key, reason))
        if len(refused) >= _TRIALS:
            self._project.absent(kind)

    def _read_some(self, kind: str) -> None:
        """Note that the source has a kind: earlier refusals were about single jobs."""
        self._offered.add(kind)
        for key, reason in self._doubtful.pop(kind, ()):
            self._project.note(f"{kind} of job {key}", str(reason), failed=True)

    async def begin(self, move: JobMove) -> BegunImport:
        """Add the job to the target, or continue its import."""
        project = self._project
        with storing():
            return await project.target.imports.begin(move.own, move.source, project.options.reserve)

    async def copy(self, kinds: Sequence[str], move: JobMove, begun: BegunImport) -> dict[str, NotCopied]:
        """Copy the records that the target does not have yet, and compare their numbers; return the kinds that were not
        copied completely."""
        for kind in kinds:
            first, stop = begun.indexes[kind]
            self._project.row(kind).copied_before += stop - first
        missing, left = dict[str, NotCopied](), _ROUNDS
        while kinds:
            left -= 1
            for kind in kinds:
                try:
                    await self._copy(kind, move, begun.indexes[kind][1])
                except NotCopied as reason:
                    missing[kind] = reason
            begun = await self.begin(move)
            again = []
            for kind in kinds:
                try:
                    if kind not in missing and not await self._is_complete(kind, move.key, begun, is_last=not left):
                        again.append(kind)
                except NotCopied as reason:
                    missing[kind] = reason
            kinds = again
        return missing

    async def _is_complete(self, kind: str, key: JobKey, begun: BegunImport, *, is_last: bool) -> bool:
        """Return false for records that the source has received meanwhile; raise :class:`NotCopied` for the last time,
        and for other numbers of records."""
        first, stop = begun.indexes[kind]
        expected, have = await self._number(kind, key, stop - first), stop - first
        if have < expected and not is_last:
            return False
        if have > expected and await self._is_removed(kind, key):
            expected = have  # after all were read
        self._project.row(kind).compare(equal=have == expected)
        if have != expected:
            raise NotCopied(f"the source counts {expected} {kind}, and the target has {have}; repeat the import")
        return True

    async def _is_removed(self, kind: str, key: JobKey) -> bool:
        try:
            async with aclosing(self._read(kind, key, 0, 0)) as lines:
                async for _ in lines:
                    break
        except Removed:
            return True
        return False

    async def _copy(self, kind: str, move: JobMove, start: int) -> None:
        project, row = self._project, self._project.row(kind)
        async with (
            aclosing(self._read(kind, move.key, start, move.finished)) as lines,
            aclosing(batches(lines)) as found,
        ):
            async for batch in found:
                with storing():
                    await project.target.imports.write(move.own, kind, batch.body, batch.start, batch.runs)
                row.copied += batch.records
                row.bytes += len(batch.body)
                project.progressed()
        self._read_some(kind)

    async def _number(self, kind: str, key: JobKey, read: int) -> int:
        """Return the number of records by the source's stats; where it has none, the number that was read."""
        if kind == "samples":
            return read
        stats: Stats | None = None
        with contextlib.suppress(*ABSENT, Gone):
            stats = await getattr(self._project.source, kind).stats(key)
        return read if stats is None else stats.totals.input_values

    async def _read(self, kind: str, key: JobKey, start: int, default: int) -> AsyncGenerator[TimedLine]:
        """Yield the records from index ``start`` on. ``default``: their time if the source does not report it."""
        source = self._project.source
        with reading(kind):
            if kind == "samples":
                while lines := await source.samples.page(key, start):
                    for index, line in enumerate(lines, start):
                        yield TimedLine(index, default, line)
                    start += len(lines)
                return
            records: JobRecords = getattr(source, kind)
            last = start - 1
            async with aclosing(records.stored(key, start)) as found:
                async for record in found:
                    # Records with one number would be held together, without a limit.
                    if record.number <= last:
                        raise NotCopied(f"the source has sent record {record.number} after record {last}")
                    last = record.number
                    yield TimedLine(record.number, default if record.ts is None else record.ts, record.line)
