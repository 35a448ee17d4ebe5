"""Retention: previews of the data that rules remove, and removal in steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.retention import NewRule, Preview, Rule
from scrapy_ext.server.store.collections.selections import Collection
from scrapy_ext.server.store.engine.interface import Engine, Transaction, pause_after
from scrapy_ext.server.store.retention.removing import (
    JOBS_AT_ONCE,
    KeyRange,
    OldRecords,
    Removed,
    find_old,
    remove_jobs,
    remove_old,
)
from scrapy_ext.server.store.rules.purposes import RETENTION, removed_by
from scrapy_ext.server.store.rules.rules import RuleStore
from scrapy_ext.server.store.rules.selection import Wanted

#: One transaction of a removal.
_Batch = Callable[[], Coroutine[Any, Any, Removed]]


async def _collections(tx: Transaction, project: int) -> list[Collection]:
    rows = await tx.fetch("SELECT type, name FROM collections WHERE project = $1 ORDER BY name, type", project)
    return [Collection(project, CollectionType(kind), name) for kind, name in rows]


class RetentionStore(RuleStore[NewRule, Rule]):
    """Rules and their use. ``deleted`` is called after data was removed."""

    def __init__(self, engine: Engine, clock: Callable[[], int], deleted: Callable[[], None]) -> None:
        super().__init__(engine, clock, RETENTION)
        self._deleted = deleted
        #: Totals that this process has removed.
        self.removed = Removed()

    def wanted(self, rule: Rule) -> Wanted | None:
        return None if rule.is_about_collections else removed_by(rule, self._clock())

    async def preview(self, rule: Rule, projects: Sequence[int]) -> Preview:
        """Return the data that a rule would remove now in these projects, and the jobs that go next."""
        total = Preview()
        for project in projects if rule.is_about_collections else ():
            for which in await self._covered(rule, project):
                records = total.records
                async for _, found in self._old(rule, which):
                    total.records += found.records
                    total.bytes += found.size
                total.collections += total.records > records
        return await self._previewed(total, rule, projects)

    async def _covered(self, rule: Rule, project: int) -> list[Collection]:
        return [which for which in await self._engine.read(_collections, project) if rule.covers(which.name)]

    async def _old(self, rule: Rule, which: Collection) -> AsyncIterator[tuple[bytes, OldRecords]]:
        """Yield the old records of a collection, each with the key before them; some are of no records."""
        after, more = b"", True
        while more:
            found = await self._engine.read(find_old, which, rule.before(self._clock()) or 0, after)
            yield after, found
            after, more = found.last, found.more

    # ── removal ──

    async def apply(self, rule: Rule, project: int, *, pause: bool = True) -> AsyncGenerator[Removed, None]:
        """Remove the data of a project that an enabled rule covers; yield after each transaction and each read."""
        batches = self._record_batches(rule, project) if rule.is_about_collections else self._job_batches(rule, project)
        async for batch in batches:
            began = time.monotonic()
            done = await batch() if batch is not None else Removed()
            if done.jobs or done.records:
                self._note(done)
            yield done
            if done.over:
                return
            if pause and batch is not None:
                await asyncio.sleep(pause_after(time.monotonic() - began))

    async def _job_batches(self, rule: Rule, project: int) -> AsyncIterator[_Batch | None]:
        async for page in self._pages(rule, project):
            yield None
            for first in range(0, len(page), JOBS_AT_ONCE):
                keys = [match.key for match in page[first : first + JOBS_AT_ONCE]]
                yield partial(self._engine.write, remove_jobs, self._clock(), rule, keys)

    async def _record_batches(self, rule: Rule, project: int) -> AsyncIterator[_Batch | None]:
        for which in await self._covered(rule, project):
            removed = False
            async for after, found in self._old(rule, which):
                removed = removed or found.records > 0
                if found.records:
                    yield partial(
                        self._engine.write, remove_old, self._clock(), rule, KeyRange(which, after, found.last)
                    )
                else:
                    yield None
            if removed:
                await self._engine.forget_deleted()

    def _note(self, done: Removed) -> None:
        self.removed = self.removed.plus(done)
        if done.jobs:
            self._deleted()
