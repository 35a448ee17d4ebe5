"""Base of the stores of rules: the rules of one purpose, the jobs that match them, and previews."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Generic, TypeVar

from scrapy_ext.api.platform.rules import JobsPreview, NextJob
from scrapy_ext.server.store.engine.interface import Engine, EngineStore
from scrapy_ext.server.store.rules.rows import NewT, RuleRows, RuleT
from scrapy_ext.server.store.rules.selection import START, Match, MatchPage, Position, Wanted, match_page

PreviewT = TypeVar("PreviewT", bound=JobsPreview)

#: Number of the next jobs in a preview.
NEXT: Final = 20


class RuleStore(EngineStore, Generic[NewT, RuleT]):
    """Rules of one purpose. ``project`` None: rules of the server."""

    def __init__(self, engine: Engine, clock: Callable[[], int], rows: RuleRows[NewT, RuleT]) -> None:
        super().__init__(engine, clock)
        self._rows = rows

    async def add(self, project: int | None, new: NewT) -> RuleT:
        """Add a rule; raise :class:`ContractError` when there are too many."""
        return await self._engine.write(self._rows.add, self._clock(), project, new)

    async def listed(self, project: int | None) -> list[RuleT]:
        """Return the rules of a project, or those of the server."""
        return await self._engine.read_inline(self._rows.listed, project)

    async def in_force(self, project: int) -> list[RuleT]:
        """Return the rules of the server and of a project, also those that are off."""
        return [*await self.listed(None), *await self.listed(project)]

    async def enabled(self) -> list[RuleT]:
        """Return the enabled rules of the server and of all projects."""
        return await self._engine.read_inline(self._rows.enabled)

    async def get(self, project: int | None, number: int) -> RuleT | None:
        return await self._engine.read_inline(self._rows.find, project, number)

    async def enable(self, project: int | None, number: int, enabled: bool) -> RuleT | None:
        """Enable a rule, or disable it; return it, or None when there is none."""
        return await self._engine.write(self._rows.enable, self._clock(), project, number, enabled)

    async def remove(self, project: int | None, number: int) -> bool:
        """Remove a rule; return whether there was one."""
        return await self._engine.write(self._rows.remove, project, number)

    def wanted(self, rule: RuleT) -> Wanted | None:
        """Return the jobs that a rule is about; None for a rule about other data."""
        raise NotImplementedError

    # ── previews ──

    async def preview(self, rule: RuleT, projects: Sequence[int]) -> JobsPreview:
        """Return the data that a rule would apply to now in these projects, and the jobs that are next."""
        return await self._previewed(JobsPreview(), rule, projects)

    def unstored(self, project: int | None, new: NewT) -> RuleT:
        """Return a rule for a preview before it is added."""
        return self._rows.unstored(project, new)

    async def _previewed(self, total: PreviewT, rule: RuleT, projects: Sequence[int]) -> PreviewT:
        for project in projects:
            async for page in self._pages(rule, project):
                total.jobs += len(page)
                total.records += sum(match.records for match in page)
                total.bytes += sum(match.bytes for match in page)
        total.next = await self.next_jobs([rule], projects)
        return total

    async def next_jobs(self, of: Sequence[RuleT], projects: Sequence[int], count: int = NEXT) -> list[NextJob]:
        """Return the jobs that these rules apply to next, and when."""
        return heapq.nsmallest(
            count,
            [each for rule in of for project in projects for each in await self._next(rule, project, count)],
            key=lambda each: (each.due, each.finished, each.job),
        )

    async def _next(self, rule: RuleT, project: int, count: int) -> list[NextJob]:
        if (wanted := self.wanted(rule)) is None:
            return []
        found: list[Match] = []
        async for page in self._pages(rule, project, any_age=True):
            found += page
            if len(found) >= count:
                break
        now = self._clock()
        age = now - (wanted.conditions.before(now) or now)
        return [
            NextJob(
                job=str(match.key),
                spider=match.spider,
                what=rule.what,
                rule=rule.id,
                of_server=rule.project is None,
                finished=match.changed,
                due=max(match.changed + age, now) if age else now,
                records=match.records,
                bytes=match.bytes,
            )
            for match in found[:count]
        ]

    async def _pages(self, rule: RuleT, project: int, *, any_age: bool = False) -> AsyncIterator[list[Match]]:
        """Yield the jobs that match, the oldest first; some pages are empty."""
        after: Position | None = START
        while after is not None:
            page = await self.page(rule, project, after, any_age=any_age)
            yield page.matches
            after = page.after

    async def page(self, rule: RuleT, project: int, after: Position = START, *, any_age: bool = False) -> MatchPage:
        """Return the jobs that match among the next ones after a position."""
        if (wanted := self.wanted(rule)) is None:
            return MatchPage([], None)
        return await self._engine.read(
            match_page, project, wanted, self._clock(), after, any_age=any_age, only_with_data=any_age
        )
