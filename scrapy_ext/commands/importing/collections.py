"""Copies of collections. A later run reads only what the source has stored since the last complete one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec

from scrapy_ext.api.platform.collections import CollectionName, CollectionType, check_name, parse_type
from scrapy_ext.api.platform.job_data import OWNED_COLLECTIONS
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform.json_lines import StoredLine
from scrapy_ext.commands.importing.batches import TimedLine, batches
from scrapy_ext.commands.importing.context import (
    ABSENT,
    COLLECTIONS,
    REFUSED,
    CollectionProgress,
    Progress,
    ProjectImport,
    refusal,
)
from scrapy_ext.commands.text import counted

#: Milliseconds that a pass reads again before the beginning of the last one: a record may become visible after the time
#: that it has.
_AGAIN: Final = 10 * 60 * 1000
#: Batches after which the position is stored.
_SAVED_AFTER: Final = 20


class CollectionsImport:
    """The collections of one project."""

    def __init__(self, project: ProjectImport, progress: Progress) -> None:
        self._project = project
        self._progress = progress

    async def run(self) -> None:
        """Copy all collections but those whose records belong to jobs; one of the target that is not from this import
        is left as it is."""
        project = self._project
        try:
            found = await project.source.collections.list(project.old)
        except ABSENT:
            project.absent(COLLECTIONS)
            return
        there = {name.name for name in await project.target.collections.list(project.new)}
        for name in found:
            # Their keys have the numbers of the source's spiders, which may have others in the target.
            if name.name in OWNED_COLLECTIONS:
                continue
            label = f"collection {name.type}/{name.name}"
            progress = self._progress.collections.get(_id(name))
            own = {key.partition("/")[2] for key in self._progress.collections}
            if progress is None and name.name in there - own:
                project.note(label, "the target has one of this name that is not from this import", failed=True)
            else:
                await self._one(name, label, progress or CollectionProgress())

    async def _one(self, name: CollectionName, label: str, progress: CollectionProgress) -> None:
        """Copy a collection, or count its records for a dry run; one that cannot be copied is reported."""
        project = self._project
        try:
            check_name(name.name)
            parse_type(name.type)
            if project.options.dry_run:
                await self._dry(name, label)
            else:
                await self._copy(name, progress)
        except ContractError as error:
            project.note(label, f"the target refuses it: {error}", failed=True)
        except REFUSED as error:
            project.note(label, refusal(error), failed=True)

    async def _dry(self, name: CollectionName, label: str) -> None:
        project, row = self._project, self._project.row(label)
        given = await project.source.collections.count(project.old, name.type, name.name)
        if _id(name) in self._progress.collections:
            have = await project.target.collections.count(project.new, name.type, name.name)
            row.copied_before = min(have, given)
        row.would_copy = given - row.copied_before

    async def _copy(self, name: CollectionName, progress: CollectionProgress) -> None:
        project = self._project
        self._progress.collections[_id(name)] = progress
        if progress.began is None:
            progress.began = await project.source.system.timestamp()
            progress.after = None
            await project.save(self._progress)
        row, number = project.row(COLLECTIONS), 0
        async with aclosing(self._read(name, progress)) as lines, aclosing(batches(lines)) as found:
            async for batch in found:
                await project.target.imports.write_collection(project.new, name.type, name.name, batch.body, batch.runs)
                row.copied += batch.records
                row.bytes += len(batch.body)
                number += 1
                if number % _SAVED_AFTER == 0:
                    progress.after = msgspec.json.decode(batch.last, type=_Keyed).key
                    await project.save(self._progress)
                project.progressed()
        await self._verify(name)
        self._progress.collections[_id(name)] = CollectionProgress(done=progress.began)
        await project.save(self._progress)

    async def _read(self, name: CollectionName, progress: CollectionProgress) -> AsyncGenerator[TimedLine]:
        """Yield the records that the target lacks, as lines with their key; copies of a record the oldest first."""
        project, source = self._project, self._project.source.collections
        startts = None if progress.done is None else max(progress.done - _AGAIN, 0)
        where = (project.old, name.type, name.name)
        index = 0
        async with aclosing(source.stored(*where, startafter=progress.after, startts=startts)) as records:
            async for record in records:
                if startts is not None and await self._is_there(name, record):
                    continue
                for copy in await self._copies(name, record):
                    yield TimedLine(index, copy.ts or progress.began or 0, _with_key(copy))
                index += 1

    async def _copies(self, name: CollectionName, record: StoredLine) -> list[StoredLine]:
        copies = CollectionType(name.type).copies
        if copies == 1:
            return [record]
        project = self._project
        found = await project.source.collections.copies(project.old, name.type, name.name, record.key, copies)
        return [*reversed(found)] if found else [record]

    async def _is_there(self, name: CollectionName, record: StoredLine) -> bool:
        project = self._project
        found = project.target.collections.iter(
            project.new, name.type, name.name, keys=[record.key], meta=("_key", "_ts")
        )
        async with aclosing(found) as records:
            async for present in records:
                return record.ts is not None and present["_ts"] >= record.ts
        return False

    async def _verify(self, name: CollectionName) -> None:
        """Compare the numbers of records; the target may have more, which were stored there."""
        project, row = self._project, self._project.row(COLLECTIONS)
        label = f"collection {name.type}/{name.name}"
        given = await project.source.collections.count(project.old, name.type, name.name)
        have = await project.target.collections.count(project.new, name.type, name.name)
        row.compare(equal=have >= given)
        if have < given:
            reason = f"the source counts {given} records, and the target has {have}; repeat the import"
            project.note(label, reason, failed=True, number=given - have)
        elif have > given:
            reason = f"the target has {counted(have - given, 'record')} that the source does not have (any more)"
            project.note(label, reason, number=0)


def _id(name: CollectionName) -> str:
    return f"{name.type}/{name.name}"


def _with_key(record: StoredLine) -> bytes:
    rest = record.line[1:]
    key = b'{"_key":' + msgspec.json.encode(record.key)
    return key + (rest if rest.lstrip().startswith(b"}") else b"," + rest)


class _Keyed(msgspec.Struct, rename={"key": "_key"}):
    key: str
