"""Copies of finished jobs: metadata, records, comments."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import timezone
from typing import Any, Final

from scrapy_ext.api.platform.deliveries import JobRestore
from scrapy_ext.api.platform.imports import (
    COMMENTS,
    RECORD_KINDS,
    BegunImport,
    FinishedImport,
    ImportedComment,
    ImportedSpider,
)
from scrapy_ext.api.platform.jobs import JobState, QueueEntry
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform.errors import Gone, NotFound
from scrapy_ext.client.platform.imports import StoredImport
from scrapy_ext.client.platform.resource import PAGE
from scrapy_ext.commands.importing.context import ABSENT, JOBS, OF_JOBS, REFUSED, ProjectImport, refusal
from scrapy_ext.commands.importing.records import JobMove, NotCopied, RecordsImport, Removed, reading, storing
from scrapy_ext.compatibility.python import datetime_of_iso

_FINISHED: Final = JobState.FINISHED.value
_RUNNING: Final = JobState.RUNNING.value
#: Metadata of a deleted job that is about its deletion.
_OF_DELETION: Final = frozenset({"deleted_time", "deleted_by"})
#: Jobs in one query for removed records.
_AT_ONCE: Final = 100
_DELETED: Final = "it was deleted in the target after it was copied"


class JobsImport:
    """The jobs of one project."""

    def __init__(self, project: ProjectImport) -> None:
        self._project = project
        #: Numbers of spiders in the target by their numbers in the source.
        self._spiders: dict[int, int] = {}
        self._looked_up: set[int] = set()
        self._commented: set[str] | None = None
        #: Jobs that an interrupted import has begun; this run has continued them.
        self._continued: set[JobKey] = set()
        self._records = RecordsImport(project)

    async def run(self) -> None:
        """Copy all finished jobs that are not copied yet, those that were begun first, then the newest."""
        self._project.row(JOBS)
        await self._note_active()
        await self._continue()
        await self._copy_all()
        self._records.end()

    async def _copy_all(self) -> None:
        project = self._project
        start, first = 0, ""
        total = await project.source.jobq.count(project.old, state=_FINISHED, startts=project.options.since)
        project.jobs_done(0, total)
        while entries := await self._page(start):
            if entries[0].key == first:  # the source ignores the start
                project.note(
                    JOBS, "the source lists its newest jobs only, so that older ones were not found", failed=True
                )
                return
            start, first = start + len(entries), entries[0].key
            await self._copy(entries)
            project.jobs_done(start)

    async def _page(self, start: int) -> list[QueueEntry]:
        project = self._project
        return await project.source.jobq.list(
            project.old, count=PAGE, start=start, state=_FINISHED, startts=project.options.since
        )

    async def _note_active(self) -> None:
        project = self._project
        for state in (JobState.PENDING.value, JobState.RUNNING.value):
            if number := await project.source.jobq.count(project.old, state=state):
                project.note(f"{state} jobs", "a later run copies them when they have finished", number=number)

    async def _copy(self, entries: Sequence[QueueEntry]) -> None:
        there = await self._there(entries)
        row, left = self._project.row(JOBS), list[tuple[JobKey, QueueEntry]]()
        for entry in entries:
            key = JobKey.parse(entry.key)
            if key in self._continued:
                continue
            if self._is_done(key, entry, there.get(key)):
                row.copied_before += 1
            else:
                left.append((key, entry))
        if self._project.options.dry_run:
            await self._dry(left, there)
            return
        incomplete = [key for key, _ in left if _missing(there.get(key))]
        removed = await self._removed(incomplete)
        for key, entry in left:
            job, again = there.get(key), _has_resumed(entry, there.get(key))
            if self._is_done(key, entry, job):  # the source does not offer the rest
                row.copied_before += 1
            elif key in removed and not again and self._kinds() <= {*_copied(job), *_missing(job)}:
                row.copied_before += 1
                for kind in sorted(self._kinds() - {*_copied(job)}):
                    self._project.note(f"{kind} of job {key}", _missing(job)[kind])
            else:
                await self._one(key, again=again)

    async def _one(self, key: JobKey, *, again: bool = False) -> None:
        """Copy a job; what cannot be copied of it is reported."""
        project, row = self._project, self._project.row(JOBS)
        try:
            if await self._job(key, again=again):
                row.copied += 1
                row.compare(equal=True)
            else:
                row.copied_before += 1
        except NotCopied as reason:
            project.note(f"job {key}", str(reason), failed=reason.failed)
        except REFUSED as error:
            project.note(f"job {key}", refusal(error), failed=True)
        project.progressed()

    # ── a dry run ──

    async def _dry(self, left: Sequence[tuple[JobKey, QueueEntry]], there: Mapping[JobKey, StoredImport]) -> None:
        """Count what would be copied, by the list of jobs."""
        project = self._project
        removed = await self._removed([key for key, _ in left])
        for key, entry in left:
            copied = () if _has_resumed(entry, there.get(key)) else _copied(there.get(key))
            project.row(JOBS).would_copy += 1
            for kind, number in (("items", entry.items), ("requests", entry.pages), ("logs", entry.logs)):
                if project.wants(kind) and kind not in copied:
                    project.row(kind).would_copy += number or 0
            if (state := removed.get(key)) is not None:
                where = f"in {state.archive}: restore it in the source first" if state.archive else "removed"
                project.note(f"records of job {key}", f"some are {where}; the job is copied without them")
        project.progressed()

    async def _removed(self, keys: Sequence[JobKey]) -> dict[JobKey, JobRestore]:
        """Return the jobs of which records were removed or archived, as far as the source offers this call."""
        found: dict[JobKey, JobRestore] = {}
        for first in range(0, len(keys), _AT_ONCE):
            with contextlib.suppress(*ABSENT, Gone):
                states = await self._project.source.deliveries.restore_states(keys[first : first + _AT_ONCE])
                found.update({JobKey.parse(state.job): state for state in states if state.state != "available"})
        return found

    # ── jobs that an interrupted import has begun ──

    async def _continue(self) -> None:
        """Complete the jobs of the target whose import was interrupted, whatever this run would copy."""
        project = self._project
        for own, source in await self._begun():
            key = _key_of(project.old, source.removeprefix(f"{project.name}/"))
            if not source.startswith(f"{project.name}/") or key is None:
                reason = f"its import from {source} is not complete: repeat that one, or delete the job"
                project.note(f"job {own} of the target", reason)
            elif project.options.dry_run:
                project.note(f"job {key}", "its import was interrupted; the next one completes it", number=0)
            else:
                self._continued.add(key)
                await self._continue_one(key, own)

    async def _begun(self) -> list[tuple[JobKey, str]]:
        """Return the jobs of the target that are being imported, with their sources."""
        project, keys = self._project, list[JobKey]()
        while some := await project.target.jobq.list(project.new, count=PAGE, start=len(keys), state=_RUNNING):
            keys += [JobKey.parse(entry.key) for entry in some]
        found = await project.target.imports.imported(project.new, keys)
        return [
            (key, job.imported.source)
            for key, job in found.items()
            if job.state == _RUNNING and job.imported is not None and job.imported.time is None
        ]

    async def _continue_one(self, key: JobKey, own: JobKey) -> None:
        project = self._project
        metadata = await self._source_metadata(key)
        state = metadata.get("state", _FINISHED if metadata else JobState.DELETED.value)
        if state == JobState.DELETED.value:
            try:
                await self._end_deleted(key, own, metadata)
            except NotCopied as reason:
                project.note(f"job {key}", str(reason), failed=True)
        else:
            await self._one(key)

    async def _source_metadata(self, key: JobKey) -> dict[str, Any]:
        """Return the metadata of a job; empty if the source does not have the job."""
        with contextlib.suppress(NotFound, Gone):
            return await self._project.source.jobs.metadata(key)
        return {}

    async def _end_deleted(self, key: JobKey, own: JobKey, metadata: Mapping[str, Any]) -> None:
        """Complete a job that the source has deleted before all its records were copied."""
        project = self._project
        begun = await self._begin(key, own)
        reason = "the job was deleted in the source before they were copied completely"
        missing = dict.fromkeys(sorted({*RECORD_KINDS, COMMENTS} - {*begun.copied}), reason)
        kept = {name: value for name, value in metadata.items() if name not in _OF_DELETION}
        with storing():
            await project.target.imports.finish(own, FinishedImport(self._source(key), kept, [], missing=missing))
        numbers = {kind: stop - first for kind, (first, stop) in begun.indexes.items() if stop > first}
        have = ", ".join(f"{number} {kind}" for kind, number in numbers.items()) or "no records"
        project.note(
            f"job {key}",
            f"it was deleted in the source while it was copied; the target keeps what it has ({have}). If you do not "
            f"want it: scrapy platform delete {own}",
        )

    async def _there(self, entries: Sequence[QueueEntry]) -> dict[JobKey, StoredImport]:
        """Return the jobs of the target by their keys in the source."""
        project = self._project
        for entry in entries:
            await self._find_spider(entry)
        keys = {self._own(key): key for entry in entries if (key := JobKey.parse(entry.key)).spider in self._spiders}
        found = await project.target.imports.imported(project.new, list(keys))
        return {keys[key]: job for key, job in found.items()}

    async def _find_spider(self, entry: QueueEntry) -> None:
        """Look up the number of a job's spider in the target, unless it is known."""
        key = JobKey.parse(entry.key)
        if key.spider in self._looked_up:
            return
        self._looked_up.add(key.spider)
        name = entry.spider
        if name is None:  # the document of the API names only key and time
            with contextlib.suppress(*ABSENT, Gone):
                name = (await self._project.source.jobs.metadata(key)).get("spider")
        if isinstance(name, str):
            number = await self._project.target.projects.spider_number(self._project.new, name)
            if number is not None:
                self._know(key.spider, name, number)

    def _know(self, old: int, name: str, number: int) -> None:
        self._spiders[old] = number
        if number != old:
            reason = f"{number} in the target, so that the keys of its jobs are {self._project.new}/{number}/..."
            self._project.note(f"number {old} of spider {name}", reason, number=0)

    def _own(self, key: JobKey) -> JobKey:
        return JobKey(self._project.new, self._spiders[key.spider], key.job)

    def _is_done(self, key: JobKey, entry: QueueEntry, job: StoredImport | None) -> bool:
        if job is None or job.imported is None or job.imported.source != self._source(key):
            return False
        if job.state == JobState.DELETED.value:
            self._project.note(f"job {key}", _DELETED)
            return True
        if job.imported.time is None or not self._kinds() <= {*job.imported.copied}:
            return False
        return not _has_resumed(entry, job)

    def _kinds(self) -> frozenset[str]:
        return frozenset(part for part in OF_JOBS if self._project.wants(part))

    def _source(self, key: JobKey) -> str:
        return f"{self._project.name}/{key.spider}/{key.job}"

    # ── one job ──

    async def _job(self, key: JobKey, *, again: bool) -> bool:
        """Copy a job; ``again``: it was resumed in the source after it was copied.

        Return false if the target had all of it that can be copied.
        """
        project = self._project
        metadata = await self._metadata(key)
        own = await self._target_key(key, str(metadata["spider"]))
        begun = await self._begin(key, own)
        if begun.state == JobState.DELETED.value:
            raise NotCopied(_DELETED, failed=False)
        kinds = [kind for kind in RECORD_KINDS if project.wants(kind) and (again or kind not in begun.copied)]
        move = JobMove(key, own, self._source(key), _end_of(metadata))
        missing = await self._records.copy(kinds, move, begun)
        if any(isinstance(reason, Removed) for reason in missing.values()):
            now = await self._source_metadata(key)
            if now.get("state", _FINISHED if now else JobState.DELETED.value) == JobState.DELETED.value:
                await self._end_deleted(key, own, metadata)
                return True
        await self._finish(key, own, metadata, begun, missing)
        return begun.state == _RUNNING or again or bool(self._kinds() - {*begun.copied, *missing})

    async def _finish(
        self, key: JobKey, own: JobKey, metadata: dict[str, Any], begun: BegunImport, missing: dict[str, NotCopied]
    ) -> None:
        """Complete a job, and report the kinds that were not copied."""
        project, comments = self._project, list[ImportedComment]()
        if project.wants(COMMENTS) and COMMENTS not in begun.copied:
            try:
                comments = await self._comments(key)
            except NotCopied as error:
                missing[COMMENTS] = error
        reasons = {kind: str(reason) for kind, reason in missing.items()}
        end = FinishedImport(self._source(key), metadata, sorted(self._kinds() - {*missing}), comments, reasons)
        with storing():
            await project.target.imports.finish(own, end)
        if comments:
            project.row(COMMENTS).copied += len(comments)
        for kind, reason in missing.items():
            self._records.note(kind, key, reason)

    async def _begin(self, key: JobKey, own: JobKey) -> BegunImport:
        return await self._records.begin(JobMove(key, own, self._source(key)))

    async def _metadata(self, key: JobKey) -> dict[str, Any]:
        try:
            metadata = await self._project.source.jobs.metadata(key)
        except Gone as error:
            raise NotCopied(f"the source does not have it any more: {error.message}", failed=False) from None
        except REFUSED as error:
            raise NotCopied(f"its metadata cannot be read: {error.message}") from None
        if metadata.get("state") == JobState.DELETED.value:
            raise NotCopied("it was deleted in the source", failed=False)
        if metadata.get("state", _FINISHED) != _FINISHED:
            raise NotCopied(f"it is {metadata['state']}; a later run copies it when it has finished", failed=False)
        if not isinstance(metadata.get("spider"), str):
            raise NotCopied("its metadata has no spider")
        return metadata

    async def _target_key(self, key: JobKey, spider: str) -> JobKey:
        project = self._project
        if key.spider not in self._spiders:
            (number,) = await project.target.imports.spiders(project.new, [ImportedSpider(spider, key.spider)])
            self._know(key.spider, spider, number)
        return self._own(key)

    # ── comments ──

    async def _comments(self, key: JobKey) -> list[ImportedComment]:
        project = self._project
        try:
            if self._commented is None:
                self._commented = await project.source.projects.commented(project.old)
        except ABSENT:
            project.absent(COMMENTS)
            return []
        if str(key) not in self._commented:
            return []
        with reading(COMMENTS):
            found = await project.source.projects.comments(key)
        comments = []
        for place, some in found.items():
            item, _, field = place.partition("/")
            comments += [
                ImportedComment(int(item), field, each.text, each.author, _milliseconds(each.created)) for each in some
            ]
        return comments


def _end_of(metadata: Mapping[str, Any]) -> int:
    finished = metadata.get("finished_time")
    return finished if isinstance(finished, int) and finished >= 0 else 0


def _copied(job: StoredImport | None) -> list[str]:
    return job.imported.copied if job is not None and job.imported is not None else []


def _missing(job: StoredImport | None) -> dict[str, str]:
    return job.imported.missing if job is not None and job.imported is not None else {}


def _key_of(project: int, number: str) -> JobKey | None:
    """Return the job ``<spider>/<job>`` of a project; None if it is none."""
    try:
        return JobKey.parse(f"{project}/{number}")
    except ContractError:
        return None


def _has_resumed(entry: QueueEntry, job: StoredImport | None) -> bool:
    """Return true for a job that has finished again in the source after it was copied."""
    if job is None or job.imported is None or job.imported.time is None:
        return False
    return (entry.finished_time or 0) > (job.finished_time or 0)


def _milliseconds(text: str) -> int:
    """Return a time of the app host, which is UTC without a zone, in milliseconds; 0 if it is none."""
    try:
        return max(int(datetime_of_iso(text).replace(tzinfo=timezone.utc).timestamp() * 1000), 0)
    except ValueError:
        return 0
